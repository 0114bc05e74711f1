"""A gang goes on elsewhere: both places are its own until the move has ended, one way or the other (G-13, G-69)."""

from __future__ import annotations

import msgspec
import pytest

from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Migrate
from gandiva_core.messages.effects import CarryOver, CloseMove, OpenMove, ReleaseGang
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from tests.builders import job, on, server
from tests.engine.scene import Scene, limit

A, S1, S2 = JobId("a"), ServerId("s1"), ServerId("s2")


def migrate(name: str, *bindings: Binding) -> Migrate:
    servers = tuple(binding.server_id for binding in bindings for _ in binding.gpus)
    return Migrate(JobId(name), servers, bindings, "test")


@pytest.fixture
def scene() -> Scene:
    scene = Scene(server("s1", 2), server("s2", 2))
    scene.running("a", on("s1", 0))
    return scene


def moving(scene: Scene) -> int:
    """Job a moves to s2's device 1, and its new container is there; the move."""
    (effect,) = scene.wish(migrate("a", on("s2", 1))).effects
    assert isinstance(effect, OpenMove)
    (carry,) = scene.tell(e.MoveCommitted(0.0, effect.move_id, A, ("c2",))).effects
    assert isinstance(carry, CarryOver)
    assert (carry.servers, carry.bindings) == ((S2,), (on("s2", 1),))
    return effect.move_id


def test_both_places_are_its_own_while_it_moves(scene: Scene) -> None:
    moving(scene)
    here, there = scene.server("s1"), scene.server("s2")
    assert scene.phase("a") is JobPhase.MIGRATING
    assert (here.holders, here.allocated) == (["a", None], 1)
    assert (there.holders, there.claims, there.allocated) == ([None, None], [None, "a"], 1)
    assert there.memory_free_mib < there.server.memory_mib
    scene.settle(job("b"), "s2")
    assert "promised already" in scene.refusal_of_run("b", on("s2", 1))


def test_it_arrives_and_its_old_place_is_free(scene: Scene) -> None:
    move_id = moving(scene)
    scene.now_s = 7.0
    outcome = scene.tell(e.GangMoved(7.0, move_id, A, 0.5))
    assert outcome.effects == (CloseMove(outcome.number, move_id, A, True),)
    here, there = scene.server("s1"), scene.server("s2")
    assert (scene.phase("a"), scene.job("a").servers) == (JobPhase.RUNNING, (S2,))
    assert (here.holders, here.allocated, here.affinity, dict(here.residents)) == (
        [None, None],
        0,
        0,
        {},
    )
    assert (there.holders, there.claims) == ([None, "a"], [None, None])
    assert scene.job("a").run_since_s == 0.0  # it never stopped
    scene.switched(scene.switch(suspend=["a"]), stopped=["a"])
    assert scene.job("a").held_s == 7.0


def test_what_fails_leaves_it_where_it_is(scene: Scene) -> None:
    """G-13: the source is the job until the destination has done a mini-batch."""
    move_id = moving(scene)
    outcome = scene.tell(e.MoveFailed(0.0, move_id, A, "NO_SPACE", "no space"))
    assert outcome.effects == (CloseMove(outcome.number, move_id, A, False),)
    assert (scene.phase("a"), scene.job("a").servers) == (JobPhase.RUNNING, (S1,))
    there = scene.server("s2")
    assert (there.claims, there.allocated, there.affinity) == ([None, None], 0, 0)
    assert there.memory_free_mib == there.server.memory_mib
    scene.tell(e.GangMoved(0.0, move_id, A, 0.5))  # too late
    assert scene.job("a").servers == (S1,)
    assert scene.engine.ignored == 1


def test_the_destination_is_lost(scene: Scene) -> None:
    move_id = moving(scene)
    outcome = scene.tell(e.ServerLost(0.0, S2))
    assert outcome.effects == (CloseMove(outcome.number, move_id, A, False),)
    assert scene.phase("a") is JobPhase.RUNNING


def test_the_source_is_lost(scene: Scene) -> None:
    """The gang is lost with it; nothing of it stays reserved anywhere."""
    move_id = moving(scene)
    outcome = scene.tell(e.ServerLost(0.0, S1))
    assert [type(effect) for effect in outcome.effects] == [CloseMove, ReleaseGang]
    assert outcome.effects[0] == CloseMove(outcome.number, move_id, A, False)
    assert scene.phase("a") is JobPhase.QUEUED
    assert scene.server("s2").claims == [None, None]


@pytest.mark.parametrize("end", [e.JobFinished(0.0, A), e.JobFailed(0.0, A), e.JobKilled(0.0, A)])
def test_it_ends_on_the_way(scene: Scene, end: e.Event) -> None:
    move_id = moving(scene)
    outcome = scene.tell(end)
    assert outcome.effects == (CloseMove(outcome.number, move_id, A, False),)
    assert [scene.server(name).allocated for name in ("s1", "s2")] == [0, 0]


def test_a_gang_moves_onto_a_server_that_it_is_on_already() -> None:
    """G-62: spread over two servers, it comes together on one; its devices count twice there until it has."""
    scene = Scene(server("s1", 4), server("s2", 4))
    scene.running("a", on("s1", 0), on("s2", 3))
    (effect,) = scene.wish(migrate("a", on("s1", 1, 2))).effects
    assert isinstance(effect, OpenMove)
    assert scene.server("s1").residents == {"a": 3}
    scene.tell(e.MoveCommitted(0.0, effect.move_id, A, ("c", "d")))
    scene.tell(e.GangMoved(0.0, effect.move_id, A, 0.5))
    assert scene.server("s1").holders == [None, "a", "a", None]
    assert scene.server("s2").allocated == 0
    assert scene.engine.view.domain(S1) == (S1,)


def test_it_takes_the_device_of_a_job_that_is_stopping(scene: Scene) -> None:
    scene.running("b", on("s2", 1))
    switch_id = scene.switch(suspend=["b"])
    move_id = moving(scene)
    scene.tell(e.GangMoved(0.0, move_id, A, 0.5))  # the stop's report was overtaken
    assert scene.phase("b") is JobPhase.SUSPENDED
    scene.switched(switch_id, stopped=["b"])
    assert scene.server("s2").holders == [None, "a"]


def test_that_job_does_not_stop_and_the_move_is_off(scene: Scene) -> None:
    scene.running("b", on("s2", 1))
    switch_id = scene.switch(suspend=["b"])
    move_id = moving(scene)
    outcome = scene.tell(e.SwitchFailed(0.0, switch_id, kept=(JobId("b"),)))
    assert outcome.effects == (CloseMove(outcome.number, move_id, A, False),)
    assert (scene.phase("a"), scene.phase("b")) == (JobPhase.RUNNING, JobPhase.RUNNING)


def test_its_queue_runs_it_once(scene: Scene) -> None:
    """A queue at its limit can move its jobs."""
    scene.tell(e.QueuesConfigured(0.0, (limit("root", 4), limit("root.default", 1, "root"))))
    move_id = moving(scene)
    queues = scene.engine.view.queues
    assert [(queue.running, queue.resident) for queue in queues.values()] == [(1, 1), (1, 1)]
    scene.tell(e.GangMoved(0.0, move_id, A, 0.5))
    assert [(queue.running, queue.resident) for queue in queues.values()] == [(1, 1), (1, 1)]


def test_an_engine_that_is_restored_goes_on_with_it(scene: Scene) -> None:
    move_id = moving(scene)
    taken = scene.engine.snapshot()
    scene.engine = Engine.restore(taken, scene.policy, scene.settings, check="full")
    assert scene.engine.snapshot() == taken
    scene.tell(e.GangMoved(0.0, move_id, A, 0.5))
    assert scene.job("a").servers == (S2,)


REFUSED = [
    (migrate("x", on("s2", 0)), "not known"),
    (migrate("b", on("s2", 0)), "not running"),
    (migrate("a", on("s1", 1)), "is on s1 already"),
    (migrate("a", on("s3", 0)), "s3 is not known"),
    (migrate("a", on("s2", 0, 1)), "2 servers for 1 workers"),
    (migrate("a", on("s2", 2)), "has no device 2"),
    (migrate("a", on("s4", 0)), "nothing on server s4 can take"),
    (migrate("a", on("s5", 0)), "is being emptied"),
    (migrate("a", on("s2", 0)), "held by c"),
]


@pytest.mark.parametrize(("decision", "reason"), REFUSED)
def test_what_is_refused(decision: Migrate, reason: str) -> None:
    scene = Scene(
        server("s1", 2),
        server("s2", 2),
        server("s4", 2, can_suspend=False),
        msgspec.structs.replace(server("s5", 2), is_draining=True),
    )
    scene.running("a", on("s1", 0))
    scene.settle(job("b"), "s1")
    scene.running("c", on("s2", 0))
    assert reason in scene.refusal(decision)


@pytest.mark.parametrize(
    ("spec", "learned", "reason"),
    [
        (msgspec.structs.replace(job("a"), never=("migrate",)), "", "its owner forbids it"),
        (job("a"), "its script has no loop of ours", "its script has no loop"),
    ],
)
def test_who_is_not_moved(spec: JobSpec, learned: str, reason: str) -> None:
    scene = Scene(server("s1", 2), server("s2", 2))
    scene.settle(spec, "s1")
    scene.start("a", on("s1", 0))
    if learned:
        scene.tell(e.JobLearned(0.0, A, can_suspend=True, fixed=learned))
    assert reason in scene.refusal(migrate("a", on("s2", 0)))
    assert reason in (scene.engine.view.why_fixed(A) or "")


def test_a_queue_with_migration_off_keeps_its_jobs_where_they_are(scene: Scene) -> None:
    """DESIGN §10: its capacity-scheduler.xml says so; a parent's word counts only where it was inherited."""
    off = limit("root.default", 2, "root", off=("migration",))
    scene.tell(e.QueuesConfigured(0.0, (limit("root", 4), off)))
    assert "queue root.default has migration off" in scene.refusal(migrate("a", on("s2", 0)))


def test_a_moving_job_is_neither_stopped_nor_started_nor_moved_again(scene: Scene) -> None:
    moving(scene)
    assert "not running" in scene.refusal(migrate("a", on("s2", 0)))
    assert "neither starting nor suspended" in scene.refusal_of_run("a", on("s1", 1))
