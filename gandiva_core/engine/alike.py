"""Servers grouped by everything that placement compares, so that it looks at a group once and not at each member.

A cluster of thousands of servers has some dozens of groups. They follow from the state and are brought up to date when
somebody asks: only servers that changed since are looked at again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Protocol

from gandiva_core.model.units import ServerId
from gandiva_core.model.view import ServerView

_Likeness = tuple[object, ...]


class Fleet(Protocol):
    """What is grouped."""

    @property
    def servers(self) -> Mapping[ServerId, ServerView]:
        """By id."""


class Alike:
    """The groups of a state's servers. Who changes a server says so, also when taking a change back."""

    __slots__ = ("_fleet", "_groups", "_likeness_of", "_ordered", "_stale")

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._stale: dict[ServerId, None] = {}
        self._likeness_of: dict[ServerId, _Likeness] = {}
        self._groups: dict[_Likeness, list[ServerView]] = {}
        self._ordered: tuple[Sequence[ServerView], ...] = ()

    def touch(self, server_id: ServerId) -> None:
        """A server came, went or changed."""
        self._stale[server_id] = None

    def groups(self) -> Sequence[Sequence[ServerView]]:
        """The groups now: members by id, groups by their first member."""
        if self._stale:
            for server_id in self._stale:
                self._leave(server_id)
                self._join(server_id)
            self._stale.clear()
            self._ordered = tuple(
                sorted(self._groups.values(), key=lambda members: _id_of(members[0]))
            )
        return self._ordered

    def _leave(self, server_id: ServerId) -> None:
        likeness = self._likeness_of.pop(server_id, None)
        if likeness is None:
            return
        members = self._groups[likeness]
        del members[bisect_left(members, server_id, key=_id_of)]
        if not members:
            del self._groups[likeness]

    def _join(self, server_id: ServerId) -> None:
        server = self._fleet.servers.get(server_id)
        if server is None:
            return
        likeness = _likeness(server)
        self._likeness_of[server_id] = likeness
        insort(self._groups.setdefault(likeness, []), server, key=_id_of)


def _id_of(server: ServerView) -> ServerId:
    return server.server.server_id


def _likeness(server: ServerView) -> _Likeness:
    """Whatever a rule of placement compares two servers by, but their ids, has to be in here."""
    machine = server.server
    return (
        machine.partition,
        machine.gpus,
        machine.memory_mib,
        machine.vcores,
        machine.can_suspend,
        machine.is_draining,
        server.allocated,
        server.unsliced,
        server.affinity,
        server.memory_free_mib,
        server.vcores_free,
        len(server.residents),
        sum(
            1
            for holder, claim in zip(server.holders, server.claims, strict=True)
            if holder is None and claim is None
        ),
    )
