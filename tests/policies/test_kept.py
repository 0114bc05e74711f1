"""Jobs that nobody may stop: on servers that cannot suspend, or in a queue with slicing off (DESIGN §4, steps)."""

from __future__ import annotations

import pytest

from gandiva_core.conformance.world import Work
from gandiva_core.messages import events as e
from gandiva_core.model.cluster import SLICING, QueueLimit
from gandiva_core.model.units import QueueName, ServerId
from tests.builders import job, server
from tests.policies.stage import FOR_EVER_S, Stage
from tests.policies.test_restart import found

Q = 60.0


def queues(*off: str, gpus: float = 8) -> tuple[QueueLimit, ...]:
    """`root.a` and `root.b`, with slicing off in those named."""
    switched_off = dict.fromkeys(off, (SLICING,))
    root = QueueLimit(QueueName("root"), gpus, gpus)
    return (
        root,
        *(
            QueueLimit(QueueName(q), 1, gpus, "root", mechanisms_off=switched_off.get(q, ()))
            for q in ("root.a", "root.b")
        ),
    )


def suspended(stage: Stage) -> set[str]:
    """Everybody who was ever told to stop."""
    return {job_id for _, switch in stage.switches() for job_id in switch.suspend}


class TestServerThatCannotSuspend:
    def test_jobs_beyond_its_devices_wait_until_others_end(self) -> None:
        """Found six on four devices: the first four run to their end, the others start as devices come free."""
        six = [job(str(n)) for n in range(1, 7)]
        works = [*found(*six[:4], run_s=500.0), *found(*six[4:], run_s=100.0)]
        stage = Stage([server("s1", can_suspend=False)], works).run()
        assert stage.world.finished_at_s == {**dict.fromkeys("1234", 500.0), "5": 600.0, "6": 600.0}
        assert suspended(stage) == set()

    def test_nothing_wakes_where_nothing_can_change(self) -> None:
        six = found(*[job(str(n)) for n in range(6)])
        stage = Stage([server("s1", can_suspend=False)], six).run(100 * Q)
        assert len(stage.world.journal) == 1 + 6 + 4

    def test_gang_that_reaches_onto_it_keeps_all_its_devices(self) -> None:
        """One domain of two servers: four jobs on the other one share equally what the gang leaves there."""
        gang = Work(0.0, job("gang", workers=(2, 2)), FOR_EVER_S, (ServerId("s1"), ServerId("s2")))
        others = [job(str(n)) for n in range(4)]
        servers = [server("s1"), server("s2", can_suspend=False)]
        stage = Stage(servers, [*found(*others), gang]).run(21 * Q)
        assert "gang" not in suspended(stage)
        assert stage.ran_s("gang") >= 20 * Q
        shares = [stage.ran_s(each.job_id) for each in others]
        assert sum(shares) + 2 * stage.ran_s("gang") == pytest.approx(4 * 21 * Q)
        assert max(shares) - min(shares) <= Q

    def test_server_that_can_no_longer_suspend_leaves_its_jobs_where_they_are(self) -> None:
        """Leaving full: who runs runs on, who is suspended waits for an end, nobody is lost."""
        six = [job(str(n)) for n in range(1, 7)]
        joined = e.ServerJoined(3.5 * Q, server("s1", can_suspend=False))
        works = [*found(*six[:5], run_s=10 * Q), *found(six[5], run_s=Q)]
        stage = Stage([server("s1")], works, facts=[joined]).run(3.5 * Q)
        before, running = stage.switches(), stage.running()
        stage.run(5 * Q)
        assert (stage.switches(), stage.running()) == (before, running)
        stage.run()
        assert stage.world.unfinished == ()
        assert all(not switch.suspend for _, switch in stage.switches()[len(before) :])

    def test_server_that_can_suspend_again_rotates_at_once(self) -> None:
        six = [job(str(n)) for n in range(1, 7)]
        joined = e.ServerJoined(100.0, server("s1"))
        stage = Stage([server("s1", can_suspend=False)], found(*six), facts=[joined])
        assert stage.run(99.0).running() == list("1234")
        assert stage.run(100.0).running() == list("1256")


class TestQueueWithSlicingOff:
    def test_its_jobs_keep_their_devices_and_the_rest_is_shared(self) -> None:
        """Two of eight on four devices are never stopped; the other six have a third of the time each."""
        kept = [job(f"a{n}", queue="root.a") for n in range(2)]
        sliced = [job(f"b{n}", queue="root.b") for n in range(6)]
        facts = [e.QueuesConfigured(0.0, queues("root.a"))]
        stage = Stage([server("s1")], found(*sliced, *kept), facts=facts).run(31 * Q)
        assert {name[0] for name in suspended(stage)} == {"b"}
        assert all(stage.ran_s(each.job_id) >= 30 * Q for each in kept)
        shares = [stage.ran_s(each.job_id) for each in sliced]
        assert max(shares) - min(shares) <= Q
        assert sum(shares) >= 60 * Q

    def test_switched_off_while_they_take_turns(self) -> None:
        """From the next boundary on each of them runs, and goes on running."""
        jobs = [job(f"{q}{n}", queue=f"root.{q}") for n in range(3) for q in "ab"]
        off = e.QueuesConfigured(4.5 * Q, queues("root.a"))
        facts = [e.QueuesConfigured(0.0, queues()), off]
        stage = Stage([server("s1")], found(*jobs), facts=facts).run(5 * Q)
        before = {each.job_id: stage.ran_s(each.job_id) for each in jobs}
        stage.run(35 * Q)
        after = {each.job_id: stage.ran_s(each.job_id) - before[each.job_id] for each in jobs}
        assert [s for name, s in after.items() if name < "b"] == [30 * Q] * 3
        assert sum(s for name, s in after.items() if name > "b") == pytest.approx(30 * Q)

    def test_switched_on_again_they_take_turns(self) -> None:
        jobs = [job(f"a{n}", queue="root.a") for n in range(8)]
        on = e.QueuesConfigured(4.5 * Q, queues())
        facts = [e.QueuesConfigured(0.0, queues("root.a")), on]
        stage = Stage([server("s1")], found(*jobs), facts=facts).run(4 * Q)
        assert suspended(stage) == set()
        stage.run(40.5 * Q)
        assert suspended(stage) == {each.job_id for each in jobs}

    def test_a_parents_switch_counts_only_where_it_was_inherited(self) -> None:
        """Who configures the queues resolves inheritance: a queue may switch on what its parent has off."""
        root, _, b = queues()
        rows = (QueueLimit(QueueName("root"), 8, 8, mechanisms_off=(SLICING,)), b)
        assert root.name == rows[0].name
        jobs = [job(f"b{n}", queue="root.b") for n in range(5)]
        facts = [e.QueuesConfigured(0.0, rows)]
        stage = Stage([server("s1")], found(*jobs), facts=facts).run(5 * Q)
        assert suspended(stage)
