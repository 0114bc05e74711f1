"""A quantity over time in a bounded number of bins, filled as the run goes, whose length nobody knows beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

BINS_MAX = 512


class Series(msgspec.Struct, frozen=True):
    """Values by time, for charts.

    Attributes:
        bin_s: width of a bin; bin i covers [i × bin_s, (i + 1) × bin_s) of virtual time.
        values: one a bin, up to the last that was touched.
    """

    bin_s: float
    values: tuple[float, ...]


class MeanBins:
    """Time-weighted mean of a sum of contributions: ``add(start, end, value)`` says that `value` held in between.

    The bin width starts at one second and doubles, merging neighbours, whenever time runs past
    the last bin. Calls may come in any order, so that a run may be added when it ends.
    """

    def __init__(self) -> None:
        self.bin_s = 1.0
        self._areas = [0.0] * BINS_MAX
        self._end_s = 0.0

    def add(self, start_s: float, end_s: float, value: float) -> None:
        """Add `value` over [start_s, end_s); nothing where the span is empty or the value 0."""
        if end_s <= start_s or value == 0.0:
            return
        self.stretch(end_s)
        width = self.bin_s
        first, last = int(start_s / width), int(end_s / width)
        areas = self._areas
        if first == last:
            areas[first] += (end_s - start_s) * value
            return
        areas[first] += ((first + 1) * width - start_s) * value
        for index in range(first + 1, last):
            areas[index] += width * value
        if last < BINS_MAX:
            areas[last] += (end_s - last * width) * value

    def stretch(self, end_s: float) -> None:
        """Make room up to `end_s`, which also counts as seen."""
        self._end_s = max(self._end_s, end_s)
        while end_s > self.bin_s * BINS_MAX:
            self._areas = merged(self._areas, sum_of_pair)
            self.bin_s *= 2.0

    def series(self, end_s: float, factor: float = 1.0) -> Series:
        """Means up to `end_s`, times `factor`; the last, partly covered bin is divided by what of it was covered."""
        self.stretch(end_s)
        values: list[float] = []
        for index, area in enumerate(self._areas):
            covered_s = min(self.bin_s, self._end_s - index * self.bin_s)
            if covered_s <= 0:
                break
            values.append(area * factor / covered_s)
        return Series(self.bin_s, tuple(values))


class PeakBins:
    """The largest value seen in each bin of a step function, told by its changes in order of time."""

    def __init__(self) -> None:
        self.bin_s = 1.0
        self._peaks = [0.0] * BINS_MAX
        self._last_s = 0.0
        self._value = 0.0

    def change(self, at_s: float, value: float) -> None:
        """From `at_s` on the quantity is `value`."""
        self._carry(at_s)
        self._value = value
        index = min(int(at_s / self.bin_s), BINS_MAX - 1)
        self._peaks[index] = max(self._peaks[index], value)

    def _carry(self, at_s: float) -> None:
        while at_s > self.bin_s * BINS_MAX:
            self._peaks = merged(self._peaks, max_of_pair)
            self.bin_s *= 2.0
        first, last = int(self._last_s / self.bin_s), int(at_s / self.bin_s)
        if last > first and last * self.bin_s == at_s:
            last -= 1  # the old value ended where that bin begins
        for index in range(min(first, BINS_MAX - 1), min(last, BINS_MAX - 1) + 1):
            self._peaks[index] = max(self._peaks[index], self._value)
        self._last_s = max(self._last_s, at_s)

    def series(self, end_s: float) -> Series:
        """Peaks up to `end_s`, the last value carried on."""
        self._carry(max(end_s, self._last_s))
        bins = max(1, min(math.ceil(self._last_s / self.bin_s), BINS_MAX))
        return Series(self.bin_s, tuple(self._peaks[:bins]))


def sum_of_pair(left: float, right: float) -> float:
    """How areas merge."""
    return left + right


def max_of_pair(left: float, right: float) -> float:
    """How peaks merge."""
    return max(left, right)


def merged(values: list[float], join: Callable[[float, float], float]) -> list[float]:
    """Half as many bins, twice as wide; the freed half is empty."""
    joined = [join(values[i], values[i + 1]) for i in range(0, len(values), 2)]
    return joined + [0.0] * (len(values) - len(joined))
