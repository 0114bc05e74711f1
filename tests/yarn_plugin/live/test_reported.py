"""The hold of a node with recovered containers ends because of an agent that is there, and of nothing else."""

from __future__ import annotations

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.agents import AgentHello, DeviceLost
from gandiva_core.policies.gandiva import create
from tests.yarn_plugin.agents.scene import EPOCH, QUANTUM_S, Scripted
from tests.yarn_plugin.live.scripted_rm import Json, ScriptedRm
from yarn_plugin.agents.nodes import LOST_S
from yarn_plugin.agents.world import AgentWorld
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.translate import Translator
from yarn_plugin.live.loop import CoreLoop
from yarn_plugin.live.servers import ServerRules


class Rm(ScriptedRm):
    """Notes whose agents it was told of."""

    def __init__(self) -> None:
        super().__init__(nodes=2)
        self.reported: list[str] = []

    def _apply(self, effect: Json) -> Json:
        if effect["op"] != "agent_reported":
            return super()._apply(effect)
        self.reported.append(effect["node"])
        return {"id": effect["id"], "code": "OK"}


class Scene:
    """A core with agents before a ResourceManager that is a script."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.agents = Scripted()
        settings, register = Settings(), Register()
        desk = OrderDesk(register)
        world = AgentWorld(self.agents, register, desk.moves, quantum_s=QUANTUM_S, epoch=EPOCH)
        attendance = world.attendance
        self.rm = Rm()
        self.rm.overflow()
        self.loop = CoreLoop(
            Engine(create(settings, {}), settings, check="full"),
            Translator(register),
            desk,
            world,
            ServerRules(can_suspend=attendance.can_suspend, lost_gpus=attendance.lost_gpus),
            clock=lambda: self.now_s,
            nodes=attendance,
        )

    def told(self, after_s: float = 0.1) -> list[str]:
        """Nodes that the ResourceManager hears of in the next turns."""
        for _ in range(3):
            self.now_s += after_s
            self.loop.turn(self.rm)
        told, self.rm.reported = self.rm.reported, []
        return told

    def attend(self, node: str) -> None:
        self.agents.said.append((node, AgentHello(node, "s", "1", (), True)))


def test_only_agents_that_are_there_are_told_of() -> None:
    """An agent that left, or lost a device, has not told who holds what."""
    scene = Scene()
    assert scene.told() == []
    scene.attend("n1:1")
    assert scene.told() == ["n1:1"]
    scene.agents.said.append(("n1:1", None))
    assert scene.told(LOST_S) == []
    scene.agents.said.append(("n1:1", DeviceLost(1.0, 0, "XID 79")))
    assert scene.told() == []


def test_a_new_session_hears_of_all_agents_again() -> None:
    """A restarted ResourceManager has forgotten, and its nodes wait."""
    scene = Scene()
    scene.attend("n1:1")
    scene.attend("n2:1")
    assert scene.told() == ["n1:1", "n2:1"]
    scene.rm.overflow(parts=2)
    assert scene.told() == ["n1:1", "n2:1"]
    assert scene.told() == []


def test_a_node_that_registers_behind_its_agent_does_not_wait() -> None:
    scene = Scene()
    scene.attend("n1:1")
    scene.told()
    scene.rm.restart()
    assert scene.told() == [], "no node is there yet"
    scene.rm.register_node("n2:1")
    scene.rm.register_node("n1:1")
    assert scene.told() == ["n1:1"], "n2 has no agent"
