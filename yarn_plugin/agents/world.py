"""The live world: agents carry out what the engine orders, and tell what jobs do.

Nodes without an agent are as in a core that has none: nothing can be stopped there, so nothing shares devices there
(`AgentlessWorld`). No clock and no socket in here: time and messages are handed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gandiva_core.messages import agents as a
from gandiva_core.messages.effects import CarryOver, CloseMove, SwitchResidents, WorldEffect
from gandiva_core.messages.events import Event, GangBroken
from gandiva_core.runtime.agentless import AgentlessWorld
from gandiva_core.runtime.ports import WorldStep
from yarn_plugin.agents.attendance import Attendance
from yarn_plugin.agents.briefing import Briefing
from yarn_plugin.agents.carrying import Carrying, SecondContainers
from yarn_plugin.agents.commands import Commands
from yarn_plugin.agents.lessons import Lessons
from yarn_plugin.agents.nodes import NodeSide
from yarn_plugin.agents.server import Agents
from yarn_plugin.agents.switches import Switches
from yarn_plugin.bridge.register import Register


class AgentWorld:
    """Implements `gandiva_core.runtime.ports.World` over agents.

    Args:
        agents: where their messages come from and go to.
        register: whose container is whose.
        seconds: new containers of moves.
        quantum_s: Q.
        epoch: of this core; rises from one to the next.

    Attributes:
        attendance: whose agent is there.
        reshaped: to be told of jobs that have other workers, as `Switches.reshaped`.
    """

    def __init__(
        self,
        agents: Agents,
        register: Register,
        seconds: SecondContainers,
        *,
        quantum_s: float,
        epoch: int,
    ) -> None:
        self._agents = agents
        self._plain = AgentlessWorld()
        self._now_s = 0.0
        self.attendance = Attendance(register)
        nodes = self.attendance.nodes
        self._lessons = Lessons(register, nodes)
        commands = Commands(agents, nodes, epoch)
        self._briefing = Briefing(commands, register, self._lessons, quantum_s)
        self._switches = Switches(commands, register, self._lessons, self._briefing)
        self._carrying = Carrying(commands, register, self._briefing, seconds)
        self.reshaped = self._switches.reshaped

    # ------------------------------------------------------------------ the port

    def next_at_s(self) -> float | None:
        """When something is due that no message brings."""
        times = (
            self._switches.next_at_s(self._now_s),
            self._carrying.next_at_s(self._now_s),
            self._plain.next_at_s(),
        )
        return min((time_s for time_s in times if time_s is not None), default=None)

    def advance(self, now_s: float) -> WorldStep:
        """What agents said, then timers."""
        self._pass_time(now_s)
        events: list[Event] = []
        for carry in self._carrying.arrived():
            if carry.is_done:
                self._switches.moved(carry.placed)
        for node, report in self._agents.heard():
            events += self._heard(node, report, now_s)
        self._briefing.show_life(now_s)
        events += self._switches.due(now_s)
        events += self._carrying.due(now_s)
        events += self._plain.advance(now_s).events
        return WorldStep(tuple(events))

    def apply(self, now_s: float, effects: Sequence[WorldEffect]) -> None:
        """Take orders; answers come from a later `advance`."""
        self._pass_time(now_s)
        for effect in effects:
            if isinstance(effect, SwitchResidents):
                self._switches.order(effect)
            elif isinstance(effect, CarryOver):
                self._carrying.order(effect, now_s)
            elif isinstance(effect, CloseMove):
                self._carrying.close(effect)
            else:
                self._plain.apply(now_s, [effect])

    def _pass_time(self, now_s: float) -> None:
        self._now_s = now_s
        self.attendance.pass_time(now_s)

    # ------------------------------------------------------------------ reports

    def _heard(self, node: str, report: a.Report | None, now_s: float) -> Iterator[Event]:
        if isinstance(report, a.AgentHello):
            side: NodeSide | None = self.attendance.came(node, report)
        else:
            side = self.attendance.nodes.get(node)
        if side is None:
            return
        match report:
            case None:
                self.attendance.went(node, side)
            case a.AgentHello():
                self._briefing.welcome(node, side)
                self._switches.repeat(node)
                self._carrying.repeat(node, now_s)
                yield from self._measured(node, side, report, now_s)
            case a.Measured():
                yield from self._measured(node, side, report, now_s)
            case a.DeviceLost():
                yield from self._lost(node, side, report.index, report.reason, now_s)
            case a.Switched():
                yield from self._switches.obeyed(report, now_s)
            case a.Answered():
                yield from self._carrying.answered(node, report, now_s)
            case a.ContinuityChecked():
                yield from self._lessons.checked(report, now_s)

    def _measured(
        self, node: str, side: NodeSide, report: a.Measured | a.AgentHello, now_s: float
    ) -> Iterator[Event]:
        side.measured(report)
        for device in report.devices:
            if device.healthy:
                self.attendance.find(node, side, device.index)
            else:
                yield from self._lost(node, side, device.index, device.reason, now_s)
        yield from self._lessons.learn(side, now_s)
        self._switches.forget()

    def _lost(
        self, node: str, side: NodeSide, gpu: int, reason: str, now_s: float
    ) -> Iterator[Event]:
        """A device is gone: jobs on it restart elsewhere, and nobody gets it (G-13).

        A job whose worker there has ended is not broken: what is left of it only keeps the device (E19).
        """
        if self.attendance.lose(node, side, gpu):
            told = f"device {gpu} of {node} was lost: {reason}"
            for job_id in self._switches.without_device(node, gpu):
                yield GangBroken(now_s, job_id, told)
