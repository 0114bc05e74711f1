"""Every reason to refuse a decision; a refusal changes nothing (`Scene.refusal` compares snapshots)."""

from __future__ import annotations

import math

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.messages.decisions import Decision, Enqueue, Remember, Switch, Wait, WakeAt
from gandiva_core.messages.events import JobMoved, QueuesConfigured, ServerJoined
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.units import JobId, QueueName
from tests.builders import job, on, server
from tests.engine.scene import Scene, limit, place, run

WAIT = Wait("later", "", "")


@pytest.fixture
def scene() -> Scene:
    """`free` waits; `r` runs on s1/0, `s` was stopped there, `t` starts on s1; `wide` is ordered on s2 and s3."""
    scene = Scene(server("s1"), server("s2"), server("s3"))
    scene.submit(job("free", workers=(2, 1)))
    scene.running("s", on("s1", 0))
    switch_id = scene.switch(suspend=["s"])
    scene.switched(switch_id, stopped=["s"])
    scene.running("r", on("s1", 0))
    scene.settle(job("t"), "s1")
    scene.submit(job("wide", 2), "s2", "s3")
    return scene


@pytest.mark.parametrize(
    ("decision", "reason"),
    [
        (place("nobody", "s1"), "job nobody is not known"),
        (place("r", "s1"), "job r is running, not waiting"),
        (place("free", "s1"), "1 servers for 2 workers"),
        (place("free", "s1", "s9"), "server s9 is not known"),
        (Enqueue(JobId("nobody"), WAIT), "job nobody is not known"),
        (Enqueue(JobId("r"), WAIT), "job r is running, not waiting"),
        (Switch(), "nothing to switch"),
        (Switch((JobId("r"),), (run("r", on("s1", 1)),)), "a job is named twice"),
        (Switch((JobId("nobody"),)), "job nobody is not resident"),
        (Switch((JobId("free"),)), "job free is not resident"),
        (Switch((JobId("s"),)), "job s is suspended, not running"),
        (Switch((JobId("t"),)), "job t is starting, not running"),
        (
            Switch((JobId("r"),), (run("wide", on("s2", 0), on("s3", 0)),)),
            "job wide is outside the slicing domain s1",
        ),
        (
            Switch(run=(run("wide", on("s2", 0), on("s3", 0)),)),
            "job wide is committing, neither starting nor suspended",
        ),
        (Switch(run=(run("t"),)), "job t is bound to nothing, its gang is 1 on s1"),
        (Switch(run=(run("t", on("s1", 1, 2)),)), "job t is bound to 2 on s1, its gang is 1 on s1"),
        (Switch(run=(run("t", on("s2", 1)),)), "job t is bound to 1 on s2, its gang is 1 on s1"),
        (Switch(run=(run("t", on("s1", 4)),)), "server s1 has no device 4"),
        (Switch(run=(run("t", on("s1", -1)),)), "server s1 has no device -1"),
        (Switch(run=(run("t", on("s9", 0)),)), "server s9 is not known"),
        (Switch(run=(run("t", on("s1", 1, 1)),)), "job t names a device twice"),
        (Switch(run=(run("t", on("s1", 0)),)), "s1/0 is held by r, which goes on running"),
        (
            Switch(run=(run("t", on("s1", 1)), run("s", on("s1", 1)))),
            "s1/1 is promised already",
        ),
        (Switch(prepare=(run("t", on("s1", 7)),)), "server s1 has no device 7"),
        (Remember("k", {"a": math.nan}), "k: nan is not finite"),
        (WakeAt("k", -1.0), "wake k at -1.0 s, it is 0.0 s"),
        (WakeAt("k", math.inf), "wake k at inf s, it is 0.0 s"),
    ],
)
def test_refusals(scene: Scene, decision: Decision, reason: str) -> None:
    assert scene.refusal(decision) == reason


def test_gang_of_one_worker_is_never_split() -> None:
    """Shape `server`: a worker of three GPUs needs three on one server."""
    scene = Scene(server("s1", 2), server("s2", 2))
    scene.submit(job("j", workers=(3,)))
    assert scene.refusal(place("j", "s1")) == (
        "a share of 3 GPUs can never run whole on server s1 with 2"
    )


def test_share_larger_than_the_server_can_never_run_whole() -> None:
    """G-11 ii: two workers of three on one server of four would be resident, but never run."""
    scene = Scene(server("s1", 4))
    scene.submit(job("j", workers=(3, 3)))
    assert "a share of 6 GPUs can never run whole" in scene.refusal(place("j", "s1", "s1"))


def test_height_limit() -> None:
    """G-21 step 4: (M + g) / N ≤ H_max."""
    scene = Scene(server("s1", 2), settings=Settings(height_max=2))
    for name in ("a", "b"):
        scene.submit(job(name, 2), "s1", "s1")
    scene.submit(job("c"))
    assert scene.refusal(place("c", "s1")) == "server s1 would have 5 GPUs of 4 allocated"


def test_server_that_cannot_suspend_is_never_over_subscribed() -> None:
    """DESIGN §4."""
    scene = Scene(server("s1", 2, can_suspend=False))
    scene.submit(job("a", 2), "s1", "s1")
    scene.submit(job("b"))
    assert scene.refusal(place("b", "s1")) == "server s1 would have 3 GPUs of 2 allocated"


def test_nobody_is_stopped_where_nothing_can_stop_him() -> None:
    """DESIGN §4: a server without an agent; a gang counts with all its servers."""
    scene = Scene(server("s1"), server("s2", can_suspend=False))
    scene.running("alone", on("s2", 0))
    scene.running("gang", on("s1", 0), on("s2", 1))
    for name in ("alone", "gang"):
        assert not scene.engine.view.can_suspend(JobId(name))
        reason = scene.refusal(Switch((JobId(name),)))
        assert reason == f"job {name} is not to be stopped: server s2 cannot suspend"
    scene.tell(ServerJoined(0.0, server("s2")))
    assert scene.engine.view.can_suspend(JobId("gang"))
    scene.switch(suspend=["gang", "alone"])


def test_nobody_of_a_queue_with_slicing_off_is_stopped() -> None:
    scene = Scene(server("s1"))
    off = QueueLimit(QueueName("root.off"), 4, 4, mechanisms_off=("packing", "slicing"))
    packs = QueueLimit(QueueName("root.on"), 4, 4, mechanisms_off=("packing",))
    scene.tell(QueuesConfigured(0.0, (off, packs)))
    for at, name in enumerate(("off", "off.unknown", "on")):
        spec = job(name, queue=f"root.{name}")
        scene.settle(spec, "s1")
        scene.start(name, on("s1", at))
    reason = "job off is not to be stopped: queue root.off has slicing off"
    assert scene.refusal(Switch((JobId("off"),))) == reason
    assert "root.off has slicing off" in scene.refusal(Switch((JobId("off.unknown"),)))
    scene.tell(JobMoved(0.0, JobId("off"), QueueName("root.on")))
    scene.switch(suspend=["off", "on"])


def test_memory_and_vcores_are_never_inflated() -> None:
    """G-46: the host memory of a suspended resident is its containers' ask."""
    scene = Scene(server("s1", 4, memory_mib=2048, vcores=2))
    scene.submit(job("a", memory_mib=1500), "s1")
    scene.submit(job("b", memory_mib=600))
    assert scene.refusal(place("b", "s1")) == "server s1 has 548 MiB free, 600 needed"
    scene.submit(job("c", memory_mib=1, vcores=2))
    assert scene.refusal(place("c", "s1")) == "server s1 has 1 vcores free, 2 needed"


def test_partition_must_match() -> None:
    scene = Scene(server("s1", partition="fast"), server("s2"))
    scene.submit(job("plain"))
    scene.submit(job("label", partition="fast"))
    assert "is in partition 'fast', the job asks for ''" in scene.refusal(place("plain", "s1"))
    assert "is in partition '', the job asks for 'fast'" in scene.refusal(place("label", "s2"))


class TestQueueLimits:
    """DESIGN §4: running devices of q ≤ M_q at every instant; residents ≤ M_q × height; parents included."""

    def scene(self, small: float = 1.0, root: float = 3.0) -> Scene:
        scene = Scene(server("s1", 4), settings=Settings(height_max=2))
        queues = (
            limit("root", root),
            limit("root.small", small, "root"),
            limit("root.other", 4, "root"),
        )
        scene.tell(QueuesConfigured(0.0, queues))
        return scene

    def test_residents(self) -> None:
        scene = self.scene()
        for name in ("a", "b"):
            scene.submit(job(name, queue="root.small"), "s1")
        scene.submit(job("c", queue="root.small"))
        assert scene.refusal(place("c", "s1")) == "queue root.small has 2 resident GPUs of 2"
        assert scene.engine.view.headroom(scene.job("c").spec.queue, "") == (1.0, 0.0)

    def test_residents_of_the_parent(self) -> None:
        scene = self.scene(small=4, root=1)
        scene.submit(job("a", queue="root.other"), "s1")
        scene.submit(job("b", 2, queue="root.small"))
        assert scene.refusal(place("b", "s1", "s1")) == "queue root has 1 resident GPUs of 2"

    def test_running(self) -> None:
        scene = self.scene()
        for name in ("a", "b"):
            scene.settle(job(name, queue="root.small"), "s1")
        scene.start("a", on("s1", 0))
        assert scene.refusal(Switch(run=(run("b", on("s1", 1)),))) == (
            "queue root.small would run 2 GPUs of 1"
        )

    def test_device_that_changes_hands_inside_the_queue_counts_once(self) -> None:
        scene = self.scene()
        for name in ("a", "b"):
            scene.settle(job(name, queue="root.small"), "s1")
        scene.start("a", on("s1", 0))
        switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
        assert scene.engine.view.queues[scene.job("a").spec.queue, ""].running == 1
        scene.switched(switch_id, stopped=["a"], started=["b"])
        assert scene.engine.view.queues[scene.job("a").spec.queue, ""].running == 1

    def test_device_handed_to_another_queue_counts_in_both_until_it_is_given(self) -> None:
        scene = self.scene()
        scene.settle(job("a", queue="root.other"), "s1")
        scene.settle(job("b", queue="root.small"), "s1")
        scene.start("a", on("s1", 0))
        switch_id = scene.switch(suspend=["a"], run=[run("b", on("s1", 0))])
        counts = [queue.running for queue in scene.engine.view.queues.values()]
        assert counts == [1, 1, 1]
        scene.switched(switch_id, stopped=["a"], started=["b"])
        counts = [queue.running for queue in scene.engine.view.queues.values()]
        assert counts == [1, 1, 0]

    def test_unknown_queue_counts_in_its_nearest_known_ancestor(self) -> None:
        scene = self.scene()
        scene.submit(job("a", 2, queue="root.small.user1"), "s1", "s1")
        assert scene.engine.view.headroom(scene.job("a").spec.queue, "") == (1.0, 0.0)

    def test_without_a_limit_headroom_is_infinite(self) -> None:
        scene = Scene(server("s1"))
        scene.submit(job("a"))
        assert scene.engine.view.headroom(scene.job("a").spec.queue, "") == (math.inf, math.inf)
