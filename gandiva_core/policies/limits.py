"""How many devices a queue may still run (DESIGN §4): limits in physical GPUs, down the tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gandiva_core.messages.decisions import Run
from gandiva_core.model.units import JobId, QueueName
from gandiva_core.model.view import ClusterView, QueueView, ServerView

_SLACK = 1e-9
"""Limits may be fractions of a percentage; a device more must not fail for the last bit of one."""


class RunningRoom:
    """Devices that queues may add, counted down as gangs are chosen."""

    def __init__(self, view: ClusterView, leaving: Iterable[tuple[QueueName, int]]) -> None:
        self._view = view
        self._chains: dict[QueueName, tuple[QueueView, ...]] = {}
        self._left = {
            name: queue.limit.max_gpus - queue.running + _SLACK
            for name, queue in view.queues.items()
        }
        for queue, gpus in leaving:
            for link in self.chain(queue):
                self._left[link.limit.name] += gpus

    def chain(self, queue: QueueName) -> tuple[QueueView, ...]:
        """See `chain_of`."""
        found = self._chains.get(queue)
        if found is None:
            found = self._chains[queue] = tuple(chain_of(self._view, queue))
        return found

    def take(self, queue: QueueName, gpus: int) -> bool:
        """Count a gang in, where it may run."""
        chain = self.chain(queue)
        if any(self._left[link.limit.name] < gpus for link in chain):
            return False
        for link in chain:
            self._left[link.limit.name] -= gpus
        return True

    def without_excess(self, runs: Sequence[Run], servers: Sequence[ServerView]) -> list[Run]:
        """Those runs that keep every queue below its limit while the stopping gangs still hold their devices.

        A device handed over inside a queue counts once; one that changes queue counts in both until its holder stopped.
        """
        holders = {server.server.server_id: server.holders for server in servers}
        added: dict[QueueName, int] = {}
        kept: list[Run] = []
        for run in runs:
            more = dict(added)
            for binding in run.bindings:
                for gpu in binding.gpus:
                    self._count(run.job_id, holders[binding.server_id][gpu], more)
            if all(self._fits(name, gpus) for name, gpus in more.items()):
                added = more
                kept.append(run)
        return kept

    def _count(self, job_id: JobId, holder: JobId | None, added: dict[QueueName, int]) -> None:
        jobs = self._view.jobs
        before = () if holder is None else self.chain(jobs[holder].spec.queue)
        for link in self.chain(jobs[job_id].spec.queue):
            if link not in before:
                name = link.limit.name
                added[name] = added.get(name, 0) + 1

    def _fits(self, name: QueueName, gpus: int) -> bool:
        queue = self._view.queues[name]
        return queue.running + gpus <= queue.limit.max_gpus + _SLACK


def chain_of(view: ClusterView, queue: QueueName) -> Iterable[QueueView]:
    """The limited queues that a job in `queue` counts in, nearest first; an unknown one counts in a known ancestor."""
    name: str = queue
    while name:
        link = view.queues.get(QueueName(name))
        if link is None:
            name = name.rpartition(".")[0]
        else:
            yield link
            name = link.limit.parent


def is_too_large(view: ClusterView, queue: QueueName, gpus: int) -> bool:
    """Whether a gang could never run in its queue, even alone."""
    return any(gpus > link.limit.max_gpus + _SLACK for link in chain_of(view, queue))


def full_queue(view: ClusterView, queue: QueueName, gpus: int, height_max: int) -> QueueView | None:
    """The nearest queue whose residents would exceed M_q × H_max with this gang, or which could never run it."""
    for link in chain_of(view, queue):
        most = link.limit.max_gpus + _SLACK
        if gpus > most or link.resident + gpus > most * height_max:
            return link
    return None


def binds(view: ClusterView, wanted: Iterable[tuple[QueueName, int]], devices: int) -> bool:
    """Whether a limit could matter in a domain, before anything dearer is computed.

    Args:
        view: the cluster now.
        wanted: for each resident its queue and the GPUs it runs on now.
        devices: of the whole domain.
    """
    if not view.queues:
        return False
    running: dict[QueueName, int] = {}
    for queue, gpus in wanted:
        running[queue] = running.get(queue, 0) + gpus
    return any(view.headroom(queue)[0] + gpus < devices for queue, gpus in running.items())
