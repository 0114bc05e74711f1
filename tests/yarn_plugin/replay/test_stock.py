"""The order in which a stock arm's steps are told, with a scripted ResourceManager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gandiva_core.messages.events import (
    ContainersHeld,
    Event,
    GangBroken,
    GangCommitted,
    JobFailed,
    JobFinished,
    JobSubmitted,
)
from gandiva_core.model.units import JobId
from tests.builders import cluster, job
from tests.yarn_plugin.replay.test_holding import container
from yarn_plugin.replay.stock import StockSubstrate
from yarn_plugin.replay.wire import (
    Action,
    Allocated,
    AppAccepted,
    AppFinished,
    AppRejected,
    Ask,
    AskRefused,
    Completed,
    Ended,
    Finish,
    HarnessEvent,
    Preempted,
    Release,
)


class ScriptedRm:
    """Answers each step with the next of its answers, and keeps what it was told to do."""

    def __init__(self, *answers: Sequence[HarnessEvent]) -> None:
        self._answers = list(answers)
        self.steps: list[Sequence[Action]] = []
        self.is_closed = False

    def step(self, _: float, actions: Sequence[Action]) -> Sequence[HarnessEvent]:
        self.steps.append(list(actions))
        return self._answers.pop(0) if self._answers else ()

    def close(self) -> None:
        self.is_closed = True


def substrate(*answers: Sequence[HarnessEvent]) -> tuple[StockSubstrate, ScriptedRm]:
    rm: Any = ScriptedRm(*answers)
    return StockSubstrate(rm, cluster(2)), rm


def kinds(events: Sequence[Event]) -> list[tuple[type[Event], str]]:
    """Type and job of each event."""
    return [(type(e), e.job.job_id if isinstance(e, JobSubmitted) else _job(e)) for e in events]


def _job(event: Any) -> str:
    return str(event.job_id)


def test_jobs_are_told_before_their_gangs() -> None:
    opened, rm = substrate(
        [
            AppAccepted("a", "app1"),
            Allocated("a", (container(1),)),
            Allocated("a", (container(2),)),
            AppRejected("b", "no\n such  queue"),
        ]
    )
    events = opened.submit(1.0, [job("a", 2), job("b")])
    assert kinds(events) == [
        (JobSubmitted, "a"),
        (ContainersHeld, "a"),
        (GangCommitted, "a"),
        (JobFailed, "b"),
    ]
    assert events[-1] == JobFailed(1.0, JobId("b"), "no such queue")
    assert len(rm.steps) == 1


def test_ends_are_told_before_what_they_free_is_given_again() -> None:
    opened, _ = substrate(
        [Allocated("a", (container(1),))],
        [Allocated("b", (container(2),)), AppFinished("a", "SUCCEEDED", "FINISHED")],
    )
    opened.submit(1.0, [job("a"), job("b")])
    assert kinds(opened.finish(2.0, [JobId("a")])) == [(JobFinished, "a"), (GangCommitted, "b")]


def test_a_broken_gang_gives_the_rest_back_and_asks_again_as_a_whole() -> None:
    opened, rm = substrate(
        [Allocated("a", (container(1), container(2)))],
        [
            Allocated("b", (container(3),)),
            Preempted("a", (Ended("c1", -102),)),
        ],
        [Completed("a", (Ended("c2", -100),)), Allocated("a", (container(4), container(5)))],
    )
    opened.submit(1.0, [job("a", 2), job("b")])
    events = opened.finish(2.0, [JobId("x")])
    assert kinds(events) == [(GangBroken, "a"), (GangCommitted, "b"), (GangCommitted, "a")]
    release, again = rm.steps[2]
    assert release == Release(key="a", containers=("c2",))
    assert isinstance(again, Ask)
    assert again.asks[0].count == 2


def test_a_gang_whole_and_lost_in_one_step_is_told_in_that_order() -> None:
    opened, _ = substrate(
        [Allocated("a", (container(1),)), Completed("a", (Ended("c1", -100),))],
    )
    assert kinds(opened.submit(1.0, [job("a")]))[1:] == [(GangCommitted, "a"), (GangBroken, "a")]


def test_part_of_a_gang_that_is_lost_is_no_broken_gang() -> None:
    opened, rm = substrate(
        [Allocated("a", (container(1), container(2)))],
        [Preempted("a", (Ended("c1", -102),))],
    )
    opened.submit(1.0, [job("a", 3)])
    assert opened.finish(2.0, [JobId("x")]) == [ContainersHeld(2.0, JobId("a"), 0, 3)]
    assert rm.steps[2][0] == Release(key="a", containers=("c2",))


def test_late_containers_of_an_older_ask_go_back() -> None:
    opened, rm = substrate([Allocated("a", (container(1), container(2), container(3)))])
    events = opened.submit(1.0, [job("a", 2)])
    assert kinds(events) == [(JobSubmitted, "a"), (GangCommitted, "a")]
    assert rm.steps[1] == [Release(key="a", containers=("c3",))]


def test_a_refused_ask_fails_its_job_and_its_master_ends() -> None:
    opened, rm = substrate([AskRefused("a", "too large")], [AppFinished("a", "FAILED")])
    assert kinds(opened.submit(1.0, [job("a")])) == [(JobFailed, "a")]
    assert rm.steps[1] == [Finish(key="a", status="FAILED")]


def test_closing_ends_the_resource_manager() -> None:
    opened, rm = substrate()
    opened.close()
    assert rm.is_closed
