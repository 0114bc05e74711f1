"""Suspending is YARN's preemption here: a guarantee gets its devices, and nobody is killed (issue "Live", item 8)."""

from __future__ import annotations

import msgspec

from gandiva_core.messages import events as e
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.units import JobId, QueueName
from tests.builders import job, server
from tests.yarn_plugin.agents.test_world_machine import WorldMachine


def limit(name: str, guaranteed: float) -> QueueLimit:
    return QueueLimit(QueueName(name), guaranteed, 2.0, "root" if name != "root" else "")


class OneNode(WorldMachine):
    """The machine's loop without its chance; a container that is released fails it."""

    def __init__(self) -> None:
        super().__init__()
        self.begin()
        self.take([e.ServerLost(self.scene.now_s, server("n2", 2).server_id)])
        limits = (limit("root", 2.0), limit("root.a", 1.0), limit("root.b", 1.0))
        self.take([e.QueuesConfigured(self.scene.now_s, limits)])

    def put(self, name: str, queue: str) -> None:
        spec = msgspec.structs.replace(job(name), queue=QueueName(queue))
        self.take([e.JobSubmitted(self.scene.now_s, spec)])
        self.obey()

    def obey(self) -> None:
        for _ in range(10):
            self.turn(0.1)
            self.answer("n1", False)

    def phases(self) -> dict[str, str]:
        return {name: str(each.phase) for name, each in self.engine.view.jobs.items()}


def test_the_preemption_monitors_victim_is_suspended_by_its_agent() -> None:
    node = OneNode()
    node.put("x", "root.a")
    node.put("y", "root.a")
    assert node.phases() == {"x": "running", "y": "running"}
    node.put("z", "root.b")
    node.take([e.ReclaimAsked(node.scene.now_s, JobId("x"), 1)])
    for _ in range(3):
        node.turn(10.0)
        node.obey()
    phases = node.phases()
    assert phases["z"] == "running"
    assert sorted(phases.values()) == ["running", "running", "suspended"]
    assert "z/0" in node.sides["n1"].running
