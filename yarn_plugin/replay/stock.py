"""The substrate of a stock arm: Hadoop's own scheduler hands out containers, this only tells the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    ranks,
    submit,
)
from yarn_plugin.replay.faults import FaultPlan
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
    Ended,
    Finish,
    HarnessEvent,
    Placed,
    Preempted,
    Release,
)

QueueRule = Callable[[int, JobSpec], str]
"""Which queue the n-th submission of a run goes to."""


def own_queue(_: int, job: JobSpec) -> str:
    """The queue that the job names."""
    return str(job.queue)


@dataclass(slots=True)
class _Asked:
    """A job whose AM has asked, and what it was given so far."""

    spec: JobSpec
    placed: dict[str, Placed] = field(default_factory=dict)
    is_whole: bool = False

    @property
    def held_gpus(self) -> int:
        return sum(placed.gpus for placed in self.placed.values())


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
        self._jobs: dict[str, _Asked] = {}
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
            self._jobs[str(job.job_id)] = _Asked(job)
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
            broken: dict[str, str] = {}
            seen = self._rm.step(now_s, actions)
            for event in seen:
                events.extend(self._told(event, now_s, broken))
            if self._rounds:
                self._rounds.seen(now_s, seen, waits=self._waits())
            events += [e for key, why in broken.items() for e in self._break(key, why, now_s)]
            actions = [action for key in broken for action in self._ask_again(key)]
            actions += give_up(seen)
        return events

    def _waits(self) -> bool:
        return any(not job.is_whole for job in self._jobs.values())

    def _told(self, event: HarnessEvent, now_s: float, broken: dict[str, str]) -> Iterator[Event]:
        job = self._jobs.get(event.key)
        if job is None:
            return
        match event:
            case Allocated():
                yield from self._allocated(job, event.containers, now_s)
            case AppFinished():
                del self._jobs[event.key]
                yield _ended(job.spec.job_id, event, now_s)
            case AppRejected() | AskRefused():
                del self._jobs[event.key]
                yield JobFailed(now_s, job.spec.job_id, " ".join(event.diagnostics.split()))
            case AmWaiting():
                yield AmWaited(now_s, job.spec.job_id, event.reason)
            case Completed() | Preempted():
                self._lost(event.key, job, event.containers, broken)
            case _:
                pass

    def _allocated(
        self, job: _Asked, containers: Sequence[Placed], now_s: float
    ) -> Iterator[Event]:
        job.placed.update((placed.container, placed) for placed in containers)
        if len(job.placed) < len(job.spec.workers):
            yield ContainersHeld(now_s, job.spec.job_id, job.held_gpus, job.spec.gpus)
            return
        job.is_whole = True
        in_order = _by_rank(job)
        yield GangCommitted(
            now_s,
            job.spec.job_id,
            tuple(placed.container for placed in in_order),
            tuple(ServerId(placed.host) for placed in in_order),
        )

    @staticmethod
    def _lost(key: str, job: _Asked, ended: Sequence[Ended], broken: dict[str, str]) -> None:
        for container in ended:
            placed = job.placed.pop(container.container, None)
            if placed is not None and container.exit_status != 0:
                why = f"{container.container} on {placed.host}: status {container.exit_status}"
                broken.setdefault(key, why)

    def _break(self, key: str, why: str, now_s: float) -> Iterator[Event]:
        job = self._jobs.get(key)
        if job is None:
            return
        if job.is_whole:
            yield GangBroken(now_s, job.spec.job_id, why)
        else:
            yield ContainersHeld(now_s, job.spec.job_id, 0, job.spec.gpus)

    def _ask_again(self, key: str) -> Iterator[Action]:
        job = self._jobs.get(key)
        if job is None:
            return
        held = tuple(job.placed)
        job.placed.clear()
        job.is_whole = False
        if held:
            yield Release(key=key, containers=held)
        yield ask(job.spec)


def _in_queue(job: JobSpec, queue: str) -> JobSpec:
    return msgspec.structs.replace(job, queue=QueueName(queue))


def _job_of(event: Event) -> JobId | None:
    return event.job.job_id if isinstance(event, JobSubmitted) else None


def _by_rank(job: _Asked) -> list[Placed]:
    """Containers in rank order: those of one size in the order of their ids."""
    chosen: dict[int, Placed] = {}
    free = {priority: list(found) for priority, found in ranks(job.spec).items()}
    for placed in sorted(job.placed.values(), key=lambda placed: placed.container):
        chosen[free[placed.priority].pop(0)] = placed
    return [chosen[rank] for rank in sorted(chosen)]


def _ended(job_id: JobId, event: AppFinished, now_s: float) -> Event:
    if event.state == "SUCCEEDED":
        return JobFinished(now_s, job_id)
    return JobFailed(now_s, job_id, f"application ended {event.state} ({event.rm_state})")
