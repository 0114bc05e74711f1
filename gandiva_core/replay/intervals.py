"""How sure a ratio is: 95 % bootstrap intervals, over seeds, or over jobs where there is one seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

RESAMPLES = 2000
CHUNK = 250
"""Resamples drawn at a time: bounds memory for traces of many jobs."""

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Reduces the last axis."""


def mean_of(values: Floats) -> Floats:
    """Mean over the last axis."""
    return np.asarray(values.mean(axis=-1), dtype=np.float64)


def median_of(values: Floats) -> Floats:
    """Median over the last axis."""
    return np.asarray(np.median(values, axis=-1), dtype=np.float64)


def ratio_interval(
    baseline: Sequence[float], other: Sequence[float], statistic: Statistic
) -> tuple[float, float] | None:
    """95 % interval of statistic(baseline) ÷ statistic(other), resampling pairs.

    Args:
        baseline: one value a seed, or a job.
        other: the same seeds or jobs, in the same order.
        statistic: of each resample.

    Returns:
        None with fewer than two pairs: nothing to resample.
    """
    if len(baseline) < 2 or len(baseline) != len(other):
        return None
    rng = np.random.default_rng(20181008)
    left, right = np.asarray(baseline, dtype=np.float64), np.asarray(other, dtype=np.float64)
    ratios: list[Floats] = []
    for start in range(0, RESAMPLES, CHUNK):
        rows = min(CHUNK, RESAMPLES - start)
        picks = rng.integers(0, len(left), size=(rows, len(left)))
        below = statistic(right[picks])
        ratios.append(statistic(left[picks]) / np.where(below > 0, below, np.nan))
    low, high = np.nanpercentile(np.concatenate(ratios), [2.5, 97.5])
    return float(low), float(high)
