"""A small world and a small substrate, for tests of the driver and the journal alone."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Enqueue, Place, Run, Switch, Wait
from gandiva_core.messages.effects import (
    CommitGang,
    ContainerEffect,
    StartTimer,
    SwitchResidents,
    WorldEffect,
)
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId
from gandiva_core.model.view import ClusterView
from gandiva_core.runtime.journal import Header
from gandiva_core.runtime.ports import WorldStep

Happening = Callable[[], WorldStep]


class SmallWorld:
    """Jobs that run `duration_s` from their start; arrivals and timers at their times."""

    def __init__(self, arrivals: Sequence[tuple[float, JobSpec]], duration_s: float = 10.0) -> None:
        self._duration_s = duration_s
        self._agenda: list[tuple[float, int, Happening]] = []
        self._count = 0
        self.told: list[tuple[float, WorldEffect]] = []
        for at_s, spec in arrivals:
            self._at(at_s, lambda spec=spec: WorldStep(arrivals=(spec,)))  # type: ignore[misc]

    def _at(self, at_s: float, happening: Happening) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (at_s, self._count, happening))

    def next_at_s(self) -> float | None:
        return self._agenda[0][0] if self._agenda else None

    def advance(self, now_s: float) -> WorldStep:
        steps: list[WorldStep] = []
        while self._agenda and self._agenda[0][0] <= now_s:
            steps.append(heapq.heappop(self._agenda)[2]())
        return WorldStep(
            tuple(event for step in steps for event in step.events),
            tuple(job_id for step in steps for job_id in step.completed),
            tuple(spec for step in steps for spec in step.arrivals),
        )

    def apply(self, now_s: float, effects: Sequence[WorldEffect]) -> None:
        for effect in effects:
            self.told.append((now_s, effect))
            if isinstance(effect, SwitchResidents):
                self._switch(now_s, effect)
            elif isinstance(effect, StartTimer):
                fired = e.TimerFired(effect.at_s, effect.key)
                self._at(effect.at_s, lambda fired=fired: WorldStep((fired,)))  # type: ignore[misc]

    def _switch(self, now_s: float, effect: SwitchResidents) -> None:
        started = tuple((run.job_id, now_s) for run in effect.run)
        stopped = tuple((job_id, now_s) for job_id in effect.suspend)
        event = e.ResidentsSwitched(now_s, effect.switch_id, stopped, started)
        self._at(now_s, lambda: WorldStep((event,)))
        for job_id, _ in started:
            self._at(
                now_s + self._duration_s,
                lambda job_id=job_id: WorldStep(completed=(job_id,)),  # type: ignore[misc]
            )


class SmallSubstrate:
    """Commits whatever it is told, at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.told: list[ContainerEffect] = []
        self.calls: list[str] = []
        self.is_closed = False

    def begin(self, now_s: float) -> Sequence[e.Event]:
        return [e.ServerJoined(now_s, server) for server in self._cluster.servers]

    def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[e.Event]:
        self.calls.append(f"submit {' '.join(job.job_id for job in jobs)}")
        return [e.JobSubmitted(now_s, job) for job in jobs]

    def finish(self, now_s: float, job_ids: Sequence[JobId]) -> Sequence[e.Event]:
        self.calls.append(f"finish {' '.join(job_ids)}")
        return [e.JobFinished(now_s, job_id) for job_id in job_ids]

    def apply(self, now_s: float, effects: Sequence[ContainerEffect]) -> Sequence[e.Event]:
        self.told += effects
        return [
            e.GangCommitted(now_s, effect.job_id, ("c",) * len(effect.workers))
            for effect in effects
            if isinstance(effect, CommitGang)
        ]

    def next_at_s(self) -> float | None:
        return None

    def advance(self, now_s: float) -> Sequence[e.Event]:
        self.calls.append(f"advance {now_s}")
        return ()

    def close(self) -> None:
        self.is_closed = True


class FirstFit:
    """Places whole gangs on the first server with free devices and runs them to the end."""

    name = "first-fit"
    mechanisms: tuple[str, ...] = ()

    def decide(self, event: e.Event, view: ClusterView) -> Decisions:
        for job in list(view.jobs.values()):
            if job.phase is JobPhase.STARTING:
                yield Switch(run=(Run(job.spec.job_id, self._devices(job.spec, view)),))
            elif job.phase in {JobPhase.SUBMITTED, JobPhase.QUEUED}:
                yield self._place(job.spec, view)

    def _place(self, spec: JobSpec, view: ClusterView) -> Place | Enqueue:
        for server_id, server in view.servers.items():
            if server.server.gpus - server.allocated >= spec.gpus:
                return Place(spec.job_id, (server_id,) * len(spec.workers), "first-fit")
        return Enqueue(spec.job_id, Wait("full", f"{spec.gpus} GPUs", "none"))

    def _devices(self, spec: JobSpec, view: ClusterView) -> tuple[Binding, ...]:
        (server_id,) = view.jobs[spec.job_id].shares
        server = view.servers[server_id]
        free = [
            gpu
            for gpu, holder in enumerate(server.holders)
            if holder is None and server.claims[gpu] is None
        ]
        return (Binding(server_id, tuple(free[: spec.gpus])),)


def engine() -> Engine:
    return Engine(FirstFit(), Settings(), check="full")


def header(cluster: Cluster, **changes: object) -> Header:
    fields: dict[str, object] = {
        "format_version": 1,
        "arm": "first-fit",
        "policy": "first-fit",
        "cluster": cluster,
        "seed": 1,
    }
    return Header(**(fields | changes))  # type: ignore[arg-type]
