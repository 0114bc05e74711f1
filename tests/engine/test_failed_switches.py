"""Orders that could not be carried out, and jobs that turn out to be unable to stop (G-12; FAULTS A8)."""

from __future__ import annotations

import pytest

from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Switch
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId
from tests.builders import job, on, server
from tests.engine.scene import Scene, run

A, B = JobId("a"), JobId("b")


@pytest.fixture
def scene() -> Scene:
    scene = Scene(server("s1", 2))
    scene.running("a", on("s1", 0))
    scene.settle(job("b"), "s1")
    scene.settle(job("c"), "s1")
    return scene


def test_who_does_not_stop_runs_on_and_keeps_its_device(scene: Scene) -> None:
    """The other one was promised that device: it waits again, and can be given another."""
    switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
    scene.tell(e.SwitchFailed(0.0, switch_id, kept=(A,), reason="NO_BOUNDARY"))
    assert (scene.phase("a"), scene.phase("b")) == (JobPhase.RUNNING, JobPhase.STARTING)
    assert scene.server("s1").holders == ["a", None]
    assert scene.server("s1").claims == [None, None]
    scene.start("b", on("s1", 1))
    assert scene.server("s1").holders == ["a", "b"]


def test_its_time_goes_on_as_if_nobody_had_asked(scene: Scene) -> None:
    scene.now_s = 10.0
    switch_id = scene.switch(suspend=["a"])
    scene.tell(e.SwitchFailed(10.0, switch_id, kept=(A,)))
    scene.now_s = 30.0
    scene.switched(scene.switch(suspend=["a"]), stopped=["a"])
    assert scene.job("a").held_s == 30.0


def test_who_does_not_start_is_as_before_and_its_device_is_free(scene: Scene) -> None:
    scene.switched(scene.switch(suspend=["a"]), stopped=["a"])
    switch_id = scene.switch(run=[run("a", on("s1", 1)), run("b", on("s1", 0))])
    scene.tell(e.SwitchFailed(0.0, switch_id, not_started=(A, B), reason="NO_MEMORY"))
    assert (scene.phase("a"), scene.phase("b")) == (JobPhase.SUSPENDED, JobPhase.STARTING)
    assert scene.server("s1").claims == [None, None]
    scene.start("c", on("s1", 1))


def test_answers_of_another_switch_mean_nothing(scene: Scene) -> None:
    switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
    scene.tell(e.SwitchFailed(0.0, switch_id + 1, kept=(A,), not_started=(B,)))
    assert (scene.phase("a"), scene.phase("b")) == (JobPhase.SUSPENDING, JobPhase.RESUMING)
    assert scene.engine.ignored == 2


def test_a_job_that_cannot_stop_is_never_told_to(scene: Scene) -> None:
    scene.tell(e.JobLearned(0.0, A, can_suspend=False, reason="nothing of it registered"))
    refused = scene.refusal(Switch(suspend=(A,)))
    assert refused == "job a is not to be stopped: nothing of it registered"
    assert not scene.engine.view.can_suspend(A)
    assert scene.server("s1").unsliced == 1
    scene.tell(e.JobLearned(0.0, A, can_suspend=False, reason="nothing of it registered"))
    assert scene.engine.ignored == 1
    scene.tell(e.JobLearned(0.0, A, can_suspend=True))
    scene.switch(suspend=["a"])
    assert scene.server("s1").unsliced == 0


def test_what_was_learned_is_in_a_snapshot(scene: Scene) -> None:
    scene.tell(e.JobLearned(0.0, A, can_suspend=False))
    taken = scene.engine.snapshot()
    again = Engine.restore(taken, scene.policy, scene.settings, check="full")
    assert again.snapshot() == taken
    assert not again.view.can_suspend(A)


@pytest.mark.parametrize(
    "event",
    [
        e.SwitchFailed(0.0, 7, kept=(JobId("x"),)),
        e.SwitchFailed(0.0, 7, not_started=(JobId("x"),)),
        e.JobLearned(0.0, JobId("x"), can_suspend=False),
    ],
)
def test_what_is_about_nobody_is_ignored_and_counted(scene: Scene, event: e.Event) -> None:
    outcome = scene.tell(event)
    assert (outcome.decisions, outcome.effects, scene.engine.ignored) == ((), (), 1)
