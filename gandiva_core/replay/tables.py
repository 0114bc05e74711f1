"""The tables of a report, as text cells ready to print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from gandiva_core.replay.arms import BASELINE
from gandiva_core.replay.details import RunDetails
from gandiva_core.replay.figures import JobRecord, mean
from gandiva_core.replay.ratios import Ratios
from gandiva_core.replay.summary import ArmSummary, ShapeSummary, Summary
from gandiva_core.replay.wording import (
    MISSING,
    TimeUnit,
    count,
    instant,
    interval,
    plural,
    ratio,
    share,
    span,
)

RATIO_COLUMNS_MAX = 2
WIDE_ARMS_MAX = 3
"""With more arms, tables by seed, size and model show the mean JCT only."""

DELAYED_MAX = 10
MODELS_MAX = 20


class Table(msgspec.Struct, frozen=True):
    """Cells as text; the first column names the row.

    Attributes:
        emphasis: rows to stand out, by index.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    emphasis: frozenset[int] = frozenset()


class Story(msgspec.Struct, frozen=True):
    """One much delayed job: what it is, its times, its life in lines of (instant, text)."""

    title: str
    facts: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]


Cell = Callable[[ArmSummary], str]


def figure_rows(unit: TimeUnit) -> tuple[tuple[str, Cell, str], ...]:
    """Every row of the main table: label, how to print it, and the ratio that belongs to it."""
    return (
        ("Jobs", lambda arm: count(arm.jobs), ""),
        ("… finished", lambda arm: count(arm.finished), ""),
        ("… failed or killed", lambda arm: count(arm.failed + arm.killed), ""),
        ("… never finished", lambda arm: count(arm.unfinished), ""),
        ("Mean JCT", lambda arm: unit.of(arm.mean_jct_s), "mean_jct"),
        ("Median JCT", lambda arm: unit.of(arm.median_jct_s), "median_jct"),
        ("95th percentile JCT", lambda arm: unit.of(arm.p95_jct_s), ""),
        ("99th percentile JCT", lambda arm: unit.of(arm.p99_jct_s), ""),
        ("Makespan", lambda arm: unit.of(arm.makespan_s), "makespan"),
        ("Mean queueing (first run − arrival)", lambda arm: unit.of(arm.mean_queueing_s), ""),
        (
            "Mean time to 100 mini-batches",
            lambda arm: unit.of(arm.mean_first_100_minibatches_s),
            "first_100_minibatches",
        ),
        ("GPU utilisation", lambda arm: share(arm.gpu_utilization), ""),
        ("GPUs allocated", lambda arm: share(arm.gpu_allocated), ""),
        ("Highest height", lambda arm: count(arm.max_height), ""),
        ("Suspends", lambda arm: count(arm.suspends), ""),
        ("Migrations", lambda arm: count(arm.migrations), ""),
        (
            "Packings kept / tried",
            lambda arm: f"{count(arm.packings_kept)} / {count(arm.packings_tried)}",
            "",
        ),
        ("Jobs that waited for the AM limit", lambda arm: count(arm.am_limit_waits), ""),
        ("Jobs that waited for host memory", lambda arm: count(arm.host_memory_waits), ""),
        ("Gangs that held a part and waited", lambda arm: count(arm.partial_holds), ""),
        ("GPU-hours held so", lambda arm: f"{arm.partial_hold_gpu_s / 3600:,.1f}", ""),
        ("Restarts from a checkpoint", lambda arm: count(arm.restarts), ""),
        ("Real time the runs took", lambda arm: f"{arm.wall_s:,.1f} s", ""),
    )


def figures_table(shape: ShapeSummary, unit: TimeUnit) -> Table:
    """All figures of all arms; ratios beside them where there is room, else see `ratios_table`."""
    others = list(shape.ratios) if len(shape.ratios) <= RATIO_COLUMNS_MAX else []
    head = ["", *shape.arms, *(f"{BASELINE} ÷ {name}" for name in others)]
    rows: list[tuple[str, ...]] = []
    emphasis: set[int] = set()
    for index, (label, cell, key) in enumerate(figure_rows(unit)):
        cells = [label, *(cell(arm) for arm in shape.arms.values())]
        cells += [ratio_cell(shape, name, key) for name in others]
        rows.append(tuple(cells))
        if key in {"mean_jct", "makespan"}:
            emphasis.add(index)
    return Table(tuple(head), tuple(rows), frozenset(emphasis))


def ratios_table(shape: ShapeSummary) -> Table | None:
    """A row an arm, where there are too many for columns; None where there are not."""
    if len(shape.ratios) <= RATIO_COLUMNS_MAX:
        return None
    keys = ("mean_jct", "median_jct", "makespan", "first_100_minibatches")
    rows = [(name, *(ratio_cell(shape, name, key) for key in keys)) for name in shape.ratios]
    head = (f"{BASELINE} ÷", "mean JCT", "median JCT", "makespan", "time to 100 mini-batches")
    return Table(head, tuple(rows))


def ratio_cell(shape: ShapeSummary, name: str, key: str) -> str:
    """``1.268 (1.10 – 1.41)``; empty for a row without a ratio."""
    if not key:
        return ""
    value: float | None = getattr(shape.ratios[name], key)
    bounds = shape.intervals.get(name, {}).get(key)
    return ratio(value) if bounds is None else f"{ratio(value)}  ({interval(bounds)})"


def shapes_table(summary: Summary, unit: TimeUnit) -> Table:
    """Every shape in short; the quoted one stands out."""
    rows: list[tuple[str, ...]] = []
    emphasis: set[int] = set()
    for shape_name, shape in summary.shapes.items():
        for name, arm in shape.arms.items():
            ratios: Ratios | None = shape.ratios.get(name)
            if shape_name == summary.shape:
                emphasis.add(len(rows))
            rows.append(
                (
                    f"{shape_name} · {name}",
                    unit.of(arm.mean_jct_s),
                    unit.of(arm.median_jct_s),
                    unit.of(arm.makespan_s),
                    share(arm.gpu_utilization),
                    ratio(ratios.mean_jct) if ratios else "",
                    ratio(ratios.makespan) if ratios else "",
                )
            )
    head = (
        "shape · arm",
        "mean JCT",
        "median JCT",
        "makespan",
        "GPU utilisation",
        "mean-JCT ratio",
        "makespan ratio",
    )
    return Table(head, tuple(rows), frozenset(emphasis))


def seeds_table(runs: Sequence[RunDetails], unit: TimeUnit) -> Table:
    """Each seed by itself, in the quoted shape."""
    names = list(dict.fromkeys(run.arm for run in runs))
    by_key = {(run.seed, run.arm): run for run in runs}
    head = ["seed"]
    is_wide = len(names) <= WIDE_ARMS_MAX
    for name in names:
        head += [f"mean JCT, {name}", f"makespan, {name}"] if is_wide else [f"mean JCT, {name}"]
    rows = []
    for seed in sorted({run.seed for run in runs}):
        cells = [str(seed)]
        for name in names:
            run = by_key.get((seed, name))
            cells.append(unit.of(run.figures.mean_jct_s) if run else MISSING)
            if is_wide:
                cells.append(unit.of(run.figures.makespan_s) if run else MISSING)
        rows.append(tuple(cells))
    return Table(tuple(head), tuple(rows))


def breakdown_table(
    runs: Sequence[RunDetails], label: str, key: Callable[[JobRecord], str], unit: TimeUnit
) -> Table:
    """Finished jobs of all seeds by a property, the commonest first where it is no number."""
    names = list(dict.fromkeys(run.arm for run in runs))
    groups: dict[str, dict[str, list[JobRecord]]] = {}
    for run in runs:
        for job in run.jobs:
            groups.setdefault(key(job), {}).setdefault(run.arm, []).append(job)
    head = [label, "jobs"]
    is_wide = len(names) <= WIDE_ARMS_MAX
    for name in names:
        head += (
            [f"mean JCT, {name}", f"mean queueing, {name}"] if is_wide else [f"mean JCT, {name}"]
        )
    others = [name for name in names if is_wide and BASELINE in names and name != BASELINE]
    head += [f"JCT, {BASELINE} ÷ {name}" for name in others]
    rows = [
        breakdown_row(value, groups[value], names, unit)
        for value in sorted(groups, key=lambda value: group_order(value, groups[value]))
    ]
    return Table(tuple(head), tuple(rows[:MODELS_MAX]))


def group_order(value: str, group: Mapping[str, Sequence[JobRecord]]) -> tuple[int, int, str]:
    """Numbers by value, names by how many jobs they have."""
    if value.isdigit():
        return (0, int(value), "")
    return (1, -max(len(jobs) for jobs in group.values()), value)


def breakdown_row(
    value: str,
    group: Mapping[str, Sequence[JobRecord]],
    names: Sequence[str],
    unit: TimeUnit,
) -> tuple[str, ...]:
    """One group: absolute means of each arm, then ratios."""
    cells = [value or "(not named)", count(max(len(jobs) for jobs in group.values()))]
    means: dict[str, float | None] = {}
    for name in names:
        jobs = group.get(name, ())
        means[name] = mean([job.jct_s for job in jobs if job.jct_s is not None])
        queueing_s = mean([job.queueing_s for job in jobs if job.queueing_s is not None])
        cells.append(unit.of(means[name]))
        if len(names) <= WIDE_ARMS_MAX:
            cells.append(unit.of(queueing_s))
    if BASELINE in names and len(names) <= WIDE_ARMS_MAX:
        base = means[BASELINE]
        for name in names:
            ours = means[name]
            if name != BASELINE:
                cells.append(ratio(base / ours) if base is not None and ours else MISSING)
    return tuple(cells)


def stories(run: RunDetails, others: Iterable[RunDetails], unit: TimeUnit) -> tuple[Story, ...]:
    """The ten jobs of a run that were kept from computing longest, with their lives and what the other arms did."""
    delayed = [job for job in run.jobs if job.delay_s is not None]
    delayed.sort(key=lambda job: (-(job.delay_s or 0.0), job.job_id))
    elsewhere = {other.arm: {job.job_id: job for job in other.jobs} for other in others}
    return tuple(story(job, elsewhere, unit) for job in delayed[:DELAYED_MAX])


def story(
    job: JobRecord, elsewhere: Mapping[str, Mapping[str, JobRecord]], unit: TimeUnit
) -> Story:
    """One job."""
    facts = [
        f"JCT {unit.of(job.jct_s)}",
        f"computed {unit.of(job.computed_s)}",
        f"queueing {unit.of(job.queueing_s)}",
        f"suspended {job.suspends} times" if job.suspends else "never suspended",
    ]
    for name, jobs in elsewhere.items():
        other = jobs.get(job.job_id)
        facts.append(f"under {name}: JCT {unit.of(other.jct_s if other else None)}")
    return Story(
        title=f"{job.name}: {job.model or 'model not named'}, {plural(job.gpus, 'GPU')}, "
        f"kept waiting {span(job.delay_s or 0.0)}",
        facts=tuple(facts),
        lines=tuple((instant(moment.at_s), moment.text) for moment in job.story),
    )
