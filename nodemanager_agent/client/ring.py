"""The step ring: a small mmap file in which a rank writes its mini-batches, for others to read without asking.

Layout, little endian: ``magic, slots, minibatches, memory, memory peak, memory min`` (u64, memory in bytes, 0 for not
known), ``utilisation`` (f64, below 0 for not known), then slots of ``number u64, at_s f64 (CLOCK_MONOTONIC), gap u64``.
The slot is written before the count, so a reader never takes a slot that is not whole; one overwritten while it reads
does not carry the number it looks for.
"""

import mmap
import os
import statistics
import struct
import time
from typing import List, NamedTuple, Optional, Tuple

MAGIC = 0x474E445652494E48
SLOTS = 64
CYCLES = 10
"""Cycles of the median, and how many are dropped after an event (SPEC G-51)."""
DROPPED = 2

_HEAD = struct.Struct("<QQQQQQd")
_SLOT = struct.Struct("<QdQ")
_BYTES = _HEAD.size + SLOTS * _SLOT.size


class Memory(NamedTuple):
    """Device memory of a rank in bytes: at the last boundary, the peak, and the minimum of the last cycles (G-41)."""

    used: int
    peak: int
    minimum: int


class StepRing:
    """Written by one rank.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._minibatches = 0
        self._gap = 1
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, _BYTES)
            self._map = mmap.mmap(file, _BYTES)
        finally:
            os.close(file)
        _HEAD.pack_into(self._map, 0, MAGIC, SLOTS, 0, 0, 0, 0, -1.0)

    def step(self, at_s: float) -> int:
        """One more mini-batch is done; how many that makes."""
        self._minibatches += 1
        slot = _HEAD.size + self._minibatches % SLOTS * _SLOT.size
        _SLOT.pack_into(self._map, slot, self._minibatches, at_s, self._gap)
        struct.pack_into("<Q", self._map, 16, self._minibatches)
        self._gap = 0
        return self._minibatches

    def go_on(self, minibatches: int) -> None:
        """So many were done elsewhere."""
        self._minibatches = minibatches
        struct.pack_into("<Q", self._map, 16, minibatches)
        self._gap = 1

    def remember(self, memory: Memory) -> None:
        """Device memory as it is now."""
        struct.pack_into("<QQQ", self._map, 24, *memory)

    def note_use(self, utilisation_ratio: Optional[float]) -> None:
        """How much of its mini-batches is computed on the device; None for not known."""
        struct.pack_into(
            "<d", self._map, 48, -1.0 if utilisation_ratio is None else utilisation_ratio
        )

    def gap(self) -> None:
        """A suspend, move or resize lies between the last mini-batch and the next: that cycle counts for nothing."""
        self._gap = 1


class RingReader:
    """Reads another process's ring.

    Raises:
        OSError, ValueError: there is no such file, or it is no ring.
    """

    def __init__(self, path: str) -> None:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._map = mmap.mmap(file, _BYTES, access=mmap.ACCESS_READ)
        finally:
            os.close(file)
        if _HEAD.unpack_from(self._map, 0)[0] != MAGIC:
            raise ValueError("{} is no step ring".format(path))

    @property
    def minibatches(self) -> int:
        """Mini-batches done."""
        return int(_HEAD.unpack_from(self._map, 0)[2])

    @property
    def memory(self) -> Optional[Memory]:
        """Device memory; None where the rank has not looked yet."""
        memory = Memory(*_HEAD.unpack_from(self._map, 0)[3:6])
        return memory if any(memory) else None

    @property
    def utilisation_ratio(self) -> Optional[float]:
        """As `StepRing.note_use`."""
        ratio = float(_HEAD.unpack_from(self._map, 0)[6])
        return ratio if ratio >= 0 else None

    def minibatch_s(self) -> Optional[float]:
        """Median of the last ten cycles, two dropped after a start or a suspend (G-51); None while there is none."""
        last = self.minibatches
        cycles: List[float] = []
        later: Optional[float] = None
        for number in range(last, max(0, last - SLOTS + 1), -1):
            at_s, gap = self._slot(number)
            if at_s is None:
                break
            if later is not None:
                cycles.append(later - at_s)
            later = at_s
            if gap:
                cycles = cycles[: max(0, len(cycles) - DROPPED)]
                break
        return statistics.median(cycles[:CYCLES]) if cycles else None

    def idle_s(self) -> Optional[float]:
        """Since the last mini-batch; None before the first."""
        at_s, _ = self._slot(self.minibatches)
        return None if at_s is None else time.monotonic() - at_s

    def _slot(self, number: int) -> Tuple[Optional[float], int]:
        there, at_s, gap = _SLOT.unpack_from(self._map, _HEAD.size + number % SLOTS * _SLOT.size)
        return (at_s if number and there == number else None), gap
