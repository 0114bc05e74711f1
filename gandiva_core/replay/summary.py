"""`summary.json`: both arms' figures, their ratios, and how sure they are. docs/REPLAY.md defines each figure.

Several seeds: times and ratios are of the means over seeds, counts are sums over seeds, the height is the highest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gandiva_core.replay.arms import BASELINE
from gandiva_core.replay.details import RunDetails
from gandiva_core.replay.figures import JobRecord, mean
from gandiva_core.replay.intervals import RESAMPLES
from gandiva_core.replay.ratios import Interval, Pair, Ratios, intervals_of, ratios_of


class RunEntry(msgspec.Struct, frozen=True):
    """Where a run's figures can be had again: its journal, relative to the output folder, and the hash of its bytes."""

    seed: int
    shape: str
    journal: str
    journal_sha256: str
    complete: bool


class Holder(msgspec.Struct, frozen=True):
    """A job that never finished in a run that ended by itself: a gang deadlock, or starvation when it holds nothing."""

    job: str
    seed: int
    gpus: int
    held_gpus: int
    servers: tuple[str, ...]


class ArmSummary(msgspec.Struct, frozen=True):
    """One arm in one shape, over all seeds; what each figure means stands at `RunFigures`."""

    scheduler_class: str
    mechanisms: tuple[str, ...]
    shape: str
    jobs: int
    finished: int
    failed: int
    killed: int
    unfinished: int
    mean_jct_s: float | None
    median_jct_s: float | None
    p95_jct_s: float | None
    p99_jct_s: float | None
    makespan_s: float | None
    mean_queueing_s: float | None
    mean_first_100_minibatches_s: float | None
    gpu_utilization: float | None
    gpu_allocated: float | None
    am_limit_waits: int
    max_height: int
    suspends: int
    restarts: int
    migrations: int
    packings_tried: int
    packings_kept: int
    host_memory_waits: int
    partial_holds: int
    partial_hold_gpu_s: float
    wall_s: float
    never_finished: tuple[Holder, ...]
    runs: tuple[RunEntry, ...]


class ShapeSummary(msgspec.Struct, frozen=True):
    """All arms in one shape."""

    arms: Mapping[str, ArmSummary]
    ratios: Mapping[str, Ratios]
    intervals: Mapping[str, Mapping[str, Interval]]


class Summary(msgspec.Struct, frozen=True):
    """The whole comparison.

    Attributes:
        primary: the arm that the comparison is about, the first policy among them.
        shape: the one quoted in `arms`, `ratios`, `intervals`: of those run, the one with the
            smaller mean-JCT ratio of `primary`, so the one that favours the baseline.
        arms: by name, in the quoted shape; each lists the runs of all shapes.
        ratios: capacity ÷ NAME.
        interval_method: over what the intervals were resampled.
        shapes: every shape's figures.
        partial: whether runs are missing or were interrupted.
        left_out: jobs of the trace not submitted, by reason, in the quoted shape, over all seeds.
    """

    trace: str
    cluster: str
    engine: str
    seeds: tuple[int, ...]
    commit: str
    versions: Mapping[str, str]
    primary: str
    shape: str
    arms: Mapping[str, ArmSummary]
    ratios: Mapping[str, Ratios]
    intervals: Mapping[str, Mapping[str, Interval]]
    interval_method: str
    shapes: Mapping[str, ShapeSummary]
    partial: bool
    left_out: Mapping[str, int]
    notes: tuple[str, ...]


def summarise(runs: Sequence[RunDetails], partial: bool = False) -> Summary:
    """Join runs, at least one, of one comparison.

    Args:
        runs: in the order in which arms and shapes are to be shown.
        partial: whether runs that were asked for are missing.
    """
    names = dict.fromkeys(run.shape for run in runs)
    shapes = {name: shape_summary(name, runs) for name in names}
    primary = primary_arm(runs)
    shape = quoted_shape(shapes, primary)
    quoted = shapes[shape]
    first = runs[0]
    seeds = tuple(sorted({run.seed for run in runs}))
    arms = {
        name: msgspec.structs.replace(arm, runs=entries(run for run in runs if run.arm == name))
        for name, arm in quoted.arms.items()
    }
    return Summary(
        trace=first.surroundings.trace,
        cluster=first.surroundings.cluster,
        engine=first.surroundings.engine,
        seeds=seeds,
        commit=first.commit,
        versions={key: value for run in runs for key, value in run.versions.items()},
        primary=primary,
        shape=shape,
        arms=arms,
        ratios=quoted.ratios,
        intervals=quoted.intervals,
        interval_method=interval_method(runs, shape),
        shapes=shapes,
        partial=partial or not all(run.is_complete for run in runs),
        left_out=left_out(runs, shape),
        notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
    )


def primary_arm(runs: Sequence[RunDetails]) -> str:
    """The arm that the comparison is about: the first policy, else the first but the baseline."""
    names = list(dict.fromkeys(run.arm for run in runs if not run.is_stock))
    names += [run.arm for run in runs if run.arm != BASELINE]
    return names[0] if names else runs[0].arm


def quoted_shape(shapes: Mapping[str, ShapeSummary], arm: str) -> str:
    """The shape in which the comparison of `arm` favours the baseline: the smaller mean-JCT ratio.

    Shapes without that ratio come last; then the order in which they ran.
    """

    def ratio(shape: str) -> float:
        ratios = shapes[shape].ratios.get(arm)
        return float("inf") if ratios is None or ratios.mean_jct is None else ratios.mean_jct

    return min(shapes, key=ratio)


def entries(runs: Iterable[RunDetails]) -> tuple[RunEntry, ...]:
    """Where each run's journal is."""
    return tuple(
        RunEntry(run.seed, run.shape, run.journal, run.journal_sha256, run.is_complete)
        for run in runs
    )


def interval_method(runs: Sequence[RunDetails], shape: str) -> str:
    """What was resampled, in words."""
    seeds = len({run.seed for run in runs if run.shape == shape})
    if seeds > 1:
        return f"95 %, bootstrap over {seeds} seeds, {RESAMPLES} resamples"
    return f"95 %, bootstrap over the jobs of one seed, {RESAMPLES} resamples"


def left_out(runs: Sequence[RunDetails], shape: str) -> dict[str, int]:
    """Jobs that no arm was given, by reason, once a seed."""
    counts: dict[str, int] = {}
    for run in {run.seed: run for run in runs if run.shape == shape}.values():
        for reason, count in run.left_out.items():
            counts[reason] = counts.get(reason, 0) + count
    return counts


def shape_summary(shape: str, runs: Sequence[RunDetails]) -> ShapeSummary:
    """All arms of one shape."""
    here = [run for run in runs if run.shape == shape]
    names = list(dict.fromkeys(run.arm for run in here))
    by_arm = {name: chosen([run for run in here if run.arm == name]) for name in names}
    ratios: dict[str, Ratios] = {}
    intervals: dict[str, Mapping[str, Interval]] = {}
    for name in names:
        if name == BASELINE or BASELINE not in by_arm:
            continue
        pairs = pairs_of(by_arm[BASELINE], by_arm[name])
        ratios[name] = ratios_of(pairs)
        intervals[name] = intervals_of(pairs)
    arms = {name: arm_summary(shape, by_arm[name]) for name in names}
    return ShapeSummary(arms=arms, ratios=ratios, intervals=intervals)


def chosen(runs: Sequence[RunDetails]) -> list[RunDetails]:
    """Complete runs where there is one, else the interrupted ones: half a run is never averaged with whole ones."""
    complete = [run for run in runs if run.is_complete]
    return complete or list(runs)


def pairs_of(baseline: Sequence[RunDetails], other: Sequence[RunDetails]) -> list[Pair]:
    """The seeds that both arms have."""
    by_seed = {run.seed: run for run in other}
    return [
        Pair(run.seed, finished(run), finished(by_seed[run.seed]), is_stuck(run, by_seed[run.seed]))
        for run in baseline
        if run.seed in by_seed
    ]


def finished(run: RunDetails) -> dict[str, JobRecord]:
    """Finished jobs by id."""
    return {job.job_id: job for job in run.jobs if job.jct_s is not None}


def is_stuck(*runs: RunDetails) -> bool:
    """Whether a run ended by itself with jobs left: a mean over the others would flatter it."""
    return any(run.is_complete and run.figures.unfinished for run in runs)


def arm_summary(shape: str, runs: Sequence[RunDetails]) -> ArmSummary:
    """One arm: means and sums over its seeds."""
    figures = [run.figures for run in runs]

    def mean_of(name: str) -> float | None:
        values = [getattr(each, name) for each in figures]
        return None if None in values else mean(values)

    def sum_of(name: str) -> int:
        return sum(getattr(each, name) for each in figures)

    return ArmSummary(
        scheduler_class=runs[0].scheduler_class,
        mechanisms=runs[0].mechanisms,
        shape=shape,
        jobs=sum_of("jobs"),
        finished=sum_of("finished"),
        failed=sum_of("failed"),
        killed=sum_of("killed"),
        unfinished=sum_of("unfinished"),
        mean_jct_s=mean_of("mean_jct_s"),
        median_jct_s=mean_of("median_jct_s"),
        p95_jct_s=mean_of("p95_jct_s"),
        p99_jct_s=mean_of("p99_jct_s"),
        makespan_s=mean_of("makespan_s"),
        mean_queueing_s=mean_of("mean_queueing_s"),
        mean_first_100_minibatches_s=mean_of("mean_first_100_minibatches_s"),
        gpu_utilization=mean_of("gpu_utilization"),
        gpu_allocated=mean_of("gpu_allocated"),
        am_limit_waits=sum_of("am_limit_waits"),
        max_height=max(each.max_height for each in figures),
        suspends=sum_of("suspends"),
        restarts=sum_of("restarts"),
        migrations=sum_of("migrations"),
        packings_tried=sum_of("packings_tried"),
        packings_kept=sum_of("packings_kept"),
        host_memory_waits=sum_of("host_memory_waits"),
        partial_holds=sum_of("partial_holds"),
        partial_hold_gpu_s=sum(each.partial_hold_gpu_s for each in figures),
        wall_s=sum(run.wall_s for run in runs),
        never_finished=tuple(holder for run in runs if run.is_complete for holder in stuck(run)),
        runs=entries(runs),
    )


def stuck(run: RunDetails) -> list[Holder]:
    """Jobs that never finished, those that hold something first."""
    holders = [
        Holder(job.name, run.seed, job.gpus, job.held_gpus, job.servers if job.held_gpus else ())
        for job in run.jobs
        if job.outcome == "unfinished"
    ]
    return sorted(holders, key=lambda holder: holder.held_gpus == 0)
