"""The tiny world: when things stop, start and end."""

from __future__ import annotations

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import Delays, SmallWorld, Work
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.model.units import JobId
from gandiva_core.policies.gandiva import create
from tests.builders import job, server


def world(works: list[Work], **options: object) -> SmallWorld:
    """One 4-GPU server under Gandiva."""
    settings = Settings()
    engine = Engine(create(settings, {}), settings, check="full")
    return SmallWorld(engine, [server("S0")], works, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("reports_each", [False, True])
def test_time_that_ran_adds_up(reports_each: bool) -> None:
    """Two gangs that take turns: both run exactly what they need, plus what switching takes between them."""
    delays = Delays(lambda _: 0.5, lambda _: 0.25, reports_each)
    works = [Work(0.0, job("a", 4), 300.0), Work(0.0, job("b", 4), 300.0)]
    run = world(works, delays=delays)
    run.run()
    assert run.ran_s == {"a": pytest.approx(300.0), "b": pytest.approx(300.0)}
    assert 600.0 < max(run.finished_at_s.values()) < 600.0 + 12 * 0.75
    assert not run.unfinished


def test_a_job_that_ends_before_its_stop_is_not_reported_stopped() -> None:
    """It needs 0.2 s more when told to stop, and stopping takes 0.5 s."""
    delays = Delays(lambda _: 0.5, lambda _: 0.0)
    run = world([Work(0.0, job("a", 4), 60.2), Work(0.0, job("b", 4), 60.0)], delays=delays)
    run.run()
    assert run.finished_at_s[JobId("a")] == pytest.approx(60.2)
    stopped = [
        j
        for event, _ in run.journal
        if isinstance(event, e.ResidentsSwitched)
        for j, _ in event.stopped
    ]
    assert "a" not in stopped


def test_a_broken_gang_begins_again() -> None:
    """This world has no checkpoints: 50 s are lost."""
    broken = e.GangBroken(50.0, JobId("a"), "lost")
    run = world([Work(0.0, job("a"), 80.0)], facts=[broken])
    run.run()
    assert run.finished_at_s == {"a": 130.0}
    assert run.ran_s == {"a": pytest.approx(130.0)}


def test_a_round_without_end_is_noticed() -> None:
    """More events than allowed."""
    works = [Work(0.0, job("a", 4), 1e9), Work(0.0, job("b", 4), 1e9)]
    with pytest.raises(AssertionError, match="no end after 50 events"):
        world(works).run(events_max=50)
