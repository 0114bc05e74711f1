"""Servers that leave and come back at given times, for replays with faults. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gandiva_core.messages.events import ServerJoined, ServerLost
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import ServerId
from yarn_plugin.replay.cluster import add_server
from yarn_plugin.replay.wire import AddNode, RemoveNode


class ServerFault(msgspec.Struct, frozen=True):
    """A server is lost at `lost_at_s`, and back at `back_at_s` or never."""

    server_id: ServerId
    lost_at_s: float
    back_at_s: float | None = None


class FaultPlan:
    """What is still to come of a run's faults, in order of time.

    Raises:
        InputError: for a server that the cluster does not have.
    """

    def __init__(self, cluster: Cluster, faults: Sequence[ServerFault] = ()) -> None:
        self._servers = {server.server_id: server for server in cluster.servers}
        self._left = sorted(_moments(faults))
        for _, server_id, _ in self._left:
            if server_id not in self._servers:
                raise InputError("fault plan", str(server_id), f"a server of {cluster.name}")

    def next_at_s(self) -> float | None:
        """When the next one happens."""
        return self._left[0][0] if self._left else None

    def due(self, now_s: float) -> Iterator[tuple[RemoveNode | AddNode, ServerLost | ServerJoined]]:
        """Each that is due: what to do to the ResourceManager, and what to tell the core."""
        while self._left and self._left[0][0] <= now_s:
            _, server_id, comes_back = self._left.pop(0)
            server = self._servers[server_id]
            if comes_back:
                yield add_server(server), ServerJoined(now_s, server)
            else:
                lost = ServerLost(now_s, server_id, "its NodeManager is gone")
                yield RemoveNode(host=str(server_id)), lost


def _moments(faults: Sequence[ServerFault]) -> Iterator[tuple[float, ServerId, bool]]:
    for fault in faults:
        yield fault.lost_at_s, fault.server_id, False
        if fault.back_at_s is not None:
            yield fault.back_at_s, fault.server_id, True
