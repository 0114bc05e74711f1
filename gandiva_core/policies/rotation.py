"""One boundary of a domain: who runs next and on which devices (G-32, G-35)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gandiva_core.messages.decisions import Run, Switch
from gandiva_core.model.job import JobPhase
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import ServerId
from gandiva_core.model.view import ClusterView, ServerView
from gandiva_core.policies.devices import choose, free_mask, gpus_of
from gandiva_core.policies.limits import RunningRoom, binds
from gandiva_core.policies.roster import Seat, ranked, settle

_RUNNING = JobPhase.RUNNING

Masks = dict[int, int]
"""Position of a server in the domain to a mask of its devices."""


class Floor:
    """The devices of a domain at one moment."""

    def __init__(self, view: ClusterView, ids: Sequence[ServerId]) -> None:
        self.view = view
        self.ids = ids
        self.servers: tuple[ServerView, ...] = tuple([view.servers[i] for i in ids])
        self.present = [(1 << server.server.gpus) - 1 for server in self.servers]
        #: A device that is gone stays listed while its last user runs.
        self.free = [
            free_mask(server.holders, server.claims) & present
            for server, present in zip(self.servers, self.present, strict=True)
        ]
        self.devices = sum([server.server.gpus for server in self.servers])

    def open_counts(self, seats: Sequence[Seat]) -> list[int]:
        """Devices that could be given away, by server: free ones and those of running gangs that may be stopped."""
        if any(seat.is_pinned for seat in seats):
            jobs = self.view.jobs
            counts = [
                sum(
                    server.claims[gpu] is None
                    and ((holder := server.holders[gpu]) is None or jobs[holder].phase is _RUNNING)
                    for gpu in range(server.server.gpus)
                )
                for server in self.servers
            ]
        else:
            counts = [server.server.gpus for server in self.servers]
        return _without(counts, [s for s in seats if s.is_staying and not s.is_pinned])

    def limits(self, seats: Sequence[Seat], *, can_stop: bool) -> RunningRoom | None:
        """Queue limits, where they could matter here."""
        running = [(seat.queue, seat.gpus if seat.is_running else 0) for seat in seats]
        if not binds(self.view, running, self.devices):
            return None
        leaving = [
            (seat.queue, seat.gpus) for seat in seats if seat.is_running and not seat.is_staying
        ]
        return RunningRoom(self.view, leaving if can_stop else ())


def _without(counts: list[int], staying: Sequence[Seat]) -> list[int]:
    """Device counts less those of gangs that keep theirs."""
    for seat in staying:
        for at, count in seat.shares:
            counts[at] = max(0, counts[at] - count)
    return counts


def rotate(floor: Floor, seats: Sequence[Seat], quantum_s: float) -> Switch | None:
    """What to change at a boundary, given credits struck now; None for nothing.

    Afterwards the seats show what is foreseen for the next boundary: remember balances before.
    """
    room = floor.limits(seats, can_stop=True)
    chosen = pick(ranked(seats, quantum_s), floor.open_counts(seats), room)
    chosen.update(seat for seat in seats if seat.is_staying and seat.is_running)
    leaving = [seat for seat in seats if seat.is_running and seat not in chosen]
    entering = [seat for seat in seats if seat in chosen and not seat.is_running]
    if not leaving and not entering:
        return None
    free = list(floor.free)
    for seat in leaving:
        for at, mask in seat.masks(floor.ids).items():
            free[at] |= mask & floor.present[at]
    runs = seat_gangs(floor, entering, free)
    if room is not None:
        runs = room.without_excess(runs, floor.servers)
    prepare = _foresee(floor, seats, chosen, runs, free, quantum_s)
    return Switch(tuple([seat.job_id for seat in leaving]), tuple(runs), tuple(prepare))


def pick(order: Sequence[Seat], open_counts: list[int], room: RunningRoom | None) -> set[Seat]:
    """Greedily, whole gangs only, while they fit on every server they span; smaller ones fill gaps behind larger."""
    chosen: set[Seat] = set()
    left = sum(open_counts)
    for seat in order:
        if seat.gpus > left or seat.is_pinned or seat.is_staying:
            continue
        shares = seat.shares
        if len(shares) == 1:
            at, count = shares[0]
            if count > open_counts[at]:
                continue
        elif any(count > open_counts[at] for at, count in shares):
            continue
        if room is not None and not room.take(seat.queue, seat.gpus):
            continue
        for at, count in shares:
            open_counts[at] -= count
        left -= seat.gpus
        chosen.add(seat)
    return chosen


def seat_gangs(floor: Floor, entering: Sequence[Seat], free: list[int]) -> list[Run]:
    """Give devices, largest gang first; `free` is used up on the way."""
    runs: list[Run] = []
    for seat in sorted(entering, key=_largest_first):
        last = seat.masks(floor.ids)
        bindings: list[Binding] = []
        for at, count in seat.shares:
            mask = choose(floor.servers[at].server, free[at], count, last.get(at, 0))
            if mask is None:
                break
            free[at] &= ~mask
            bindings.append(Binding(floor.ids[at], gpus_of(mask)))
        else:
            runs.append(Run(seat.job_id, tuple(bindings)))
    return runs


def _largest_first(seat: Seat) -> tuple[int, int]:
    return (-seat.gpus, seat.job.sequence)


def _foresee(
    floor: Floor,
    seats: Sequence[Seat],
    chosen: set[Seat],
    runs: Sequence[Run],
    free: list[int],
    quantum_s: float,
) -> list[Run]:
    """Devices at the next boundary for gangs that will move, if nothing happens in between (G-35).

    It is checked again then by computing everything anew; the agent may set up the new device meanwhile.
    """
    now_s = floor.view.now_s
    for seat in seats:
        seat.credit += seat.share * quantum_s
        if seat in chosen:
            seat.credit -= quantum_s
            seat.rested_at = math.inf
        elif seat.is_running:
            seat.rested_at = now_s
        seat.is_staying = seat.is_staying or (seat.is_kept and seat in chosen)
    settle(seats)
    staying = [seat for seat in seats if seat.is_staying]
    counts = _without([server.server.gpus for server in floor.servers], staying)
    following = pick(ranked(seats, quantum_s), counts, None).union(staying)
    given = {run.job_id: run.bindings for run in runs}
    for seat in seats:
        if seat in chosen and seat not in following:
            for at, mask in seat.masks(floor.ids, given.get(seat.job_id)).items():
                free[at] |= mask & floor.present[at]
    entering = [seat for seat in seats if seat in following and seat not in chosen]
    foreseen = seat_gangs(floor, entering, free)
    jobs = floor.view.jobs
    return [run for run in foreseen if _is_elsewhere(run, jobs[run.job_id].bindings)]


def _is_elsewhere(run: Run, last: tuple[Binding, ...]) -> bool:
    """Whether a gang that has devices to come back to will come back to others."""
    return bool(last) and run.bindings != last
