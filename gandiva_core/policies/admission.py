"""Who is admitted first: queues by what they have of what they are guaranteed, jobs by their queue's ordering policy.

Between queues, as in Hadoop, the one with the smallest part of its guarantee comes first, and those without a guarantee
last, by what they have. Inside a queue `fifo` goes by the application's priority, then by submission; `fair` by the
GPUs that the application has already, then by those of its user in the queue, then by submission. Priorities order
admission only: no job is suspended for a job of higher priority (classes are, G-34).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator

from gandiva_core.model.units import QueueKey
from gandiva_core.model.view import ClusterView, JobView
from gandiva_core.policies.limits import queue_of

FAIR = "fair"
_Level = tuple[int, float]
_NO_QUEUE: _Level = (-1, 0.0)


def lines(view: ClusterView) -> dict[QueueKey, list[JobView]]:
    """The jobs that wait, by queue and partition, each line in the order of its queue's policy."""
    found: dict[QueueKey, list[JobView]] = {}
    for job_id in view.queue:
        job = view.jobs[job_id]
        found.setdefault(queue_of(job.spec), []).append(job)
    for key, line in found.items():
        _sort(view, key, line)
    return found


def in_turn(view: ClusterView) -> Iterator[JobView]:
    """Every job that waits, once; what was placed in between counts for who comes next."""
    if not view.queues:
        waiting = [view.jobs[job_id] for job_id in view.queue]
        _by_priority(waiting)
        yield from waiting
        return
    waiting_lines = {key: line[::-1] for key, line in lines(view).items()}
    heap = [(_level(view, key), line[-1].sequence, key) for key, line in waiting_lines.items()]
    heapq.heapify(heap)
    while heap:
        before, _, key = heapq.heappop(heap)
        line = waiting_lines[key]
        yield line.pop()
        if line:
            level = _level(view, key)
            if level != before and _is_fair(view, key):
                line.reverse()
                _sort(view, key, line)
                line.reverse()
            heapq.heappush(heap, (level, line[-1].sequence, key))


def _level(view: ClusterView, key: QueueKey) -> _Level:
    """How much a queue has of what it is guaranteed."""
    chain = view.chain(*key)
    if not chain:
        return _NO_QUEUE
    leaf = chain[0]
    if leaf.limit.guaranteed_gpus > 0.0:
        return 0, leaf.resident / leaf.limit.guaranteed_gpus
    return 1, float(leaf.resident)


def _is_fair(view: ClusterView, key: QueueKey) -> bool:
    chain = view.chain(*key)
    return bool(chain) and chain[0].limit.ordering == FAIR


def _sort(view: ClusterView, key: QueueKey, line: list[JobView]) -> None:
    if not _is_fair(view, key):
        _by_priority(line)
        return
    had: Counter[str] = Counter()
    of_user: Counter[str] = Counter()
    for job in view.jobs.values():
        if job.shares and queue_of(job.spec) == key:
            had[_application(job)] += job.spec.gpus
            of_user[job.spec.user] += job.spec.gpus
    line.sort(key=lambda job: (had[_application(job)], of_user[job.spec.user], job.sequence))


def _by_priority(line: list[JobView]) -> None:
    """Stable: the line comes in the order of submission."""
    if any(job.spec.priority for job in line):
        line.sort(key=lambda job: -job.spec.priority)


def _application(job: JobView) -> str:
    """A YARN application's gangs after the first are ``application#2`` and so on."""
    return job.spec.job_id.partition("#")[0]
