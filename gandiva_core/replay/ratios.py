"""Ratios between two arms, on the jobs that both finished, and their intervals.

A ratio is baseline ÷ ours, so that 1.25 reads "25 % better" in the paper's way (C-5, E-2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from gandiva_core.replay.figures import JobRecord, makespan, mean, quantile
from gandiva_core.replay.intervals import Statistic, mean_of, median_of, ratio_interval

Interval = tuple[float, float]
JobsById = Mapping[str, JobRecord]


class Ratios(msgspec.Struct, frozen=True):
    """Baseline ÷ arm. None where an arm left jobs that never finish, or there is nothing to divide.

    Attributes:
        common_jobs: jobs that both finished, over all seeds; the ratios are over these.
    """

    mean_jct: float | None
    median_jct: float | None
    makespan: float | None
    first_100_minibatches: float | None
    common_jobs: int


class Pair(msgspec.Struct, frozen=True):
    """The finished jobs of both arms for one seed.

    Attributes:
        is_stuck: whether one of the two ended by itself with jobs left.
    """

    seed: int
    baseline: JobsById
    other: JobsById
    is_stuck: bool

    @property
    def common(self) -> list[str]:
        """Jobs that both finished, in the baseline's order."""
        return [job_id for job_id in self.baseline if job_id in self.other]


Figure = Callable[[Sequence[JobRecord]], float | None]


def mean_jct(jobs: Sequence[JobRecord]) -> float | None:
    """Mean of completion − arrival."""
    return mean([job.jct_s for job in jobs if job.jct_s is not None])


def median_jct(jobs: Sequence[JobRecord]) -> float | None:
    """Median of completion − arrival."""
    return quantile([job.jct_s for job in jobs if job.jct_s is not None], 0.5)


def first_100(jobs: Sequence[JobRecord]) -> float | None:
    """Mean of (100th mini-batch − arrival), over jobs that have that many (C-4)."""
    return mean([job.first_100_s - job.arrival_s for job in jobs if job.first_100_s is not None])


FIGURES: Mapping[str, Figure] = {
    "mean_jct": mean_jct,
    "median_jct": median_jct,
    "makespan": makespan,
    "first_100_minibatches": first_100,
}

JOB_VALUES: Mapping[str, tuple[Callable[[JobRecord], float | None], Statistic]] = {
    "mean_jct": (lambda job: job.jct_s, mean_of),
    "median_jct": (lambda job: job.jct_s, median_of),
    "first_100_minibatches": (
        lambda job: None if job.first_100_s is None else job.first_100_s - job.arrival_s,
        mean_of,
    ),
}
"""What can be resampled over jobs; a makespan cannot, it is one number of a run."""


def ratios_of(pairs: Sequence[Pair]) -> Ratios:
    """Ratios of the means over seeds."""
    if any(pair.is_stuck for pair in pairs):
        return Ratios(None, None, None, None, sum(len(pair.common) for pair in pairs))
    values: dict[str, float | None] = {}
    for name, figure in FIGURES.items():
        left, right = by_seed(pairs, figure)
        values[name] = sum(left) / sum(right) if right and sum(right) > 0 else None
    return Ratios(**values, common_jobs=sum(len(pair.common) for pair in pairs))


def by_seed(pairs: Sequence[Pair], figure: Figure) -> tuple[list[float], list[float]]:
    """A figure of both arms for each seed where both have it."""
    left, right = [], []
    for pair in pairs:
        ours = figure([pair.baseline[job_id] for job_id in pair.common])
        theirs = figure([pair.other[job_id] for job_id in pair.common])
        if ours is not None and theirs is not None:
            left.append(ours)
            right.append(theirs)
    return left, right


def intervals_of(pairs: Sequence[Pair]) -> dict[str, Interval]:
    """95 % intervals of the ratios: over seeds with two or more, else over jobs. A figure without one is absent."""
    if not pairs or any(pair.is_stuck for pair in pairs):
        return {}
    found = {
        name: over_seeds(pairs, name) if len(pairs) > 1 else over_jobs(pairs[0], name)
        for name in FIGURES
    }
    return {name: interval for name, interval in found.items() if interval is not None}


def over_seeds(pairs: Sequence[Pair], name: str) -> Interval | None:
    """Resample seeds; the statistic is the mean over seeds of each seed's figure."""
    left, right = by_seed(pairs, FIGURES[name])
    return ratio_interval(left, right, mean_of)


def over_jobs(pair: Pair, name: str) -> Interval | None:
    """Resample the jobs of the one seed, each with its value in both arms."""
    if name not in JOB_VALUES:
        return None
    value_of, statistic = JOB_VALUES[name]
    left, right = [], []
    for job_id in pair.common:
        ours, theirs = value_of(pair.baseline[job_id]), value_of(pair.other[job_id])
        if ours is not None and theirs is not None:
            left.append(ours)
            right.append(theirs)
    return ratio_interval(left, right, statistic)
