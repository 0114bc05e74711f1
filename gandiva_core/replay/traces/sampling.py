"""Draws that stay the same for a seed in every version of Python: only ``Rng.random`` is used."""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Rng(Protocol):
    """What `random.Random` offers and we use of it."""

    def random(self) -> float:
        """Uniform in [0, 1)."""


def uniform(rng: Rng, low: float, high: float) -> float:
    """Uniform in [low, high)."""
    return low + (high - low) * rng.random()


def pick(rng: Rng, items: Sequence[T]) -> T:
    """One of the items, equal odds."""
    return items[int(rng.random() * len(items))]


def shuffle(rng: Rng, items: MutableSequence[T]) -> None:
    """Fisher and Yates, in place."""
    for last in range(len(items) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        items[last], items[other] = items[other], items[last]


def stratified(rng: Rng, count: int) -> list[float]:
    """`count` numbers in [0, 1), one in each of as many equal strata, in rising order.

    Their empirical law is close to uniform for every seed, so that seeds differ in order and not in total work.
    """
    return [(index + rng.random()) / count for index in range(count)]


def shares(weights: Sequence[float], count: int) -> list[int]:
    """`count` things divided in proportion to `weights`: largest remainders, ties to the first."""
    total = sum(weights)
    exact = [count * weight / total for weight in weights]
    whole = [int(value) for value in exact]
    by_remainder = sorted(range(len(weights)), key=lambda at: (whole[at] - exact[at], at))
    for at in by_remainder[: count - sum(whole)]:
        whole[at] += 1
    return whole


class LogLinearLaw:
    """A distribution given by points of its CDF, linear in log(value) between them.

    Args:
        points: (value above 0, probability), both rising; the first has probability 0, the last 1.
        value_max: condition on values up to this; None for the whole law.
    """

    def __init__(
        self, points: Sequence[tuple[float, float]], value_max: float | None = None
    ) -> None:
        self._points = tuple(points)
        self._share = 1.0 if value_max is None else self.probability(value_max)

    def probability(self, value: float) -> float:
        """CDF of the whole law at `value`."""
        if value <= self._points[0][0]:
            return 0.0
        for (low, before), (high, after) in zip(self._points, self._points[1:], strict=False):
            if value <= high:
                return before + (after - before) * log_ratio(value, low) / log_ratio(high, low)
        return 1.0

    def quantile(self, share: float) -> float:
        """The value below which `share` of the (conditioned) law lies."""
        wanted = share * self._share
        for (low, before), (high, after) in zip(self._points, self._points[1:], strict=False):
            if wanted <= after:
                step = (wanted - before) / (after - before)
                return float(low * (high / low) ** step)
        return self._points[-1][0]


def log_ratio(above: float, below: float) -> float:
    """ln(above / below)."""
    return math.log(above / below)
