"""A world that counts time in steps of one second: slow, simple, and written without the other one's ideas (GE-13)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gandiva_core.messages.effects import ReleaseGang, StartTimer, SwitchResidents, WorldEffect
from gandiva_core.messages.events import Event, MinibatchesReached, ResidentsSwitched, TimerFired
from gandiva_core.model.cluster import Server
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId
from gandiva_core.model.workload import PlannedJob
from gandiva_core.runtime.ports import WorldStep
from gandiva_core.sim.performance import (
    Performance,
    nic_factor,
    split_servers,
    suspend_resume_s,
)

STEP_S = 1.0


class _Job:
    def __init__(self, job: PlannedJob) -> None:
        self.job = job
        self.done = 0.0
        self.run: tuple[Binding, ...] = ()
        self.computes = False
        self.wants_stop = False
        self.has_run = False
        self.reported = False


class SteppingWorld:
    """Implements the port `World`: every second every job does rate × 1 s, and every order is looked at again.

    A job told to stop does so in the step that completes a mini-batch. What a step is too long for, copies and the rest
    of a step after a boundary, is summed up and charged or given back in whole steps, so that it is right in the mean.
    """

    def __init__(self, planned: Sequence[PlannedJob], servers: Sequence[Server]) -> None:
        self._arrivals = sorted(planned, key=lambda job: job.arrival_s)
        self._jobs: dict[JobId, _Job] = {}
        self._performance = Performance(servers)
        self._timers: dict[str, float] = {}
        self._switches: list[SwitchResidents] = []
        self._stopped: dict[int, list[tuple[JobId, float]]] = {}
        self._started: dict[int, list[tuple[JobId, float]]] = {}
        self._debt_s = 0.0
        self._pause_until_s: dict[JobId, float] = {}
        self._now_s = 0.0

    def next_at_s(self) -> float | None:
        busy = any(job.run for job in self._jobs.values()) or self._switches or self._timers
        if busy:
            return self._now_s + STEP_S
        if self._arrivals:
            return max(self._now_s, math.ceil(self._arrivals[0].arrival_s))
        return None

    def advance(self, now_s: float) -> WorldStep:
        passed_s, self._now_s = now_s - self._now_s, now_s
        completed = [job_id for job_id in self._jobs if self._compute(job_id, now_s, passed_s)]
        for job_id in completed:
            del self._jobs[job_id]
        events: list[Event] = []
        for job_id, job in self._jobs.items():
            if job.done >= 100 and not job.reported:
                job.reported = True
                events.append(MinibatchesReached(now_s, job_id, 100))
        events += [event for order in list(self._switches) for event in self._look(order, now_s)]
        for key in [key for key, at_s in self._timers.items() if at_s <= now_s]:
            del self._timers[key]
            events.append(TimerFired(now_s, key))
        arrivals = []
        while self._arrivals and self._arrivals[0].arrival_s <= now_s:
            newcomer = self._arrivals.pop(0)
            self._jobs[newcomer.spec.job_id] = _Job(newcomer)
            arrivals.append(newcomer.spec)
        return WorldStep(tuple(events), tuple(completed), tuple(arrivals))

    def apply(self, now_s: float, effects: Sequence[WorldEffect]) -> None:
        for effect in effects:
            if isinstance(effect, StartTimer):
                self._timers[effect.key] = effect.at_s
            elif isinstance(effect, ReleaseGang):
                raise NotImplementedError("this reference knows no crash")
            elif isinstance(effect, SwitchResidents):
                self._switches.append(effect)
                self._stopped[effect.switch_id] = []
                self._started[effect.switch_id] = []
                for job_id in effect.suspend:
                    if job_id in self._jobs:
                        self._jobs[job_id].wants_stop = True

    def _compute(self, job_id: JobId, now_s: float, passed_s: float) -> bool:
        """One step of one job; whether it ended."""
        job = self._jobs[job_id]
        if not job.computes or now_s <= self._pause_until_s.get(job_id, 0.0):
            return False
        before = job.done
        job.done += self._rate(job) * passed_s
        if job.done >= job.job.minibatches:
            return True
        if job.wants_stop and (before == math.floor(before) or math.floor(job.done) > before):
            boundary = max(before, float(math.floor(job.done)))
            self._debt_s -= (job.done - boundary) / self._rate(job)
            job.done = boundary
            job.computes = job.wants_stop = False
        return False

    def _rate(self, job: _Job) -> float:
        profile = job.job.profile
        rate = self._performance.rate_per_s(job.job.spec, profile, job.run)
        split = split_servers(job.run)
        crowds = [
            sum(j.computes and server in split_servers(j.run) for j in self._jobs.values())
            for server in split
        ]
        return rate * nic_factor(profile, max(crowds, default=0))

    def _look(self, order: SwitchResidents, now_s: float) -> list[Event]:
        """Who of an order has stopped, who can start; the report when that is everybody."""
        waits = False
        stopped, started = self._stopped[order.switch_id], self._started[order.switch_id]
        for job_id in order.suspend:
            job = self._jobs.get(job_id)
            if job is None or any(job_id == other for other, _ in stopped):
                continue
            if job.computes:
                waits = True
            else:
                job.run = ()
                stopped.append((job_id, now_s))
        taken = {(b.server_id, gpu) for j in self._jobs.values() for b in j.run for gpu in b.gpus}
        for run in order.run:
            job = self._jobs.get(run.job_id)
            if job is None or job.run:
                continue
            if any((b.server_id, gpu) in taken for b in run.bindings for gpu in b.gpus):
                waits = True
                continue
            job.run, job.computes = run.bindings, True
            pause_s = self._pause_s(job)
            self._pause_until_s[run.job_id] = now_s + max(0.0, pause_s)
            job.done += self._rate(job) * max(0.0, -pause_s)
            job.has_run = True
            started.append((run.job_id, now_s))
        if waits:
            return []
        self._switches.remove(order)
        alive = [entry for entry in started if entry[0] in self._jobs]
        return [ResidentsSwitched(now_s, order.switch_id, tuple(stopped), tuple(alive))]

    def _pause_s(self, job: _Job) -> float:
        """Whole seconds to charge, or below 0 to give back; what is left over waits for a later start."""
        if job.has_run:
            self._debt_s += suspend_resume_s(job.job.profile)
        whole = float(math.trunc(self._debt_s))
        self._debt_s -= whole
        return whole
