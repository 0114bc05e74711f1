"""The table of what an application asks for, as it comes over the bridge. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from gandiva_core.model.job import Worker
from yarn_plugin.bridge.wire import ANY, Ask, ContainerFound, LiveContainer

GUARANTEED = "GUARANTEED"

FIRST_MOVE_ID = 1_000_000
"""Asks with an allocation request id from here on are a move's, which the core itself had its master make."""

FIRST_RESIZE_ID = 10**15
"""And from here on those of workers that are added to a gang that runs (SPEC G-81)."""


class AskKey(NamedTuple):
    """What tells one ask of an attempt from another; asks of one key have one size."""

    priority: int
    allocation_request_id: int

    @property
    def is_move(self) -> bool:
        """Whether it serves a move, and forms no job."""
        return FIRST_MOVE_ID <= self.allocation_request_id < FIRST_RESIZE_ID

    @property
    def is_growth(self) -> bool:
        """Whether it is for workers that join a gang that runs."""
        return self.allocation_request_id >= FIRST_RESIZE_ID


class Site(NamedTuple):
    """Where an ask may be served; a gang has one.

    Attributes:
        label: the partition.
        places: hosts and racks; empty where the ask does not insist on any.
        is_master: whether it is for an application master, which is no part of any gang of its workers.
    """

    label: str = ""
    places: tuple[str, ...] = ()
    is_master: bool = False

    def covers(self, now: Site) -> bool:
        """Whether a job made for this site can go where its asks may be served now, and nowhere else."""
        if self.label != now.label or bool(self.places) != bool(now.places):
            return False
        return set(now.places) <= set(self.places)


ANYWHERE = Site()


class Pending(msgspec.Struct, frozen=True):
    """How many containers of which size are asked for under a key, and where."""

    count: int
    worker: Worker
    site: Site


class Stray(msgspec.Struct, frozen=True):
    """A live container that belongs to no job yet."""

    container: str
    node: str
    key: AskKey
    worker: Worker
    is_master: bool = False


def stray_of(seen: LiveContainer | ContainerFound) -> Stray:
    """A container as it was told."""
    key = AskKey(seen.priority, seen.allocation_request_id)
    worker = Worker(seen.gpus, seen.memory_mib, seen.vcores)
    return Stray(seen.container, seen.node, key, worker, seen.is_master)


def ask_table(asks: Sequence[Ask]) -> tuple[dict[AskKey, Pending], int]:
    """Asks by key, and how many opportunistic GPU containers are asked for, which nobody here serves.

    Counts are those of whole-cluster entries, since place entries repeat theirs.
    """
    whole = [ask for ask in asks if ask.gpus > 0 and ask.count > 0]
    ours = [ask for ask in whole if ask.execution_type == GUARANTEED]
    places = _places(ours)
    table = {
        _key(ask): Pending(
            ask.count,
            Worker(ask.gpus, ask.memory_mib, ask.vcores),
            Site(ask.label, places.get(_key(ask), ()), ask.is_master),
        )
        for ask in ours
        if ask.resource_name == ANY
    }
    others = (ask for ask in whole if ask.execution_type != GUARANTEED)
    return table, sum(ask.count for ask in others if ask.resource_name == ANY)


def _key(ask: Ask) -> AskKey:
    return AskKey(ask.priority, ask.allocation_request_id)


def _places(asks: Iterable[Ask]) -> dict[AskKey, tuple[str, ...]]:
    """Hosts and racks that asks insist on: those named, where the whole-cluster entry is not relaxed.

    A rack that is named and not relaxed itself only says where its hosts are.
    """
    strict = {_key(ask) for ask in asks if ask.resource_name == ANY and not ask.relax_locality}
    found: dict[AskKey, set[str]] = {key: set() for key in strict}
    for ask in asks:
        is_rack = ask.resource_name.startswith("/")
        if ask.resource_name != ANY and _key(ask) in strict and (ask.relax_locality or not is_rack):
            found[_key(ask)].add(ask.resource_name)
    return {key: tuple(sorted(names)) for key, names in found.items()}
