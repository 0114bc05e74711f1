"""A gang with other workers: devices, shares and queues are right at every moment (G-80 … G-84)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gandiva_core.messages import events as e
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobPhase
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from tests.builders import job, server
from tests.engine.scene import Scene, limit


def on(*gpus: int) -> Binding:
    return Binding(ServerId("s1"), gpus)


def resized(scene: Scene, name: str, workers: Sequence[int], *joined: str) -> Outcome:
    event = e.GangResized(
        scene.now_s, JobId(name), tuple(workers), tuple(JobId(each) for each in joined)
    )
    return scene.tell(event)


def grown() -> Scene:
    """A job that has taken over the devices of three that ran for it, with another one beside it."""
    scene = Scene(server("s1", 5))
    scene.tell(e.QueuesConfigured(0.0, (limit("root.a", 5), limit("root", 5))))
    scene.running("other", on(0))
    scene.running("a", on(2))
    scene.running("more", on(1, 4))
    resized(scene, "a", (0,), "more")
    return scene


def holders(scene: Scene) -> list[str | None]:
    return list(scene.server("s1").holders)


def test_a_gang_that_grew_has_the_devices_of_who_joined_it() -> None:
    scene = grown()
    assert scene.job("a").bindings == (on(2, 1, 4),)
    assert holders(scene) == ["other", "a", "a", None, "a"]
    assert scene.job("a").spec.gpus == 3
    assert JobId("more") not in scene.engine.view.jobs
    assert scene.job("a").phase is JobPhase.RUNNING
    switch_id = scene.switch(suspend=["a"])
    scene.switched(switch_id, stopped=["a"])
    assert holders(scene) == ["other", None, None, None, None], "it stops whole"


def test_who_leaves_takes_no_device_along() -> None:
    scene = grown()
    resized(scene, "a", (0, 2))
    assert holders(scene) == ["other", None, "a", None, "a"]
    resized(scene, "a", (1,))
    assert scene.job("a").bindings == (on(4),)
    assert scene.server("s1").allocated == 2
    scene.running("b", on(1, 2, 3))
    assert holders(scene) == ["other", "b", "b", "b", "a"]


def test_a_gang_that_broke_waits_at_the_size_that_it_asked_for() -> None:
    scene = grown()
    scene.tell(e.GangBroken(0.0, JobId("a"), "a worker was lost"))
    resized(scene, "a", (0,))
    assert scene.phase("a") is JobPhase.QUEUED
    assert scene.job("a").spec.gpus == 1
    assert holders(scene) == ["other", None, None, None, None]


def test_what_comes_too_late_is_ignored_and_counted() -> None:
    scene = grown()
    scene.running("late", on(3))
    scene.switched(scene.switch(suspend=["late"]), stopped=["late"])
    before = scene.engine.snapshot().jobs
    resized(scene, "a", (0, 1, 2), "late")
    resized(scene, "a", (0, 1, 2), "gone")
    resized(scene, "gone", (0,))
    assert scene.engine.snapshot().jobs == before


def test_workers_that_it_has_not_are_no_message_of_a_correct_sender() -> None:
    scene = grown()
    with pytest.raises(InputError, match=r"workers \[0, 3\] of 3"):
        resized(scene, "a", (0, 3))
    with pytest.raises(InputError, match=r"workers \[\] of 3"):
        resized(scene, "a", ())
    scene.settle(job("b"), "s1")  # the engine goes on
