"""Moves that somebody asked for, and servers that are emptied (G-66, G-69; DESIGN §5).

A running job moves as soon as there is room for it: free devices first; else, where it may share a server, those of a
resident that is stopped for it. What fails is tried again later, twice as late each time; what was only asked for is
given up after some tries.

Remembered: ``moves`` = jobs that are to move, and not before when; ``move-to/JOB`` = where to, where that was said, as
``RANK/SERVER``; ``move-failed/JOB`` = how often it failed; ``emptied`` = servers that are being emptied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gandiva_core.messages.decisions import Decision, Migrate, Remember, WakeAt
from gandiva_core.messages.events import (
    GangBroken,
    GangMoved,
    GangRefused,
    JobFailed,
    JobFinished,
    JobKilled,
    JobLearned,
    MoveAsked,
    MoveFailed,
    ResidentsSwitched,
    ServerJoined,
    ServerLost,
    SwitchFailed,
    TimerFired,
)
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.job import JobPhase
from gandiva_core.model.placement import Binding, shares_of
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView, JobView
from gandiva_core.policies.cascade import Step, elsewhere
from gandiva_core.policies.devices import choose, free_mask, gpus_of, mask_of

MOVES = "moves"
EMPTIED = "emptied"
_TO = "move-to/"
_FAILED = "move-failed/"

TRIES_MAX = 3
"""What was asked for is given up after so many failures; a server that is emptied is tried for ever."""

_FREE = frozenset({Step.SAME_AFFINITY, Step.PRISTINE, Step.RELAXED})
_SHARED = _FREE | {Step.OVER_SUBSCRIBE}
_OCCASIONS = (
    ResidentsSwitched,
    SwitchFailed,
    JobFinished,
    JobFailed,
    JobKilled,
    JobLearned,
    GangBroken,
    GangRefused,
)
"""After these there may be room, or somebody may run who waited for it."""


class Migration(msgspec.Struct, frozen=True):
    """Moves on request.

    Attributes:
        height_max: H_max; 1 where slicing is off.
        pause_s: after a first failure; doubles with each, up to `pause_max_s`.
    """

    height_max: int
    pause_s: float
    pause_max_s: float

    def decide(self, event: object, view: ClusterView) -> Decisions:
        """What `event` means for jobs that are to move."""
        match event:
            case MoveAsked(job_id=job_id, servers=servers):
                yield from _note(view, job_id, servers)
            case GangMoved(job_id=job_id):
                yield from _forget(view, job_id)
            case MoveFailed(job_id=job_id):
                yield from self._failed(view, job_id)
            case ServerJoined() | ServerLost():
                yield from _note_emptied(view)
            case TimerFired(key=key) if key != MOVES:
                return
            case TimerFired():
                pass
            case _ if not isinstance(event, _OCCASIONS):
                return
        if MOVES in view.memory or EMPTIED in view.memory:
            yield from self._try_all(view)

    def _failed(self, view: ClusterView, job_id: JobId) -> Decisions:
        tries = view.memory.get(_FAILED + job_id, {}).get("tries", 0.0) + 1.0
        if tries >= TRIES_MAX and not _is_emptied(view, view.jobs[job_id]):
            yield from _forget(view, job_id)
            return
        yield Remember(_FAILED + job_id, {"tries": tries})
        until_s = view.now_s + min(self.pause_max_s, self.pause_s * 2.0 ** min(tries - 1.0, 16.0))
        yield Remember(MOVES, {**view.memory.get(MOVES, {}), job_id: until_s})
        due_s = view.wakes.get(MOVES)
        if due_s is None or due_s > until_s:
            yield WakeAt(MOVES, until_s)

    def _try_all(self, view: ClusterView) -> Decisions:
        wishes = view.memory.get(MOVES, {})
        for name in [name for name in wishes if JobId(name) not in view.jobs]:
            yield from _forget(view, JobId(name))
        wishes = dict(view.memory.get(MOVES, {}))
        for job_id in dict.fromkeys([*map(JobId, wishes), *_on_emptied(view)]):
            if view.now_s >= wishes.get(job_id, view.now_s):
                yield from self._try(view, view.jobs[job_id])
        later = [at_s for at_s in wishes.values() if at_s > view.now_s]
        if later and MOVES not in view.wakes:
            yield WakeAt(MOVES, min(later))

    def _try(self, view: ClusterView, job: JobView) -> Decisions:
        job_id = job.spec.job_id
        if job.phase is not JobPhase.RUNNING or view.why_fixed(job_id) is not None:
            return
        purpose = "drain" if _is_emptied(view, job) else "asked"
        for servers, can_stop in self._places(view, job):
            seats = _seats(view, job, servers, can_stop=can_stop)
            if seats is None:
                continue
            bindings, victims = seats
            verdict = yield Migrate(job_id, servers, bindings, purpose, tuple(victims))
            if verdict.accepted:
                return
            yield from self._failed(view, job_id)
            return

    def _places(
        self, view: ClusterView, job: JobView
    ) -> Iterator[tuple[tuple[ServerId, ...], bool]]:
        """Servers to try, and whether somebody may be stopped there."""
        named = _target(view, job.spec.job_id)
        if named:
            yield named, True
            return
        closed = _closed(view)
        if not _is_emptied(view, job):
            closed |= frozenset(job.servers)
        for steps, height in ((_FREE, 1), (_SHARED, self.height_max)):
            found = elsewhere(view, job.spec, height, steps=steps, closed=closed)
            if found is not None:
                yield found.servers, height > 1


def _seats(
    view: ClusterView, job: JobView, servers: Sequence[ServerId], *, can_stop: bool
) -> tuple[tuple[Binding, ...], list[JobId]] | None:
    """Devices on each server, and who has to stop for them; None where there are too few."""
    bindings: list[Binding] = []
    victims: list[JobId] = []
    for server_id, count in shares_of(job.spec.workers, servers).items():
        server = view.servers[server_id]
        free = free_mask(server.holders, server.claims) & ((1 << server.server.gpus) - 1)
        for other in _stoppable(view, job, server_id) if can_stop else ():
            if free.bit_count() >= count:
                break
            victims.append(other.spec.job_id)
            free |= mask_of(other.bindings[0].gpus)
        mask = choose(server.server, free, count, 0)
        if mask is None:
            return None
        bindings.append(Binding(server_id, gpus_of(mask)))
    return tuple(bindings), victims


def _stoppable(view: ClusterView, job: JobView, server_id: ServerId) -> list[JobView]:
    """Running residents of one server alone, of no higher class (G-34), who ran longest first."""
    others = (view.jobs[job_id] for job_id in view.servers[server_id].residents)
    found = [
        other
        for other in others
        if other.phase is JobPhase.RUNNING
        and len(other.bindings) == 1
        and other.spec.priority_class <= job.spec.priority_class
        and view.can_suspend(other.spec.job_id)
    ]
    return sorted(found, key=lambda other: (other.run_since_s or 0.0, other.sequence))


def _closed(view: ClusterView) -> frozenset[ServerId]:
    """Servers where nothing could take a job over."""
    kinds = (kind for kind in view.kinds if not kind[0].server.can_suspend)
    return frozenset(member.server.server_id for kind in kinds for member in kind)


def _target(view: ClusterView, job_id: JobId) -> tuple[ServerId, ...]:
    by_rank = (name.partition("/") for name in view.memory.get(_TO + job_id, {}))
    return tuple(ServerId(server) for _, _, server in sorted(by_rank, key=lambda n: int(n[0])))


def _on_emptied(view: ClusterView) -> Iterator[JobId]:
    for server_id in view.memory.get(EMPTIED, {}):
        server = view.servers.get(ServerId(server_id))
        yield from () if server is None else server.residents


def _is_emptied(view: ClusterView, job: JobView) -> bool:
    emptied = view.memory.get(EMPTIED, {})
    return any(server_id in emptied for server_id in job.servers)


def _note(view: ClusterView, job_id: JobId, servers: Sequence[ServerId]) -> Iterator[Decision]:
    to = {f"{rank}/{server_id}": 1.0 for rank, server_id in enumerate(servers)}
    yield Remember(_TO + job_id, to)
    yield Remember(_FAILED + job_id, {})
    yield Remember(MOVES, {**view.memory.get(MOVES, {}), job_id: view.now_s})


def _note_emptied(view: ClusterView) -> Iterator[Decision]:
    emptied = {
        str(member.server.server_id): 1.0
        for kind in view.kinds
        if kind[0].server.is_draining
        for member in kind
    }
    if emptied != dict(view.memory.get(EMPTIED, {})):
        yield Remember(EMPTIED, emptied)


def _forget(view: ClusterView, job_id: JobId) -> Iterator[Decision]:
    left = {name: at_s for name, at_s in view.memory.get(MOVES, {}).items() if name != job_id}
    for key in (_TO + job_id, _FAILED + job_id):
        if key in view.memory:
            yield Remember(key, {})
    if MOVES in view.memory and left != dict(view.memory[MOVES]):
        yield Remember(MOVES, left)
