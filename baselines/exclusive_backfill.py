"""`exclusive-backfill`: whole gangs on devices of their own, first in first out, and others pass where they fit.

Plain back-fill: a job that does not fit now waits without holding anything, and any later job that fits starts. It
knows no durations, so nothing is promised to the waiting head (EASY would need them). To keep a large gang from
waiting for ever, a head that was passed more than `PASSES_MAX` times blocks the queue until it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gandiva_core.messages.effects import ContainerEffect, ReleaseGang
from gandiva_core.messages.events import (
    Event,
    GangCommitted,
    JobFailed,
    JobFinished,
    JobSubmitted,
    ServerJoined,
)
from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.runtime.ports import OpenedSubstrate, RunSetup

PASSES_MAX = 100
"""Jobs that may overtake the head. Far above what a burst brings, far below a trace's length."""

SCHEDULER_CLASS = "baselines.exclusive_backfill"


class _Host:
    """A server's free room."""

    __slots__ = ("gpus", "memory_mib", "partition", "server_id", "vcores")

    def __init__(self, server: Server) -> None:
        self.server_id: ServerId = server.server_id
        self.partition = server.partition
        self.gpus = server.gpus
        self.memory_mib = server.memory_mib
        self.vcores = server.vcores

    def fits(self, worker: Worker) -> bool:
        return (
            worker.gpus <= self.gpus
            and worker.memory_mib <= self.memory_mib
            and worker.vcores <= self.vcores
        )

    def take(self, worker: Worker, sign: int = 1) -> None:
        self.gpus -= sign * worker.gpus
        self.memory_mib -= sign * worker.memory_mib
        self.vcores -= sign * worker.vcores


Placed = tuple[_Host, ...]


class ExclusiveBackfill:
    """Implements `gandiva_core.runtime.ports.Substrate`: gang-aware, exclusive, no preemption, no time-slicing.

    A gang goes where few servers hold it: to the tightest server that holds all of it, else worker by worker to the
    emptiest, servers that it already uses first; ties by name.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        servers = sorted(cluster.servers, key=lambda server: str(server.server_id))
        self._hosts = [_Host(server) for server in servers]
        self._queue: dict[JobId, JobSpec] = {}
        self._running: dict[JobId, tuple[JobSpec, Placed]] = {}
        self._passes = 0

    def begin(self, now_s: float) -> Sequence[Event]:
        """The servers; queues have no say here."""
        return [ServerJoined(now_s, server) for server in self._cluster.servers]

    def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[Event]:
        """Queue jobs and start what fits; one that the empty cluster cannot hold fails."""
        events: list[Event] = []
        for job in jobs:
            empty = [_Host(server) for server in self._cluster.servers]
            if _place(job, empty) is None:
                reason = f"{job.gpus} GPUs in {len(job.workers)} containers fit on no empty cluster"
                events.append(JobFailed(now_s, job.job_id, reason))
                continue
            events.append(JobSubmitted(now_s, job))
            self._queue[job.job_id] = job
        return events + self._start(now_s)

    def finish(self, now_s: float, job_ids: Sequence[JobId]) -> Sequence[Event]:
        """Jobs leave; start what fits now."""
        for job_id in job_ids:
            self._release(job_id)
        ends: list[Event] = [JobFinished(now_s, job_id) for job_id in job_ids]
        return ends + self._start(now_s)

    def apply(self, now_s: float, effects: Sequence[ContainerEffect]) -> Sequence[Event]:
        """A gang given back waits again, behind all others.

        Raises:
            InputError: for an order to commit, which only a policy gives.
        """
        for effect in effects:
            if not isinstance(effect, ReleaseGang):
                raise InputError("exclusive-backfill", "an order to commit", "a policy arm")
            job = self._release(effect.job_id)
            if job is not None:
                self._queue[job.job_id] = job
        return self._start(now_s)

    def next_at_s(self) -> float | None:
        """Nothing happens by itself."""
        return None

    def advance(self, now_s: float) -> Sequence[Event]:
        """Nothing happens by itself."""
        del now_s
        return ()

    def close(self) -> None:
        """Nothing to end."""

    def _start(self, now_s: float) -> list[Event]:
        """Start every job that fits, in order of submission, while the head lets others pass."""
        events: list[Event] = []
        has_passed = False
        for job in list(self._queue.values()):
            if has_passed and self._passes > PASSES_MAX:
                break
            placed = _place(job, self._hosts)
            if placed is None:
                has_passed = True
                continue
            self._passes = self._passes + 1 if has_passed else 0
            del self._queue[job.job_id]
            self._running[job.job_id] = (job, placed)
            containers = tuple(f"{job.job_id}_{rank + 1}" for rank in range(len(placed)))
            servers = tuple(host.server_id for host in placed)
            events.append(GangCommitted(now_s, job.job_id, containers, servers))
        return events

    def _release(self, job_id: JobId) -> JobSpec | None:
        job, placed = self._running.pop(job_id, (None, ()))
        if job is None:
            self._queue.pop(job_id, None)
            return None
        _give_back(zip(placed, job.workers, strict=True))
        return job


def _place(job: JobSpec, hosts: Sequence[_Host]) -> Placed | None:
    """Take room for a whole gang, or none."""
    placed: list[_Host] = []
    for worker in job.workers:
        fitting = [host for host in hosts if host.partition == job.partition and host.fits(worker)]
        if not fitting:
            _give_back(zip(placed, job.workers, strict=False))
            return None
        left = job.gpus - sum(taken.gpus for taken in job.workers[: len(placed)])
        best = min(fitting, key=lambda host: _preference(host, placed, left))
        best.take(worker)
        placed.append(best)
    return tuple(placed)


def _preference(host: _Host, placed: Sequence[_Host], left: int) -> tuple[bool, bool, int, str]:
    """A server in use first, then one that holds all that is left, the tightest of those, else the emptiest."""
    holds_all = host.gpus >= left
    return host not in placed, not holds_all, host.gpus if holds_all else -host.gpus, host.server_id


def _give_back(taken: Iterable[tuple[_Host, Worker]]) -> None:
    for host, worker in taken:
        host.take(worker, -1)


def open_baseline(setup: RunSetup) -> OpenedSubstrate:
    """Entry point `exclusive-backfill` of `gandiva.baselines`."""
    return OpenedSubstrate(ExclusiveBackfill(setup.cluster), SCHEDULER_CLASS, {})
