"""Numbers as people read them; a missing one is a dash, never a zero."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gandiva_core.replay.ratios import Interval

MISSING = "–"
MINUTES_FROM_S = 7_200.0


class TimeUnit(msgspec.Struct, frozen=True):
    """The unit of a whole report, so that its figures can be compared by eye.

    Attributes:
        name: as it stands behind a number.
        seconds: its length.
    """

    name: str
    seconds: float

    def of(self, value_s: float | None) -> str:
        """A duration with its unit; one decimal, two below ten."""
        if value_s is None:
            return MISSING
        return f"{self.number(value_s)} {self.name}"

    def number(self, value_s: float) -> str:
        """A duration without the unit."""
        value = value_s / self.seconds
        return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"


SECONDS = TimeUnit("s", 1.0)
MINUTES = TimeUnit("min", 60.0)


def unit_for(makespans_s: Sequence[float | None]) -> TimeUnit:
    """Minutes for runs of two hours and more, as in the paper; seconds below."""
    longest_s = max((value for value in makespans_s if value is not None), default=0.0)
    return MINUTES if longest_s >= MINUTES_FROM_S else SECONDS


def ratio(value: float | None) -> str:
    """A ratio to three significant digits at least."""
    return MISSING if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def interval(bounds: Interval | None) -> str:
    """An interval, low to high."""
    if bounds is None:
        return MISSING
    low, high = bounds
    return f"{low:.2f} – {high:.2f}" if high < 10 else f"{low:.1f} – {high:.1f}"


def share(value: float | None) -> str:
    """A fraction as per cent."""
    return MISSING if value is None else f"{100 * value:.1f} %"


def count(value: float | None) -> str:
    """A count with thousands apart."""
    return MISSING if value is None else f"{value:,.0f}"


def both_ways(value: float | None) -> str:
    """A ratio in the two conventions in use (C-5, E-2)."""
    if value is None or value <= 0:
        return MISSING
    change = "shorter" if value >= 1 else "longer"
    return f"{abs(1 - 1 / value):.1%} {change}; baseline/ours − 1 = {value - 1:+.1%}"


def instant(at_s: float) -> str:
    """A virtual time as day and clock from the start of the trace."""
    whole = int(at_s)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, seconds = divmod(rest, 60)
    return f"{days}d {hours:02d}:{minutes:02d}:{seconds:02d}"


def span(value_s: float) -> str:
    """A duration in the two largest units that it has."""
    parts = []
    rest = round(value_s)
    for name, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, rest = divmod(rest, length)
        if amount:
            parts.append(f"{amount} {name}")
    return " ".join(parts[:2]) or "0 s"


def plural(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
