"""Who is admitted first: between queues by guarantees, inside one by its ordering policy (DESIGN §4)."""

from __future__ import annotations

import msgspec

from gandiva_core.conformance.world import Work
from gandiva_core.messages import events as e
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, QueueName
from tests.builders import job, server
from tests.policies.stage import FOR_EVER_S, Stage, arriving


def queues(ordering: str = "fifo", **guaranteed: float) -> e.QueuesConfigured:
    root = QueueName("root")
    rows = [QueueLimit(root, 4.0, 4.0)]
    rows += [
        QueueLimit(QueueName(f"root.{name}"), share, 4.0, "root", ordering=ordering)
        for name, share in guaranteed.items()
    ]
    return e.QueuesConfigured(0.0, tuple(rows))


def of(spec: JobSpec, *, user: str = "", priority: int = 0) -> JobSpec:
    return msgspec.structs.replace(spec, user=user, priority=priority)


def order_of(stage: Stage, *names: str) -> list[str]:
    """In which order jobs were placed."""
    return [name for name, _, _ in stage.placements() if name in names]


def full_then(*jobs: JobSpec, first: list[Work], ordering: str, **guaranteed: float) -> Stage:
    """A server without room, jobs that come while there is none, and then an end."""
    machine = server("s1", can_suspend=False)
    works = [*first, *arriving(*jobs, at_s=1.0, run_s=100.0)]
    return Stage([machine], works, facts=[queues(ordering, **guaranteed)]).run(10_000.0)


class TestInsideAQueue:
    def test_fifo_goes_by_priority_then_by_submission(self) -> None:
        first = arriving(job("x", 4, queue="root.q"), run_s=10.0)
        jobs = [
            of(job("a", 4, queue="root.q")),
            of(job("b", 4, queue="root.q"), priority=1),
            of(job("c", 4, queue="root.q"), priority=1),
        ]
        stage = full_then(*jobs, first=first, ordering="fifo", q=4.0)
        assert order_of(stage, "a", "b", "c") == ["b", "c", "a"]

    def test_fifo_holds_without_limits_too(self) -> None:
        works = arriving(job("x", 4), run_s=10.0)
        works += arriving(job("a", 4), of(job("b", 4), priority=1), at_s=1.0, run_s=10.0)
        stage = Stage([server("s1", can_suspend=False)], works).run(100.0)
        assert order_of(stage, "a", "b") == ["b", "a"]

    def test_nobody_is_suspended_for_a_priority(self) -> None:
        """Two residents of one device share it equally, whatever their priorities."""
        jobs = [job("a"), of(job("b"), priority=9)]
        stage = Stage([server("s1", 1)], arriving(*jobs)).run(40 * 60.0)
        assert stage.ran_s("a") == stage.ran_s("b")

    def test_fair_goes_by_what_the_application_has(self) -> None:
        """Gangs of one application after its first are `app#2` and so on; priorities count for nothing."""
        first = arriving(job("app", 2, queue="root.q"), run_s=FOR_EVER_S)
        first += arriving(job("x", 2, queue="root.q"), run_s=10.0)
        jobs = [of(job("app#2", 2, queue="root.q"), priority=5), job("other", 2, queue="root.q")]
        stage = full_then(*jobs, first=first, ordering="fair", q=4.0)
        assert order_of(stage, "app#2", "other") == ["other", "app#2"]

    def test_fair_then_goes_by_what_the_user_has(self) -> None:
        first = arriving(of(job("y", 2, queue="root.q"), user="anna"), run_s=FOR_EVER_S)
        first += arriving(of(job("x", 2, queue="root.q"), user="bob"), run_s=10.0)
        jobs = [
            of(job("a1", 1, queue="root.q"), user="anna"),
            of(job("b1", 1, queue="root.q"), user="bob"),
            of(job("b2", 1, queue="root.q"), user="bob"),
        ]
        stage = full_then(*jobs, first=first, ordering="fair", q=4.0)
        assert order_of(stage, "a1", "b1", "b2") == ["b1", "b2", "a1"]


class TestBetweenQueues:
    def test_the_least_served_comes_first(self) -> None:
        """P has half of its guarantee, q nothing: q's job is first although it came last."""
        first = arriving(job("p0", 1, queue="root.p"), run_s=FOR_EVER_S)
        first += arriving(job("x", 3, queue="root.q"), run_s=10.0)
        jobs = [job("p1", 3, queue="root.p"), job("q1", 3, queue="root.q")]
        stage = full_then(*jobs, first=first, ordering="fifo", p=2.0, q=2.0)
        assert order_of(stage, "p1", "q1") == ["q1", "p1"]

    def test_queues_without_a_guarantee_come_last(self) -> None:
        first = arriving(job("q0", 1, queue="root.q"), run_s=FOR_EVER_S)
        first += arriving(job("x", 3, queue="root.q"), run_s=10.0)
        jobs = [job("o1", 3, queue="root.o"), job("q1", 3, queue="root.q")]
        stage = full_then(*jobs, first=first, ordering="fifo", q=4.0, o=0.0)
        assert order_of(stage, "o1", "q1") == ["q1", "o1"]


class TestKeptPlaces:
    """Over-subscribing leaves places for residents to queues that lack some of their guarantee."""

    def test_they_are_left_and_the_reason_is_told(self) -> None:
        jobs = [job(f"b{n:02d}", queue="root.b") for n in range(16)]
        stage = Stage([server("s1")], arriving(*jobs), facts=[queues(a=3.0, b=1.0)]).run(100.0)
        assert stage.engine.view.queues[QueueName("root.b"), ""].resident == 13
        [*_, (name, reason)] = stage.reasons()
        assert (name, reason.code) == ("b15", "guarantees")
        assert reason.have == "3 places for residents, 3 of them kept for guarantees"

    def test_their_queue_takes_them(self) -> None:
        works = arriving(*[job(f"b{n:02d}", queue="root.b") for n in range(16)])
        works += arriving(*[job(f"a{n}", queue="root.a") for n in range(3)], at_s=1.0)
        stage = Stage([server("s1")], works, facts=[queues(a=3.0, b=1.0)]).run(100.0)
        assert stage.engine.view.queues[QueueName("root.a"), ""].resident == 3

    def test_free_devices_are_lent_to_anybody(self) -> None:
        works = arriving(*[job(f"b{n}", queue="root.b") for n in range(4)])
        stage = Stage([server("s1")], works, facts=[queues(a=4.0, b=0.0)]).run(10.0)
        assert len(stage.running()) == 4
        assert JobId("b3") in stage.engine.view.jobs
