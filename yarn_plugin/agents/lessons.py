"""What agents' reports teach about jobs: what each can do, how far it is, what it needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gandiva_core.messages import agents as a
from gandiva_core.messages.events import (
    ContinuityChecked,
    Event,
    JobLearned,
    JobProfiled,
    MinibatchesReached,
)
from gandiva_core.model.units import JobId
from yarn_plugin.agents.nodes import NodeSide
from yarn_plugin.bridge.register import Register

EARLY_MINIBATCHES = 100
"""The early-feedback mark (C-4)."""

PROFILE_S = 30.0
"""A job is profiled anew no more often, and only where something changed by a tenth."""

_CHANGE = 0.1
_UNABLE = frozenset({a.Method.NONE, a.Method.STOP})
_NO_HOOK = "nothing of it registered with its node's agent"
_NO_METHOD = "its client found no way to stop it"
_ABOUT_HOOKS = frozenset({_NO_HOOK, _NO_METHOD})


@dataclass(slots=True)
class Known:
    """What was told of one job."""

    unable: str = ""
    fixed: str = ""
    is_early: bool = False
    profile: JobProfiled | None = None


@dataclass(slots=True)
class Lessons:
    """Follows reports; says what is new. Jobs that have left are forgotten.

    Args:
        register: whose container is whose.
        nodes: what is known of agents, by node.
    """

    register: Register
    nodes: Mapping[str, NodeSide]
    _known: dict[JobId, Known] = field(default_factory=dict)

    def is_unable(self, job_id: JobId) -> bool:
        """Whether a job is known not to stop."""
        known = self._known.get(job_id)
        return known is not None and bool(known.unable)

    def failed(self, job_id: JobId, reason: str, now_s: float) -> JobLearned:
        """A job did not stop when told to: it is not told again (FAULTS E11)."""
        known = self._of(job_id)
        known.unable = reason
        return _told(job_id, known, now_s)

    def checked(self, report: a.ContinuityChecked, now_s: float) -> Iterator[Event]:
        """A worker compared itself with what it was; for the journal."""
        container = report.container_id
        job_id = self.register.job_of.get(container) or self.register.seconds.get(container)
        if job_id is not None:
            yield ContinuityChecked(
                now_s,
                job_id,
                container,
                report.after,
                report.is_same,
                report.minibatches,
                report.detail,
            )

    def learn(self, side: NodeSide, now_s: float) -> Iterator[Event]:
        """What one node's last report means for its jobs."""
        job_of = self.register.job_of
        jobs = dict.fromkeys(job_of[c] for c in side.workers if c in job_of)
        for job_id in jobs:
            workers = self._workers(job_id)
            known = self._of(job_id)
            yield from _ability(job_id, known, workers, now_s)
            yield from _early(job_id, known, workers, now_s)
            yield from _profile(job_id, known, workers, now_s)
        forget(self._known, self.register)

    def _of(self, job_id: JobId) -> Known:
        return self._known.setdefault(job_id, Known())

    def _workers(self, job_id: JobId) -> list[a.WorkerReport | None]:
        """A gang's workers; None for one that no agent tells of."""
        found = self.register.find(job_id)
        members = [] if found is None else found[1].members
        sides = ((member, self.nodes.get(member.node)) for member in members)
        return [
            None if side is None else side.workers.get(member.container) for member, side in sides
        ]


def forget(about: dict[JobId, Any], register: Register) -> None:
    """Drop what is kept of jobs that have left; looked for only where more is kept than there are jobs."""
    if len(about) > len(register.app_of):
        for job_id in about.keys() - register.app_of.keys():
            del about[job_id]


_Workers = list[a.WorkerReport | None]


def _ability(job_id: JobId, known: Known, workers: _Workers, now_s: float) -> Iterator[Event]:
    """A gang can stop, or move, if every worker can; one that failed to stop is not believed again."""
    there = [worker for worker in workers if worker is not None]
    before = known.unable, known.fixed
    reason = next(filter(None, map(why_unable, there)), "")
    if reason and not known.unable:
        known.unable = reason
    elif not reason and known.unable in _ABOUT_HOOKS and _is_probed(workers):
        known.unable = ""
    fixed = next(filter(None, map(why_fixed, there)), "")
    if fixed or _is_probed(workers):
        known.fixed = fixed
    if (known.unable, known.fixed) != before:
        yield _told(job_id, known, now_s)


def _told(job_id: JobId, known: Known, now_s: float) -> JobLearned:
    return JobLearned(now_s, job_id, not known.unable, known.unable, known.fixed)


def _is_probed(workers: _Workers) -> bool:
    return all(worker is not None and worker.method is not None for worker in workers)


def why_unable(worker: a.WorkerReport) -> str:
    """Why a worker cannot be stopped, as far as is known; empty where it can, or before its probe."""
    if worker.state is a.WorkerState.UNHOOKED:
        return _NO_HOOK
    return _NO_METHOD if worker.method in _UNABLE else ""


def why_fixed(worker: a.WorkerReport) -> str:
    """Why a worker cannot move, as far as is known; empty where it can, or before its probe."""
    if worker.state is a.WorkerState.UNHOOKED:
        return _NO_HOOK
    if worker.method is None or worker.can_move or worker.state is a.WorkerState.ENDED:
        return ""
    return worker.reason or "its client cannot move it"


def _early(job_id: JobId, known: Known, workers: _Workers, now_s: float) -> Iterator[Event]:
    done = [0 if worker is None else worker.minibatches for worker in workers]
    if not known.is_early and min(done, default=0) >= EARLY_MINIBATCHES:
        known.is_early = True
        yield MinibatchesReached(now_s, job_id, EARLY_MINIBATCHES)


def _profile(job_id: JobId, known: Known, workers: _Workers, now_s: float) -> Iterator[Event]:
    """The slowest worker's cycle, the mean use, the most memory of one device; once all workers have a cycle.

    Cycles and use are those without anybody beside it (G-52): of who is packed they are left as they were.
    """
    there = [worker for worker in workers if worker is not None]
    cycles = [cycle_s for cycle_s in map(_alone_s, there) if cycle_s is not None]
    if not cycles or len(cycles) < len(workers):
        return
    uses = [w.utilisation_ratio for w in there if w.utilisation_ratio is not None]
    if any(worker.packed_with for worker in there):
        before = None if known.profile is None else known.profile.utilisation_ratio
        uses = [] if before is None else [before]
    peaks = [w.memory_peak_mib for w in there if w.memory_peak_mib is not None]
    least = [w.memory_min_mib for w in there if w.memory_min_mib is not None]
    profile = JobProfiled(
        now_s,
        job_id,
        max(cycles),
        sum(uses) / len(uses) if uses else None,
        max(peaks, default=None),
        max(least, default=None),
    )
    if _is_news(known.profile, profile):
        known.profile = profile
        yield profile


def _alone_s(worker: a.WorkerReport) -> float | None:
    return worker.minibatch_alone_s if worker.packed_with else worker.minibatch_s


def _is_news(before: JobProfiled | None, now: JobProfiled) -> bool:
    if before is None:
        return True
    if now.at_s < before.at_s + PROFILE_S:
        return False
    pairs = (
        (before.minibatch_s, now.minibatch_s),
        (before.utilisation_ratio, now.utilisation_ratio),
        (before.memory_peak_mib, now.memory_peak_mib),
        (before.memory_min_mib, now.memory_min_mib),
    )
    return any(_differs(old, new) for old, new in pairs)


def _differs(old: float | None, new: float | None) -> bool:
    if old is None or new is None:
        return old is not new
    return abs(new - old) > _CHANGE * abs(old)
