"""Gangs over several servers: which set of servers, and which worker on which (G-25); a worker is never split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from gandiva_core.model.cluster import Server
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import ServerId
from gandiva_core.model.view import ServerView

Room = tuple[int, ServerView]
"""GPUs that may be taken on a server."""


class Ask(msgspec.Struct, frozen=True):
    """What a gang needs, summed once."""

    gpus: int
    affinity_class: int
    memory_mib: int
    vcores: int
    partition: str
    workers: tuple[Worker, ...]
    is_uniform: bool

    @classmethod
    def of(cls, spec: JobSpec) -> Ask:
        """Sum up a job's workers."""
        workers = spec.workers
        return cls(
            gpus=spec.gpus,
            affinity_class=spec.affinity_class,
            memory_mib=sum(worker.memory_mib for worker in workers),
            vcores=sum(worker.vcores for worker in workers),
            partition=spec.partition,
            workers=workers,
            is_uniform=all(worker == workers[0] for worker in workers),
        )


def room_on(view: ServerView, height_max: int) -> int:
    """Most GPUs that residents of a server may ask for.

    Every device counts `height_max` times, except those of residents that are never suspended; a server on which
    nothing can suspend a job is never shared (DESIGN §4).
    """
    gpus = view.server.gpus
    if height_max == 1 or not view.server.can_suspend:
        return gpus
    unshared = min(gpus, view.unsliced)
    return unshared + (gpus - unshared) * height_max


def may_host(spec: JobSpec, server: Server) -> bool:
    """Whether a job's asks allow it there at all: partition, and servers they insist on."""
    return server.partition == spec.partition and (
        not spec.only_on or server.server_id in spec.only_on
    )


def can_ever_host(ask: Ask, server: Server) -> bool:
    """Whether one server holds the whole gang when it is empty."""
    return (
        ask.gpus <= server.gpus
        and ask.memory_mib <= server.memory_mib
        and ask.vcores <= server.vcores
    )


def is_possible(ask: Ask, servers: Iterable[ServerView]) -> bool:
    """Whether the gang fits on these servers when all of them are empty."""
    usable = [view for view in servers if view.server.partition == ask.partition]
    if any(can_ever_host(ask, view.server) for view in usable):
        return True
    rooms = [(view.server.gpus, view) for view in usable]
    return spread(ask, _roomiest_first(rooms), as_if_empty=True) is not None


def spread(
    ask: Ask, rooms: Iterable[Room], *, as_if_empty: bool = False
) -> tuple[ServerId, ...] | None:
    """Put the workers on servers in the order given, each server as full as it gets; None where some are left over.

    Args:
        ask: the gang.
        rooms: GPUs that may be taken, by server.
        as_if_empty: count all memory and vcores of a server as free.

    Returns:
        One server a worker, in rank order. Large workers choose first, equal ones by rank.
    """
    waiting = sorted(range(len(ask.workers)), key=lambda rank: -ask.workers[rank].gpus)
    chosen: dict[int, ServerId] = {}
    for room, view in rooms:
        free = (view.memory_free_mib, view.vcores_free)
        if as_if_empty:
            free = (view.server.memory_mib, view.server.vcores)
        for rank in _load(ask, waiting, (room, *free)):
            chosen[rank] = view.server.server_id
        waiting = [rank for rank in waiting if rank not in chosen]
        if not waiting:
            return tuple(chosen[rank] for rank in range(len(ask.workers)))
    return None


def _load(ask: Ask, waiting: Sequence[int], free: tuple[int, int, int]) -> list[int]:
    """Ranks that fill one server with so many GPUs, MiB and vcores."""
    gpus, memory_mib, vcores = free
    loaded: list[int] = []
    for rank in waiting:
        worker = ask.workers[rank]
        if worker.gpus <= gpus and worker.memory_mib <= memory_mib and worker.vcores <= vcores:
            loaded.append(rank)
            gpus -= worker.gpus
            memory_mib -= worker.memory_mib
            vcores -= worker.vcores
        elif ask.is_uniform:
            break  # where one does not fit, none of its equals does
    return loaded


def smallest_set(ask: Ask, rooms: Sequence[Room]) -> tuple[ServerId, ...] | None:
    """Fewest servers, then one rack rather than several, then the lowest ids (G-23 step 3).

    Args:
        ask: the gang.
        rooms: candidates by id.
    """
    found = spread(ask, _roomiest_first(rooms))
    if found is None:
        return None
    best = (len(set(found)), len(_racks_of(rooms, found)) > 1, found)
    if best[1]:
        for members in _by_rack(ask, rooms):
            inside = spread(ask, _roomiest_first(members))
            if inside is not None:
                best = min(best, (len(set(inside)), False, inside))
    return best[2]


def _racks_of(rooms: Iterable[Room], servers: Iterable[ServerId]) -> set[str]:
    used = set(servers)
    return {view.server.rack for _, view in rooms if view.server.server_id in used}


def _by_rack(ask: Ask, rooms: Iterable[Room]) -> list[list[Room]]:
    """Racks that have enough room in all."""
    racks: dict[str, list[Room]] = {}
    for room in rooms:
        racks.setdefault(room[1].server.rack, []).append(room)
    return [members for members in racks.values() if sum(room for room, _ in members) >= ask.gpus]


def _roomiest_first(rooms: Iterable[Room]) -> Iterable[Room]:
    """By room, then id; a bucket a size, because sizes are few and servers are many."""
    buckets: dict[int, list[Room]] = {}
    for room in rooms:
        if room[0] > 0:
            buckets.setdefault(room[0], []).append(room)
    for size in sorted(buckets, reverse=True):
        yield from buckets[size]
