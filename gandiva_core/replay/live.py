"""Live arms: what came of each, how they compare, and which of them belong together. Pure, but for `read`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from gandiva_core.model.errors import InputError

KIND = "live-replay"
SUMMARY = "summary.json"
HEADROOM_RATIO_MIN = 0.2
"""Below it the processors, not the schedulers, decided who was fast (C-8): the run says nothing."""

BASELINE = "capacity"


class Setting(msgspec.Struct, frozen=True):
    """What all arms of a comparison have in common.

    Attributes:
        plan_sha256: over the jobs as they were submitted: arrivals, sizes, mini-batches, kinds.
        step_s: a mini-batch takes at least that.
        offered_load_ratio: work ÷ (devices × time of arrivals).
        gpus: of the whole cluster.
        notes: what was left out.
    """

    trace: str
    scale: float
    step_s: float
    jobs: int
    plan_sha256: str
    offered_load_ratio: float
    nodes: int
    gpus: int
    notes: tuple[str, ...] = ()


MUST_AGREE = {
    "trace": "trace",
    "scale": "--scale",
    "step_s": "--step-ms",
    "jobs": "number of jobs",
    "plan_sha256": "jobs",
    "nodes": "nodes",
    "gpus": "GPUs",
}
"""Fields of `Setting`, with the word for them."""


class JobRun(msgspec.Struct, frozen=True):
    """A job as its ResourceManager saw it, in seconds after the first submission; None is "not known".

    Attributes:
        registered_s: when its master came up.
        allocated_s: when its worker's container was given.
        begun_s: when its training process began, and knew no framework yet.
        first_s: when its first mini-batch was done; `last_s` its last.
        released_s: when the ResourceManager saw its worker's end.
        minibatch_s: median, between stops.
    """

    job_id: str
    submitted_s: float
    finished_s: float
    status: str
    app_id: str = ""
    registered_s: float | None = None
    allocated_s: float | None = None
    begun_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None
    released_s: float | None = None
    minibatch_s: float | None = None

    @property
    def jct_s(self) -> float:
        """Completion − arrival (C-4)."""
        return self.finished_s - self.submitted_s


class ArmRun(msgspec.Struct, frozen=True):
    """One arm.

    Attributes:
        scheduler_class: as its ResourceManager said.
        settings: of its scheduler, beside the class.
        headroom_ratio: part of the processors' time that nobody used, over the whole arm; None where
            they are elsewhere.
        journal: of the core, where there was one.
        commit: of this code.
        prediction: of the simulator, from what was measured in this arm: ``predicted_mean_jct_s``, ``live_mean_jct_s``,
            ``error_ratio``, ``measured``.
    """

    arm: str
    jobs: tuple[JobRun, ...]
    headroom_ratio: float | None
    scheduler_class: str = ""
    hadoop_version: str = ""
    settings: Mapping[str, float] = {}
    journal: str = ""
    commit: str = ""
    prediction: Mapping[str, Any] | None = None

    @property
    def is_valid(self) -> bool:
        """Whether the processors left the schedulers a choice, and every job ended well."""
        has_room = self.headroom_ratio is None or self.headroom_ratio >= HEADROOM_RATIO_MIN
        return has_room and all(job.status == "SUCCEEDED" for job in self.jobs)

    @property
    def mean_jct_s(self) -> float:
        """Of the jobs that ended."""
        return mean(job.jct_s for job in self.jobs)

    @property
    def makespan_s(self) -> float:
        """Last completion − first arrival."""
        return max(job.finished_s for job in self.jobs) - min(job.submitted_s for job in self.jobs)

    @property
    def mean_first_minibatch_s(self) -> float | None:
        """From submission; None where no job told."""
        firsts = [job.first_s - job.submitted_s for job in self.jobs if job.first_s is not None]
        return mean(firsts) if firsts else None


class LiveRun(msgspec.Struct, frozen=True):
    """What a folder of a live replay holds.

    Attributes:
        is_partial: it was interrupted.
    """

    setting: Setting
    arms: tuple[ArmRun, ...]
    is_partial: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether every arm is."""
        return all(arm.is_valid for arm in self.arms)


def summary(run: LiveRun) -> dict[str, object]:
    """What is written as `summary.json`: both arms' absolute figures, and ratios baseline ÷ arm (C-5)."""
    found: dict[str, object] = {"kind": KIND, "setting": msgspec.to_builtins(run.setting)}
    found["arms"] = {arm.arm: _of(arm) for arm in run.arms}
    baseline = next((arm for arm in run.arms if arm.arm == BASELINE), None)
    if baseline is not None and len(run.arms) > 1:
        found["ratios"] = {
            arm.arm: {
                "mean_jct": baseline.mean_jct_s / arm.mean_jct_s,
                "makespan": baseline.makespan_s / arm.makespan_s,
            }
            for arm in run.arms
            if arm is not baseline
        }
    return found | {"is_valid": run.is_valid, "is_partial": run.is_partial}


def _of(arm: ArmRun) -> dict[str, object]:
    kept: dict[str, object] = msgspec.to_builtins(arm)
    kept["runs"] = kept.pop("jobs")
    del kept["arm"]
    return {
        "jobs": len(arm.jobs),
        "succeeded": sum(job.status == "SUCCEEDED" for job in arm.jobs),
        "mean_jct_s": arm.mean_jct_s,
        "makespan_s": arm.makespan_s,
        "mean_first_minibatch_s": arm.mean_first_minibatch_s,
        "is_valid": arm.is_valid,
        **kept,
    }


def in_short(run: LiveRun) -> list[str]:
    """A line an arm, for people."""
    return [_line(arm) for arm in run.arms]


def _line(arm: ArmRun) -> str:
    idle = "" if arm.headroom_ratio is None else f"  idle processors {arm.headroom_ratio:.0%}"
    told = arm.prediction
    foreseen = "" if told is None else f"  predicted {told['predicted_mean_jct_s']:.1f} s"
    times = f"mean JCT {arm.mean_jct_s:.1f} s  makespan {arm.makespan_s:.1f} s"
    return f"{arm.arm:10} {len(arm.jobs)} jobs  {times}{idle}{foreseen}"


# ------------------------------------------------------------------ arms that were run apart


def is_live(folder: Path) -> bool:
    """Whether a folder holds the result of a live replay."""
    try:
        return bool(_decoded(folder).get("kind") == KIND)
    except InputError:
        return False


def read(folder: Path) -> LiveRun:
    """What a live replay left.

    Raises:
        InputError: nothing, or something else.
    """
    found = _decoded(folder)
    try:
        arms = [{**arm, "arm": name, "jobs": arm["runs"]} for name, arm in found["arms"].items()]
        kept = {"setting": found["setting"], "arms": arms, "is_partial": found["is_partial"]}
        return msgspec.convert(kept, LiveRun)
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise InputError(str(folder / SUMMARY), str(error), "what live-replay wrote") from error


def _decoded(folder: Path) -> dict[str, Any]:
    file = folder / SUMMARY
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(str(file), str(error), "the result of a live replay") from error


def join(found: Sequence[tuple[str, LiveRun]]) -> LiveRun:
    """Arms of several folders, the baseline first.

    Args:
        found: (folder, what it holds).

    Raises:
        InputError: naming both places and what differs; also an arm that is there twice.
    """
    place, first = found[0]
    arms: dict[str, tuple[str, ArmRun]] = {}
    for folder, run in found:
        for field, word in MUST_AGREE.items():
            ours, theirs = getattr(run.setting, field), getattr(first.setting, field)
            if ours != theirs:
                raise InputError(folder, f"{word} {ours}", f"{theirs}, as in {place}")
        for arm in run.arms:
            if arm.arm in arms:
                expected = f"each arm once; it is in {arms[arm.arm][0]} too"
                raise InputError(folder, f"{arm.arm} again", expected)
            arms[arm.arm] = (folder, arm)
    ordered = sorted((arm for _, arm in arms.values()), key=lambda arm: arm.arm != BASELINE)
    return LiveRun(first.setting, tuple(ordered), any(run.is_partial for _, run in found))
