"""Time-slicing: weighted round robin over slicing domains with one common boundary each (G-30 to G-36).

Key of everything about a domain is ``slice/`` and its first server: the boundary timer, and the remembered balances.
A domain is sliced while some server of it that can suspend has more GPUs asked for than it has. Between boundaries
free devices are filled at once, which never suspends anybody and leaves the boundary where it is. A gang that may not
be stopped (`ClusterView.can_suspend`) goes first inside its class, and keeps its devices from then on.

A boundary that changes something does not know the next one yet: that is the latest real start plus Q (G-33). Until
the switch is answered the timer stands at twice Q, which no answered boundary can have, and which rotates the others
should the answer never come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from gandiva_core.messages.decisions import Remember, Switch, WakeAt
from gandiva_core.messages.events import (
    GangBroken,
    GangCommitted,
    GangMoved,
    GangRefused,
    JobAdopted,
    JobFailed,
    JobFinished,
    JobHeld,
    JobKilled,
    JobLearned,
    JobMoved,
    JobReleased,
    MoveFailed,
    QueuesConfigured,
    ResidentsSwitched,
    ServerJoined,
    ServerLost,
    SwitchFailed,
    TimerFired,
)
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView, Memory, ServerView
from gandiva_core.policies.favour import tiers
from gandiva_core.policies.roster import (
    SINCE,
    Seat,
    balances,
    grant_shares,
    is_seated,
    ranked,
    seats_of,
    strike,
)
from gandiva_core.policies.rotation import Floor, pick, rotate, seat_gangs
from gandiva_core.policies.turns import (
    CALLED,
    TURN,
    is_called,
    next_turn,
    partitions_with_turns,
    waiting_in_turns,
)

SLICE = "slice/"

_SUSPENDING = JobPhase.SUSPENDING
_RESUMING = JobPhase.RESUMING

Ids = tuple[ServerId, ...]


class TimeSlice(msgspec.Struct, frozen=True):
    """Who runs on servers that have more residents than GPUs; also the first start of everybody.

    Attributes:
        quantum_s: Q (G-30).
    """

    quantum_s: float

    def decide(self, event: object, view: ClusterView) -> Decisions:
        """What `event` means for jobs that have a server; no generator itself, so that a quantum costs no layers."""
        match event:
            case TimerFired(key=key) if key.startswith(SLICE):
                return self._turn(view, ServerId(key.removeprefix(SLICE)))
            case TimerFired(key=key) if key.startswith(TURN):
                return self._call(view, key.removeprefix(TURN))
            case ResidentsSwitched(stopped=stopped, started=started):
                return self._answered(view, [*stopped, *started])
            case SwitchFailed(kept=kept, not_started=not_started):
                return self._answered(view, [(job_id, event.at_s) for job_id in kept + not_started])
            case (
                GangCommitted(job_id=job_id)
                | JobAdopted(job=JobSpec(job_id=job_id))
                | JobReleased(job_id=job_id)
            ):
                return self._joined(view, job_id)
            case JobHeld(job_id=job_id) | GangMoved(job_id=job_id) | MoveFailed(job_id=job_id):
                return self._settled(view, job_id)
            case (
                JobFinished()
                | JobFailed()
                | JobKilled()
                | GangBroken()
                | GangRefused()
                | ServerLost()
                | ServerJoined()
                | JobMoved()
                | QueuesConfigured()
                | JobLearned()
            ):
                return self._look_everywhere(view)
        return _nothing()

    # ------------------------------------------------------------------ at a boundary

    def _turn(self, view: ClusterView, first: ServerId) -> Decisions:
        """The boundary of the domain that begins with `first`, if there is still such a domain and it is sliced."""
        if first not in view.servers:
            yield from _forget(view, SLICE + first)
            return
        ids = view.domain(first)
        book = view.memory.get(SLICE + ids[0])
        if ids[0] != first or book is None or not _is_sliced([view.servers[i] for i in ids]):
            yield from self._tend(view, ids)
            return
        floor = Floor(view, ids)
        seats = self._struck(view, floor, (book,))
        now_s = view.now_s
        remembered = balances(seats, now_s)
        is_waiting = any(seat.is_awaited for seat in seats)
        switch = rotate(floor, seats, self.quantum_s)
        if switch is not None:
            yield switch
            is_waiting = True
        yield Remember(SLICE + first, remembered)
        yield WakeAt(SLICE + first, now_s + (2.0 if is_waiting else 1.0) * self.quantum_s)

    def _struck(self, view: ClusterView, floor: Floor, books: Iterable[Memory]) -> list[Seat]:
        seats = seats_of(view, floor.servers)
        _grant(view, seats, floor.servers)
        strike(seats, books, view.now_s)
        if view.queues:
            for seat in seats:
                seat.is_called = is_called(view, seat)
        return seats

    # ------------------------------------------------------------------ between boundaries

    def _answered(self, view: ClusterView, named: Sequence[tuple[JobId, float]]) -> Decisions:
        """A switch was answered: the quantum of its domain begins, and what became free is filled."""
        seen: set[ServerId] = set()
        for job_id, _ in named:
            job = view.jobs.get(job_id)
            if job is None or not job.servers:
                continue
            yield from self._held(view, job_id)
            ids = view.domain(job.servers[0])
            if ids[0] in seen:
                continue
            seen.add(ids[0])
            servers = [view.servers[i] for i in ids]
            if _has_idle(servers) or not _is_sliced(servers):
                yield from self._tend(view, ids)
            else:
                yield from self._begin_quantum(view, ids, servers)
        yield from self._pass_on(view)

    def _begin_quantum(
        self, view: ClusterView, ids: Ids, servers: Sequence[ServerView]
    ) -> Decisions:
        """Once nobody is on the way any more, the boundary is Q after the latest real start (G-33)."""
        key = SLICE + ids[0]
        book = view.memory.get(key)
        if book is None or view.wakes.get(key) != book[SINCE] + 2.0 * self.quantum_s:
            return
        jobs = view.jobs
        latest_s = book[SINCE]
        for server in servers:
            for job_id in server.residents:
                job = jobs[job_id]
                phase = job.phase
                if phase is _RESUMING or phase is _SUSPENDING:
                    return
                since_s = job.run_since_s
                if since_s is not None and since_s > latest_s:
                    latest_s = since_s
        yield WakeAt(key, max(view.now_s, latest_s + self.quantum_s))

    def _joined(self, view: ClusterView, job_id: JobId) -> Decisions:
        """A gang's containers are there."""
        job = view.jobs.get(job_id)
        if job is not None and job.servers:
            yield from self._tend(view, view.domain(job.servers[0]))
            yield from self._watch_turns(view)

    def _held(self, view: ClusterView, job_id: JobId) -> Decisions:
        """Who is held stops now; who is still on its way stops once it runs."""
        job = view.jobs[job_id]
        if job.is_held and job.phase is JobPhase.RUNNING and view.can_suspend(job_id):
            yield Switch(suspend=(job_id,))

    def _settled(self, view: ClusterView, job_id: JobId) -> Decisions:
        """A gang is held, or has moved, or has not: what it does not have any more is for others."""
        yield from self._held(view, job_id)
        yield from self._look_everywhere(view)

    def _look_everywhere(self, view: ClusterView) -> Decisions:
        """After a departure, whose servers nobody names any more: every domain that has something to do."""
        seen: set[ServerId] = set()
        for server_id in _unsettled(view):
            ids = view.domain(server_id)
            if ids[0] not in seen:
                seen.add(ids[0])
                yield from self._tend(view, ids)
        yield from self._pass_on(view)
        yield from self._watch_turns(view)

    # ------------------------------------------------------------------ turns of a queue at its limit

    def _watch_turns(self, view: ClusterView) -> Decisions:
        """A queue that has more residents than it may run takes turns from now on."""
        for partition in partitions_with_turns(view):
            if TURN + partition not in view.wakes:
                yield WakeAt(TURN + partition, view.now_s + self.quantum_s)

    def _call(self, view: ClusterView, partition: str) -> Decisions:
        """Whose turn it is now; those that yield are stopped, those that are called start as room is given up."""
        turn = next_turn(view, partition, self.quantum_s)
        if turn is None:
            yield from _forget(view, TURN + partition)
            yield from _forget(view, CALLED + partition)
            yield from self._look_everywhere(view)
            return
        yield Remember(TURN + partition, turn.book)
        yield Remember(CALLED + partition, turn.called)
        leaving: dict[ServerId, list[JobId]] = {}
        for job_id in turn.leaving:
            first = view.domain(view.jobs[job_id].servers[0])[0]
            leaving.setdefault(first, []).append(job_id)
        for yielding in leaving.values():
            yield Switch(suspend=tuple(yielding))
        yield from self._pass_on(view)
        yield WakeAt(TURN + partition, view.now_s + self.quantum_s)

    def _pass_on(self, view: ClusterView) -> Decisions:
        """What queues at their limits may run goes to whoever is called, and only then to others of them."""
        for is_spare in (False, True):
            for ids in waiting_in_turns(view, is_called_now=not is_spare):
                if _has_idle([view.servers[i] for i in ids]):
                    yield from self._tend(view, ids, is_spare=is_spare)

    # ------------------------------------------------------------------ one domain

    def _tend(self, view: ClusterView, ids: Ids, *, is_spare: bool = False) -> Decisions:
        """Start, keep or end the slicing of a domain, and fill its free devices."""
        floor = Floor(view, ids)
        if _is_sliced(floor.servers):
            yield from self._keep_books(view, floor)
            yield from self._begin_quantum(view, ids, floor.servers)
        else:
            for server_id in ids:
                yield from _forget(view, SLICE + server_id)
        if any(floor.free):
            yield from self._fill(view, floor, is_spare=is_spare)

    def _keep_books(self, view: ClusterView, floor: Floor) -> Decisions:
        """Every resident of a sliced domain has a balance, in one book, and a boundary is set."""
        key = SLICE + floor.ids[0]
        book = view.memory.get(key)
        others = [SLICE + i for i in floor.ids[1:] if SLICE + i in view.memory]
        is_set = book is not None and key in view.wakes
        if is_set and book is not None and not others and _are_in(book, view, floor.servers):
            return
        seats = seats_of(view, floor.servers)
        books = [view.memory[k] for k in [key, *others] if k in view.memory]
        books = books or _books_of(view, seats)
        # Newcomers start at 0, and the shares before they came count: what was earned was earned among the others.
        old = [seat for seat in seats if any(seat.job_id in known for known in books)]
        _grant(view, old, floor.servers)
        strike(old, books, view.now_s)
        for other in others:
            yield Remember(other, {})
        due_s = view.wakes.get(key)
        was_waiting = book is not None and due_s == book[SINCE] + 2.0 * self.quantum_s
        yield Remember(key, balances(seats, view.now_s))
        if not is_set or due_s is None:
            yield WakeAt(key, self._first_boundary_s(view, seats))
        elif was_waiting:
            yield WakeAt(key, view.now_s + 2.0 * self.quantum_s)

    def _first_boundary_s(self, view: ClusterView, seats: Iterable[Seat]) -> float:
        """Of a newly sliced domain: Q after the latest real start, which may be still to come."""
        latest_s = -self.quantum_s
        for seat in seats:
            if seat.is_awaited:
                return view.now_s + 2.0 * self.quantum_s
            if seat.job.run_since_s is not None:
                latest_s = max(latest_s, seat.job.run_since_s)
        return max(view.now_s, latest_s + self.quantum_s)

    def _fill(self, view: ClusterView, floor: Floor, *, is_spare: bool) -> Decisions:
        """Work conservation: whoever waits and fits on free devices starts now (G-32's order).

        Those whose turn it is not only where there is room to spare.
        """
        book = view.memory.get(SLICE + floor.ids[0])
        seats = self._struck(view, floor, () if book is None else (book,))
        waiting = [
            seat
            for seat in seats
            if not seat.is_running and not seat.is_pinned and (is_spare or seat.is_called)
        ]
        if not waiting:
            return
        counts = [mask.bit_count() for mask in floor.free]
        room = floor.limits(seats, can_stop=False)
        chosen = pick(ranked(waiting, self.quantum_s), counts, room)
        entering = [seat for seat in waiting if seat in chosen]
        if entering:
            yield Switch(run=tuple(seat_gangs(floor, entering, list(floor.free))))


def _grant(view: ClusterView, seats: Sequence[Seat], servers: Sequence[ServerView]) -> None:
    """Shares as G-31 has them, or as guarantees demand while a queue here lacks what it is entitled to."""
    served = tiers(view, [seat.queue for seat in seats]) if view.queues else None
    grant_shares(seats, servers, served)


def _is_sliced(servers: Iterable[ServerView]) -> bool:
    """More asked for than there is, where somebody could be stopped for it; elsewhere who waits waits for an end."""
    return any(
        server.allocated > server.server.gpus and server.server.can_suspend for server in servers
    )


def _unsettled(view: ClusterView) -> Sequence[ServerId]:
    """Servers, by id, that are or may become sliced, or on which somebody waits beside a free device.

    Tending one domain changes no other, so the list holds while its members are tended. Servers without residents,
    most of a large cluster that is not full, cost one look a kind.
    """
    servers = view.servers
    booked = (ServerId(key.removeprefix(SLICE)) for key in view.memory if key.startswith(SLICE))
    found = {server_id for server_id in booked if server_id in servers}
    for kind in view.kinds:
        first = kind[0]
        if not first.residents:
            continue
        gpus, allocated = first.server.gpus, first.allocated
        for server in kind:
            if allocated > gpus or gpus - allocated < server.holders.count(None):
                found.add(server.server.server_id)
    return sorted(found)


def _are_in(book: Memory, view: ClusterView, servers: Iterable[ServerView]) -> bool:
    """Whether a book has every resident whose containers are there; asked of each domain after each departure."""
    return all(
        job_id in book or not is_seated(view.jobs[job_id])
        for server in servers
        for job_id in server.residents
    )


def _has_idle(servers: Iterable[ServerView]) -> bool:
    return any(None in server.holders for server in servers)


def _books_of(view: ClusterView, seats: Iterable[Seat]) -> list[Memory]:
    """Books of another domain that these gangs were part of until it fell apart."""
    ids = [seat.job_id for seat in seats if seat.job.phase is not JobPhase.STARTING]
    return [
        book
        for key, book in view.memory.items()
        if key.startswith(SLICE) and any(job_id in book for job_id in ids)
    ]


def _nothing() -> Decisions:
    yield from ()


def _forget(view: ClusterView, key: str) -> Decisions:
    if key in view.memory:
        yield Remember(key, {})
