"""Finds the unpublished parameters of the nine-day trace, looking at the capacity arm only (GE-14).

Two figures are published of the baseline, mean JCT 832 min and makespan 13,371 min. The search starts from a law and
changes job count, burst size and horizon a step at a time, keeping what brings the mean over seeds, and seed 1 alone,
nearer to both. The run times, the sizes and the models are the published ones and stay.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.nine_days import BurstyLaw, make_bursty
from gandiva_core.replay.traces.records import Trace
from gandiva_core.replay.traces.sampling import Rng, pick

MINUTE_S = 60.0

CapacityArm = Callable[[Trace, Cluster], tuple[float, float]]
"""(mean JCT, makespan) in s of a trace under the stock scheduler."""

HOPELESS = 0.25
"""A law whose seed 1 misses by more than this is not tried on the other seeds."""


class Target(msgspec.Struct, frozen=True):
    """What the baseline is to come to, and how near.

    Attributes:
        tolerance: relative, of the means over the seeds, and of seed 1 alone.
    """

    mean_jct_s: float = 832 * MINUTE_S
    makespan_s: float = 13_371 * MINUTE_S
    tolerance: float = 0.05


class Trial(msgspec.Struct, frozen=True):
    """One law tried.

    Attributes:
        outcomes: (mean JCT, makespan) in s by seed, in the order of the seeds; shorter where it was given up.
        error: the largest relative miss of the four that count, as `miss` has it.
    """

    law: BurstyLaw
    outcomes: tuple[tuple[float, float], ...]
    error: float

    @property
    def means_s(self) -> tuple[float, float]:
        """(mean JCT, makespan) over the seeds."""
        count = len(self.outcomes)
        jcts, makespans = zip(*self.outcomes, strict=True)
        return sum(jcts) / count, sum(makespans) / count


class Calibration:
    """The search.

    Args:
        arm: plays a trace.
        cluster: what it plays on.
        seeds: of the traces; the first counts alone, too.
        target: what to come to.
    """

    def __init__(
        self, arm: CapacityArm, cluster: Cluster, seeds: Sequence[int], target: Target
    ) -> None:
        if not seeds:
            raise InputError("--seeds", "none", "at least one seed")
        self._arm = arm
        self._cluster = cluster
        self._seeds = tuple(seeds)
        self._target = target

    def try_law(self, law: BurstyLaw, *, is_patient: bool = False) -> Trial:
        """Play a law on all seeds, or, unless patient, on the first alone where that is hopeless."""
        outcomes: list[tuple[float, float]] = []
        for seed in self._seeds:
            outcomes.append(self._arm(make_bursty("calibration", law, seed), self._cluster))
            is_first = len(outcomes) == 1 and not is_patient
            if is_first and miss(outcomes[0], self._target) > HOPELESS:
                return Trial(law, tuple(outcomes), 10.0 + miss(outcomes[0], self._target))
        trial = Trial(law, tuple(outcomes), 0.0)
        error = max(miss(trial.means_s, self._target), miss(outcomes[0], self._target))
        return Trial(law, tuple(outcomes), error)

    def search(self, start: BurstyLaw, trials: int, search_seed: int = 1) -> Iterator[Trial]:
        """Each trial that was better than all before it, the last one being the result.

        Ends after `trials` trials, or when a law is within half the tolerance.
        """
        rng = random.Random(search_seed)
        best = self.try_law(start, is_patient=True)
        yield best
        tried = {start}
        for _ in range(trials - 1):
            if best.error <= self._target.tolerance / 2:
                return
            law = neighbour(best.law, rng)
            if law in tried:
                continue
            tried.add(law)
            trial = self.try_law(law)
            if trial.error < best.error:
                best = trial
                yield best


def miss(outcome: tuple[float, float], target: Target) -> float:
    """The larger relative miss of the two figures."""
    return max(abs(outcome[0] / target.mean_jct_s - 1.0), abs(outcome[1] / target.makespan_s - 1.0))


def is_met(trial: Trial, target: Target) -> bool:
    """Whether a trial is within the tolerance."""
    return trial.error <= target.tolerance


def neighbour(law: BurstyLaw, rng: Rng) -> BurstyLaw:
    """A law one or two steps away."""
    jobs = law.jobs + pick(rng, (-40, -20, -10, 0, 10, 20, 40))
    burst_jobs = law.burst_jobs + pick(rng, (-5, -2, -1, 0, 1, 2, 5))
    horizon_min = law.horizon_min + pick(rng, (-250.0, -100.0, 0.0, 100.0, 250.0))
    return msgspec.structs.replace(
        law,
        jobs=max(20, jobs),
        burst_jobs=max(1, burst_jobs),
        horizon_min=max(100.0, horizon_min),
    )
