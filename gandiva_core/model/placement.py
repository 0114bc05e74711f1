"""Which servers and devices a gang has, and how far apart they are (G-6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

import msgspec

from gandiva_core.model.cluster import Server, Topology
from gandiva_core.model.job import Worker
from gandiva_core.model.units import ServerId


class LocalityLevel(IntEnum):
    """How far apart the GPUs of a gang are; the worst pair counts (G-6). Smaller is better."""

    SAME_SWITCH = 0
    SAME_SOCKET = 1
    DIFF_SOCKET = 2
    SAME_RACK = 3
    DIFF_RACK = 4


class Binding(msgspec.Struct, frozen=True, array_like=True):
    """Devices of one server given to a job, in rank order."""

    server_id: ServerId
    gpus: tuple[int, ...]


def shares_of(workers: Iterable[Worker], servers: Iterable[ServerId]) -> dict[ServerId, int]:
    """GPUs on each server of a gang, in order of the first rank there (G-1).

    Args:
        workers: in rank order.
        servers: one a worker.
    """
    shares: dict[ServerId, int] = {}
    for worker, server_id in zip(workers, servers, strict=True):
        shares[server_id] = shares.get(server_id, 0) + worker.gpus
    return shares


def level_within(topology: Topology, gpus: Iterable[int]) -> LocalityLevel:
    """The level of devices of one server."""
    wanted = set(gpus)
    if len(wanted) <= 1:
        return LocalityLevel.SAME_SWITCH
    for socket in topology:
        inside = {gpu for switch in socket for gpu in switch}
        if wanted <= inside:
            if any(wanted <= set(switch) for switch in socket):
                return LocalityLevel.SAME_SWITCH
            return LocalityLevel.SAME_SOCKET
    return LocalityLevel.DIFF_SOCKET


def level_of(bindings: Iterable[Binding], servers: Mapping[ServerId, Server]) -> LocalityLevel:
    """The level of a gang over its bindings (G-6)."""
    by_server: dict[ServerId, list[int]] = {}
    for binding in bindings:
        by_server.setdefault(binding.server_id, []).extend(binding.gpus)
    if len(by_server) > 1:
        racks = {servers[server_id].rack for server_id in by_server}
        return LocalityLevel.SAME_RACK if len(racks) == 1 else LocalityLevel.DIFF_RACK
    for server_id, gpus in by_server.items():
        return level_within(servers[server_id].sockets, gpus)
    return LocalityLevel.SAME_SWITCH
