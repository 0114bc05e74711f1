"""Reactive mode: what arrivals, departures and failures do to the queue (G-20 to G-28).

Departures admit from the queue; reducing the height and repairing locality (G-26 (2) and (3)) need migration and
join here with it.

Remembered: ``starving`` = queue heads past their time that no server can take yet; and what `refusals` does.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.messages.decisions import (
    Decision,
    Enqueue,
    Place,
    Remember,
    Verdict,
    Wait,
    WakeAt,
)
from gandiva_core.messages.events import (
    GangBroken,
    GangCommitted,
    GangMoved,
    GangRefused,
    JobAdopted,
    JobFailed,
    JobFinished,
    JobKilled,
    JobMoved,
    JobSubmitted,
    MoveFailed,
    QueuesConfigured,
    ReclaimAsked,
    ServerJoined,
    ServerLost,
    TimerFired,
)
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView, JobView
from gandiva_core.policies.admission import in_turn, lines
from gandiva_core.policies.cascade import NOTHING, Choice, Step, choose
from gandiva_core.policies.favour import GUARANTEES, is_favoured
from gandiva_core.policies.limits import can_ever_run
from gandiva_core.policies.refusals import (
    REFUSED,
    avoided,
    forget,
    is_paused,
    note_try,
    pause,
    was_refused,
)
from gandiva_core.policies.sets import Ask, can_ever_host, may_host, room_on, spread

STARVING = "starving"

WITHOUT_OVER_SUBSCRIPTION = frozenset({Step.SAME_AFFINITY, Step.PRISTINE, Step.RELAXED})
WHOLE_CASCADE = WITHOUT_OVER_SUBSCRIPTION | {Step.OVER_SUBSCRIBE}
OVER_SUBSCRIPTION_ONLY = frozenset({Step.OVER_SUBSCRIBE})
NO_STEP: frozenset[Step] = frozenset()
ANYWHERE = WITHOUT_OVER_SUBSCRIPTION | {Step.STARVING}

Placed = Generator[Decision, Verdict, bool]
"""Decisions, and in the end whether a job was placed."""


class Reactive(msgspec.Struct, frozen=True):
    """G-20's reactive mode as a part of a policy.

    Attributes:
        height_max: H_max; 1 where slicing is off.
        starving_after_s: after this long in the queue a head is over-subscribed anywhere (G-21).
        refusal_pause_s: how long a first refusal is left alone; it doubles with each, up to `refusal_pause_max_s`.
    """

    height_max: int
    starving_after_s: float
    refusal_pause_s: float
    refusal_pause_max_s: float

    @classmethod
    def of(cls, settings: Settings, *, can_slice: bool) -> Reactive:
        """From the scheduler's settings."""
        return cls(
            height_max=settings.height_max if can_slice else 1,
            starving_after_s=settings.starving_after_quanta * settings.quantum_s,
            refusal_pause_s=settings.quantum_s / 16,
            refusal_pause_max_s=settings.quantum_s,
        )

    def decide(self, event: object, view: ClusterView) -> Decisions:
        """What `event` means for jobs that have no server."""
        match event:
            case JobSubmitted(job=spec):
                yield from self._arrive(view, spec.job_id)
            case GangRefused(job_id=job_id, code=code, detail=detail):
                reason = Wait("refused", code, detail)
                first_s, most_s = self.refusal_pause_s, self.refusal_pause_max_s
                yield from pause(view, job_id, reason, first_s, most_s)
                yield from self._admit(view)
            case GangCommitted(job_id=job_id):
                yield from forget(view, job_id)
            case JobAdopted(job=spec):
                yield from forget(view, spec.job_id)
                yield from self._watch(view)
            case JobFinished(job_id=job_id) | JobFailed(job_id=job_id) | JobKilled(job_id=job_id):
                yield from forget(view, job_id)
                yield from self._admit(view)
            case TimerFired(key=key):
                if key in {STARVING, GUARANTEES} or key.startswith(REFUSED):
                    yield from self._admit(view)
            case ServerLost() | GangBroken():
                yield from self._admit(view)
                yield from self._explain(view)
            case (
                ServerJoined()
                | JobMoved()
                | QueuesConfigured()
                | ReclaimAsked()
                | GangMoved()
                | MoveFailed()
            ):
                yield from self._admit(view)

    # ------------------------------------------------------------------ arrival

    def _arrive(self, view: ClusterView, job_id: JobId) -> Decisions:
        job = view.jobs.get(job_id)
        if job is None or job.phase is not JobPhase.SUBMITTED:
            return
        closed = self._kept_for_starving(view)
        placed = yield from self._try(view, job, WHOLE_CASCADE, closed, explain=True)
        if not placed:
            yield from self._admit(view) if self.starving_after_s <= 0.0 else self._watch(view)

    def _try(
        self,
        view: ClusterView,
        job: JobView,
        steps: frozenset[Step],
        closed: frozenset[ServerId],
        *,
        explain: bool = False,
    ) -> Placed:
        """Place one job if some step can; else say why it waits, where asked to."""
        spec = job.spec
        shut = closed | avoided(view, spec.job_id)
        found = choose(view, spec, self.height_max, steps=steps, closed=shut)
        if isinstance(found, Wait) and shut != closed:
            found = choose(view, spec, self.height_max, steps=steps, closed=closed)
        if isinstance(found, Choice):
            verdict = yield Place(spec.job_id, found.servers, str(found.step))
            if verdict.accepted:
                yield from note_try(view, spec.job_id, found.servers)
                return True
            found = Wait("not-placed", f"{spec.gpus} GPUs", verdict.reason)
        if explain:
            yield Enqueue(spec.job_id, found)
        return False

    # ------------------------------------------------------------------ departures

    def _admit(self, view: ClusterView) -> Decisions:
        """G-26 (1), until no queued job can be placed: starving heads, then without over-subscription, then with."""
        if not view.queue:
            if STARVING in view.memory:
                yield Remember(STARVING, {})
            return
        tried: set[JobId] = set()
        yield from self._relieve(view, tried)
        closed = self._kept_for_starving(view, fresh=True)
        for steps in (WITHOUT_OVER_SUBSCRIPTION, OVER_SUBSCRIPTION_ONLY):
            yield from self._sweep(view, steps, closed)
        yield from self._relieve(view, tried)
        yield from self._watch(view)

    def _relieve(self, view: ClusterView, tried: set[JobId]) -> Decisions:
        """Over-subscribe starving heads anywhere, and then those that stood behind them, each once."""
        while True:
            heads = [job for job in _heads(view) if self._is_starving(view, job)]
            fresh = [job for job in heads if job.spec.job_id not in tried]
            if not fresh:
                return
            for job in fresh:
                job_id = job.spec.job_id
                tried.add(job_id)
                is_news = job_id not in view.memory.get(STARVING, {})
                yield from self._try(view, job, ANYWHERE, NOTHING, explain=is_news)

    def _sweep(
        self, view: ClusterView, steps: frozenset[Step], closed: frozenset[ServerId]
    ) -> Decisions:
        """Try every queued job once, in order. Placing one only takes room, so none before it need be tried again."""
        room = _Room(view, self.height_max, steps)
        hopeless: set[tuple[object, ...]] = set()
        for job in in_turn(view):
            job_id, spec = job.spec.job_id, job.spec
            ask = (spec.queue, spec.partition, spec.only_on, spec.workers)
            if ask in hopeless or not room.may_take(spec) or is_paused(view, job_id):
                continue
            placed = yield from self._try(view, job, steps, closed)
            if placed:
                room = _Room(view, self.height_max, steps)
            elif not was_refused(view, job_id):
                hopeless.add(ask)

    def _explain(self, view: ClusterView) -> Decisions:
        """Say why jobs wait that lost their servers just now."""
        for job_id in tuple(view.queue):
            job = view.jobs[job_id]
            if job.queued_since_s == view.now_s and not is_paused(view, job_id):
                found = choose(view, job.spec, self.height_max, steps=NO_STEP)
                if isinstance(found, Wait):
                    yield Enqueue(job_id, found)

    # ------------------------------------------------------------------ starvation

    def _is_starving(self, view: ClusterView, job: JobView) -> bool:
        return self._has_waited(view, job) and not is_paused(view, job.spec.job_id)

    def _has_waited(self, view: ClusterView, job: JobView) -> bool:
        """Long enough, or in a queue that lacks what it is entitled to (DESIGN §4)."""
        due_s = job.queued_since_s + self.starving_after_s
        return view.now_s >= due_s or is_favoured(view, job.spec)

    def _watch(self, view: ClusterView) -> Decisions:
        """Note which heads starve, and wake when the next one will."""
        heads = _heads(view)
        starving = {
            str(head.spec.job_id): head.queued_since_s
            for head in heads
            if self._has_waited(view, head)
        }
        if starving != dict(view.memory.get(STARVING, {})):
            yield Remember(STARVING, starving)
        due = [
            head.queued_since_s + self.starving_after_s
            for head in heads
            if head.spec.job_id not in starving
        ]
        if due and view.wakes.get(STARVING) != min(due):
            yield WakeAt(STARVING, min(due))

    def _kept_for_starving(self, view: ClusterView, *, fresh: bool = False) -> frozenset[ServerId]:
        """The server that each starving head waits for: nobody else is placed there, so it empties until the head fits.

        Args:
            view: the cluster now.
            fresh: ask the queue, rather than what was remembered when it was last looked at.
        """
        if fresh:
            waiting = [head for head in _heads(view) if self._is_starving(view, head)]
        else:
            known = view.memory.get(STARVING, {})
            waiting = [
                view.jobs[JobId(job_id)]
                for job_id in known
                if job_id in view.jobs and view.jobs[JobId(job_id)].phase is JobPhase.QUEUED
            ]
        kept: set[ServerId] = set()
        for head in waiting:
            kept.update(_awaited(view, head.spec))
        return frozenset(kept)


def _awaited(view: ClusterView, spec: JobSpec) -> Iterable[ServerId]:
    """The least loaded server that can ever hold the gang; where none can, the least loaded ones that together do."""
    ask = Ask.of(spec)
    by_load = sorted(
        (state for state in view.servers.values() if may_host(spec, state.server)),
        key=lambda state: state.allocated / max(1, state.server.gpus),
    )
    for state in by_load:
        if can_ever_host(ask, state.server):
            return (state.server.server_id,)
    rooms = ((state.server.gpus, state) for state in by_load)
    return spread(ask, rooms, as_if_empty=True) or ()


def _heads(view: ClusterView) -> list[JobView]:
    """The first queued job of each queue and partition: one held up by its own limits holds up nobody else's.

    One that this cluster or its queue could not run even if all else were gone is nobody's head.
    """
    found = (
        next((job for job in line if can_ever_run(view, job.spec)), None)
        for line in lines(view).values()
    )
    return [head for head in found if head is not None]


class _Room:
    """A quick upper bound of what any server could take, so that a long queue costs one pass and not one a job."""

    def __init__(self, view: ClusterView, height_max: int, steps: frozenset[Step]) -> None:
        self._is_free = Step.RELAXED in steps
        self._by_key: dict[tuple[str, int], int] = {}
        for kind in view.kinds:
            state, count = kind[0], len(kind)
            server = state.server
            if self._is_free:
                key, room = (server.partition, 0), max(0, server.gpus - state.allocated)
            else:
                key = (server.partition, state.affinity)
                room = max(0, room_on(state, height_max) - state.allocated)
            self._by_key[key] = self._by_key.get(key, 0) + count * room

    def may_take(self, spec: JobSpec) -> bool:
        """False only where no step can succeed."""
        key = (spec.partition, 0 if self._is_free else spec.affinity_class)
        return spec.gpus <= self._by_key.get(key, 0)
