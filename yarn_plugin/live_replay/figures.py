"""What came of the arms, and how they compare. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

import msgspec

HEADROOM_RATIO_MIN = 0.2
"""Below it the processors, not the schedulers, decided who was fast (C-8): the run says nothing."""

BASELINE = "capacity"


class JobRun(msgspec.Struct, frozen=True):
    """A job as its ResourceManager saw it, in seconds after the first submission.

    Attributes:
        first_s: when its training first printed; None where it never did.
    """

    job_id: str
    submitted_s: float
    finished_s: float
    status: str
    first_s: float | None = None

    @property
    def jct_s(self) -> float:
        """Completion − arrival (C-4)."""
        return self.finished_s - self.submitted_s


class ArmRun(msgspec.Struct, frozen=True):
    """One arm.

    Attributes:
        headroom_ratio: part of the processors' time that nobody used, over the whole arm.
        journal: of the core, where there was one.
    """

    arm: str
    jobs: tuple[JobRun, ...]
    headroom_ratio: float
    journal: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether the processors left the schedulers a choice, and every job ended well."""
        return self.headroom_ratio >= HEADROOM_RATIO_MIN and all(
            job.status == "SUCCEEDED" for job in self.jobs
        )

    @property
    def mean_jct_s(self) -> float:
        """Of the jobs that ended."""
        return mean(job.jct_s for job in self.jobs)

    @property
    def makespan_s(self) -> float:
        """Last completion − first arrival."""
        return max(job.finished_s for job in self.jobs) - min(job.submitted_s for job in self.jobs)


def summary(arms: Sequence[ArmRun], setting: Mapping[str, object]) -> dict[str, object]:
    """What is written as `summary.json`: both arms' absolute figures, and ratios baseline ÷ arm (C-5)."""
    found: dict[str, object] = {"setting": dict(setting)}
    found["arms"] = {arm.arm: _of(arm) for arm in arms}
    baseline = next((arm for arm in arms if arm.arm == BASELINE), None)
    if baseline is not None:
        found["ratios"] = {
            arm.arm: {
                "mean_jct": baseline.mean_jct_s / arm.mean_jct_s,
                "makespan": baseline.makespan_s / arm.makespan_s,
            }
            for arm in arms
            if arm is not baseline
        }
    found["is_valid"] = all(arm.is_valid for arm in arms)
    return found


def _of(arm: ArmRun) -> dict[str, object]:
    firsts = [job.first_s - job.submitted_s for job in arm.jobs if job.first_s is not None]
    return {
        "jobs": len(arm.jobs),
        "succeeded": sum(job.status == "SUCCEEDED" for job in arm.jobs),
        "mean_jct_s": arm.mean_jct_s,
        "makespan_s": arm.makespan_s,
        "mean_first_minibatch_s": mean(firsts) if firsts else None,
        "headroom_ratio": arm.headroom_ratio,
        "is_valid": arm.is_valid,
        "journal": arm.journal,
        "runs": msgspec.to_builtins(arm.jobs),
    }
