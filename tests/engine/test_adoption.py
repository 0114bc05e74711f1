"""Jobs that are there already (`JobAdopted`): booked as found, counted once, judged never (DESIGN §4, restart)."""

from __future__ import annotations

import msgspec
import pytest

from gandiva_core.engine.engine import Engine
from gandiva_core.engine.snapshot import EngineSnapshot
from gandiva_core.engine.state import State
from gandiva_core.messages import events as e
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.units import JobId, QueueName, ServerId
from tests.builders import ScriptedPolicy, job, on, server
from tests.engine.scene import Scene, limit, place

J = JobId("j")


@pytest.fixture
def scene() -> Scene:
    return Scene(server("s1"), server("s2"))


def adopted(spec: JobSpec, *servers: str, at_s: float = 0.0) -> e.JobAdopted:
    containers = tuple(f"{spec.job_id}.{rank}" for rank in range(len(servers)))
    return e.JobAdopted(at_s, spec, containers, tuple(map(ServerId, servers)))


def adopt(scene: Scene, spec: JobSpec, *servers: str) -> Outcome:
    return scene.tell(adopted(spec, *servers, at_s=scene.now_s))


def use(scene: Scene, queue: str) -> tuple[int, int]:
    """Running and resident GPUs."""
    found = scene.engine.view.queues[QueueName(queue), ""]
    return found.running, found.resident


class TestBooks:
    def test_unknown_job_is_resident_without_a_device_and_nothing_is_ordered(
        self, scene: Scene
    ) -> None:
        scene.tell(e.QueuesConfigured(0.0, (limit("root", 8),)))
        scene.now_s = 5.0
        outcome = adopt(scene, job("j", 3), "s1", "s2", "s1")
        assert outcome.effects == ()
        found = scene.job("j")
        assert (found.phase, found.sequence, found.submitted_at_s) == (JobPhase.STARTING, 0, 5.0)
        assert (dict(found.shares), found.bindings) == ({"s1": 2, "s2": 1}, ())
        assert (scene.server("s1").allocated, scene.server("s1").affinity) == (2, 4)
        assert scene.server("s1").memory_free_mib == scene.server("s2").memory_free_mib - 1024
        assert use(scene, "root") == (0, 3)
        assert scene.engine.view.domain(ServerId("s1")) == ("s1", "s2")
        scene.start("j", on("s1", 0, 1), on("s2", 3))
        assert (scene.phase("j"), use(scene, "root")) == (JobPhase.RUNNING, (3, 3))

    @pytest.mark.parametrize(
        "spec",
        [
            pytest.param(job("j", 4), id="height"),
            pytest.param(job("j", memory_mib=1 << 30), id="memory"),
            pytest.param(job("j", vcores=1000), id="vcores"),
            pytest.param(job("j", queue="root.small", workers=(4,)), id="queue"),
            pytest.param(job("j", partition="other"), id="partition"),
            pytest.param(job("j", workers=(6,)), id="larger than the server"),
        ],
    )
    def test_no_limit_keeps_it_out_and_no_decision_may_then_add_to_it(self, spec: JobSpec) -> None:
        scene = Scene(server("s1", can_suspend=False))
        limits = (limit("root", 4), limit("root.small", 0.5, "root"))
        scene.tell(e.QueuesConfigured(0.0, limits))
        adopt(scene, job("first", 3), *["s1"] * 3)
        adopt(scene, spec, *["s1"] * len(spec.workers))
        assert scene.phase("j") is JobPhase.STARTING
        scene.submit(msgspec.structs.replace(spec, job_id=JobId("next")))
        assert scene.refusal(place("next", *["s1"] * len(spec.workers)))

    def test_excuse_ends_with_the_excess(self) -> None:
        scene = Scene(server("s1", can_suspend=False))
        scene.tell(e.QueuesConfigured(0.0, (limit("root", 0.5),)))
        for name in "abcdef":
            adopt(scene, job(name), "s1")
        state = scene.engine.view
        assert isinstance(state, State)
        excused = (state.servers[ServerId("s1")], state.queues[QueueName("root"), ""])
        found = []
        for name in "abcdef":
            found.append([each.is_overfull for each in excused])
            scene.tell(e.JobFinished(0.0, JobId(name)))
        assert found == [[True, True]] * 2 + [[False, True]] * 2 + [[False, False]] * 2
        assert (use(scene, "root"), scene.server("s1").allocated) == ((0, 0), 0)

    def test_server_that_is_lost_takes_it_along_like_any_other(self, scene: Scene) -> None:
        adopt(scene, job("j", 2), "s1", "s2")
        outcome = scene.tell(e.ServerLost(0.0, ServerId("s2")))
        assert [effect.job_id for effect in outcome.effects] == ["j"]  # type: ignore[union-attr]
        assert (scene.phase("j"), scene.server("s1").allocated) == (JobPhase.QUEUED, 0)


class TestKnownJobs:
    def test_waiting_job_keeps_its_sequence(self, scene: Scene) -> None:
        scene.submit(job("j"))
        adopt(scene, job("k"), "s1")
        adopt(scene, job("j"), "s1")
        assert (scene.job("j").sequence, scene.job("k").sequence) == (0, 1)
        assert list(scene.server("s1").residents) == ["j", "k"]
        assert (scene.engine.view.queue, scene.phase("j")) == ([], JobPhase.STARTING)

    def test_what_is_there_counts_not_what_was_asked_for(self, scene: Scene) -> None:
        """The containers that exist are the fact: their sizes and their queue replace the ask's."""
        scene.tell(e.QueuesConfigured(0.0, (limit("root.a", 9), limit("root.b", 9))))
        scene.submit(job("j", 2, queue="root.a"))
        adopt(scene, job("j", workers=(3,), queue="root.b"), "s1")
        queues = scene.engine.view.queues
        assert (scene.job("j").spec.gpus, scene.server("s1").allocated) == (3, 3)
        assert [queue.resident for queue in queues.values()] == [0, 3]

    @pytest.mark.parametrize("late", [e.GangCommitted(0.0, J, ("c",)), e.GangRefused(0.0, J, "X")])
    def test_commit_that_is_answered_later_does_not_count_twice(
        self, scene: Scene, late: e.Event
    ) -> None:
        """Found on another server while its own commit was on the way: that reservation ends, its answer is stale."""
        scene.submit(job("j", 2), "s1", "s1")
        adopt(scene, job("j", 2), "s2", "s2")
        assert (scene.server("s1").allocated, scene.server("s2").allocated) == (0, 2)
        scene.tell(late)
        assert (scene.phase("j"), scene.engine.ignored) == (JobPhase.STARTING, 1)
        assert (scene.server("s1").allocated, scene.server("s2").allocated) == (0, 2)
        scene.tell(e.GangBroken(0.0, J), place("j", "s1", "s1"))
        scene.commit("j")
        assert scene.phase("j") is JobPhase.STARTING

    def test_broken_and_still_owed_an_answer(self, scene: Scene) -> None:
        scene.submit(job("j"), "s1")
        scene.tell(e.GangBroken(0.0, J))
        adopt(scene, job("j"), "s2")
        scene.commit("j")
        assert (scene.phase("j"), scene.engine.ignored) == (JobPhase.STARTING, 1)


class TestFromOutside:
    def test_duplicates_and_late_ones_are_ignored_and_counted(self, scene: Scene) -> None:
        adopt(scene, job("j"), "s1")
        adopt(scene, job("j"), "s1")
        adopt(scene, job("j"), "s2")
        scene.start("j", on("s1", 0))
        adopt(scene, job("j"), "s1")
        assert (scene.engine.ignored, scene.phase("j")) == (3, JobPhase.RUNNING)
        assert scene.server("s1").allocated == 1
        scene.tell(e.JobFinished(0.0, J))
        adopt(scene, job("j"), "s1")
        assert (scene.engine.ignored, dict(scene.engine.view.jobs)) == (4, {})

    def test_server_that_nobody_knows(self, scene: Scene) -> None:
        """Neither a new job nor a waiting one changes; the sender has to wait for the server."""
        scene.submit(job("k"))
        asked = len(scene.policy.asked)
        adopt(scene, job("j", 2), "s1", "s9")
        adopt(scene, job("k"), "s9")
        assert (scene.engine.ignored, len(scene.policy.asked)) == (2, asked)
        assert (list(scene.engine.view.jobs), scene.phase("k")) == (["k"], JobPhase.QUEUED)

    def test_submission_after_it_is_a_second_one(self, scene: Scene) -> None:
        adopt(scene, job("j"), "s1")
        scene.submit(job("j"))
        assert (scene.engine.ignored, scene.phase("j")) == (1, JobPhase.STARTING)

    @pytest.mark.parametrize(
        ("spec", "containers", "servers"),
        [
            (JobSpec(J, ()), (), ()),
            (job("j", workers=(0,)), ("c",), ("s1",)),
            (job("j", weight=0.0), ("c",), ("s1",)),
            (job("j", 2), ("c", "d"), ("s1",)),
            (job("j", 2), ("c",), ("s1", "s1")),
        ],
    )
    def test_contradiction_is_an_input_error_and_changes_nothing(
        self, scene: Scene, spec: JobSpec, containers: tuple[str, ...], servers: tuple[str, ...]
    ) -> None:
        before = scene.engine.snapshot()
        with pytest.raises(InputError, match="job j"):
            scene.tell(e.JobAdopted(0.0, spec, containers, tuple(map(ServerId, servers))))
        assert scene.engine.snapshot() == before


def test_snapshot_goes_on_with_adopted_jobs_above_every_limit() -> None:
    scene = Scene(server("s1", can_suspend=False))
    scene.tell(e.QueuesConfigured(0.0, (limit("root", 1),)))
    for name in "abcde":
        adopt(scene, job(name), "s1")
    scene.start("a", on("s1", 2))
    taken = scene.engine.snapshot()
    read = msgspec.json.decode(msgspec.json.encode(taken), type=EngineSnapshot)
    engine = Engine.restore(read, ScriptedPolicy(), scene.settings, check="full")
    assert engine.snapshot() == taken
    for name in "abcde":
        engine.handle(e.JobFinished(0.0, JobId(name)))
    assert engine.view.servers[ServerId("s1")].allocated == 0


def test_policy_that_raises_undoes_an_adoption(scene: Scene) -> None:
    scene.submit(job("j"), "s1")
    before = scene.engine.snapshot()

    def fail(_view: object) -> None:
        raise RuntimeError("a bug")

    with pytest.raises(Exception, match="a bug"):
        scene.tell(adopted(job("j", workers=(3,)), "s2"), fail)  # type: ignore[arg-type]
    assert scene.engine.snapshot() == before
    assert scene.job("j").spec == job("j")
    adopt(scene, job("j"), "s2")
    assert (scene.phase("j"), scene.job("j").servers) == (JobPhase.STARTING, ("s2",))
