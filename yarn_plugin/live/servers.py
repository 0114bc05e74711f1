"""What YARN does not tell the core of its servers: whether they can suspend, and what queues may have of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from gandiva_core.messages.events import Event, QueuesConfigured, ServerJoined, ServerLost
from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.units import ServerId
from gandiva_core.site.queues import QueueTree
from gandiva_core.site.shares import gpu_limits


class ServerRules:
    """Completes the translator's events.

    Args:
        queues: the site's tree; None leaves queues without limits.
        can_suspend: what servers are said to be able to do, agents or not. True is for tests: jobs would share
            devices and nothing would stop one for the other.
    """

    def __init__(self, queues: QueueTree | None, *, can_suspend: bool) -> None:
        self._queues = queues
        self._can_suspend = can_suspend
        self._servers: dict[ServerId, Server] = {}
        self._told: tuple[QueueLimit, ...] = ()

    def complete(self, events: Sequence[Event]) -> Iterator[Event]:
        """The same events; behind a change of servers what queues are guaranteed of them."""
        for event in events:
            if isinstance(event, ServerJoined):
                server = msgspec.structs.replace(event.server, can_suspend=self._can_suspend)
                self._servers[server.server_id] = server
                yield ServerJoined(event.at_s, server)
                yield from self._limits(event.at_s)
            else:
                yield event
                if isinstance(event, ServerLost):
                    self._servers.pop(event.server_id, None)
                    yield from self._limits(event.at_s)

    def _limits(self, at_s: float) -> Iterator[Event]:
        if self._queues is None:
            return
        gpus: Counter[str] = Counter()
        for server in self._servers.values():
            gpus[server.partition] += server.gpus
        limits = gpu_limits(self._queues, gpus)
        if limits != self._told:
            self._told = limits
            yield QueuesConfigured(at_s, limits)
