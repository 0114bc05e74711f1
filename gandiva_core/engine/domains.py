"""Slicing domains: servers joined by resident gangs that span them (G-32), cached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from gandiva_core.model.units import JobId, ServerId


class _Job(Protocol):
    @property
    def shares(self) -> Mapping[ServerId, int]: ...


class _Server(Protocol):
    @property
    def residents(self) -> Mapping[JobId, int]: ...


class Residency(Protocol):
    """What the connected components are computed from."""

    @property
    def servers(self) -> Mapping[ServerId, _Server]:
        """By id."""

    @property
    def jobs(self) -> Mapping[JobId, _Job]:
        """By sequence."""


class Domains:
    """Connected components of servers, found when asked for and forgotten when a spanning gang comes or goes."""

    __slots__ = ("_found", "_residency")

    def __init__(self, residency: Residency) -> None:
        self._residency = residency
        self._found: dict[ServerId, tuple[ServerId, ...]] = {}

    def of(self, server_id: ServerId) -> tuple[ServerId, ...]:
        """The domain of a server, sorted by id.

        Raises:
            KeyError: for a server that is not there.
        """
        found = self._found.get(server_id)
        if found is None:
            found = tuple(sorted(self._reach(server_id)))
            for member in found:
                self._found[member] = found
        return found

    def forget(self, servers: Iterable[ServerId]) -> None:
        """A gang that spans `servers` came or went, or a server did: the domains of all of them are stale."""
        for server_id in servers:
            for member in self._found.pop(server_id, ()):
                self._found.pop(member, None)

    def _reach(self, start: ServerId) -> set[ServerId]:
        jobs, servers = self._residency.jobs, self._residency.servers
        reached = {start}
        frontier = [start]
        while frontier:
            at = frontier.pop()
            for job_id in servers[at].residents:
                shares = jobs[job_id].shares
                # Who is only on his way here does not join it yet.
                if len(shares) > 1 and at in shares:
                    new = shares.keys() - reached
                    reached |= new
                    frontier += new
        return reached
