"""Moves on their way between agents (SPEC G-69): warm up, save, restore, and only then let go of the source.

Pure: messages and time are handed in. A move has one stage at a time; it goes on once every worker has done it.
Whatever fails, or takes too long, or is interrupted by an agent that was restarted, fails the move: the engine closes
it, and agents are told so until they say that they heard it, since a source that saved stands still until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from gandiva_core.messages import agents as a
from gandiva_core.messages.decisions import Run
from gandiva_core.messages.effects import CarryOver, CloseMove
from gandiva_core.messages.events import Event, GangBroken, GangMoved, MoveFailed
from gandiva_core.model.units import JobId
from yarn_plugin.agents.briefing import Briefing, expected_of
from yarn_plugin.agents.commands import Commands
from yarn_plugin.agents.orders import JobOrder, on_devices, start_order
from yarn_plugin.bridge.gangs import Gang, Member
from yarn_plugin.bridge.register import Register

NO_SWITCH = 0


class Stage(StrEnum):
    """What all workers of a move are doing."""

    WARMING = "warm up"
    SAVING = "save"
    RESTORING = "restore"


_LIMITS_S: Mapping[Stage, float] = {
    Stage.WARMING: 240.0,
    Stage.SAVING: 90.0,
    Stage.RESTORING: 120.0,
}
"""Agents have limits of their own, which are shorter: these are for agents that say nothing."""


class SecondContainers(Protocol):
    """Who knows the new containers of a move."""

    def arrivals(self, move_id: int) -> Sequence[Member]:
        """Workers as they will be, in the order of the gang's members; none for a move that is over."""


@dataclass(slots=True)
class Carry:
    """One move.

    Attributes:
        leaving, arriving: the same workers, where they are and where they will be.
        placed: the order that would have started them there: it tells who has which devices from then on.
        waiting: message id by node that was not answered, with the worker that it is about.
        is_done: over, and well.
    """

    move_id: int
    job_id: JobId
    leaving: list[Member]
    arriving: list[Member]
    placed: JobOrder
    folder: str
    stage: Stage = Stage.WARMING
    due_s: float = 0.0
    waiting: dict[tuple[str, int], str] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    is_done: bool = False

    @property
    def nodes(self) -> list[str]:
        """All that have a part in it."""
        return list(dict.fromkeys(m.node for m in (*self.leaving, *self.arriving)))


class Carrying:
    """Carries moves out through agents.

    Args:
        commands: to agents.
        register: whose container is whose.
        briefing: tells nodes whose workers they have.
        seconds: of moves.
    """

    def __init__(
        self,
        commands: Commands,
        register: Register,
        briefing: Briefing,
        seconds: SecondContainers,
    ) -> None:
        self._commands = commands
        self._nodes = commands.nodes
        self._register = register
        self._briefing = briefing
        self._seconds = seconds
        self._carries: dict[int, Carry] = {}
        self._failed: list[MoveFailed] = []
        self._arrived: list[Carry] = []
        #: Told to end, and not yet seen in the register, which changes after the effect that says so.
        self._ending: dict[tuple[str, str], tuple[int, bool]] = {}
        #: (node, container) to (move, how it ended), until the agent says that it heard it.
        self._told: dict[tuple[str, int], str] = {}
        #: Messages that say so, with the container that each is about.

    # ------------------------------------------------------------------ orders

    def order(self, effect: CarryOver, now_s: float) -> None:
        """Let the new containers warm up; answers come from `answered` and `due`."""
        found = self._register.find(effect.job_id)
        arriving = list(self._seconds.arrivals(effect.move_id))
        if found is None or not arriving:
            self._fail(effect.move_id, effect.job_id, now_s, "NO_AGENT", "it has left")
            return
        app, gang = found
        obstacle = self._obstacle(gang, arriving)
        if obstacle:
            self._fail(effect.move_id, effect.job_id, now_s, "NO_AGENT", obstacle)
            return
        there = Gang(gang.job_id, arriving, now_s)
        plain = start_order(
            NO_SWITCH, Run(gang.job_id, effect.bindings), there, self._register.node_of
        )
        placed = on_devices(plain, self._nodes)
        ram_dir = self._nodes[arriving[0].node].hello.ram_dir
        folder = f"{ram_dir}/{gang.job_id}-{self._commands.epoch}-{effect.move_id}"
        leaving = [replace(member) for member in gang.members]  # the register's own will change
        carry = Carry(effect.move_id, gang.job_id, leaving, arriving, placed, folder)
        self._carries[effect.move_id] = carry
        self._begin(carry, Stage.WARMING, now_s)
        gpus = {w.container_id: w.gpus for workers in placed.runs.values() for w in workers}
        for rank, (old, new) in enumerate(zip(gang.members, arriving, strict=True)):
            expected = expected_of(app, there, rank)
            self._briefing.expect_coming(new.node, expected)
            message_id = self._commands.tell(
                new.node,
                a.PrepareMove,
                effect.move_id,
                expected,
                gpus.get(new.container, ()),
                old.container,
            )
            carry.waiting[new.node, message_id] = new.container

    def _obstacle(self, gang: Gang, arriving: Sequence[Member]) -> str:
        """Why agents cannot carry a gang over; empty where they can."""
        folders: set[str] = set()
        for member in (*gang.members, *arriving):
            side = self._nodes.get(member.node)
            if side is None or not side.is_there:
                return f"no agent is there on {member.node}"
            folders.add(side.hello.ram_dir)
        if len(folders) > 1 or not all(folders):
            return f"agents keep states in {', '.join(sorted(folders))}: one folder is expected"
        return ""

    def _begin(self, carry: Carry, stage: Stage, now_s: float) -> None:
        carry.stage, carry.due_s = stage, now_s + _LIMITS_S[stage]
        carry.waiting.clear()

    def close(self, effect: CloseMove) -> None:
        """The move is over: both sides are told."""
        carry = self._carries.pop(effect.move_id, None)
        if carry is None:
            return
        carry.is_done = effect.is_done
        for member in (*carry.leaving, *carry.arriving):
            self._ending[member.node, member.container] = (effect.move_id, effect.is_done)
        for node in carry.nodes:
            self._tell_ends(node)
        self._arrived.append(carry)

    def _tell_ends(self, node: str) -> None:
        side = self._nodes.get(node)
        if side is None or not side.is_there:
            return
        for (where, container), (move_id, is_done) in self._ending.items():
            if where == node:
                message_id = self._commands.tell(node, a.EndMove, move_id, container, is_done)
                self._told[node, message_id] = container

    # ------------------------------------------------------------------ answers

    def answered(self, node: str, report: a.Answered, now_s: float) -> Iterator[Event]:
        """One worker has done its part of a stage, or cannot."""
        key = node, report.message_id
        if key in self._told:
            yield from self._heard_end(node, self._told.pop(key), report, now_s)
            return
        carry = next((each for each in self._carries.values() if key in each.waiting), None)
        if carry is None:
            return
        container = carry.waiting.pop(key)
        if report.code != "OK":
            carry.waiting.clear()
            detail = f"{carry.stage} {container} on {node}: {report.detail}"
            yield MoveFailed(now_s, carry.move_id, carry.job_id, report.code, detail)
            return
        for name, value in report.figures.items():
            carry.figures[name] = max(value, carry.figures.get(name, value))
        if not carry.waiting:
            yield from self._go_on(carry, now_s)

    def _heard_end(
        self, node: str, container: str, report: a.Answered, now_s: float
    ) -> Iterator[Event]:
        """A source that does not go on where it stopped has lost its gang."""
        ended = self._ending.pop((node, container), None)
        job_id = self._register.job_of.get(container)
        if report.code != "OK" and job_id is not None and ended is not None and not ended[1]:
            reason = f"{container} does not go on after a move: {report.code} {report.detail}"
            yield GangBroken(now_s, job_id, reason)

    def _go_on(self, carry: Carry, now_s: float) -> Iterator[Event]:
        if carry.stage is Stage.RESTORING:
            frozen_s = carry.figures.get("frozen_s", 0.0)
            figures = tuple(sorted(carry.figures.items()))
            yield GangMoved(now_s, carry.move_id, carry.job_id, frozen_s, figures)
            return
        is_warm = carry.stage is Stage.WARMING
        self._begin(carry, Stage.SAVING if is_warm else Stage.RESTORING, now_s)
        kind = a.SaveState if is_warm else a.RestoreState
        for member in carry.leaving if is_warm else carry.arriving:
            message_id = self._commands.tell(
                member.node, kind, carry.move_id, member.container, carry.folder
            )
            carry.waiting[member.node, message_id] = member.container

    def repeat(self, node: str, now_s: float) -> None:
        """An agent is there anew: what it was told of moves before may be lost."""
        self._told = {key: worker for key, worker in self._told.items() if key[0] != node}
        self._tell_ends(node)
        for carry in self._carries.values():
            if node in carry.nodes:
                detail = f"the agent on {node} was away"
                self._fail(carry.move_id, carry.job_id, now_s, "AGENT_AWAY", detail)

    def _fail(self, move_id: int, job_id: JobId, now_s: float, code: str, detail: str) -> None:
        self._failed.append(MoveFailed(now_s, move_id, job_id, code, detail))

    # ------------------------------------------------------------------ time

    def next_at_s(self, now_s: float) -> float | None:
        """When `due` has something to say."""
        if self._failed or self._arrived:
            return now_s
        return min((carry.due_s for carry in self._carries.values()), default=None)

    def due(self, now_s: float) -> Iterator[Event]:
        """Moves that failed, or that nobody answers for."""
        failed, self._failed = self._failed, []
        yield from failed
        for carry in self._carries.values():
            if carry.due_s <= now_s:
                carry.due_s = float("inf")
                late = ", ".join(sorted(set(carry.waiting.values())))
                detail = f"no answer from {late} that was to {carry.stage}"
                yield MoveFailed(now_s, carry.move_id, carry.job_id, "NO_ANSWER", detail)

    def arrived(self) -> list[Carry]:
        """Moves that are over since the last call, well or not; nodes hear anew whose workers they have."""
        over, self._arrived = self._arrived, []
        for carry in over:
            self._briefing.review(carry.nodes, [m.container for m in carry.arriving])
        for key in [key for key in self._ending if key[1] not in self._register.job_of]:
            del self._ending[key]
        return over
