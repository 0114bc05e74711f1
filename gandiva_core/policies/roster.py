"""Who lives in a slicing domain, with the account that orders them (G-32).

A credit is what a gang is owed in seconds of running. What is remembered of it between boundaries is its *balance*,
the credit plus all time it had run by then: at any later moment credit = balance + s·elapsed - time run, whoever
stopped late or early.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from gandiva_core.model.job import JobPhase
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, QueueKey, ServerId
from gandiva_core.model.view import ClusterView, JobView, Memory, ServerView
from gandiva_core.policies.devices import mask_of
from gandiva_core.policies.favour import Tier
from gandiva_core.policies.shares import fill, fill_in_tiers

# Looked up once: an enum member costs a call each time, and a boundary asks for dozens.
_RUNNING = JobPhase.RUNNING
_SUSPENDING = JobPhase.SUSPENDING
_RESUMING = JobPhase.RESUMING
_COMMITTING = JobPhase.COMMITTING
_STARTING = JobPhase.STARTING
_SUSPENDED = JobPhase.SUSPENDED
_MIGRATING = JobPhase.MIGRATING

SINCE = ""
"""The name under which a domain's balances say when they were struck; no job id is empty."""


_WHOLE = 1.0 - 1e-9
"""A share of all of the time."""

_STEPS = 64.0
"""Distinguishable credits a quantum."""


class Seat:
    """One resident gang whose containers are there."""

    __slots__ = (
        "credit",
        "gpus",
        "is_awaited",
        "is_called",
        "is_kept",
        "is_pinned",
        "is_running",
        "is_staying",
        "job",
        "job_id",
        "priority",
        "rested_at",
        "share",
        "shares",
        "total_s",
        "weight",
    )

    def __init__(
        self, job: JobView, shares: tuple[tuple[int, int], ...], now_s: float, *, is_kept: bool
    ) -> None:
        spec = job.spec
        self.job = job
        self.job_id: JobId = spec.job_id
        self.shares = shares
        #: (position of a server in the domain, GPUs there).
        self.gpus = shares[0][1] if len(shares) == 1 else sum(count for _, count in shares)
        self.weight = spec.weight
        self.priority = spec.priority_class
        self.credit = 0.0
        self.share = 1.0
        #: s_i: the smallest of its servers' (G-31).
        phase = job.phase
        self.is_running = phase is _RUNNING
        self.is_awaited = phase is _SUSPENDING or phase is _RESUMING
        #: It is about to stop or to start; a boundary counts from then on.
        self.is_pinned = self.is_awaited or phase is _MIGRATING
        #: A command is under way, and a second one must wait for its end (G-11 iv).
        self.is_kept = is_kept
        #: Nobody may stop it once it runs (`ClusterView.can_suspend`).
        self.is_staying = is_kept and (phase is _RUNNING or phase is _RESUMING)
        #: It has its devices for as long as it lives: there is nothing to share of them.
        self.is_called = True
        #: False while it is the turn of others in its queue, which has more residents than it may run (`turns`).
        since_s = job.run_since_s
        self.total_s = job.held_s if since_s is None else job.held_s + (now_s - since_s)
        #: Wall time it ever held its GPUs.
        self.rested_at = math.inf if since_s is not None else _rested_at(job)
        #: When it last stopped; what never ran has rested longest, what runs has not rested.

    @property
    def queue(self) -> QueueKey:
        """Where it counts."""
        spec = self.job.spec
        return spec.queue, spec.partition

    def masks(
        self, servers: Sequence[ServerId], bindings: tuple[Binding, ...] | None = None
    ) -> dict[int, int]:
        """Devices it holds, held last, or is just given in `bindings`: position in the domain to mask."""
        if bindings is None:
            bindings = self.job.bindings
        if len(servers) == 1:
            return {0: mask_of(bindings[0].gpus)} if bindings else {}
        masks: dict[int, int] = {}
        for binding in bindings:
            at = servers.index(binding.server_id) if binding.server_id in servers else -1
            masks[at] = masks.get(at, 0) | mask_of(binding.gpus)
        return masks


def _rested_at(job: JobView) -> float:
    stopped_s = job.last_stopped_at_s
    return -math.inf if stopped_s is None else stopped_s


def is_seated(job: JobView) -> bool:
    """Whether a resident takes part in slicing: its containers are there, and nobody holds it at rest."""
    phase = job.phase
    if job.is_held and (phase is _STARTING or phase is _SUSPENDED):
        return False
    return phase is not _COMMITTING


def seats_of(view: ClusterView, servers: Sequence[ServerView]) -> list[Seat]:
    """Residents that could run, by sequence; without gangs whose containers are only ordered, and held ones."""
    jobs, now_s, can_suspend = view.jobs, view.now_s, view.can_suspend
    if len(servers) == 1:
        return [
            Seat(job, ((0, count),), now_s, is_kept=not can_suspend(job_id))
            for job_id, count in servers[0].residents.items()
            if is_seated(job := jobs[job_id])
        ]
    shares: dict[JobId, list[tuple[int, int]]] = {}
    for at, server in enumerate(servers):
        for job_id, count in server.residents.items():
            shares.setdefault(job_id, []).append((at, count))
    seats = [
        Seat(job, tuple(found), now_s, is_kept=not can_suspend(job_id))
        for job_id, found in shares.items()
        if is_seated(job := jobs[job_id])
    ]
    seats.sort(key=lambda seat: seat.job.sequence)
    return seats


def grant_shares(
    seats: Sequence[Seat],
    servers: Sequence[ServerView],
    tiers: Mapping[QueueKey, Tier] | None = None,
) -> None:
    """Water fill each server; a gang over several gets the smallest of its shares (G-31).

    Who stays has its devices all the time; the others share what is left. While a queue here lacks what it is entitled
    to, `tiers` say whose residents get their entitled time first.
    """
    if tiers is None and len(servers) == 1 and not any(seat.is_staying for seat in seats):
        claims = tuple([(seat.priority, seat.weight, seat.gpus) for seat in seats])
        for seat, share in zip(seats, fill(servers[0].server.gpus, claims), strict=True):
            seat.share = share
        return
    here: list[list[tuple[Seat, int]]] = [[] for _ in servers]
    left = [server.server.gpus for server in servers]
    for seat in seats:
        seat.share = 1.0
        for at, count in seat.shares:
            if seat.is_staying:
                left[at] -= count
            else:
                here[at].append((seat, count))
    for gpus, members in zip(left, here, strict=True):
        claims = tuple([(seat.priority, seat.weight, count) for seat, count in members])
        if tiers is None:
            granted = fill(max(0, gpus), claims)
        else:
            served = tuple([tiers[seat.queue] for seat, _ in members])
            granted = fill_in_tiers(max(0, gpus), claims, served)
        for (seat, _), share in zip(members, granted, strict=True):
            seat.share = min(seat.share, share)


def strike(seats: Sequence[Seat], books: Iterable[Memory], now_s: float) -> None:
    """Work out every credit at `now_s` from the remembered balances; who has none starts at 0 (G-32)."""
    for book in books:
        elapsed_s = now_s - book[SINCE]
        for seat in seats:
            balance = book.get(seat.job_id)
            if balance is not None:
                seat.credit = balance + seat.share * elapsed_s - seat.total_s
    settle(seats)


def settle(seats: Sequence[Seat]) -> None:
    """Take the same per weight from every credit of a class, so that Σ g·credit = 0 and credits stay bounded (G-32)."""
    owed: dict[int, float] = {}
    weights: dict[int, float] = {}
    for seat in seats:
        priority, gpus = seat.priority, seat.gpus
        owed[priority] = owed.get(priority, 0.0) + gpus * seat.credit
        weights[priority] = weights.get(priority, 0.0) + gpus * seat.weight
    for seat in seats:
        priority = seat.priority
        seat.credit -= owed[priority] / weights[priority] * seat.weight


def balances(seats: Sequence[Seat], now_s: float) -> dict[str, float]:
    """What to remember of the credits."""
    book: dict[str, float] = {SINCE: now_s}
    for seat in seats:
        book[seat.job_id] = seat.credit + seat.total_s
    return book


def ranked(seats: Sequence[Seat], quantum_s: float) -> list[Seat]:
    """The order of G-32: class, credit, longest not run, sequence.

    Inside a class first who may not be stopped, then who is to run all of the time: a gang of share 1 that waits for a
    quantum never gets it back. Last of all come those whose turn it is not.

    Credits count in steps of Q/64: a mini-batch's overrun must not decide a tie, or nobody could foresee the next
    boundary (G-35). Nothing is lost, since the rest stays in the balance.
    """
    steps = _STEPS / quantum_s
    keys = [
        (
            not seat.is_called,
            -seat.priority,
            not seat.is_kept,
            seat.share < _WHOLE,
            -round(seat.credit * steps),
            seat.rested_at,
            at,
        )
        for at, seat in enumerate(seats)
    ]
    keys.sort()
    return [seats[key[6]] for key in keys]
