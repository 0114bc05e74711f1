"""The suite finds what it is there to find: each broken policy below fails the test meant for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.conformance import PolicyConformance
from gandiva_core.conformance.scenario import Scenario, servers_of, workers_of
from gandiva_core.conformance.world import Work
from gandiva_core.engine.errors import PolicyError
from gandiva_core.messages.decisions import Enqueue, Place, Wait
from gandiva_core.messages.events import Event, JobSubmitted, ResidentsSwitched, TimerFired
from gandiva_core.messages.policy import Decisions, Policy, Switches
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId
from gandiva_core.model.view import ClusterView
from gandiva_core.policies.gandiva import create


class Wrapped:
    """Gandiva with one thing broken."""

    name = "broken"
    mechanisms: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.inner = create(Settings(), {})
        self.events = 0

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        self.events += 1
        yield from self.inner.decide(event, view)


class AsksForTooMuch(Wrapped):
    """Places a job that is placed already."""

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        yield from super().decide(event, view)
        if isinstance(event, JobSubmitted):
            yield Place(event.job.job_id, tuple(view.servers)[:1] * len(event.job.workers), "twice")


class SaysNothing(Wrapped):
    """Leaves new jobs undecided and never looks at them again."""

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        if not isinstance(event, JobSubmitted):
            yield from super().decide(event, view)


class KeepsState(Wrapped):
    """Forgets every fourth boundary report, by its own counter."""

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        inner: Decisions = super().decide(event, view)
        if isinstance(event, TimerFired | ResidentsSwitched | JobSubmitted):
            self.events += 1
            if self.events % 4 == 3 and isinstance(event, JobSubmitted):
                return
        yield from inner


class Loops(Wrapped):
    """Never has enough of one event."""

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        yield from super().decide(event, view)
        if isinstance(event, JobSubmitted) and view.queue:
            while True:
                yield Enqueue(view.queue[0], Wait("again", "", ""))


class Anything(PolicyConformance):
    """The suite about whichever policy a test sets."""

    __test__ = False
    factory: ClassVar[Callable[[], Policy]]

    def create(self, settings: Settings, switches: Switches) -> Policy:
        if switches:
            return create(settings, switches)
        return type(self).factory()


def about(policy: Callable[[], Policy]) -> PolicyConformance:
    """An instance of the suite about a policy."""
    return type("About", (Anything,), {"factory": staticmethod(policy)})()  # type: ignore[no-any-return]


def told(name: str, policy: Callable[[], Policy]) -> None:
    """One of the suite's random tests, on one known story: two servers, and more jobs than they hold."""
    jobs = [JobSpec(JobId(f"j{n}"), workers_of(n % 4 + 1, 1)) for n in range(12)]
    works = tuple(Work(10.0 * n, spec, 150.0) for n, spec in enumerate(jobs))
    scenario = Scenario(tuple(servers_of(2, 4)), works)
    test = getattr(PolicyConformance, name).hypothesis.inner_test
    test(about(policy), scenario)


def test_a_refused_decision_is_a_finding() -> None:
    with pytest.raises(AssertionError, match="not waiting"):
        told("test_drains_any_scenario_without_a_refused_decision", AsksForTooMuch)


def test_an_undecided_job_is_a_finding() -> None:
    with pytest.raises(AssertionError):
        told("test_answers_every_submission_at_once", SaysNothing)
    with pytest.raises(AssertionError):
        about(SaysNothing).test_runs_a_gang_of_any_size(1, "gpu")


def test_state_outside_the_view_is_a_finding() -> None:
    with pytest.raises(AssertionError):
        told("test_keeps_nothing_to_itself", KeepsState)


def test_the_story_itself_is_told_to_the_end_by_a_good_policy() -> None:
    told("test_drains_any_scenario_without_a_refused_decision", Wrapped)
    told("test_answers_every_submission_at_once", Wrapped)
    told("test_keeps_nothing_to_itself", Wrapped)
    told("test_is_deterministic", Wrapped)


def test_an_endless_policy_is_stopped() -> None:
    with pytest.raises(PolicyError, match="decisions on one event"):
        told("test_drains_any_scenario_without_a_refused_decision", Loops)


def test_a_policy_that_takes_any_switch_is_a_finding() -> None:
    class TakesAll(PolicyConformance):
        __test__ = False

        def create(self, settings: Settings, switches: Switches) -> Policy:
            del switches
            return create(settings, {})

    with pytest.raises(pytest.fail.Exception):
        TakesAll().test_refuses_an_unknown_switch()


def test_a_suite_without_a_policy_says_so() -> None:
    with pytest.raises(NotImplementedError, match="which policy"):
        PolicyConformance().policy()
