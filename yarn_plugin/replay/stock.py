"""The substrate of a stock arm: Hadoop's own scheduler hands out containers, this only tells the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from gandiva_core.messages.effects import ContainerEffect
from gandiva_core.messages.events import (
    AmWaited,
    ContainersHeld,
    Event,
    GangBroken,
    GangCommitted,
    JobFailed,
    JobFinished,
    JobSubmitted,
    ServerJoined,
)
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, QueueName, ServerId
from yarn_plugin.replay.cluster import (
    add_server,
    ask,
    bursts,
    give_up,
    master_host,
    submit,
)
from yarn_plugin.replay.faults import FaultPlan
from yarn_plugin.replay.holding import Holding
from yarn_plugin.replay.preemption import PreemptionRounds
from yarn_plugin.replay.rm import ReplayedRm
from yarn_plugin.replay.wire import (
    Action,
    Allocated,
    AmWaiting,
    AppFinished,
    AppRejected,
    AskRefused,
    Completed,
    Finish,
    HarnessEvent,
    Preempted,
    Release,
)

QueueRule = Callable[[int, JobSpec], str]
"""Which queue the n-th submission of a run goes to."""


def own_queue(_: int, job: JobSpec) -> str:
    """The queue that the job names."""
    return str(job.queue)


@dataclass(slots=True)
class _Seen:
    """What one step led to.

    Attributes:
        breaks: gangs that were whole before it and lost a container: told first, so that devices are free before they
            are given again.
        told: everything else, in order.
        actions: what the AMs do about it.
    """

    breaks: list[Event] = field(default_factory=list)
    told: list[Event] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    became_whole: set[str] = field(default_factory=set)


class StockSubstrate:
    """Implements `gandiva_core.runtime.ports.Substrate` over a stock scheduler.

    A gang that is not whole holds what it has (hold and wait). One that loses a container gives the rest back and asks
    again: its job restarts from its last checkpoint.

    Args:
        rm: started with the stock class.
        cluster: what its nodes shall be.
        queue_rule: where submissions go.
        rounds: when the preemption monitor runs; None where it is off.
        faults: servers that leave and come back.
    """

    def __init__(
        self,
        rm: ReplayedRm,
        cluster: Cluster,
        queue_rule: QueueRule = own_queue,
        rounds: PreemptionRounds | None = None,
        faults: FaultPlan | None = None,
    ) -> None:
        self._rm = rm
        self._cluster = cluster
        self._queue_rule = queue_rule
        self._rounds = rounds
        self._faults = faults or FaultPlan(cluster)
        self._jobs: dict[str, Holding] = {}
        self._submitted = 0

    def begin(self, now_s: float) -> Sequence[Event]:
        """Register the nodes."""
        nodes = [master_host(self._cluster), *map(add_server, self._cluster.servers)]
        self._rm.step(now_s, nodes)
        return [ServerJoined(now_s, server) for server in self._cluster.servers]

    def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[Event]:
        """Submit jobs and let their AMs ask, all at once."""
        return [event for burst in bursts(jobs) for event in self._submit(now_s, burst)]

    def _submit(self, now_s: float, jobs: Sequence[JobSpec]) -> list[Event]:
        actions: list[Action] = []
        events: list[Event] = []
        for job in jobs:
            queue = self._queue_rule(self._submitted, job)
            self._submitted += 1
            self._jobs[str(job.job_id)] = Holding(job)
            actions += [submit(job, queue), ask(job)]
            events.append(JobSubmitted(now_s, _in_queue(job, queue)))
        told = self._step(now_s, actions)
        refused = {event.job_id for event in told if isinstance(event, JobFailed)}
        return [e for e in events if _job_of(e) not in refused] + told

    def finish(self, now_s: float, job_ids: Sequence[JobId]) -> Sequence[Event]:
        """Jobs leave; others may get what they held.

        An application ends a moment after its containers, and their nodes' heartbeats already serve others; the core
        hears of the ends first, so that devices are free before they are given again.
        """
        told = self._step(now_s, [Finish(key=str(job_id)) for job_id in job_ids])
        ends = [event for event in told if isinstance(event, (JobFinished, JobFailed))]
        return ends + [event for event in told if event not in ends]

    def apply(self, now_s: float, effects: Sequence[ContainerEffect]) -> Sequence[Event]:
        """Nothing: a stock scheduler takes no orders, and broken gangs ask again by themselves."""
        del now_s, effects
        return ()

    def next_at_s(self) -> float | None:
        """The next preemption round or fault."""
        times = [self._faults.next_at_s(), self._rounds.next_at_s() if self._rounds else None]
        return min((time for time in times if time is not None), default=None)

    def advance(self, now_s: float) -> Sequence[Event]:
        """Faults that are due, then a preemption round that is due."""
        events: list[Event] = []
        for action, told in self._faults.due(now_s):
            events.append(told)
            events += self._step(now_s, [action])
        if self._rounds and self._rounds.is_due(now_s):
            events += self._step(now_s, [self._rounds.action])
        return events

    def close(self) -> None:
        """End the ResourceManager and its JVM."""
        self._rm.close()

    # ------------------------------------------------------------------ what the AMs saw

    def _step(self, now_s: float, actions: Sequence[Action]) -> list[Event]:
        """Do actions, then let the AMs of broken gangs ask again, until no gang breaks."""
        events: list[Event] = []
        while actions:
            seen = _Seen()
            answers = self._rm.step(now_s, actions)
            for event in answers:
                job = self._jobs.get(event.key)
                if job is not None:
                    self._see(event, job, now_s, seen)
            if self._rounds:
                waits = any(not job.is_whole for job in self._jobs.values())
                self._rounds.seen(now_s, answers, waits=waits)
            events += [*seen.breaks, *seen.told]
            actions = [*seen.actions, *give_up(answers)]
        return events

    def _see(self, event: HarnessEvent, job: Holding, now_s: float, seen: _Seen) -> None:
        match event:
            case Allocated():
                self._allocated(event, job, now_s, seen)
            case AppFinished():
                del self._jobs[event.key]
                seen.told.append(_ended(job.spec.job_id, event, now_s))
            case AppRejected() | AskRefused():
                del self._jobs[event.key]
                reason = " ".join(event.diagnostics.split())
                seen.told.append(JobFailed(now_s, job.spec.job_id, reason))
            case AmWaiting():
                seen.told.append(AmWaited(now_s, job.spec.job_id, event.reason))
            case Completed() | Preempted():
                self._lost(event, job, now_s, seen)
            case _:
                pass

    @staticmethod
    def _allocated(event: Allocated, job: Holding, now_s: float, seen: _Seen) -> None:
        excess = job.take(event.containers)
        if excess:
            seen.actions.append(Release(key=event.key, containers=excess))
        if len(excess) == len(event.containers):
            return
        if not job.is_whole:
            held = ContainersHeld(now_s, job.spec.job_id, job.gpus, job.spec.gpus)
            seen.told.append(held)
            return
        seen.became_whole.add(event.key)
        containers = job.by_rank()
        seen.told.append(
            GangCommitted(
                now_s,
                job.spec.job_id,
                tuple(placed.container for placed in containers),
                tuple(ServerId(placed.host) for placed in containers),
            )
        )

    @staticmethod
    def _lost(event: Completed | Preempted, job: Holding, now_s: float, seen: _Seen) -> None:
        was_whole = job.is_whole
        why = job.lose(event.containers)
        if not why:
            return
        if not was_whole:
            seen.told.append(ContainersHeld(now_s, job.spec.job_id, 0, job.spec.gpus))
        else:
            is_fresh = event.key in seen.became_whole
            broken = GangBroken(now_s, job.spec.job_id, why)
            (seen.told if is_fresh else seen.breaks).append(broken)
        held = job.give_back()
        if held:
            seen.actions.append(Release(key=event.key, containers=held))
        seen.actions.append(ask(job.spec))


def _in_queue(job: JobSpec, queue: str) -> JobSpec:
    return msgspec.structs.replace(job, queue=QueueName(queue))


def _job_of(event: Event) -> JobId | None:
    return event.job.job_id if isinstance(event, JobSubmitted) else None


def _ended(job_id: JobId, event: AppFinished, now_s: float) -> Event:
    if event.state == "SUCCEEDED":
        return JobFinished(now_s, job_id)
    return JobFailed(now_s, job_id, f"application ended {event.state} ({event.rm_state})")
