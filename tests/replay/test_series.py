"""Bins over time of unknown length."""

from __future__ import annotations

import random

import pytest

from gandiva_core.replay.series import BINS_MAX, MeanBins, PeakBins


def test_mean_of_a_constant_is_the_constant() -> None:
    bins = MeanBins()
    bins.add(0.0, 10.0, 4.0)
    assert bins.series(10.0).values == (4.0,) * 10


def test_factor_and_silence_before_and_after() -> None:
    bins = MeanBins()
    bins.add(2.0, 4.0, 8.0)
    assert bins.series(6.0, 0.125).values == (0.0, 0.0, 1.0, 1.0, 0.0, 0.0)


def test_a_part_of_a_bin_counts_by_its_length() -> None:
    bins = MeanBins()
    bins.add(0.25, 0.75, 2.0)
    bins.add(0.5, 1.5, 1.0)
    assert bins.series(2.0).values == (1.5, 0.5)


def test_the_last_bin_is_divided_by_what_it_covers() -> None:
    bins = MeanBins()
    bins.add(0.0, 2.5, 3.0)
    assert bins.series(2.5).values == (3.0, 3.0, 3.0)


def test_area_is_kept_while_bins_widen_whatever_the_order() -> None:
    rng = random.Random(3)
    spans = [
        (start, start + rng.random() * 5000, rng.random() * 9)
        for start in (rng.random() * 90_000 for _ in range(300))
    ]
    area = sum((end - start) * value for start, end, value in spans)
    for order in (spans, sorted(spans), spans[::-1]):
        bins = MeanBins()
        for start, end, value in order:
            bins.add(start, end, value)
        end_s = bins.bin_s * BINS_MAX
        series = bins.series(end_s)
        assert len(series.values) <= BINS_MAX
        assert sum(series.values) * series.bin_s == pytest.approx(area)


def test_peak_holds_until_it_changes() -> None:
    bins = PeakBins()
    bins.change(1.0, 2.0)
    bins.change(3.0, 5.0)
    bins.change(4.0, 1.0)
    assert bins.series(6.0).values == (0.0, 2.0, 2.0, 5.0, 1.0, 1.0)


def test_a_short_peak_survives_widening() -> None:
    bins = PeakBins()
    bins.change(10.0, 4.0)
    bins.change(10.1, 1.0)
    bins.change(100_000.0, 1.0)
    series = bins.series(100_000.0)
    assert series.values[int(10 / series.bin_s)] == 4.0
    assert set(series.values[1:]) == {1.0}
