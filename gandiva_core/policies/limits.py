"""How many devices a queue may still run (DESIGN §4): limits in physical GPUs, down the tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gandiva_core.messages.decisions import Run
from gandiva_core.model.cluster import SLICING
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, QueueKey
from gandiva_core.model.view import ClusterView, QueueView, ServerView
from gandiva_core.policies.sets import Ask, is_possible, may_host

_SLACK = 1e-9
"""Limits may be fractions of a percentage; a device more must not fail for the last bit of one."""


class RunningRoom:
    """Devices that queues may add, counted down as gangs are chosen."""

    def __init__(self, view: ClusterView, leaving: Iterable[tuple[QueueKey, int]]) -> None:
        self._view = view
        self._left = {
            key: queue.limit.max_gpus - queue.running + _SLACK for key, queue in view.queues.items()
        }
        for queue, gpus in leaving:
            for link in view.chain(*queue):
                self._left[key_of(link)] += gpus

    def take(self, queue: QueueKey, gpus: int) -> bool:
        """Count a gang in, where it may run."""
        keys = [key_of(link) for link in self._view.chain(*queue)]
        if any(self._left[key] < gpus for key in keys):
            return False
        for key in keys:
            self._left[key] -= gpus
        return True

    def without_excess(self, runs: Sequence[Run], servers: Sequence[ServerView]) -> list[Run]:
        """Those runs that keep every queue below its limit while the stopping gangs still hold their devices.

        A device handed over inside a queue counts once; one that changes queue counts in both until its holder stopped.
        """
        holders = {server.server.server_id: server.holders for server in servers}
        added: dict[QueueKey, int] = {}
        kept: list[Run] = []
        for run in runs:
            more = dict(added)
            for binding in run.bindings:
                for gpu in binding.gpus:
                    self._count(run.job_id, holders[binding.server_id][gpu], more)
            if all(self._fits(key, gpus) for key, gpus in more.items()):
                added = more
                kept.append(run)
        return kept

    def _count(self, job_id: JobId, holder: JobId | None, added: dict[QueueKey, int]) -> None:
        jobs, chain = self._view.jobs, self._view.chain
        before = () if holder is None else chain(*queue_of(jobs[holder].spec))
        for link in chain(*queue_of(jobs[job_id].spec)):
            if link not in before:
                key = key_of(link)
                added[key] = added.get(key, 0) + 1

    def _fits(self, key: QueueKey, gpus: int) -> bool:
        queue = self._view.queues[key]
        return queue.running + gpus <= queue.limit.max_gpus + _SLACK


def queue_of(spec: JobSpec) -> QueueKey:
    """Where a job counts."""
    return spec.queue, spec.partition


def key_of(link: QueueView) -> QueueKey:
    """Under which the view lists a queue."""
    return link.limit.name, link.limit.partition


def is_sliced(view: ClusterView, spec: JobSpec) -> bool:
    """Whether a job may be suspended for others; of one that is there the engine knows, else its queue says so."""
    job = view.jobs.get(spec.job_id)
    if job is not None:
        return job.is_sliced
    chain = view.chain(spec.queue, spec.partition)
    return not chain or SLICING not in chain[0].limit.mechanisms_off


def is_too_large(view: ClusterView, spec: JobSpec) -> bool:
    """Whether a gang could never run in its queue, even alone."""
    gpus = spec.gpus
    return any(gpus > link.limit.max_gpus + _SLACK for link in view.chain(*queue_of(spec)))


def can_ever_run(view: ClusterView, spec: JobSpec) -> bool:
    """Whether this cluster and the job's queue could run a gang if all else were gone."""
    return not is_too_large(view, spec) and is_possible(
        Ask.of(spec), (state for state in view.servers.values() if may_host(spec, state.server))
    )


def full_queue(view: ClusterView, spec: JobSpec, height_max: int) -> QueueView | None:
    """The nearest queue that has no place for a gang.

    Its residents would exceed M_q × H_max, or beside those that are never suspended there would be no device for it.
    """
    gpus = spec.gpus
    for link in view.chain(*queue_of(spec)):
        most = link.limit.max_gpus + _SLACK
        if link.unsliced + gpus > most or link.resident + gpus > most * height_max:
            return link
    return None


def leaves_of(view: ClusterView, partition: str) -> list[QueueView]:
    """The queues of a partition that have no queues below them."""
    parents = {link.limit.parent for key, link in view.queues.items() if key[1] == partition}
    return [
        link
        for (name, where), link in view.queues.items()
        if where == partition and name not in parents
    ]


def kept_places(view: ClusterView, spec: JobSpec) -> float:
    """GPUs for residents that over-subscribing must leave to other queues, so that they can come and take their G_q.

    A queue may have as many residents as M_q × H_max; without this it would have all of them, and a guarantee would be
    worth nothing before somebody leaves.
    """
    chain = view.chain(spec.queue, spec.partition)
    if not chain:
        return 0.0
    return sum(
        max(0.0, link.limit.guaranteed_gpus - link.resident)
        for link in leaves_of(view, chain[0].limit.partition)
        if link not in chain
    )


def binds(view: ClusterView, wanted: Iterable[tuple[QueueKey, int]], devices: int) -> bool:
    """Whether a limit could matter in a domain, before anything dearer is computed.

    Args:
        view: the cluster now.
        wanted: for each resident where it counts and the GPUs it runs on now.
        devices: of the whole domain.
    """
    if not view.queues:
        return False
    running: dict[QueueKey, int] = {}
    for queue, gpus in wanted:
        running[queue] = running.get(queue, 0) + gpus
    return any(view.headroom(*queue)[0] + gpus < devices for queue, gpus in running.items())
