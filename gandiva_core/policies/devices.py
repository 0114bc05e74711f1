"""Which devices of a server a gang gets: best locality level first (G-6, G-23, G-32).

Free devices are a bit mask, device 0 the lowest bit, so that answers can be remembered by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gandiva_core.model.cluster import Server, Topology, default_topology
from gandiva_core.model.placement import LocalityLevel, level_within
from gandiva_core.model.units import JobId


@lru_cache(maxsize=65_536)
def mask_of(gpus: tuple[int, ...]) -> int:
    """Devices as a bit mask."""
    return sum(1 << gpu for gpu in gpus)


@lru_cache(maxsize=65_536)
def gpus_of(mask: int) -> tuple[int, ...]:
    """A bit mask as devices, ascending."""
    return tuple(gpu for gpu in range(mask.bit_length()) if mask >> gpu & 1)


def free_mask(holders: Sequence[JobId | None], claims: Sequence[JobId | None]) -> int:
    """Devices that nobody holds and nobody was promised."""
    mask = 0
    for gpu, holder in enumerate(holders):
        if holder is None and claims[gpu] is None:
            mask |= 1 << gpu
    return mask


def choose(server: Server, free: int, count: int, last: int) -> int | None:
    """Devices for a gang's share of a server: its `last` ones where no others are closer together.

    Args:
        server: for its topology.
        free: mask of devices that may be taken.
        count: how many are needed.
        last: mask of the devices the gang had here when it last ran; 0 for none.

    Returns:
        A mask with `count` bits, or None where fewer are free.
    """
    best = _best(server.topology, server.gpus, free, count)
    if best is None:
        return None
    if (
        last
        and last & ~free == 0
        and last.bit_count() == count
        and _level(server.topology, server.gpus, last) <= _level(server.topology, server.gpus, best)
    ):
        return last
    return best


@lru_cache(maxsize=65_536)
def _level(topology: Topology, gpus: int, mask: int) -> LocalityLevel:
    return level_within(topology or default_topology(gpus), gpus_of(mask))


@lru_cache(maxsize=65_536)
def _best(topology: Topology, gpus: int, free: int, count: int) -> int | None:
    """The closest part of the server that can hold the gang, then the one with least to spare, then the lowest ids."""
    sockets = topology or default_topology(gpus)
    switches = tuple(mask_of(switch) for socket in sockets for switch in socket)
    whole = tuple(mask_of(tuple(gpu for switch in socket for gpu in switch)) for socket in sockets)
    for parts in (switches, whole, ((1 << gpus) - 1,)):
        inside = [free & part for part in parts if (free & part).bit_count() >= count]
        if inside:
            part = min(inside, key=lambda mask: (mask.bit_count(), mask & -mask))
            return mask_of(gpus_of(part)[:count])
    return None
