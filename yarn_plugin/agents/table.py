"""Who runs when nobody decides: a node's residents in turn, for the time that the core is away (DESIGN §4). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gandiva_core.messages.agents import RunWorker


class Resident(msgspec.Struct, frozen=True):
    """A job with all of its workers on one node.

    Attributes:
        workers: (container id, GPUs), in rank order.
        stays: it cannot be stopped; it has its devices in every quantum.
        holds: devices of workers that run, by container id.
    """

    workers: tuple[tuple[str, int], ...]
    stays: bool = False
    holds: Mapping[str, tuple[int, ...]] = {}

    @property
    def gpus(self) -> int:
        """Of the whole gang."""
        return sum(gpus for _, gpus in self.workers)


def rotation(
    residents: Sequence[Resident], devices: Sequence[int]
) -> tuple[tuple[RunWorker, ...], ...]:
    """One entry a quantum, in turn: each takes up where the one before ended, gangs whole, until all had the same.

    Args:
        residents: in the order of their submission.
        devices: indices of those that may be given away.
    """
    staying = [resident for resident in residents if resident.stays]
    room = len(devices) - sum(resident.gpus for resident in staying)
    turning = [r for r in residents if not r.stays and r.gpus <= room]
    quanta: list[tuple[RunWorker, ...]] = []
    last = {name: gpus for resident in residents for name, gpus in resident.holds.items()}
    start = 0
    while turning and (not quanta or start):
        chosen, start = _quantum(staying, turning, start, len(devices))
        quanta.append(_seated(chosen, devices, last))
        if len(quanta) >= len(turning):
            break
    return tuple(quanta)


def _quantum(
    staying: Sequence[Resident], turning: Sequence[Resident], start: int, room: int
) -> tuple[list[Resident], int]:
    """Who runs, and with whom the next quantum begins."""
    chosen = list(staying)
    left = room - sum(resident.gpus for resident in staying)
    following = start
    is_open = True
    for step in range(len(turning)):
        at = (start + step) % len(turning)
        if turning[at].gpus <= left:
            chosen.append(turning[at])
            left -= turning[at].gpus
            following = (at + 1) % len(turning) if is_open else following
        else:
            is_open = False
    return chosen, following


def _seated(
    chosen: Sequence[Resident], devices: Sequence[int], last: dict[str, tuple[int, ...]]
) -> tuple[RunWorker, ...]:
    """Who had devices has the same again, as far as they are free; the others take what is left."""
    free = list(devices)
    seats: dict[str, tuple[int, ...]] = {}
    workers = [worker for resident in chosen for worker in resident.workers]
    for container, gpus in workers:
        had = last.get(container, ())
        if len(had) == gpus and set(had) <= set(free):
            seats[container] = had
            free = [gpu for gpu in free if gpu not in had]
    for container, gpus in workers:
        if container not in seats:
            seats[container], free = tuple(free[:gpus]), free[gpus:]
    last.update(seats)
    return tuple(RunWorker(container, seats[container]) for container, _ in workers)
