"""Queues in the engine: partitions apart, jobs that are never suspended, GPU seconds (DESIGN §4)."""

from __future__ import annotations

import math

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.events import QueuesConfigured
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.units import QueueName
from tests.builders import job, on, server
from tests.engine.scene import Scene, limit, place


class TestPartitions:
    """DESIGN §4: limits are per queue and partition, and two partitions never mix."""

    def scene(self, *partitions: str) -> Scene:
        scene = Scene(
            server("s1", 4), server("t1", 4, partition="p"), settings=Settings(height_max=1)
        )
        queues = tuple(
            QueueLimit(QueueName("root.a"), most, most, partition=partition)
            for partition, most in zip(partitions, (2.0, 1.0), strict=False)
        )
        scene.tell(QueuesConfigured(0.0, queues))
        return scene

    def test_a_job_counts_in_the_limits_of_its_own(self) -> None:
        scene = self.scene("", "p")
        scene.submit(job("a", 2, queue="root.a"), "s1", "s1")
        assert "has 2 resident GPUs of 2" in self.refused(scene, "b", "s1", "")
        scene.submit(job("c", queue="root.a", partition="p"), "t1")
        assert "has 1 resident GPUs of 1" in self.refused(scene, "d", "t1", "p")
        headroom = scene.engine.view.headroom
        assert headroom(QueueName("root.a"), "") == (2.0, 0.0)
        assert headroom(QueueName("root.a"), "p") == (1.0, 0.0)

    def test_limits_of_others_say_nothing_about_a_partition(self) -> None:
        scene = self.scene("p")
        assert scene.engine.view.headroom(QueueName("root.a"), "") == (math.inf, math.inf)
        assert scene.engine.view.headroom(QueueName("root.a"), "p") == (2.0, 2.0)

    def test_limits_that_name_no_partition_are_about_all_of_them(self) -> None:
        """A replay's cluster file: one account, whatever the labels of its servers."""
        scene = self.scene("")
        scene.submit(job("a", queue="root.a", partition="p"), "t1")
        scene.submit(job("b", queue="root.a"), "s1")
        assert "has 2 resident GPUs of 2" in self.refused(scene, "c", "s1", "")

    @staticmethod
    def refused(scene: Scene, name: str, where: str, partition: str) -> str:
        scene.submit(job(name, queue="root.a", partition=partition))
        return scene.refusal(place(name, where))


class TestWithoutSlicing:
    """A queue that switched slicing off: its jobs must always run, so they share devices with nobody."""

    def scene(self) -> Scene:
        scene = Scene(server("s1", 4), settings=Settings(height_max=2))
        off = QueueLimit(
            QueueName("root.off"), 3.0, 3.0, parent="root", mechanisms_off=("slicing",)
        )
        scene.tell(QueuesConfigured(0.0, (limit("root", 8), off, limit("root.on", 8, "root"))))
        return scene

    def test_they_take_free_devices_only(self) -> None:
        scene = self.scene()
        scene.submit(job("a", 3, queue="root.on"), "s1", "s1", "s1")
        scene.submit(job("b", 2, queue="root.off"))
        assert scene.refusal(place("b", "s1", "s1")) == "server s1 would have 5 GPUs of 4 allocated"

    def test_others_share_what_they_leave(self) -> None:
        """Three devices are never given up: the fourth counts twice, and no gang of two can ever run."""
        scene = self.scene()
        scene.submit(job("a", 3, queue="root.off"), "s1", "s1", "s1")
        scene.submit(job("wide", 2, queue="root.on"))
        assert "3 of 4 GPUs of server s1 are never given up" in scene.refusal(
            place("wide", "s1", "s1")
        )
        for name in "bc":
            scene.submit(job(name, queue="root.on"), "s1")
        scene.submit(job("d", queue="root.on"))
        assert scene.refusal(place("d", "s1")) == "server s1 would have 6 GPUs of 5 allocated"

    def test_their_queue_has_no_more_residents_than_it_may_run(self) -> None:
        scene = self.scene()
        scene.submit(job("a", 2, queue="root.off"), "s1", "s1")
        scene.submit(job("b", 2, queue="root.off"))
        assert "has 2 GPUs that are never given up, of 3" in scene.refusal(place("b", "s1", "s1"))

    def test_a_queue_that_switches_it_off_later_leaves_residents_where_they_are(self) -> None:
        """A fact, so nobody is thrown out; but nobody else comes."""
        scene = self.scene()
        for name in "abcde":
            scene.submit(job(name, queue="root.on"), "s1")
        off = QueueLimit(QueueName("root.on"), 8.0, 8.0, mechanisms_off=("slicing",))
        scene.tell(QueuesConfigured(0.0, (off,)))
        assert scene.server("s1").unsliced == 5
        scene.submit(job("f", queue="root.other"))
        assert "are never given up" in scene.refusal(place("f", "s1"))


def test_a_queue_knows_the_gpu_seconds_it_ran() -> None:
    """The integral of running devices, parents included; new limits do not begin it anew, nor does a restart."""
    scene = Scene(server("s1", 4))
    limits = (limit("root", 4), limit("root.default", 4, "root"))
    scene.tell(QueuesConfigured(0.0, limits))
    scene.running("a", on("s1", 0, 1))
    scene.now_s = 10.0
    scene.running("b", on("s1", 2))
    scene.now_s = 30.0
    scene.tell(QueuesConfigured(30.0, limits))
    again = Engine.restore(scene.engine.snapshot(), scene.policy, scene.settings)
    for engine in (scene.engine, again):
        for queue in engine.view.queues.values():
            assert queue.used_gpu_s(40.0) == 10 * 2 + 30 * 3
            assert queue.demand == 3
