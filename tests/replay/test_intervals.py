"""Bootstrap intervals."""

from __future__ import annotations

import random

from gandiva_core.replay.intervals import mean_of, median_of, ratio_interval


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = random.Random(5)
    covered = 0
    for _ in range(60):
        right = [rng.expovariate(1.0) for _ in range(60)]
        left = [2.0 * value * rng.uniform(0.8, 1.2) for value in right]
        bounds = ratio_interval(left, right, mean_of)
        assert bounds is not None
        covered += bounds[0] <= 2.0 <= bounds[1]
    assert 50 <= covered <= 60


def test_equal_ratios_have_no_width() -> None:
    assert ratio_interval([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], median_of) == (2.0, 2.0)


def test_the_same_input_gives_the_same_interval() -> None:
    values = [float(n) for n in range(1, 30)]
    assert ratio_interval(values, values[::-1], mean_of) == ratio_interval(
        values, values[::-1], mean_of
    )


def test_one_pair_is_not_enough() -> None:
    assert ratio_interval([1.0], [1.0], mean_of) is None
    assert ratio_interval([1.0, 2.0], [1.0], mean_of) is None
