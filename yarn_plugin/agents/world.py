"""The live world: agents carry out what the engine orders, and tell what jobs do.

Nodes without an agent are as in a core that has none: nothing can be stopped there, so nothing shares devices there
(`AgentlessWorld`). No clock and no socket in here: time and messages are handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gandiva_core.messages import agents as a
from gandiva_core.messages.effects import SwitchResidents, WorldEffect
from gandiva_core.messages.events import (
    Event,
    GangBroken,
    ResidentsSwitched,
    SwitchFailed,
)
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.runtime.agentless import AgentlessWorld
from gandiva_core.runtime.ports import WorldStep
from yarn_plugin.agents.lessons import Lessons, forget
from yarn_plugin.agents.nodes import LOST_S, NodeSide
from yarn_plugin.agents.orders import JobOrder, on_devices, overlapping, start_order, stop_order
from yarn_plugin.agents.server import Agents
from yarn_plugin.agents.table import Resident, rotation
from yarn_plugin.bridge.gangs import Application, Gang
from yarn_plugin.bridge.register import Register

REPORT_S = 1.0
SILENT_QUANTA = 3
"""DESIGN §4: without the core for so long, agents rotate by themselves."""

PAUSE_S, PAUSE_S_MAX = 0.5, 8.0
"""A start that failed is told to the engine after this, which doubles with each: it would order it again at once."""
_CANNOT = frozenset({"NOT_SUSPENDABLE", "NO_BOUNDARY", "NOT_STOPPED", "NO_ANSWER"})
"""Codes of a stop that failed because of what the job is; others are about the moment."""


class AgentWorld:
    """Implements `gandiva_core.runtime.ports.World` over agents.

    Args:
        agents: where their messages come from and go to.
        register: whose container is whose.
        quantum_s: Q.
        epoch: of this core; rises from one to the next.
    """

    def __init__(self, agents: Agents, register: Register, *, quantum_s: float, epoch: int) -> None:
        self._agents = agents
        self._register = register
        self._quantum_s = quantum_s
        self._epoch = epoch
        self._plain = AgentlessWorld()
        self._nodes: dict[str, NodeSide] = {}
        self._orders: dict[JobId, JobOrder] = {}
        self._placed: dict[JobId, JobOrder] = {}
        #: The last start of each job that runs: where it holds which devices.
        self._answered: list[JobOrder] = []
        self._failed: list[tuple[float, SwitchFailed]] = []
        #: Starts that failed, and when the engine hears of each.
        self._failures: dict[JobId, int] = {}
        self._lessons = Lessons(register, self._nodes)
        self._changed: dict[str, None] = {}
        self._now_s = 0.0
        self._shown_at_s = 0.0

    # ------------------------------------------------------------------ what the loop asks besides

    def can_suspend(self, server_id: ServerId) -> bool:
        """Whether jobs may share this server's devices, because an agent there can stop them."""
        side = self._nodes.get(self._register.node_of.get(server_id, ""))
        return side is not None and side.can_suspend(self._now_s)

    def lost_gpus(self, server_id: ServerId) -> int:
        """How many devices of a server are gone for good."""
        side = self._nodes.get(self._register.node_of.get(server_id, ""))
        return 0 if side is None else len(side.lost)

    def changed(self) -> list[str]:
        """Nodes whose agent came or went since the last call."""
        for node, side in self._nodes.items():
            if not side.is_there and 0.0 < side.lost_at_s <= self._now_s - LOST_S:
                side.lost_at_s = 0.0
                self._changed[node] = None
        found, self._changed = list(self._changed), {}
        return found

    @property
    def nodes(self) -> dict[str, NodeSide]:
        """What is known of agents, by node."""
        return self._nodes

    # ------------------------------------------------------------------ the port

    def next_at_s(self) -> float | None:
        """When something is due that no message brings."""
        if self._answered:
            return self._now_s
        times = [due_s for due_s, _ in self._failed]
        timer_s = self._plain.next_at_s()
        return min(times if timer_s is None else [*times, timer_s], default=None)

    def advance(self, now_s: float) -> WorldStep:
        """What agents said, then timers."""
        self._now_s = now_s
        events: list[Event] = []
        for node, report in self._agents.heard():
            events += self._heard(node, report, now_s)
        self._show_life(now_s)
        events += self._switched(now_s)
        events += [
            msgspec.structs.replace(event, at_s=now_s)
            for at_s, event in self._failed
            if at_s <= now_s
        ]
        self._failed = [(at_s, event) for at_s, event in self._failed if at_s > now_s]
        events += self._plain.advance(now_s).events
        return WorldStep(tuple(events))

    def apply(self, now_s: float, effects: Sequence[WorldEffect]) -> None:
        """Take orders; answers come from a later `advance`."""
        self._now_s = now_s
        for effect in effects:
            if isinstance(effect, SwitchResidents):
                self._switch(effect)
            else:
                self._plain.apply(now_s, [effect])

    # ------------------------------------------------------------------ orders

    def _switch(self, effect: SwitchResidents) -> None:
        orders: list[JobOrder] = []
        for job_id in effect.suspend:
            found = self._register.find(job_id)
            if found is not None:
                order = stop_order(effect.switch_id, found[1])
                placed = self._placed.get(job_id)
                order.runs = {} if placed is None else placed.runs
                orders.append(order)
        for run in effect.run:
            found = self._register.find(run.job_id)
            if found is not None:
                order = start_order(effect.switch_id, run, found[1], self._register.node_of)
                orders.append(on_devices(order, self._nodes))
                self._expect(found[0], found[1])
        for order in orders:
            self._orders[order.job_id] = order
            if order.is_start:
                self._placed[order.job_id] = order
        self._send(orders)
        for order in orders:
            self._settle(order)

    def _send(self, orders: Iterable[JobOrder]) -> None:
        """One command a node; workers of nodes without an agent count as obedient."""
        suspend: dict[str, list[str]] = {}
        run: dict[str, list[a.RunWorker]] = {}
        switch_id = 0
        for order in orders:
            switch_id = order.switch_id
            for member in self._members(order.job_id):
                if member not in order.waiting:
                    continue
                node = self._node_of(order.job_id, member)
                if node not in self._nodes:
                    order.waiting.discard(member)
                    order.done.append(member)
                elif order.is_start:
                    found = [w for w in order.runs.get(node, ()) if w.container_id == member]
                    run.setdefault(node, []).extend(found)
                else:
                    suspend.setdefault(node, []).append(member)
        for node in dict.fromkeys([*suspend, *run]):
            side = self._nodes[node]
            command = a.SwitchWorkers(
                self._epoch,
                side.next_id(),
                switch_id,
                tuple(suspend.get(node, ())),
                tuple(run.get(node, ())),
            )
            self._agents.send(node, command)
            self._tell_table(node)

    def _members(self, job_id: JobId) -> list[str]:
        found = self._register.find(job_id)
        return [] if found is None else [m.container for m in found[1].members if m.container]

    def _node_of(self, job_id: JobId, container: str) -> str:
        found = self._register.find(job_id)
        members = () if found is None else found[1].members
        return next((m.node for m in members if m.container == container), "")

    def _settle(self, order: JobOrder) -> None:
        """Whether an order is carried out whole."""
        if not order.waiting and self._orders.get(order.job_id) is order:
            del self._orders[order.job_id]
            self._answered.append(order)
            if order.is_start:
                self._failures.pop(order.job_id, None)
            else:
                self._placed.pop(order.job_id, None)

    def _switched(self, now_s: float) -> Iterator[Event]:
        answered, self._answered = self._answered, []
        for switch_id in dict.fromkeys(order.switch_id for order in answered):
            mine = [order for order in answered if order.switch_id == switch_id]
            yield ResidentsSwitched(
                now_s,
                switch_id,
                tuple((order.job_id, now_s) for order in mine if not order.is_start),
                tuple((order.job_id, now_s) for order in mine if order.is_start),
            )

    # ------------------------------------------------------------------ reports

    def _heard(self, node: str, report: a.Report | None, now_s: float) -> Iterator[Event]:
        side = self._nodes.get(node)
        if isinstance(report, a.AgentHello):
            # Ids never go back within an epoch: what is sent now would look like a repetition.
            before = 0 if side is None else side.message_id
            lost = [] if side is None else side.lost
            self._nodes[node] = side = NodeSide(report, message_id=before, lost=lost)
            self._welcome(node, side)
            yield from self._measured(node, side, report, now_s)
        elif side is None:
            return
        elif report is None:
            side.is_there, side.lost_at_s = False, now_s
        elif isinstance(report, a.Measured):
            yield from self._measured(node, side, report, now_s)
        elif isinstance(report, a.DeviceLost):
            yield from self._lost(node, side, (report.index,), report.reason, now_s)
        elif isinstance(report, a.Switched):
            yield from self._obeyed(report, now_s)

    def _measured(
        self, node: str, side: NodeSide, report: a.Measured | a.AgentHello, now_s: float
    ) -> Iterator[Event]:
        side.measured(report)
        for device in report.devices:
            if not device.healthy:
                yield from self._lost(node, side, (device.index,), device.reason, now_s)
        yield from self._lessons.learn(side, now_s)
        for kept in (self._placed, self._orders, self._failures):
            forget(kept, self._register)

    def _lost(
        self, node: str, side: NodeSide, gpus: Sequence[int], reason: str, now_s: float
    ) -> Iterator[Event]:
        """Devices are gone for good: jobs on them restart elsewhere, and nobody gets them (G-13)."""
        for gpu in gpus:
            if not side.lose(gpu):
                continue
            self._changed[node] = None
            for order in list(self._placed.values()):
                if any(gpu in worker.gpus for worker in order.runs.get(node, ())):
                    self._placed.pop(order.job_id, None)
                    self._orders.pop(order.job_id, None)
                    told = f"device {gpu} of {node} was lost: {reason}"
                    yield GangBroken(now_s, order.job_id, told)

    def _welcome(self, node: str, side: NodeSide) -> None:
        """An agent is there, for the first time or again: it hears all that it may have missed."""
        self._changed[node] = None
        self._greet(node)
        for app, gang in self._register.gangs():
            if any(member.node == node and member.container for member in gang.members):
                self._expect(app, gang)
        if not side.expected:
            self._agents.send(node, a.Expect(self._epoch, side.next_id(), ()))
        waiting = [
            order
            for order in self._orders.values()
            if any(self._node_of(order.job_id, container) == node for container in order.waiting)
        ]
        for order in waiting:
            self._send([order])

    def _show_life(self, now_s: float) -> None:
        """An agent that hears nothing for long takes the core for gone, and lets jobs turn by itself."""
        if now_s < self._shown_at_s + REPORT_S:
            return
        self._shown_at_s = now_s
        for node, side in self._nodes.items():
            if side.is_there:
                self._greet(node)

    def _greet(self, node: str) -> None:
        silent_s = SILENT_QUANTA * self._quantum_s
        self._agents.send(node, a.Welcome(self._epoch, REPORT_S, self._quantum_s, silent_s))

    def _obeyed(self, report: a.Switched, now_s: float) -> Iterator[Event]:
        for container, _ in (*report.stopped, *report.started):
            job_id = self._register.job_of.get(container)
            order = None if job_id is None else self._orders.get(job_id)
            if order is not None and order.switch_id == report.switch_id:
                if container in order.waiting:
                    order.waiting.discard(container)
                    order.done.append(container)
                self._settle(order)
        for failure in report.failed:
            job_id = self._register.job_of.get(failure.container_id)
            order = None if job_id is None else self._orders.get(job_id)
            if order is not None and order.switch_id == report.switch_id:
                yield from self._undone(order, failure, now_s)

    def _undone(self, order: JobOrder, failure: a.Failure, now_s: float) -> Iterator[Event]:
        """One worker did not do it: its siblings go back, and who waits for its devices waits for others."""
        del self._orders[order.job_id]
        reason = f"{failure.code}: {failure.detail}".strip(": ")
        if order.is_start:
            self._placed.pop(order.job_id, None)
            self._send([self._back(order)])
            count = self._failures.get(order.job_id, 0)
            self._failures[order.job_id] = count + 1
            failed = SwitchFailed(now_s, order.switch_id, (), (order.job_id,), reason)
            self._failed.append((now_s + min(PAUSE_S * 2**count, PAUSE_S_MAX), failed))
            return
        placed = self._placed.get(order.job_id)
        if placed is not None and order.done:
            again = JobOrder(order.job_id, 0, True, set(order.done), runs=placed.runs)
            self._send([again])
        for other in list(overlapping(self._orders.values(), order)):
            del self._orders[other.job_id]
            self._placed.pop(other.job_id, None)
            self._send([self._back(other)])
        yield SwitchFailed(now_s, order.switch_id, kept=(order.job_id,), reason=reason)
        if failure.code not in _CANNOT:
            return
        yield self._lessons.failed(order.job_id, reason, now_s)

    def _back(self, order: JobOrder) -> JobOrder:
        """Workers that were told to run, and shall not."""
        return JobOrder(order.job_id, 0, False, {*order.waiting, *order.done})

    # ------------------------------------------------------------------ what agents know

    def _expect(self, app: Application, gang: Gang) -> None:
        """Tell the nodes of a gang whose workers they have."""
        for node in dict.fromkeys(member.node for member in gang.members if member.container):
            side = self._nodes.get(node)
            if side is None:
                continue
            for rank, member in enumerate(gang.members):
                if member.node == node and member.container:
                    side.expected[member.container] = a.Expected(
                        member.container,
                        gang.job_id,
                        member.worker.gpus,
                        rank,
                        len(gang.members),
                        app.user,
                        app.queue,
                        app.never,
                    )
            gone = [c for c in side.expected if c not in self._register.job_of]
            for container in gone:
                del side.expected[container]
            expected = tuple(side.expected.values())
            self._agents.send(node, a.Expect(self._epoch, side.next_id(), expected))

    def _tell_table(self, node: str) -> None:
        """Whom the node shall let run in turn while this core is away: jobs that live on it alone."""
        side = self._nodes[node]
        devices = [device.index for device in side.devices if device.healthy]
        table = rotation(list(self._residents(node)), devices)
        self._agents.send(node, a.RotationTable(self._epoch, side.next_id(), table))

    def _residents(self, node: str) -> Iterator[Resident]:
        jobs = dict.fromkeys(
            job_id
            for container in self._nodes[node].expected
            if (job_id := self._register.job_of.get(container)) is not None
        )
        for job_id in jobs:
            found = self._register.find(job_id)
            if found is not None and all(member.node == node for member in found[1].members):
                workers = tuple((m.container, m.worker.gpus) for m in found[1].members)
                placed = self._placed.get(job_id)
                holds = {
                    worker.container_id: worker.gpus
                    for worker in (() if placed is None else placed.runs.get(node, ()))
                }
                stays = self._lessons.is_unable(job_id) or "suspend" in found[0].never
                yield Resident(workers, stays=stays, holds=holds)
