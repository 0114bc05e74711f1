"""When faults strike and when the preemption monitor looks."""

from __future__ import annotations

import pytest

from gandiva_core.messages.events import ServerJoined, ServerLost
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import ServerId
from tests.builders import cluster
from yarn_plugin.replay.faults import FaultPlan, ServerFault
from yarn_plugin.replay.preemption import PreemptionRounds
from yarn_plugin.replay.wire import AddNode, AppFinished, RemoveNode

CHANGE = (AppFinished("j1"),)


def test_faults_come_in_order_of_time() -> None:
    plan = FaultPlan(
        cluster(2),
        [ServerFault(ServerId("s02"), 30.0), ServerFault(ServerId("s01"), 10.0, 40.0)],
    )
    seen = []
    while (at_s := plan.next_at_s()) is not None:
        assert list(plan.due(at_s - 1.0)) == []
        seen += [(at_s, type(action), type(told)) for action, told in plan.due(at_s)]
    assert seen == [
        (10.0, RemoveNode, ServerLost),
        (30.0, RemoveNode, ServerLost),
        (40.0, AddNode, ServerJoined),
    ]


def test_a_fault_of_an_unknown_server_is_an_input_error() -> None:
    with pytest.raises(InputError, match="s99"):
        FaultPlan(cluster(2), [ServerFault(ServerId("s99"), 1.0)])


def test_the_monitor_looks_while_somebody_waits_and_for_as_long_as_a_kill_takes() -> None:
    rounds = PreemptionRounds(interval_s=3.0, wait_before_kill_s=15.0)
    assert rounds.next_at_s() is None
    rounds.seen(100.0, CHANGE, waits=True)
    times = []
    while (at_s := rounds.next_at_s()) is not None:
        assert not rounds.is_due(at_s - 0.1)
        assert rounds.is_due(at_s)
        rounds.seen(at_s, (), waits=True)
        times.append(at_s)
    assert times == [103.0 + 3.0 * n for n in range(7)]
    assert times[-1] - times[0] >= 15.0


def test_the_monitor_rests_when_nobody_waits() -> None:
    rounds = PreemptionRounds()
    rounds.seen(0.0, CHANGE, waits=True)
    rounds.seen(1.0, CHANGE, waits=False)
    assert rounds.next_at_s() is None


def test_a_change_in_between_starts_the_count_again_but_not_the_clock() -> None:
    rounds = PreemptionRounds(interval_s=3.0, wait_before_kill_s=3.0)
    rounds.seen(0.0, CHANGE, waits=True)
    assert rounds.is_due(3.0)
    rounds.seen(4.0, CHANGE, waits=True)
    assert rounds.next_at_s() == 6.0
    assert [rounds.is_due(at_s) for at_s in (6.0, 9.0, 12.0, 15.0)] == [True, True, True, False]
