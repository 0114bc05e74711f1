"""Which jobs came and have not ended, and what they hold: what a deadlock report is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Enqueue
from gandiva_core.messages.effects import ReleaseGang
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId
from gandiva_core.runtime.journal import Entry, Unfinished


class Outstanding:
    """Follows jobs through the entries of a run."""

    def __init__(self) -> None:
        self.ended = 0
        self._jobs: dict[JobId, Unfinished] = {}
        self._by_kind: dict[type, Callable[[Any], None]] = {
            e.JobSubmitted: self._submitted,
            e.GangCommitted: self._committed,
            e.JobAdopted: self._adopted,
            e.GangRefused: self._waits_again,
            e.GangBroken: self._waits_again,
            e.ContainersHeld: self._holds,
            e.JobFinished: self._ends,
            e.JobFailed: self._ends,
            e.JobKilled: self._ends,
        }

    def arrive(self, jobs: Sequence[JobSpec], now_s: float) -> None:
        """Jobs are handed to the substrate."""
        for job in jobs:
            self._jobs[job.job_id] = Unfinished(job.job_id, "arrived", now_s, 0, job.gpus)

    def observe(self, entry: Entry) -> None:
        """Follow one event and the reasons given on it."""
        follow = self._by_kind.get(type(entry.event))
        if follow is not None:
            follow(entry.event)
        for decision in entry.decisions:
            if type(decision) is Enqueue:
                wait = decision.reason
                text = " ".join(part for part in (wait.code, wait.need, wait.have) if part)
                self._change(decision.job_id, reason=text)
        for effect in entry.effects:
            if type(effect) is ReleaseGang:
                self._change(effect.job_id, state="waiting", since_s=entry.event.at_s, held_gpus=0)

    def unfinished(self) -> tuple[Unfinished, ...]:
        """Jobs that have not ended, in order of arrival."""
        return tuple(self._jobs.values())

    def _change(self, job_id: JobId, **changes: object) -> None:
        job = self._jobs.get(job_id)
        if job is not None:
            self._jobs[job_id] = msgspec.structs.replace(job, **changes)

    def _submitted(self, event: e.JobSubmitted) -> None:
        spec = event.job
        self._jobs[spec.job_id] = Unfinished(spec.job_id, "waiting", event.at_s, 0, spec.gpus)

    def _committed(self, event: e.GangCommitted) -> None:
        job = self._jobs.get(event.job_id)
        if job is not None:
            gpus = job.wanted_gpus
            self._change(
                event.job_id, state="resident", since_s=event.at_s, held_gpus=gpus, reason=""
            )

    def _adopted(self, event: e.JobAdopted) -> None:
        job_id, gpus = event.job.job_id, event.job.gpus
        self._jobs[job_id] = Unfinished(job_id, "resident", event.at_s, gpus, gpus)

    def _waits_again(self, event: e.GangRefused | e.GangBroken) -> None:
        self._change(event.job_id, state="waiting", since_s=event.at_s, held_gpus=0)

    def _holds(self, event: e.ContainersHeld) -> None:
        state = "holding" if event.held else "waiting"
        self._change(event.job_id, state=state, since_s=event.at_s, held_gpus=event.held)

    def _ends(self, event: e.JobFinished | e.JobFailed | e.JobKilled) -> None:
        self.ended += self._jobs.pop(event.job_id, None) is not None
