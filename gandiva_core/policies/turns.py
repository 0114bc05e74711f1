"""Turns inside a queue that has more residents than it may run, over all the domains that they live in (DESIGN §4).

A slicing domain rotates among its own residents and knows nothing of others. A queue at M_q with residents in several
domains would run for ever where it ran first. So such queues take turns too: once a quantum all their residents are
ranked by a credit of their own, for which the queue is a server with M_q devices, and as many as may run are *called*;
the others yield, where they run, and run again only on devices and within limits that nobody called can use.

Remembered under ``turn/PARTITION`` the balances behind the credits, and under ``called/PARTITION`` for each resident of
such a queue 1 where it is called, 0 where not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, QueueKey, ServerId
from gandiva_core.model.view import ClusterView, Memory, QueueView
from gandiva_core.policies.limits import key_of
from gandiva_core.policies.roster import Seat, balances, ranked, seats_of, strike
from gandiva_core.policies.rotation import Floor, pick
from gandiva_core.policies.shares import fill

TURN = "turn/"
CALLED = "called/"

_WAITING = frozenset({JobPhase.STARTING, JobPhase.SUSPENDED})


class Turn(msgspec.Struct, frozen=True):
    """Whose turn it is in one partition.

    Attributes:
        called: for each resident of a queue at its limit 1, or 0 where it has to wait.
        book: balances to remember.
        leaving: running jobs that yield.
    """

    called: Mapping[str, float]
    book: Mapping[str, float]
    leaving: tuple[JobId, ...]


def partitions_with_turns(view: ClusterView) -> list[str]:
    """Partitions in which some queue has more residents than it may run."""
    if not view.queues:
        return []
    return sorted({key[1] for key in _at_limit(view)})


def next_turn(view: ClusterView, partition: str, quantum_s: float) -> Turn | None:
    """Who is called for the next quantum; None where no queue has more residents than it may run."""
    limited = {key: link for key, link in _at_limit(view).items() if key[1] == partition}
    if not limited:
        return None
    floor = Floor(view, sorted(_hosts(view, limited)))
    everybody = seats_of(view, floor.servers)
    seats = [seat for seat in everybody if _tightest(view, seat, limited) is not None]
    _grant(view, seats, limited)
    book = view.memory.get(TURN + partition)
    strike(seats, () if book is None else (book,), view.now_s)
    remembered = balances(seats, view.now_s)
    room = floor.limits(everybody, can_stop=True)
    chosen = pick(ranked(seats, quantum_s), floor.open_counts(everybody), room)
    called = {
        str(seat.job_id): float(seat in chosen or seat.is_staying or seat.is_pinned)
        for seat in seats
    }
    leaving = tuple(seat.job_id for seat in seats if seat.is_running and not called[seat.job_id])
    return Turn(called, remembered, leaving)


def is_called(view: ClusterView, seat: Seat) -> bool:
    """Whether a resident may run as far as turns are concerned."""
    chain = view.chain(*seat.queue)
    if not chain:
        return True
    called = view.memory.get(CALLED + chain[0].limit.partition)
    return called is None or called.get(seat.job_id, 1.0) > 0.0


def waiting_in_turns(view: ClusterView, *, is_called_now: bool) -> Iterator[tuple[ServerId, ...]]:
    """Domains where a resident of a queue at its limit waits for a device: called ones, or those that are not."""
    if not view.queues:
        return
    seen: set[ServerId] = set()
    for called in _books(view):
        for name, value in called.items():
            job = view.jobs.get(JobId(name))
            if (value > 0.0) is not is_called_now or job is None or job.phase not in _WAITING:
                continue
            first = job.servers[0]
            if first in seen or view.headroom(job.spec.queue, job.spec.partition)[0] < 1.0 - 1e-9:
                continue
            ids = view.domain(first)
            seen.update(ids)
            yield ids


def _books(view: ClusterView) -> Sequence[Memory]:
    partitions = sorted({partition for _, partition in view.queues})
    return [
        view.memory[CALLED + partition]
        for partition in partitions
        if CALLED + partition in view.memory
    ]


def _at_limit(view: ClusterView) -> dict[QueueKey, QueueView]:
    """Queues with more residents than they may run; one that may run all that there is needs no turns."""
    over = {
        key: link for key, link in view.queues.items() if link.resident > link.limit.max_gpus + 1e-9
    }
    if not over:
        return {}
    is_all = not any(named for _, named in view.queues)
    gpus: dict[str, int] = {}
    for kind in view.kinds:
        server = kind[0].server
        partition = "" if is_all else server.partition
        gpus[partition] = gpus.get(partition, 0) + server.gpus * len(kind)
    return {
        key: link for key, link in over.items() if link.limit.max_gpus < gpus.get(key[1], 0) - 1e-9
    }


def _hosts(view: ClusterView, limited: Mapping[QueueKey, QueueView]) -> set[ServerId]:
    """Servers where some resident of these queues has a share."""
    chain = view.chain
    return {
        server_id
        for job in view.jobs.values()
        if job.shares
        and any(key_of(link) in limited for link in chain(job.spec.queue, job.spec.partition))
        for server_id in job.shares
    }


def _tightest(
    view: ClusterView, seat: Seat, limited: Mapping[QueueKey, QueueView]
) -> QueueView | None:
    """The queue that leaves a seat the smallest part of the time."""
    links = [link for link in view.chain(*seat.queue) if key_of(link) in limited]
    return min(links, key=_part, default=None)


def _part(link: QueueView) -> float:
    return _devices(link) / link.resident


def _devices(link: QueueView) -> int:
    """Whole devices that a queue may run."""
    return math.floor(link.limit.max_gpus + 1e-9)


def _grant(view: ClusterView, seats: Iterable[Seat], limited: Mapping[QueueKey, QueueView]) -> None:
    """What a queue may run is divided among its residents by weight, as a server's devices are (G-31)."""
    members: dict[QueueKey, list[Seat]] = {}
    for seat in seats:
        link = _tightest(view, seat, limited)
        if link is not None:
            members.setdefault(key_of(link), []).append(seat)
    for key, crowd in members.items():
        claims = tuple([(seat.priority, seat.weight, seat.gpus) for seat in crowd])
        for seat, share in zip(crowd, fill(_devices(limited[key]), claims), strict=True):
            seat.share = 1.0 if seat.is_staying else share
