"""What is due when: one heap for the whole world, with a stated order at equal times (C-6)."""

from __future__ import annotations

import heapq
from enum import IntEnum


class Due(IntEnum):
    """What happens, in the order it happens at one instant: work done, then devices, then reports, then newcomers."""

    JOB = 0
    """A job reaches a milestone or its end."""
    STOP = 1
    """A split gang stops computing: its servers' networks have one user less."""
    START = 2
    """A split gang starts computing."""
    FAULT = 3
    MOVING = 4
    """A move has warmed up, or is done."""
    SWITCHED = 5
    TIMER = 6
    ARRIVAL = 7


Entry = tuple[float, Due, int]
"""(time in s, what, number of the job, move, switch, timer, fault or arrival)."""


class Agenda:
    """Entries by time, kind and number; the same entries come out in the same order, whoever put them in first."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, at_s: float, due: Due, number: int) -> None:
        """Note an entry."""
        heapq.heappush(self._heap, (at_s, due, number))

    def peek(self) -> Entry | None:
        """The next entry, left where it is."""
        return self._heap[0] if self._heap else None

    def pop(self) -> Entry:
        """Take the next entry."""
        return heapq.heappop(self._heap)
