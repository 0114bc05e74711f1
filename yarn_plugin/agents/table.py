"""Who runs when nobody decides: a node's residents in turn, for the time that the core is away (DESIGN §4). Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gandiva_core.messages.agents import RunWorker


class Resident(msgspec.Struct, frozen=True):
    """A job with all of its workers on one node.

    Attributes:
        workers: (container id, GPUs), in rank order.
        stays: it cannot be stopped; it has its devices in every quantum.
    """

    workers: tuple[tuple[str, int], ...]
    stays: bool = False

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
    turning = [r for r in residents if not r.stays and r.gpus <= len(devices)]
    quanta: list[tuple[RunWorker, ...]] = []
    start = 0
    while turning and (not quanta or start):
        chosen, start = _quantum(staying, turning, start, len(devices))
        quanta.append(_seated(chosen, devices))
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


def _seated(chosen: Sequence[Resident], devices: Sequence[int]) -> tuple[RunWorker, ...]:
    free = list(devices)
    runs: list[RunWorker] = []
    for resident in chosen:
        for container, gpus in resident.workers:
            runs.append(RunWorker(container, tuple(free[:gpus])))
            free = free[gpus:]
    return tuple(runs)
