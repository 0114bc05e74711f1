"""Draws stable over Python versions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.replay.traces.nine_days import RUN_MINUTES
from gandiva_core.replay.traces.sampling import (
    LogLinearLaw,
    pick,
    shares,
    shuffle,
    stratified,
    uniform,
)


class Fixed:
    """Draws what it is told."""

    def __init__(self, *values: float) -> None:
        self._values = list(values)

    def random(self) -> float:
        return self._values.pop(0)


def test_only_random_is_drawn() -> None:
    items = [1, 2, 3]
    shuffle(Fixed(0.0, 0.0), items)
    assert items == [2, 3, 1]
    assert pick(Fixed(0.999), items) == 1
    assert uniform(Fixed(0.5), 2.0, 4.0) == 3.0


@given(st.integers(1, 200), st.integers(0, 2**31))
def test_one_draw_a_stratum(count: int, seed: int) -> None:
    values = stratified(random.Random(seed), count)
    assert [int(value * count * (1 + 1e-12)) for value in values] == list(range(count))


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=8), st.integers(0, 5000))
def test_shares_are_whole_and_near(weights: list[float], count: int) -> None:
    parts = shares(weights, count)
    assert sum(parts) == count
    total = sum(weights)
    assert all(abs(part - count * w / total) < 1 for part, w in zip(parts, weights, strict=True))


@given(st.floats(0.0, 0.999999))
def test_quantile_inverts_the_law(share: float) -> None:
    law = LogLinearLaw(RUN_MINUTES)
    assert law.probability(law.quantile(share)) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize(
    ("minutes", "share"), [(10, 0.35), (100, 0.64), (1000, 0.93), (3500, 0.985)]
)
def test_published_points_of_ge14(minutes: float, share: float) -> None:
    assert LogLinearLaw(RUN_MINUTES).quantile(share) == pytest.approx(minutes)


def test_mean_run_time_is_about_350_minutes() -> None:
    """GE-14 [C]."""
    law = LogLinearLaw(RUN_MINUTES)
    mean = sum(law.quantile((i + 0.5) / 100_000) for i in range(100_000)) / 100_000
    assert mean == pytest.approx(350, rel=0.03)


def test_a_conditioned_law_stays_below_its_maximum() -> None:
    """GE-13: the law of GE-14 cut at three hours."""
    law = LogLinearLaw(RUN_MINUTES, 180.0)
    assert law.quantile(0.9999999) <= 180.0
    whole = LogLinearLaw(RUN_MINUTES)
    assert law.quantile(0.5) == pytest.approx(whole.quantile(0.5 * whole.probability(180.0)))
