"""Workers of a job move (SPEC G-69): from the core's wish to orders, and from answers to new containers. Pure.

A move is three orders. `ask_move`: the master is told, for each worker, to ask for one container on a named node.
`commit_gang`: once it has asked for all of them, they are created, all or none; the workers warm up there while the job
runs on. `let_go`: at the end the old containers, or, where it was called off, the new ones. Between, agents move the
state. The end is booked here before agents are told of it: then how an old container ends means nothing any more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gandiva_core.model.units import JobId, ServerId
from yarn_plugin.bridge.asks import FIRST_MOVE_ID, AskKey
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase, Member
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.wire import Answer, CommitOrder, ContainerOrder, LetGoOrder, MoveOrder

OK = "OK"
ASK_S_MAX = 60.0
"""A master hears of each worker in a heartbeat of its own, and asks in the next."""


class MoveRefusedError(Exception):
    """A move that cannot begin, in one sentence."""


@dataclass(slots=True)
class Leg:
    """One worker's way.

    Attributes:
        member: of the gang; its container stays the old one until the end.
        node: where it goes.
        key: of the ask that its master makes for it.
        container: the new one, once it was created.
    """

    member: Member
    node: str
    key: AskKey
    container: str = ""


@dataclass(slots=True)
class Move:
    """All workers of a job that go elsewhere at once."""

    job_id: JobId
    legs: list[Leg]
    due_s: float
    """By then its master has asked for the new containers, or never will."""
    is_ordered: bool = False
    """Its containers are being created, or were."""

    @property
    def containers(self) -> tuple[str, ...]:
        """The new ones, in the order of the gang's members; none before they were created."""
        return tuple(leg.container for leg in self.legs if leg.container)


@dataclass(slots=True)
class MoveDesk:
    """Writes the orders of moves, and puts their outcome into the register.

    Attributes:
        next_id: of the next ask; masters know asks of moves by ids from `FIRST_MOVE_ID` on.
    """

    register: Register
    next_id: int = FIRST_MOVE_ID
    _moves: dict[int, Move] = field(default_factory=dict)

    def begin(
        self, move_id: int, job_id: JobId, servers: Sequence[ServerId], now_s: float
    ) -> list[MoveOrder]:
        """Orders that tell a job's master.

        Args:
            move_id: the core's; of no other move that is under way.
            job_id: whose workers move.
            servers: where to, one a worker, in the order of the gang's members. Each gets a new container, also one
                that is there already: ranks find each other anew, all of them.
            now_s: the time.

        Raises:
            MoveRefusedError: the job has not all of its containers, moves already, or a server is gone.
        """
        found = self.register.find(job_id)
        if found is None:
            raise MoveRefusedError(f"{job_id} has left")
        gang = found[1]
        if any(move.job_id == job_id for move in self._moves.values()):
            raise MoveRefusedError(f"{job_id} moves already")
        if gang.phase is not GangPhase.HELD or len(gang.live) < len(gang.members):
            raise MoveRefusedError(f"{job_id} has not all of its containers")
        legs = list(self._legs(gang, servers))
        self._moves[move_id] = Move(job_id, legs, now_s + ASK_S_MAX)
        return [
            MoveOrder(
                f"move/{move_id}/{leg.key.allocation_request_id}",
                leg.member.container,
                leg.node,
                leg.key.allocation_request_id,
            )
            for leg in legs
        ]

    def _legs(self, gang: Gang, servers: Sequence[ServerId]) -> Sequence[Leg]:
        try:
            nodes = [self.register.node_of[server] for server in servers]
        except KeyError as error:
            raise MoveRefusedError(f"no such server {error.args[0]}") from None
        if len(nodes) != len(gang.members):
            raise MoveRefusedError(f"{len(nodes)} servers for {len(gang.members)} workers")
        legs: list[Leg] = []
        for member, node in zip(gang.members, nodes, strict=True):
            legs.append(Leg(member, node, AskKey(member.key.priority, self.next_id)))
            self.next_id += 1
        return legs

    def late(self, now_s: float) -> list[tuple[int, JobId]]:
        """Moves whose master does not ask: one that knows nothing of moves, or is too busy. Each is told once."""
        found: list[tuple[int, JobId]] = []
        for move_id, move in self._moves.items():
            if not move.is_ordered and move.due_s <= now_s:
                move.due_s = math.inf
                found.append((move_id, move.job_id))
        return found

    def next_at_s(self) -> float | None:
        """When one is late."""
        times = [move.due_s for move in self._moves.values() if not move.is_ordered]
        return min((due_s for due_s in times if due_s < math.inf), default=None)

    def job_of(self, move_id: int) -> JobId | None:
        """Whose move it is; None for one that is over."""
        move = self._moves.get(move_id)
        return None if move is None else move.job_id

    def arrivals(self, move_id: int) -> list[Member]:
        """Workers as they will be, in the order of the gang's members; none for a move that is over."""
        move = self._moves.get(move_id)
        legs = [] if move is None else move.legs
        return [
            replace(leg.member, container=leg.container, node=leg.node, exit_status=None)
            for leg in legs
        ]

    def due(self) -> list[CommitOrder]:
        """Commits of moves whose master has asked for everything; each is ordered once."""
        orders: list[CommitOrder] = []
        for move_id, move in self._moves.items():
            found = self.register.find(move.job_id)
            if found is None or move.is_ordered:
                continue
            app = found[0]
            if all(_is_asked(app, leg) for leg in move.legs):
                move.is_ordered = True
                containers = tuple(
                    ContainerOrder(
                        leg.node, *leg.key, worker.memory_mib, worker.vcores, worker.gpus
                    )
                    for leg in move.legs
                    for worker in (leg.member.worker,)
                )
                orders.append(CommitOrder(f"move/{move_id}", app.attempt, containers))
        return orders

    def book(self, answer: Answer) -> tuple[int, Move] | None:
        """Take the answer to a commit.

        Returns:
            The move, with its new containers; without any it was refused, and is over. None for an answer to
            something else.
        """
        kind, _, number = answer.id.partition("/")
        move = self._moves.get(int(number)) if kind == "move" and number.isdecimal() else None
        if move is None:
            return None
        if answer.code == OK:
            for leg, container in zip(move.legs, answer.containers, strict=True):
                leg.container = container
                self.register.seconds[container] = move.job_id
        else:
            del self._moves[int(number)]
        return int(number), move

    def end(self, move_id: int, *, is_done: bool) -> list[LetGoOrder]:
        """The job lives in the new containers from now on, or the move was called off.

        An unknown move is no error: it was refused, or its job has left.
        """
        move = self._moves.pop(move_id, None)
        if move is None:
            return []
        for leg in move.legs:
            self.register.seconds.pop(leg.container, None)
        is_there = is_done and all(self._is_whole(move.job_id, leg) for leg in move.legs)
        gone = [
            self._swap(move.job_id, leg) if is_there else leg.container
            for leg in move.legs
            if leg.container
        ]
        return [LetGoOrder(f"move/{move_id}/{container}", container) for container in gone]

    def unwanted(self) -> list[LetGoOrder]:
        """Orders for second containers of moves that nobody goes on with."""
        unwanted = list(self.register.unwanted)
        self.register.unwanted.clear()
        return [LetGoOrder(f"move/unwanted/{container}", container) for container in unwanted]

    def _is_whole(self, job_id: JobId, leg: Leg) -> bool:
        """Whether a worker has both containers; one that was lost meanwhile starts again with its gang, elsewhere."""
        return bool(leg.container) and self.register.job_of.get(leg.member.container) == job_id

    def _swap(self, job_id: JobId, leg: Leg) -> str:
        """The worker is where it went; what becomes of its old container means nothing from now on."""
        old = leg.member.container
        del self.register.job_of[old]
        self.register.job_of[leg.container] = job_id
        leg.member.former, leg.member.container, leg.member.node = old, leg.container, leg.node
        return old


def move_of(order_id: str) -> int | None:
    """The move that an order is part of; None for orders of other things."""
    kind, _, rest = order_id.partition("/")
    number = rest.partition("/")[0]
    return int(number) if kind == "move" and number.isdecimal() else None


def _is_asked(app: Application, leg: Leg) -> bool:
    pending = app.move_asks.get(leg.key)
    return (
        pending is not None
        and pending.worker == leg.member.worker
        and leg.node.rpartition(":")[0] in pending.site.places
    )
