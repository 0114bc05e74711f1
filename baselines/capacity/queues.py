"""A leaf queue: which application gets, reserves or leaves what a node has to offer at its heartbeat."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from enum import Enum
from typing import NamedTuple

from baselines.capacity.applications import Application, Ask
from baselines.capacity.nodes import Node, first_in_hash_order
from gandiva_core.model.job import Worker


class Given(Enum):
    """What one offer of a node led to."""

    NOTHING = 0
    CONTAINER = 1
    RESERVATION = 2
    BLOCKED = 3
    """The limits of the queue leave no room for the first application that this node could serve."""
    REFUSED = 4
    """Offered, but the commit found a limit exceeded: this heartbeat is lost for everybody."""


_IN_USE = 1e-6
"""Memory and vcores are never wholly free: of two equal limits the one with something in use is the lesser."""


class OrderingPolicy(Enum):
    """How a leaf queue orders its applications."""

    FIFO = "fifo"
    """By priority, then submission."""
    FAIR = "fair"
    """By memory used, then submission."""


class Headroom(NamedTuple):
    """What a queue may add: GPUs, and the share of the cluster's memory and vcores, which a replay never uses up."""

    gpus: int
    other: float

    def dominance(self, gpus: int) -> tuple[float, float]:
        """The dominant share of a cluster of `gpus`, then the lesser one: how Hadoop compares whole vectors."""
        share = self.gpus / gpus if gpus else 0.0
        return max(share, self.other), min(share, self.other)


class Usage:
    """GPUs that a queue may use and does use, reservations included, by partition; parents count their children.

    Memory and vcores are there because Hadoop takes the lesser of two limits as a whole vector: a queue whose maximum
    is below the cluster's is offered up to that maximum even where its parent has fewer GPUs left, since memory decides
    the comparison. The commit then refuses (`accepts`).

    Args:
        name: the queue's path.
        guaranteed: GPUs it is entitled to; decides which queue is offered a node first.
        limit: GPUs it may use at most.
        share: `limit` as a share of the cluster; of memory and vcores, too.
        parent: None for root.
    """

    def __init__(
        self,
        name: str,
        guaranteed: Counter[str],
        limit: Counter[str],
        share: float,
        parent: Usage | None,
    ) -> None:
        self.guaranteed = guaranteed
        self.used: Counter[str] = Counter()
        self._blocked = Headroom(0, 0.0)
        self._name = name
        self._limit = limit
        self._share = share
        self._parent = parent
        self._total: Counter[str] = limit if parent is None else parent._total

    def headroom(self, partition: str) -> Headroom:
        """What the allocator believes may be added."""
        gpus, other = self._limit_now(partition)
        return Headroom(gpus - self.used[partition], other)

    def _limit_now(self, partition: str) -> Headroom:
        """The lesser of its own maximum and what its parent has left, as a vector."""
        own = Headroom(self._limit[partition], self._share)
        if self._parent is None:
            return own
        parent = self._parent
        gpus, other = parent._limit_now(partition)
        gpus -= parent._blocked.gpus + parent.used[partition] - self.used[partition]
        left = Headroom(gpus, other - parent._blocked.other - _IN_USE)
        total = self._total[partition]
        return left if left.dominance(total) <= own.dominance(total) else own

    def accepts(self, partition: str, gpus: int) -> bool:
        """Whether the commit lets `gpus` more be used: every limit up to root, GPUs alone."""
        if self.used[partition] + gpus > self._limit[partition]:
            return False
        return self._parent is None or self._parent.accepts(partition, gpus)

    def add(self, partition: str, gpus: int) -> None:
        """Count GPUs taken or, below zero, given back."""
        self.used[partition] += gpus
        if self._parent is not None:
            self._parent.add(partition, gpus)

    def block(self, kept: Headroom) -> None:
        """Keep headroom for a queue that needs more than it may have now: siblings do not get it from this node."""
        if self._parent is not None:
            gpus, other = self._parent._blocked
            self._parent._blocked = Headroom(gpus + kept.gpus, other + kept.other)
            self._parent.block(kept)

    def unblock(self) -> None:
        """The node's offer is over."""
        self._blocked = Headroom(0, 0.0)
        if self._parent is not None:
            self._parent.unblock()

    def turn(self, partition: str) -> tuple[tuple[float, int, str], ...]:
        """Order among queues: use relative to the guarantee, then the larger guarantee, then the name; root first."""
        guaranteed = self.guaranteed[partition]
        ratio = self.used[partition] / guaranteed if guaranteed else float("inf")
        own = (ratio, -guaranteed, self._name)
        return (own,) if self._parent is None else (*self._parent.turn(partition), own)


class LeafQueue:
    """Applications that want something, in order, and the rules by which a node serves them.

    Attributes:
        allocated: containers ever given.
        reserved: nodes reserved now, and for whom.
        news: applications that got containers since their masters last heard.
    """

    def __init__(self, usage: Usage, order: OrderingPolicy) -> None:
        self.usage = usage
        self.allocated = 0
        self.reserved: dict[Node, tuple[Application, Ask]] = {}
        self.news: dict[Application, None] = {}
        self._order = order
        self._used_by: Counter[tuple[str, str]] = Counter()
        self._moved: dict[Application, None] = {}
        self._waiting: list[tuple[tuple[int, int], Application]] = []

    def is_waiting(self) -> bool:
        """Whether any application wants a container."""
        return bool(self._waiting)

    def wait(self, app: Application) -> None:
        """An application has something to ask for."""
        self.leave(app)
        insort(self._waiting, (app.place, app), key=lambda entry: entry[0])

    def leave(self, app: Application) -> None:
        """It asks for nothing more; safe to say twice."""
        at = bisect_left(self._waiting, app.place, key=lambda entry: entry[0])
        if at < len(self._waiting) and self._waiting[at][1] is app:
            del self._waiting[at]

    def admit(self, app: Application) -> None:
        """An application was submitted."""
        app.place = self._place(app)
        self.wait(app)

    def _place(self, app: Application) -> tuple[int, int]:
        first = -app.job.priority_class if self._order is OrderingPolicy.FIFO else app.used_mib
        return first, app.sequence

    def _reorder(self) -> None:
        """Applications whose use changed move; one that was served from its reservation is forgotten, as in Hadoop."""
        for app in self._moved:
            self.leave(app)
            app.place = self._place(app)
            if app.next_ask() is not None:
                self.wait(app)
        self._moved.clear()

    # ------------------------------------------------------------------------------ offers

    def offer(self, node: Node) -> Given:
        """Offer a node that nobody reserved: one container, one reservation, or nothing.

        The head of the queue does not block others where a node cannot serve it; but where the queue's limit,
        reservations counted, leaves no room for it, nobody behind it is looked at.
        """
        self._reorder()
        partition = node.partition
        headroom = self.usage.headroom(partition)
        for _, app in self._waiting:
            ask = app.next_ask()
            if ask is None or not self._may_use(app, ask, node):
                continue
            over = self._over_user_limit(app, partition)
            if over > app.reserved_gpus:
                continue
            is_out = headroom.other <= _IN_USE and not app.reserved_gpus
            if is_out or ask.worker.gpus > headroom.gpus + app.reserved_gpus:
                self.usage.block(headroom)
                return Given.BLOCKED
            over = max(over, ask.worker.gpus - headroom.gpus, int(headroom.other <= _IN_USE))
            given = self._try(app, ask, node, over)
            if given is not Given.NOTHING:
                return given
        return Given.NOTHING

    def _over_user_limit(self, app: Application, partition: str) -> int:
        """GPUs by which its user is over the limit: the queue's guarantee, with a user-limit-factor of 1."""
        used = self._used_by[app.job.user, partition]
        return max(0, used - self.usage.guaranteed[partition])

    @staticmethod
    def _may_use(app: Application, ask: Ask, node: Node) -> bool:
        """Masters run in the default partition, workers in their job's."""
        return node.partition == (app.job.partition if ask.worker.gpus else "")

    def _try(self, app: Application, ask: Ask, node: Node, over_limit: int) -> Given:
        """Serve one application; where `over_limit` GPUs are too many, only by giving a reservation of its own up."""
        worker = ask.worker
        if not node.could_hold(worker):
            return Given.NOTHING
        may_add = ask.wants_more_nodes()
        fits_limit = over_limit <= 0
        if node.has_room(worker):
            if may_add and fits_limit:
                if not self.usage.accepts(node.partition, worker.gpus):
                    return Given.REFUSED
            elif not ask.reserved or over_limit > worker.gpus:
                return Given.NOTHING
            else:
                self._unreserve(app, ask, first_in_hash_order(ask.reserved))
            self._allocate(app, ask, node, app.new_container())
            self._use(app, node, worker.gpus)
            self._moved[app] = None
            return Given.CONTAINER
        if not (may_add and fits_limit):
            return Given.NOTHING
        if not self.usage.accepts(node.partition, worker.gpus):
            return Given.REFUSED
        self._reserve(app, ask, node)
        return Given.RESERVATION

    def fulfil(self, node: Node) -> None:
        """A reserved node's heartbeat serves its reservation and nobody else."""
        if node not in self.reserved:
            return
        app, ask = self.reserved[node]
        if not ask.pending:
            self._unreserve(app, ask, node)
            self._moved[app] = None
        elif node.has_room(ask.worker):
            number = ask.reserved[node]
            self._unreserve(app, ask, node)
            self._allocate(app, ask, node, number)
            self._use(app, node, ask.worker.gpus)
        else:
            ask.re_reservations += 1

    def _use(self, app: Application, node: Node, gpus: int) -> None:
        self.usage.add(node.partition, gpus)
        self._used_by[app.job.user, node.partition] += gpus

    def _allocate(self, app: Application, ask: Ask, node: Node, number: int) -> None:
        node.take(ask.worker)
        ask.pending -= 1
        self.allocated += 1
        app.used_mib += ask.worker.memory_mib
        if app.master_node is None:
            app.master_node = node
        else:
            app.given[number] = (ask, node)
        self.news[app] = None
        if app.next_ask() is None:
            self.leave(app)

    def _reserve(self, app: Application, ask: Ask, node: Node) -> None:
        node.is_reserved = True
        self.reserved[node] = (app, ask)
        ask.reserved[node] = app.new_container()
        ask.re_reservations = 0
        self._moved[app] = None
        app.reserved_gpus += ask.worker.gpus
        self._use(app, node, ask.worker.gpus)

    def _unreserve(self, app: Application, ask: Ask, node: Node) -> None:
        node.is_reserved = False
        del self.reserved[node]
        del ask.reserved[node]
        ask.re_reservations = 0
        app.reserved_gpus -= ask.worker.gpus
        self._use(app, node, -ask.worker.gpus)

    def release(self, app: Application, worker: Worker, node: Node) -> None:
        """A container of an application has ended."""
        node.take(worker, -1)
        app.used_mib -= worker.memory_mib
        self._use(app, node, -worker.gpus)
        self._moved[app] = None
