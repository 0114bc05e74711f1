"""Moves of workers between servers, as orders (SPEC G-69)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gandiva_core.messages.events import Event, JobFinished
from gandiva_core.model.units import JobId, ServerId
from tests.yarn_plugin.bridge.applications import APP, ATTEMPT, Cluster, ask, running_gang
from yarn_plugin.bridge.asks import FIRST_MOVE_ID
from yarn_plugin.bridge.moves import ASK_S_MAX, MoveDesk, MoveRefusedError
from yarn_plugin.bridge.wire import Answer, Ask, LetGoOrder, MoveOrder

JOB = JobId(APP)


def to(*servers: str) -> tuple[ServerId, ...]:
    return tuple(ServerId(server) for server in servers)


def wanted(request_id: int, host: str) -> tuple[Ask, ...]:
    """What a master asks when it is told to move a worker."""
    names = (host, "/r", "*")
    return tuple(
        Ask(
            priority=1,
            count=1,
            memory_mib=1024,
            vcores=1,
            gpus=1,
            allocation_request_id=request_id,
            resource_name=name,
            relax_locality=False,
        )
        for name in names
    )


def begun() -> tuple[Cluster, MoveDesk]:
    """A gang on n1 and n2 whose master was told to move it to n3 and n4."""
    cluster = running_gang()
    desk = MoveDesk(cluster.register)
    assert desk.begin(7, JOB, to("n3:1", "n4:1"), 0.0) == [
        MoveOrder("move/7/1000000", "c1", "n3:1", FIRST_MOVE_ID),
        MoveOrder("move/7/1000001", "c2", "n4:1", FIRST_MOVE_ID + 1),
    ]
    return cluster, desk


def warmed() -> tuple[Cluster, MoveDesk]:
    """The same, with its new containers."""
    cluster, desk = begun()
    asked(cluster, *wanted(FIRST_MOVE_ID, "n3"), *wanted(FIRST_MOVE_ID + 1, "n4"))
    (order,) = desk.due()
    booked = desk.book(Answer(order.id, "OK", containers=("d1", "d2")))
    assert booked is not None
    assert (booked[0], booked[1].containers) == (7, ("d1", "d2"))
    return cluster, desk


def asked(cluster: Cluster, *asks: Ask) -> Sequence[Event]:
    return cluster.asks(*asks)


def test_a_gang_is_created_whole_once_its_master_has_asked_for_all_of_it() -> None:
    cluster, desk = begun()
    assert desk.due() == []
    assert asked(cluster, *wanted(FIRST_MOVE_ID, "n3")) == [], "such asks form no job"
    assert desk.due() == []
    assert asked(cluster, *wanted(FIRST_MOVE_ID, "n3"), *wanted(FIRST_MOVE_ID + 1, "n4")) == []
    (order,) = desk.due()
    assert order.attempt == ATTEMPT
    assert [(c.node, c.allocation_request_id) for c in order.containers] == [
        ("n3:1", FIRST_MOVE_ID),
        ("n4:1", FIRST_MOVE_ID + 1),
    ]
    assert desk.due() == [], "once"


def test_an_ask_for_another_node_or_size_is_not_the_moves() -> None:
    cluster, desk = begun()
    asked(cluster, *wanted(FIRST_MOVE_ID, "n1"), *wanted(FIRST_MOVE_ID + 1, "n4"))
    assert desk.due() == []


def test_at_its_end_the_job_has_the_new_containers_and_the_old_ones_mean_nothing() -> None:
    cluster, desk = warmed()
    assert desk.end(7, is_done=True) == [
        LetGoOrder("move/7/c1", "c1"),
        LetGoOrder("move/7/c2", "c2"),
    ]
    assert cluster.ends("c1") == []
    assert cluster.ends("c2", -105, "n2:1") == []
    gang = cluster.register.apps[APP].gangs[JOB]
    assert [(m.container, m.node) for m in gang.members] == [("d1", "n3:1"), ("d2", "n4:1")]
    assert cluster.ends("d1", 0, "n3:1") == []
    assert cluster.ends("d2", 0, "n4:1") == [JobFinished(2.0, JOB)]


def test_called_off_the_job_stays_where_it_was() -> None:
    cluster, desk = warmed()
    assert desk.end(7, is_done=False) == [
        LetGoOrder("move/7/d1", "d1"),
        LetGoOrder("move/7/d2", "d2"),
    ]
    assert cluster.ends("d1", -105, "n3:1") == []
    assert cluster.ends("c1") == []
    assert cluster.ends("c2") == [JobFinished(2.0, JOB)]
    assert desk.end(7, is_done=False) == [], "it is over"


def test_a_refused_commit_ends_the_move_and_another_may_begin() -> None:
    cluster, desk = begun()
    asked(cluster, *wanted(FIRST_MOVE_ID, "n3"), *wanted(FIRST_MOVE_ID + 1, "n4"))
    (order,) = desk.due()
    booked = desk.book(Answer(order.id, "NO_ROOM", "full"))
    assert booked is not None
    assert booked[1].containers == ()
    assert desk.end(7, is_done=False) == []
    ids = [o.allocation_request_id for o in desk.begin(8, JOB, to("n3:1", "n4:1"), 0.0)]
    assert ids == [FIRST_MOVE_ID + 2, FIRST_MOVE_ID + 3], "ids of their own"


def test_who_is_there_already_gets_a_new_container_too() -> None:
    """Ranks find each other anew, all of them."""
    cluster = running_gang()
    desk = MoveDesk(cluster.register)
    orders = desk.begin(1, JOB, to("n1:1", "n3:1"), 0.0)
    assert [(order.container, order.node) for order in orders] == [("c1", "n1:1"), ("c2", "n3:1")]


def test_a_master_that_does_not_ask_is_late_and_told_of_once() -> None:
    """One of another framework ignores the message; the move must not stay open for ever."""
    _, desk = begun()
    assert desk.next_at_s() == ASK_S_MAX
    assert desk.late(ASK_S_MAX - 0.1) == []
    assert desk.late(ASK_S_MAX) == [(7, JOB)]
    assert desk.late(ASK_S_MAX + 1.0) == []
    assert desk.next_at_s() is None


def test_workers_as_they_will_be() -> None:
    _, desk = warmed()
    assert [(m.container, m.node) for m in desk.arrivals(7)] == [("d1", "n3:1"), ("d2", "n4:1")]
    assert desk.arrivals(8) == []


def test_a_worker_that_was_lost_meanwhile_is_not_brought_back_by_the_end() -> None:
    cluster, desk = warmed()
    cluster.ends("c1", 1)
    assert desk.end(7, is_done=True) == [
        LetGoOrder("move/7/d1", "d1"),
        LetGoOrder("move/7/d2", "d2"),
    ]


@pytest.mark.parametrize(
    ("job", "servers", "said"),
    [
        ("application_9_9", to("n3:1", "n4:1"), "has left"),
        (APP, to("n3:1"), "1 servers for 2 workers"),
        (APP, to("n3:1", "n9:1"), "no such server n9:1"),
    ],
)
def test_what_cannot_begin_says_why(job: str, servers: tuple[ServerId, ...], said: str) -> None:
    desk = MoveDesk(running_gang().register)
    with pytest.raises(MoveRefusedError, match=said):
        desk.begin(1, JobId(job), servers, 0.0)


def test_one_move_of_a_job_at_a_time_and_only_of_a_whole_one() -> None:
    _, desk = begun()
    with pytest.raises(MoveRefusedError, match="moves already"):
        desk.begin(8, JOB, to("n3:1", "n4:1"), 0.0)
    waiting = Cluster()
    waiting.add_app("gandiva.gang=2")
    waiting.asks(ask(2))
    with pytest.raises(MoveRefusedError, match="not all of its containers"):
        MoveDesk(waiting.register).begin(1, JOB, to("n3:1", "n4:1"), 0.0)


def test_answers_to_other_orders_are_none_of_its_business() -> None:
    _, desk = begun()
    assert desk.book(Answer("3/" + APP, "OK", containers=("x",))) is None
    assert desk.book(Answer("move/99", "OK")) is None
