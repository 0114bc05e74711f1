"""What the site's settings make of servers and queues: who may share devices, and what queues have of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from gandiva_core.messages.events import Event, QueuesConfigured, ServerJoined, ServerLost
from gandiva_core.model.cluster import MECHANISMS, QueueLimit, Server
from gandiva_core.model.units import QueueName, ServerId
from yarn_plugin.bridge.scope import FULL, OBSERVE, Scope
from yarn_plugin.bridge.wire import Adoption, HeightOrder, Limit


class ServerRules:
    """Completes the translator's events.

    Args:
        can_suspend: whether something on a server can suspend jobs, in mode full. True for every server is for tests:
            jobs would share devices and nothing would stop one for the other.
        lost_gpus: how many of the devices that YARN tells of are gone.
    """

    def __init__(
        self,
        *,
        can_suspend: Callable[[ServerId], bool],
        lost_gpus: Callable[[ServerId], int] = lambda _: 0,
    ) -> None:
        self._lost_gpus = lost_gpus
        self._gpus: dict[ServerId, int] = {}
        #: As YARN tells.
        self._can_suspend = can_suspend
        self._adoption: Adoption | None = None
        self._servers: dict[ServerId, Server] = {}
        self._told: tuple[QueueLimit, ...] = ()
        self._heights: dict[ServerId, int] = {}
        self._draining: set[ServerId] = set()
        self._decommissioning: set[ServerId] = set()
        self._unsettled: dict[ServerId, None] = {}
        #: Servers whose height may not be what it should be: a turn looks at these, not at thousands.

    def settle(self, adoption: Adoption, at_s: float) -> Iterator[Event]:
        """Another mode, other queues or limits: servers that can do more or less from now on, and the limits."""
        self._adoption = adoption
        self._unsettled = dict.fromkeys(self._servers)
        for server in list(self._servers.values()):
            revised = self._revised(server)
            if revised != server:
                self._servers[server.server_id] = revised
                yield ServerJoined(at_s, revised)
        yield from self._limits(at_s)

    def drain(self, server_id: ServerId, at_s: float, *, is_draining: bool) -> Iterator[Event]:
        """Nobody new comes to a server, or they come again; until told otherwise, and as long as this core lives."""
        if is_draining:
            self._draining.add(server_id)
        else:
            self._draining.discard(server_id)
        yield from self.review((server_id,), at_s)

    def review(self, server_ids: Iterable[ServerId], at_s: float) -> Iterator[Event]:
        """Servers of which something changed that YARN does not tell."""
        for server_id in server_ids:
            server = self._servers.get(server_id)
            revised = server if server is None else self._revised(server)
            if revised is not None and revised != server:
                self._servers[server_id] = revised
                self._unsettled[server_id] = None
                yield ServerJoined(at_s, revised)

    def complete(self, events: Sequence[Event]) -> Iterator[Event]:
        """The same events; behind a change of servers what queues are guaranteed of them."""
        for event in events:
            if isinstance(event, ServerJoined):
                self._gpus[event.server.server_id] = event.server.gpus
                if event.server.is_draining:
                    self._decommissioning.add(event.server.server_id)
                else:
                    self._decommissioning.discard(event.server.server_id)
                server = self._revised(event.server)
                self._servers[server.server_id] = server
                self._unsettled[server.server_id] = None
                yield ServerJoined(event.at_s, server)
                yield from self._limits(event.at_s)
            else:
                yield event
                if isinstance(event, ServerLost):
                    self._servers.pop(event.server_id, None)
                    self._heights.pop(event.server_id, None)
                    self._gpus.pop(event.server_id, None)
                    yield from self._limits(event.at_s)

    # ------------------------------------------------------------------ heights

    def new_session(self) -> None:
        """Heights that were asked for before may be forgotten on the other side."""
        self._heights.clear()
        self._unsettled = dict.fromkeys(self._servers)

    def heights(self) -> list[HeightOrder]:
        """Orders for servers whose devices may be shared from now on, or no longer."""
        orders: list[HeightOrder] = []
        for server_id in list(self._unsettled):
            server = self._servers.get(server_id)
            wanted = 1 if server is None else self._height(server)
            if server is None or wanted == self._heights.get(server_id, 1):
                del self._unsettled[server_id]
            else:
                orders.append(HeightOrder(f"height/{server_id}", server_id, wanted))
        return orders

    def raised(self, order: HeightOrder) -> None:
        """The ResourceManager took an order."""
        self._heights[ServerId(order.node)] = order.height

    def _height(self, server: Server) -> int:
        return self._adoption.height_max if self._adoption and server.can_suspend else 1

    def _revised(self, server: Server) -> Server:
        adoption = self._adoption
        may_share = adoption is None or (
            adoption.mode == FULL and Scope.of(adoption).has_partition(server.partition)
        )
        can_suspend = may_share and self._can_suspend(server.server_id)
        is_draining = server.server_id in self._decommissioning | self._draining
        gpus = self._gpus.get(server.server_id, server.gpus) - self._lost_gpus(server.server_id)
        return msgspec.structs.replace(
            server, gpus=max(0, gpus), can_suspend=can_suspend, is_draining=is_draining
        )

    # ------------------------------------------------------------------ limits

    def _limits(self, at_s: float) -> Iterator[Event]:
        if self._adoption is None:
            return
        gpus: Counter[str] = Counter()
        for server in self._servers.values():
            gpus[server.partition] += server.gpus
        limits = tuple(queue_limits(self._adoption, gpus))
        if limits != self._told:
            self._told = limits
            yield QueuesConfigured(at_s, limits)


def queue_limits(adoption: Adoption, gpus: Counter[str]) -> Iterator[QueueLimit]:
    """The core's limits, in physical GPUs.

    Args:
        adoption: as the ResourceManager told it.
        gpus: physical GPUs by partition.
    """
    scope = Scope.of(adoption)
    parents = {limit.parent for limit in adoption.limits}
    for limit in adoption.limits:
        total = gpus[limit.partition]
        is_ours = limit.queue in parents or scope.has(limit.queue, limit.partition)
        yield QueueLimit(
            QueueName(limit.queue),
            _gpus(limit.guaranteed_gpus, limit.guaranteed_ratio, total),
            _gpus(limit.max_gpus, limit.max_ratio, total),
            limit.parent,
            partition=limit.partition,
            ordering=limit.ordering,
            mechanisms_off=_off(limit) if is_ours and scope.mode != OBSERVE else MECHANISMS,
        )


def _gpus(amount: float | None, ratio: float, total: int) -> float:
    return ratio * total if amount is None else amount


def _off(limit: Limit) -> tuple[str, ...]:
    return tuple(name for name in MECHANISMS if name in limit.mechanisms_off)
