"""The scheduler of a stock arm: it decides nothing, binds devices as the agent would, and keeps count.

The substrate places; once all containers of a gang are there, the gang starts on the lowest free devices of its
servers, at the best locality these allow, and runs to its end (DESIGN §7: the agent binds devices in both arms
of a comparison).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Run
from gandiva_core.messages.effects import Effect, ReleaseGang, SwitchResidents
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.cluster import Server, Topology
from gandiva_core.model.job import JobSpec
from gandiva_core.model.placement import Binding, shares_of
from gandiva_core.model.units import JobId, ServerId


def lowest_free(topology: Topology, free: Sequence[int], count: int) -> tuple[int, ...] | None:
    """`count` of the `free` devices: in one switch if possible, else in one socket, else anywhere; lowest first (G-6).

    Returns:
        None where there are too few.
    """
    if len(free) < count:
        return None
    wanted = set(free)
    switches = [switch for socket in topology for switch in socket]
    sockets = [tuple(gpu for switch in socket for gpu in switch) for socket in topology]
    for group in (*switches, *sockets):
        inside = sorted(wanted.intersection(group))
        if len(inside) >= count:
            return tuple(inside[:count])
    return tuple(sorted(free)[:count])


class _Host:
    """A server's devices and who has them."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.holders: list[JobId | None] = [None] * server.gpus

    def pick(self, count: int) -> tuple[int, ...] | None:
        free = [gpu for gpu, holder in enumerate(self.holders) if holder is None]
        return lowest_free(self.server.sockets, free, count)


class StockObserver:
    """Implements `Scheduler` for arms whose substrate schedules. Facts about what is not there are ignored."""

    def __init__(self) -> None:
        self._number = 0
        self._switches = 0
        self._hosts: dict[ServerId, _Host] = {}
        self._jobs: dict[JobId, JobSpec] = {}
        self._bound: dict[JobId, tuple[Binding, ...]] = {}
        self._waiting: dict[JobId, Mapping[ServerId, int]] = {}
        #: Whole gangs whose devices are not all free yet, in order of commit.
        self._by_kind: dict[type, Callable[[Any], Iterable[Effect]]] = {
            e.ServerJoined: self._server_joined,
            e.ServerLost: self._server_lost,
            e.JobSubmitted: self._submitted,
            e.GangCommitted: self._committed,
            e.GangBroken: self._broken,
            e.JobFinished: self._ended,
            e.JobFailed: self._ended,
            e.JobKilled: self._ended,
        }

    def handle(self, event: e.Event) -> Outcome:
        """Note a fact; start whole gangs whose devices are free."""
        self._number += 1
        act = self._by_kind.get(type(event))
        effects = () if act is None else tuple(act(event))
        return Outcome(self._number, (), (), effects)

    def _server_joined(self, event: e.ServerJoined) -> Iterable[Effect]:
        known = self._hosts.get(event.server.server_id)
        if known is None or known.server != event.server:
            self._hosts[event.server.server_id] = _Host(event.server)
        return self._start_waiting()

    def _server_lost(self, event: e.ServerLost) -> Iterable[Effect]:
        self._hosts.pop(event.server_id, None)
        gone = [
            job_id
            for job_id, bindings in self._bound.items()
            if any(binding.server_id == event.server_id for binding in bindings)
        ]
        gone += [job_id for job_id, shares in self._waiting.items() if event.server_id in shares]
        for job_id in gone:
            self._let_go(job_id)
            yield ReleaseGang(self._number, job_id, f"server {event.server_id} was lost")
        yield from self._start_waiting()

    def _submitted(self, event: e.JobSubmitted) -> Iterable[Effect]:
        self._jobs.setdefault(event.job.job_id, event.job)
        return ()

    def _committed(self, event: e.GangCommitted) -> Iterable[Effect]:
        job = self._jobs.get(event.job_id)
        if job is None or event.job_id in self._bound or event.job_id in self._waiting:
            return ()
        self._waiting[event.job_id] = shares_of(job.workers, event.servers)
        return self._start_waiting()

    def _broken(self, event: e.GangBroken) -> Iterable[Effect]:
        if self._let_go(event.job_id):
            yield ReleaseGang(self._number, event.job_id, event.reason)
        yield from self._start_waiting()

    def _ended(self, event: e.JobFinished | e.JobFailed | e.JobKilled) -> Iterable[Effect]:
        self._let_go(event.job_id)
        self._jobs.pop(event.job_id, None)
        return self._start_waiting()

    def _let_go(self, job_id: JobId) -> bool:
        """Free a gang's devices; whether it had a gang at all."""
        for binding in self._bound.get(job_id, ()):
            host = self._hosts.get(binding.server_id)
            if host is not None:
                for gpu in binding.gpus:
                    host.holders[gpu] = None
        had_gang = job_id in self._bound or job_id in self._waiting
        self._bound.pop(job_id, None)
        self._waiting.pop(job_id, None)
        return had_gang

    def _start_waiting(self) -> list[Effect]:
        effects: list[Effect] = []
        for job_id, shares in tuple(self._waiting.items()):
            bindings = self._bind(shares)
            if bindings is None:
                continue
            del self._waiting[job_id]
            self._bound[job_id] = bindings
            for binding in bindings:
                for gpu in binding.gpus:
                    self._hosts[binding.server_id].holders[gpu] = job_id
            self._switches += 1
            effects.append(
                SwitchResidents(
                    self._number,
                    self._switches,
                    tuple(sorted(shares)),
                    run=(Run(job_id, bindings),),
                )
            )
        return effects

    def _bind(self, shares: Mapping[ServerId, int]) -> tuple[Binding, ...] | None:
        bindings: list[Binding] = []
        for server_id, count in shares.items():
            host = self._hosts.get(server_id)
            gpus = host.pick(count) if host is not None else None
            if gpus is None:
                return None
            bindings.append(Binding(server_id, gpus))
        return tuple(bindings)
