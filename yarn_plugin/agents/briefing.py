"""What agents know besides orders: that the core lives, whose workers they have, who runs while it is away. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gandiva_core.messages.agents import Expect, Expected, RotationTable, Welcome
from gandiva_core.model.units import JobId
from yarn_plugin.agents.commands import Commands
from yarn_plugin.agents.lessons import Lessons
from yarn_plugin.agents.nodes import NodeSide
from yarn_plugin.agents.orders import JobOrder
from yarn_plugin.agents.table import Resident, rotation
from yarn_plugin.bridge.gangs import Application, Gang
from yarn_plugin.bridge.register import Register

REPORT_S = 1.0
SILENT_QUANTA = 3
"""DESIGN §4: without the core for so long, agents rotate by themselves."""


def expected_of(app: Application, gang: Gang, rank: int) -> Expected:
    """One worker of a gang, as its node's agent is told of it."""
    member = gang.members[rank]
    return Expected(
        member.container,
        gang.job_id,
        member.worker.gpus,
        rank,
        len(gang.members),
        app.user,
        app.queue,
        app.never,
    )


class Briefing:
    """Tells agents.

    Args:
        commands: to agents.
        register: whose container is whose.
        lessons: what jobs can do.
        quantum_s: Q.
    """

    def __init__(
        self, commands: Commands, register: Register, lessons: Lessons, quantum_s: float
    ) -> None:
        self._commands = commands
        self._nodes = commands.nodes
        self._register = register
        self._lessons = lessons
        self._quantum_s = quantum_s
        self._shown_at_s = 0.0

    # ------------------------------------------------------------------ the core is there

    def welcome(self, node: str, side: NodeSide) -> None:
        """An agent is there, for the first time or again: it hears whose workers it has, even where it has none."""
        self._greet(node)
        for app, gang in self._register.gangs():
            self._note(node, side, app, gang)
        self._tell_expected(node, side)

    def show_life(self, now_s: float) -> None:
        """An agent that hears nothing for long takes the core for gone, and lets jobs turn by itself."""
        if now_s < self._shown_at_s + REPORT_S:
            return
        self._shown_at_s = now_s
        for node, side in self._nodes.items():
            if side.is_there:
                self._greet(node)

    def _greet(self, node: str) -> None:
        silent_s = SILENT_QUANTA * self._quantum_s
        epoch = self._commands.epoch
        self._commands.greet(node, Welcome(epoch, REPORT_S, self._quantum_s, silent_s))

    # ------------------------------------------------------------------ whose workers a node has

    def expect(self, app: Application, gang: Gang) -> None:
        """Tell the nodes of a gang whose workers they have."""
        for node in dict.fromkeys(member.node for member in gang.members if member.container):
            side = self._nodes.get(node)
            if side is not None:
                self._note(node, side, app, gang)
                self._tell_expected(node, side)

    def expect_coming(self, node: str, expected: Expected) -> None:
        """A worker of a move comes to a node whose agent is known."""
        side = self._nodes[node]
        side.coming[expected.container_id] = expected
        self._tell_expected(node, side)

    def review(self, nodes: Iterable[str], over: Iterable[str]) -> None:
        """A move between these nodes is over; its new containers are in the register now, or are nobody's."""
        gone = set(over)
        for node in nodes:
            side = self._nodes.get(node)
            if side is not None:
                side.coming = {c: worker for c, worker in side.coming.items() if c not in gone}
                for app, gang in self._register.gangs():
                    self._note(node, side, app, gang)
                self._tell_expected(node, side)

    def _note(self, node: str, side: NodeSide, app: Application, gang: Gang) -> None:
        for rank, member in enumerate(gang.members):
            if member.node == node and member.container:
                side.expected[member.container] = expected_of(app, gang, rank)

    def _tell_expected(self, node: str, side: NodeSide) -> None:
        """All that a node has, where the agent that is there was not told just that."""
        for container in [c for c in side.expected if c not in self._register.job_of]:
            del side.expected[container]
        expected = (*side.expected.values(), *side.coming.values())
        if expected != side.told:
            side.told = expected
            self._commands.tell(node, Expect, expected)

    # ------------------------------------------------------------------ who runs while the core is away

    def tell_table(self, node: str, placed: Mapping[JobId, JobOrder]) -> None:
        """Whom the node shall let run in turn while this core is away: jobs that live on it alone.

        Args:
            node: one whose agent is known.
            placed: the last start of each job that runs.
        """
        devices = [device.index for device in self._nodes[node].devices if device.healthy]
        table = rotation(list(self._residents(node, placed)), devices)
        self._commands.tell(node, RotationTable, table)

    def _residents(self, node: str, placed: Mapping[JobId, JobOrder]) -> Iterator[Resident]:
        job_of = self._register.job_of
        jobs = dict.fromkeys(job_of[c] for c in self._nodes[node].expected if c in job_of)
        for job_id in jobs:
            found = self._register.find(job_id)
            if found is not None and all(member.node == node for member in found[1].members):
                workers = tuple((m.container, m.worker.gpus) for m in found[1].members)
                order = placed.get(job_id)
                runs = () if order is None else order.runs.get(node, ())
                holds = {worker.container_id: worker.gpus for worker in runs}
                stays = self._lessons.is_unable(job_id) or "suspend" in found[0].never
                yield Resident(workers, stays=stays, holds=holds)
