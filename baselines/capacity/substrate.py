"""The model as a substrate: jobs in, gangs out, partial gangs told on the way (hold and wait)."""

from __future__ import annotations

from collections.abc import Sequence

from baselines.capacity.applications import Application
from baselines.capacity.cluster import CapacityCluster
from baselines.capacity.queues import OrderingPolicy
from gandiva_core.messages.effects import ContainerEffect, ReleaseGang
from gandiva_core.messages.events import (
    AmWaited,
    ContainersHeld,
    Event,
    GangCommitted,
    JobFailed,
    JobFinished,
    JobSubmitted,
    QueuesConfigured,
    ServerJoined,
)
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId
from gandiva_core.runtime.ports import OpenedSubstrate, RunSetup

SCHEDULER_CLASS = "baselines.capacity"
MODELLED = {"modelled hadoop": "3.4.2"}

NO_ROOM = "NO_ROOM"
"""Why a master waits here; the AM limit is the whole queue, so that never is the reason."""


class CapacitySubstrate:
    """Implements `gandiva_core.runtime.ports.Substrate` by the model; its containers take no virtual time.

    Args:
        cluster: servers and queues.
        order: how leaf queues order their applications.
    """

    def __init__(self, cluster: Cluster, order: OrderingPolicy = OrderingPolicy.FIFO) -> None:
        self._cluster = cluster
        self._model = CapacityCluster(cluster, order, self._heard)
        self._apps: dict[JobId, Application] = {}
        self._told: list[Event] = []
        self._masterless: dict[JobId, Application] = {}
        self._waits_told: set[JobId] = set()
        self._now_s = 0.0

    def begin(self, now_s: float) -> Sequence[Event]:
        """Servers, and queues where the cluster has any."""
        events: list[Event] = [ServerJoined(now_s, server) for server in self._cluster.servers]
        if self._cluster.queues:
            events.append(QueuesConfigured(now_s, self._cluster.queues))
        return events

    def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[Event]:
        """Submit jobs of one instant together; a job of an unknown queue is refused."""
        self._now_s = now_s
        known = [job for job in jobs if self._model.queue(job.queue) is not None]
        events: list[Event] = [JobSubmitted(now_s, job) for job in known]
        events += [
            JobFailed(now_s, job.job_id, f"queue {job.queue} does not exist")
            for job in jobs
            if self._model.queue(job.queue) is None
        ]
        for app in self._model.submit(known):
            self._apps[app.job.job_id] = app
            self._masterless[app.job.job_id] = app
        self._model.settle()
        return events + self._take()

    def finish(self, now_s: float, job_ids: Sequence[JobId]) -> Sequence[Event]:
        """Jobs leave, in order; nodes serve others while they do."""
        self._now_s = now_s
        for job_id in job_ids:
            self._model.end(self._apps.pop(job_id))
        self._model.settle()
        ends: list[Event] = [JobFinished(now_s, job_id) for job_id in job_ids]
        return ends + self._take()

    def apply(self, now_s: float, effects: Sequence[ContainerEffect]) -> Sequence[Event]:
        """A stock scheduler takes no orders; a gang given back asks again as a whole.

        Raises:
            InputError: for an order to commit, which only a policy gives.
        """
        self._now_s = now_s
        for effect in effects:
            if not isinstance(effect, ReleaseGang):
                raise InputError("stock arm", "an order to commit", "a policy arm")
            app = self._apps.get(effect.job_id)
            if app is not None:
                self._model.release(app)
                self._model.ask_again(app)
        self._model.settle()
        return self._take()

    def next_at_s(self) -> float | None:
        """Nothing happens by itself."""
        return None

    def advance(self, now_s: float) -> Sequence[Event]:
        """Nothing happens by itself."""
        del now_s
        return ()

    def close(self) -> None:
        """Nothing to end."""

    def _heard(self, app: Application) -> None:
        job = app.job
        if len(app.given) < len(job.workers):
            self._told.append(ContainersHeld(self._now_s, job.job_id, app.held_gpus, job.gpus))
            return
        containers, servers = zip(*app.gang, strict=True)
        self._told.append(GangCommitted(self._now_s, job.job_id, containers, servers))

    def _take(self) -> list[Event]:
        told, self._told = self._told, []
        return told + self._masters_waiting()

    def _masters_waiting(self) -> list[Event]:
        """Masters that found no node, each told once, by name: a full queue's limit keeps them waiting too."""
        self._masterless = {
            job_id: app for job_id, app in self._masterless.items() if app.master_node is None
        }
        new = sorted(self._masterless.keys() - self._waits_told)
        self._waits_told.update(new)
        return [AmWaited(self._now_s, job_id, NO_ROOM) for job_id in new]


def fifo(setup: RunSetup) -> OpenedSubstrate:
    """`capacity`: Hadoop's default, first in first out."""
    return OpenedSubstrate(CapacitySubstrate(setup.cluster), SCHEDULER_CLASS, MODELLED)


def fair(setup: RunSetup) -> OpenedSubstrate:
    """`capacity-fair`: the fair ordering policy in every leaf queue."""
    substrate = CapacitySubstrate(setup.cluster, OrderingPolicy.FAIR)
    return OpenedSubstrate(substrate, SCHEDULER_CLASS, MODELLED)


def preempting(setup: RunSetup) -> OpenedSubstrate:
    """`capacity-preempt` has no model.

    Raises:
        InputError: always: whom the preemption monitor kills is its own business, and only a real one knows.
    """
    expected = "--engine yarn: there is no model of the preemption monitor"
    raise InputError("--engine sim", f"arm {setup.arm.name}", expected)
