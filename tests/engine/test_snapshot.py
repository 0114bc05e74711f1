"""A restored engine is the same engine; a snapshot that contradicts itself is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gandiva_core.engine.engine import Engine
from gandiva_core.engine.snapshot import EngineSnapshot
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Remember, Switch, WakeAt
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, ServerId
from tests.builders import ScriptedPolicy, Wish, job, on, server
from tests.engine.scene import Scene, limit, place, run


def busy_scene() -> Scene:
    """Jobs in every phase, queues, wakes, memory, an ended job, an answer owed."""
    scene = Scene(server("s1"), server("s2"))
    scene.tell(e.QueuesConfigured(0.0, (limit("root", 8), limit("root.default", 8, "root"))))
    scene.submit(job("late"), "s2")
    scene.tell(e.ServerLost(0.0, ServerId("s2")))
    scene.tell(e.ServerJoined(0.0, server("s2")))
    scene.running("wide", on("s1", 0), on("s2", 0))
    scene.running("stopped", on("s1", 1))
    scene.switched(scene.switch(suspend=["stopped"]), stopped=["stopped"])
    scene.running("stopping", on("s1", 1))
    scene.settle(job("starting"), "s1")
    scene.switch(suspend=["stopping"], run=[run("starting", on("s1", 1))])
    scene.settle(job("ready", 2), "s2", "s2")
    scene.submit(job("ordered"), "s2")
    scene.submit(job("gone"))
    scene.tell(e.JobFinished(1.0, JobId("gone")))
    scene.now_s = 1.0
    scene.wish(WakeAt("k", 60.0), Remember("m", {"x": 0.1}))
    return scene


def test_round_trip_through_bytes() -> None:
    scene = busy_scene()
    taken = scene.engine.snapshot()
    phases = {each.phase for each in taken.jobs}
    assert len(phases) == 7
    read = msgspec.json.decode(msgspec.json.encode(taken), type=EngineSnapshot)
    assert read == taken
    restored = Engine.restore(read, ScriptedPolicy(), scene.settings, check="full")
    assert restored.snapshot() == taken
    assert list(restored.view.servers["s2"].residents) == list(  # type: ignore[index]
        scene.engine.view.servers["s2"].residents  # type: ignore[index]
    )


def test_restored_engine_goes_on_the_same_way() -> None:
    original = busy_scene()
    restored = Engine.restore(
        original.engine.snapshot(), original.policy, original.settings, check="full"
    )
    future: list[tuple[e.Event, list[Wish]]] = [
        (e.GangCommitted(2.0, JobId("ordered"), ("c",)), []),
        (e.TimerFired(60.0, "k"), [place("late", "s2")]),
        (e.GangCommitted(61.0, JobId("late"), ("c",)), []),
        (e.GangCommitted(62.0, JobId("late"), ("c",)), [Switch((JobId("wide"),))]),
        (e.JobSubmitted(63.0, job("new")), [place("new", "s1")]),
        (e.ServerLost(64.0, ServerId("s1")), []),
    ]
    for event, wishes in future:
        outcomes: list[Outcome] = []
        for engine in (original.engine, restored):
            original.policy.wishes = list(wishes)
            outcomes.append(engine.handle(event))
        assert outcomes[0] == outcomes[1]
        assert original.engine.snapshot() == restored.snapshot()


def _replace(taken: EngineSnapshot, **changes: Any) -> EngineSnapshot:
    jobs = tuple(
        msgspec.structs.replace(each, **changes) if each.spec.job_id == "wide" else each
        for each in taken.jobs
    )
    return msgspec.structs.replace(taken, jobs=jobs)


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": JobPhase.SUSPENDED},
        {"servers": (ServerId("s1"), ServerId("s9"))},
        {"servers": (ServerId("s1"),)},
        {"bindings": (on("s1", 0), on("s2", 0, 1))},
        {"bindings": (on("s1", 1), on("s2", 0))},
        {"sequence": 99},
    ],
)
def test_snapshot_that_contradicts_itself(changes: dict[str, Any]) -> None:
    scene = busy_scene()
    bad = _replace(scene.engine.snapshot(), **changes)
    with pytest.raises(InputError, match=r"^snapshot: found .*; expected a state without"):
        Engine.restore(bad, scene.policy, scene.settings)
