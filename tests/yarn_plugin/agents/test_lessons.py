"""What agents' reports teach about jobs (DESIGN §5: the ladder; G-41, G-51; C-4)."""

from __future__ import annotations

import msgspec
import pytest

from gandiva_core.messages import agents as a
from gandiva_core.messages import events as e
from gandiva_core.model.units import JobId
from tests.yarn_plugin.agents.scene import AgentScene
from yarn_plugin.agents.lessons import Lessons

A = JobId("a")
RUNNING = a.WorkerReport("a/0", a.WorkerState.RUNNING, (0,), a.Method.FRAMEWORK, can_move=True)


@pytest.fixture
def scene() -> AgentScene:
    scene = AgentScene("n1", "n2")
    scene.gang("a", "n1", "n2")
    scene.attend("n1")
    scene.attend("n2")
    return scene


def report(rank: int, **values: object) -> a.WorkerReport:
    return msgspec.structs.replace(RUNNING, container_id=f"a/{rank}", **values)


def test_a_gang_can_stop_only_if_every_worker_can(scene: AgentScene) -> None:
    unhooked = report(0, state=a.WorkerState.UNHOOKED, method=None)
    told = scene.measure("n1", unhooked)
    reason = "nothing of it registered with its node's agent"
    assert told == [e.JobLearned(scene.now_s, A, False, reason, reason)]
    assert scene.measure("n1", unhooked) == []
    assert scene.measure("n1", report(0)) == [], "of its sibling nothing is known"
    assert scene.measure("n2", report(1)) == [e.JobLearned(scene.now_s, A, True)]


@pytest.mark.parametrize("method", [a.Method.NONE, a.Method.STOP])
def test_a_rung_that_frees_no_memory_does_not_count(scene: AgentScene, method: a.Method) -> None:
    """DESIGN §5: a stopped process keeps its device memory; nobody says that it was freed."""
    told = scene.measure("n1", report(0, method=method))
    assert told == [e.JobLearned(scene.now_s, A, False, "its client found no way to stop it")]


def test_who_failed_to_stop_is_not_believed_again(scene: AgentScene) -> None:
    switch_id = scene.switch(["a"])
    scene.say("n1", a.Switched(1, switch_id, failed=(a.Failure("a/0", "NO_BOUNDARY"),)))
    assert scene.measure("n1", report(0)) == []
    assert scene.measure("n2", report(1)) == []


def test_the_early_mark_is_the_slowest_workers_and_comes_once(scene: AgentScene) -> None:
    assert scene.measure("n1", report(0, minibatches=150)) == []
    assert scene.measure("n2", report(1, minibatches=99)) == []
    told = scene.measure("n2", report(1, minibatches=100))
    assert told == [e.MinibatchesReached(scene.now_s, A, 100)]
    assert scene.measure("n2", report(1, minibatches=200)) == []


def test_a_profile_is_the_gangs_and_told_again_only_where_it_changed(scene: AgentScene) -> None:
    scene.measure("n1", report(0, minibatch_s=0.1, utilisation_ratio=0.4, memory_peak_mib=900))
    second = report(1, minibatch_s=0.2, utilisation_ratio=0.8, memory_min_mib=100)
    (told,) = scene.measure("n2", second)
    assert isinstance(told, e.JobProfiled)
    figures = (told.minibatch_s, told.memory_peak_mib, told.memory_min_mib)
    assert figures == (0.2, 900, 100)
    assert told.utilisation_ratio == pytest.approx(0.6)
    assert scene.measure("n2", report(1, minibatch_s=0.5)) == [], "too soon"
    scene.pass_time(31.0)
    assert len(scene.measure("n2", report(1, minibatch_s=0.5, memory_min_mib=100))) == 1
    scene.pass_time(31.0)
    assert scene.measure("n2", report(1, minibatch_s=0.52, memory_min_mib=100)) == []


def test_a_profile_is_of_a_job_alone(scene: AgentScene) -> None:
    """G-52: beside others its cycle and use are theirs too; memory is its own, and may outgrow the device (G-59)."""
    alone = report(0, minibatch_s=0.1, minibatch_alone_s=0.1, utilisation_ratio=0.4)
    scene.measure("n1", alone)
    other = report(1, minibatch_s=0.1, minibatch_alone_s=0.1, utilisation_ratio=0.4)
    assert len(scene.measure("n2", other)) == 1
    scene.pass_time(31.0)
    packed = {"minibatch_s": 0.3, "packed_with": ("b/0",), "utilisation_ratio": 1.0}
    assert scene.measure("n2", msgspec.structs.replace(other, **packed)) == []
    grown = msgspec.structs.replace(other, **packed, memory_peak_mib=900)
    (told,) = scene.measure("n2", grown)
    assert isinstance(told, e.JobProfiled)
    assert (told.minibatch_s, told.utilisation_ratio, told.memory_peak_mib) == (0.1, 0.4, 900)


def test_workers_of_nobody_teach_nothing(scene: AgentScene) -> None:
    assert scene.measure("n1", msgspec.structs.replace(RUNNING, container_id="x")) == []


def test_what_is_not_known_is_no_profile(scene: AgentScene) -> None:
    """None is "not known", never 0."""
    scene.measure("n1", report(0, minibatch_s=0.1))
    assert scene.measure("n2", report(1)) == []


def test_jobs_that_have_left_are_forgotten(scene: AgentScene) -> None:
    lessons = Lessons(scene.register, scene.world.attendance.nodes)
    assert lessons.failed(A, "NO_BOUNDARY", 1.0).reason == "NO_BOUNDARY"
    assert lessons.is_unable(A)
    app = scene.register.apps["a"]
    scene.register.remove(app, app.gangs[A])
    assert list(lessons.learn(scene.world.attendance.nodes["n1"], 2.0)) == []
    assert not lessons.is_unable(A)


def test_a_gang_can_move_only_if_every_worker_can(scene: AgentScene) -> None:
    """G-69: its client says so, with the reason; before the probe nobody knows."""
    assert scene.measure("n1", report(0, method=None, can_move=False)) == []
    told = scene.measure("n1", report(0, can_move=False, reason="no loop of ours"))
    assert told == [e.JobLearned(scene.now_s, A, True, fixed="no loop of ours")]
    assert scene.measure("n1", report(0)) == [], "of its sibling nothing is known"
    assert scene.measure("n2", report(1)) == [e.JobLearned(scene.now_s, A, True)]


def test_what_a_client_compared_is_told_for_the_journal(scene: AgentScene) -> None:
    checked = a.ContinuityChecked("a/0", 7.0, "suspend", False, 12, "generators")
    assert scene.say("n1", checked) == [
        e.ContinuityChecked(scene.now_s, A, "a/0", "suspend", False, 12, "generators")
    ]
    scene.register.seconds["a/9"] = A  # where it moves to
    moved = a.ContinuityChecked("a/9", 7.0, "move", True, 13)
    assert scene.say("n1", moved) == [e.ContinuityChecked(scene.now_s, A, "a/9", "move", True, 13)]
