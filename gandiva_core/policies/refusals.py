"""Placements that the substrate refused are left alone for a while, and then tried elsewhere first.

Remembered under ``refused/JOB``: ``count`` and ``until_s`` of the pause, and ``at/SERVER`` for the servers of tries
that followed the first refusal; a refusal itself does not say where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gandiva_core.messages.decisions import Decision, Enqueue, Remember, Wait, WakeAt
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView

REFUSED = "refused/"
_AT = "at/"


def pause(
    view: ClusterView, job_id: JobId, reason: Wait, first_s: float, most_s: float
) -> Iterator[Decision]:
    """Leave a refused job alone for `first_s`, after each further refusal twice as long, at most `most_s`."""
    job = view.jobs.get(job_id)
    if job is None or job.phase is not JobPhase.QUEUED:
        return
    known = view.memory.get(REFUSED + job_id, {})
    count = known.get("count", 0.0) + 1.0
    until_s = view.now_s + min(most_s, first_s * 2.0 ** min(count - 1.0, 16.0))
    yield Remember(REFUSED + job_id, {**known, "count": count, "until_s": until_s})
    yield WakeAt(REFUSED + job_id, until_s)
    yield Enqueue(job_id, reason)


def is_paused(view: ClusterView, job_id: JobId) -> bool:
    """Whether a job is left alone now."""
    known = view.memory.get(REFUSED + job_id)
    return known is not None and view.now_s < known["until_s"]


def was_refused(view: ClusterView, job_id: JobId) -> bool:
    """Whether its last try failed at the substrate."""
    return REFUSED + job_id in view.memory


def avoided(view: ClusterView, job_id: JobId) -> frozenset[ServerId]:
    """Servers where it was tried since its first refusal."""
    known = view.memory.get(REFUSED + job_id, {})
    return frozenset(ServerId(key.removeprefix(_AT)) for key in known if key.startswith(_AT))


def note_try(view: ClusterView, job_id: JobId, servers: Iterable[ServerId]) -> Iterator[Decision]:
    """Remember where a job that was refused before is tried next."""
    known = view.memory.get(REFUSED + job_id)
    if known is not None:
        yield Remember(REFUSED + job_id, {**known, **{_AT + server: 1.0 for server in servers}})


def forget(view: ClusterView, job_id: JobId) -> Iterator[Decision]:
    """The job has its containers, or is gone."""
    if REFUSED + job_id in view.memory:
        yield Remember(REFUSED + job_id, {})
