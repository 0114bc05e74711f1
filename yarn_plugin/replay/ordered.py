"""The substrate of a policy arm: the core orders containers from GandivaScheduler, over the bridge it uses live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gandiva_core.messages.effects import CommitGang, ContainerEffect, OpenMove, ReleaseGang
from gandiva_core.messages.events import (
    AmWaited,
    Event,
    GangCommitted,
    JobFailed,
    JobSubmitted,
    MoveFailed,
    QueuesConfigured,
)
from gandiva_core.model.cluster import Cluster, QueueLimit
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.translate import Translator, application_name
from yarn_plugin.replay.cluster import (
    add_server,
    ask,
    bursts,
    give_up,
    master_host,
    node_name,
    submit,
)
from yarn_plugin.replay.faults import FaultPlan
from yarn_plugin.replay.rm import ReplayedRm
from yarn_plugin.replay.wire import (
    Action,
    AmWaiting,
    AppRejected,
    AskRefused,
    BeatAll,
    Finish,
    HarnessEvent,
)


class OrderedSubstrate:
    """Implements `gandiva_core.runtime.ports.Substrate` over GandivaScheduler.

    Everything the core learns came through the gateway and the translator; the harness is told only what users, nodes
    and AMs do. What YARN does not carry (a job's weight, class and model, a server's accelerator type) is put
    beside it.

    Args:
        rm: started with GandivaScheduler.
        cluster: what its nodes shall be.
        queues: limits of its queue tree, in physical GPUs.
        faults: servers that leave and come back.
    """

    def __init__(
        self,
        rm: ReplayedRm,
        cluster: Cluster,
        queues: Sequence[QueueLimit],
        faults: FaultPlan | None = None,
    ) -> None:
        self._rm = rm
        self._cluster = cluster
        self._queues = tuple(queues)
        self._faults = faults or FaultPlan(cluster)
        register = Register()
        self._desk = OrderDesk(register)
        self._translator = Translator(
            register,
            job_name=application_name,
            known_servers={node_name(server): server for server in cluster.servers},
        )
        self._planned: dict[str, JobSpec] = {}

    def begin(self, now_s: float) -> Sequence[Event]:
        """Register the nodes, then open the bridge."""
        nodes = [master_host(self._cluster), *map(add_server, self._cluster.servers)]
        self._rm.step(now_s, nodes)
        self._rm.hello()
        return [QueuesConfigured(now_s, self._queues), *self._take(now_s)]

    def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[Event]:
        """Submit jobs and let their AMs ask, all at once."""
        events: list[Event] = []
        for burst in bursts(jobs):
            actions: list[Action] = []
            for job in burst:
                self._planned[str(job.job_id)] = job
                actions += [submit(job, str(job.queue)), ask(job)]
            events += self._step(now_s, actions)
        return events

    def finish(self, now_s: float, job_ids: Sequence[JobId]) -> Sequence[Event]:
        """Jobs leave."""
        return self._step(now_s, [Finish(key=str(job_id)) for job_id in job_ids])

    def apply(self, now_s: float, effects: Sequence[ContainerEffect]) -> Sequence[Event]:
        """Release gangs and let their AMs ask again, then commit gangs and let their AMs fetch the containers."""
        released = [effect for effect in effects if isinstance(effect, ReleaseGang)]
        ordered = [effect for effect in effects if isinstance(effect, CommitGang)]
        moves = [effect for effect in effects if isinstance(effect, OpenMove)]
        stay = [MoveFailed(now_s, m.move_id, m.job_id, "UNSUPPORTED", _NO_MOVES) for m in moves]
        return [*self._release(now_s, released), *self._commit(now_s, ordered), *stay]

    def next_at_s(self) -> float | None:
        """The next fault, or soft gang that waited long enough."""
        times = [self._faults.next_at_s(), self._translator.next_at_s()]
        return min((time for time in times if time is not None), default=None)

    def advance(self, now_s: float) -> Sequence[Event]:
        """Faults and waits that are due."""
        events = self._translator.due(now_s)
        for action, _ in self._faults.due(now_s):
            events += self._step(now_s, [action])
        return events

    def close(self) -> None:
        """End the ResourceManager and its JVM."""
        self._rm.close()

    # ------------------------------------------------------------------ the bridge

    def _release(self, now_s: float, effects: Sequence[ReleaseGang]) -> Iterator[Event]:
        if not effects:
            return
        written = self._desk.write(effects, now_s)
        if written.orders:
            self._rm.apply(written.orders)
        again = [self._planned[effect.job_id] for effect in effects if self._lives(effect.job_id)]
        yield from self._step(now_s, [ask(job) for job in again])

    def _lives(self, job_id: JobId) -> bool:
        return self._desk.register.find(job_id) is not None and job_id in self._planned

    def _commit(self, now_s: float, effects: Sequence[CommitGang]) -> Iterator[Event]:
        written = self._desk.write(effects, now_s)
        yield from written.refused
        if not written.orders:
            return
        events = self._desk.book(self._rm.apply(written.orders), now_s)
        yield from events
        committed = [str(e.job_id) for e in events if isinstance(e, GangCommitted)]
        if committed:
            yield from self._step(now_s, [BeatAll(keys=tuple(committed))])

    def _step(self, now_s: float, actions: Sequence[Action]) -> list[Event]:
        if not actions:
            return []
        seen = self._rm.step(now_s, actions)
        events = [told for event in seen for told in self._beside(event, now_s)]
        return [*self._take(now_s), *events, *self._step(now_s, give_up(seen))]

    def _beside(self, event: HarnessEvent, now_s: float) -> Iterator[Event]:
        """What the gateway does not tell: submissions that the ResourceManager refused or lets wait."""
        match event:
            case AppRejected() | AskRefused():
                reason = " ".join(event.diagnostics.split())
                yield JobFailed(now_s, JobId(event.key), reason)
            case AmWaiting():
                yield AmWaited(now_s, JobId(event.key), event.reason)
            case _:
                pass

    def _take(self, now_s: float) -> list[Event]:
        events = self._translator.translate(self._rm.take_events(), now_s)
        return [self._with_plan(event) for event in events]

    def _with_plan(self, event: Event) -> Event:
        if not isinstance(event, JobSubmitted):
            return event
        planned = self._planned.get(event.job.job_id)
        if planned is None:
            return event
        same = sorted(planned.workers, key=_size) == sorted(event.job.workers, key=_size)
        job = msgspec.structs.replace(
            event.job,
            name=planned.name,
            weight=planned.weight,
            priority_class=planned.priority_class,
            model=planned.model,
            workers=planned.workers if same else event.job.workers,
        )
        return JobSubmitted(event.at_s, job)


_NO_MOVES = "masters of a replay ask for no second container"


def _size(worker: msgspec.Struct) -> tuple[int, ...]:
    return msgspec.structs.astuple(worker)
