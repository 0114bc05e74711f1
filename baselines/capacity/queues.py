"""A leaf queue: which application gets, reserves or leaves what a node has to offer at its heartbeat."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from enum import Enum

from baselines.capacity.applications import Application, Ask
from baselines.capacity.nodes import Node, first_in_hash_order
from gandiva_core.model.job import Worker


class Given(Enum):
    """What one offer of a node led to."""

    NOTHING = 0
    CONTAINER = 1
    RESERVATION = 2


class OrderingPolicy(Enum):
    """How a leaf queue orders its applications."""

    FIFO = "fifo"
    """By priority, then submission."""
    FAIR = "fair"
    """By memory used, then submission."""


class Usage:
    """GPUs that a queue may use and does use, reservations included, by partition; parents count their children.

    Only GPUs are counted: a replay's masters have a host of their own, whose memory and vcores are never used up, so
    that no queue meets its limit in those.
    """

    def __init__(self, limit: Counter[str], parent: Usage | None) -> None:
        self._limit = limit
        self._parent = parent
        self.used: Counter[str] = Counter()

    def headroom(self, partition: str) -> int:
        """GPUs left until the nearest limit."""
        left = self._limit[partition] - self.used[partition]
        return left if self._parent is None else min(left, self._parent.headroom(partition))

    def add(self, partition: str, gpus: int) -> None:
        """Count GPUs taken or, below zero, given back."""
        self.used[partition] += gpus
        if self._parent is not None:
            self._parent.add(partition, gpus)


class LeafQueue:
    """Applications that want something, in order, and the rules by which a node serves them.

    Attributes:
        guaranteed: GPUs it is entitled to; decides which queue is offered a node first.
        allocated: containers ever given.
        reserved: nodes reserved now, and for whom.
        news: applications that got containers since their masters last heard.
    """

    def __init__(self, name: str, guaranteed: float, usage: Usage, order: OrderingPolicy) -> None:
        self.name = name
        self.guaranteed = guaranteed
        self.usage = usage
        self.allocated = 0
        self.reserved: dict[Node, tuple[Application, Ask]] = {}
        self.news: dict[Application, None] = {}
        self._order = order
        self._waiting: list[tuple[tuple[int, int], Application]] = []

    @property
    def used_ratio(self) -> float:
        """Use relative to the guarantee."""
        return self.usage.used[""] / self.guaranteed if self.guaranteed else float("inf")

    def is_waiting(self) -> bool:
        """Whether any application wants a container."""
        return bool(self._waiting)

    def wait(self, app: Application) -> None:
        """An application has something to ask for."""
        app.place = self._place(app)
        insort(self._waiting, (app.place, app), key=lambda entry: entry[0])

    def leave(self, app: Application) -> None:
        """It asks for nothing more; safe to say twice."""
        at = bisect_left(self._waiting, app.place, key=lambda entry: entry[0])
        if at < len(self._waiting) and self._waiting[at][1] is app:
            del self._waiting[at]

    def _place(self, app: Application) -> tuple[int, int]:
        first = -app.job.priority_class if self._order is OrderingPolicy.FIFO else app.used_mib
        return first, app.sequence

    # ------------------------------------------------------------------------------ offers

    def offer(self, node: Node) -> Given:
        """Offer a node that nobody reserved: one container, one reservation, or nothing.

        The head of the queue does not block others where a node cannot serve it; but where the queue's limit,
        reservations counted, leaves no room for it, nobody behind it is looked at.
        """
        headroom = self.usage.headroom(node.partition)
        for _, app in self._waiting:
            ask = app.next_ask()
            if ask is None or not self._may_use(app, ask, node):
                continue
            if ask.worker.gpus > headroom + app.reserved_gpus:
                return Given.NOTHING
            given = self._try(app, ask, node, headroom)
            if given is not Given.NOTHING:
                return given
        return Given.NOTHING

    @staticmethod
    def _may_use(app: Application, ask: Ask, node: Node) -> bool:
        """Masters run in the default partition, workers in their job's."""
        return node.partition == (app.job.partition if ask.worker.gpus else "")

    def _try(self, app: Application, ask: Ask, node: Node, headroom: int) -> Given:
        worker = ask.worker
        if not node.could_hold(worker):
            return Given.NOTHING
        may_add = ask.wants_more_nodes()
        fits_limit = worker.gpus <= headroom
        if node.has_room(worker):
            if not (may_add and fits_limit):
                if not ask.reserved:
                    return Given.NOTHING
                self.unreserve(app, ask, first_in_hash_order(ask.reserved))
            self._allocate(app, ask, node)
            self.usage.add(node.partition, worker.gpus)
            return Given.CONTAINER
        if may_add and fits_limit:
            self._reserve(app, ask, node)
            return Given.RESERVATION
        return Given.NOTHING

    def fulfil(self, node: Node) -> None:
        """A reserved node's heartbeat serves its reservation and nobody else."""
        if node not in self.reserved:
            return
        app, ask = self.reserved[node]
        if not ask.pending:
            self.unreserve(app, ask, node)
        elif node.has_room(ask.worker):
            self.unreserve(app, ask, node)
            self._allocate(app, ask, node)
            self.usage.add(node.partition, ask.worker.gpus)
        else:
            ask.re_reservations += 1

    def _allocate(self, app: Application, ask: Ask, node: Node) -> None:
        node.take(ask.worker)
        rank = ask.ranks[len(ask.ranks) - ask.pending]
        ask.pending -= 1
        self.allocated += 1
        self.leave(app)
        app.used_mib += ask.worker.memory_mib
        if rank < 0:
            app.master_node = node
        else:
            app.given[rank] = node
        self.news[app] = None
        if app.next_ask() is not None:
            self.wait(app)

    def _reserve(self, app: Application, ask: Ask, node: Node) -> None:
        node.is_reserved = True
        self.reserved[node] = (app, ask)
        ask.reserved[node] = None
        ask.re_reservations = 0
        app.reserved_gpus += ask.worker.gpus
        self.usage.add(node.partition, ask.worker.gpus)

    def unreserve(self, app: Application, ask: Ask, node: Node) -> None:
        """Give a reservation up."""
        node.is_reserved = False
        del self.reserved[node]
        del ask.reserved[node]
        ask.re_reservations = 0
        app.reserved_gpus -= ask.worker.gpus
        self.usage.add(node.partition, -ask.worker.gpus)

    def release(self, app: Application, worker: Worker, node: Node) -> None:
        """A container of an application has ended."""
        node.take(worker, -1)
        app.used_mib -= worker.memory_mib
        self.usage.add(node.partition, -worker.gpus)
        if app.next_ask() is not None:
            self.leave(app)
            self.wait(app)
