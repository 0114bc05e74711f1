"""The report: `summary.json`, a self-contained `report.html`, and its charts as PNG beside it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import jinja2
import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.replay.arms import BASELINE, STOCK_ARMS
from gandiva_core.replay.charts import (
    Chart,
    cdf,
    over_time,
    png,
    svg,
    time_unit,
)
from gandiva_core.replay.details import RunDetails
from gandiva_core.replay.figures import JobRecord
from gandiva_core.replay.remarks import remarks
from gandiva_core.replay.summary import Summary, chosen
from gandiva_core.replay.tables import (
    Story,
    breakdown_table,
    figures_table,
    ratios_table,
    seeds_table,
    shapes_table,
    stories,
)
from gandiva_core.replay.wording import TimeUnit, both_ways, interval, listed, ratio, unit_for

SUMMARY_FILE, REPORT_FILE = "summary.json", "report.html"
MINUTE_S = 60.0
SOURCES_MAX = 4


class Tile(msgspec.Struct, frozen=True):
    """A headline number: what, the ratio, the absolute values behind it, the interval."""

    label: str
    value: str
    absolute: str
    detail: str


class Drawn(msgspec.Struct, frozen=True):
    """A chart on the page and the journals that it was drawn from."""

    element: str
    source: str
    file: str


class ArmStories(msgspec.Struct, frozen=True):
    """The most delayed jobs of one arm."""

    arm: str
    stories: tuple[Story, ...]


def write_report(summary: Summary, runs: Sequence[RunDetails], out: Path) -> Path:
    """Write everything under `out` and return the page's path.

    Args:
        summary: of `runs`.
        runs: as in `summarise`.
        out: the folder that the runs' journals are relative to.

    Raises:
        InputError: where the folder cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        encoded = msgspec.json.format(msgspec.json.encode(summary), indent=2)
        (out / SUMMARY_FILE).write_bytes(encoded + b"\n")
        quoted = quoted_runs(summary, runs)
        charts = charts_of(quoted)
        for chart in charts:
            png(chart, out / f"{chart.name}.png")
        page = out / REPORT_FILE
        page.write_text(render(summary, runs, quoted, charts), encoding="utf-8")
    except OSError as error:
        found = error.strerror or "cannot be written"
        raise InputError(str(error.filename or out), found, "a folder to write to") from error
    return page


def quoted_runs(summary: Summary, runs: Sequence[RunDetails]) -> list[RunDetails]:
    """The runs behind the quoted figures, arm by arm."""
    return [
        run
        for name in summary.arms
        for run in chosen([r for r in runs if r.shape == summary.shape and r.arm == name])
    ]


def render(
    summary: Summary,
    runs: Sequence[RunDetails],
    quoted: Sequence[RunDetails],
    charts: Sequence[Chart],
) -> str:
    """The page as text; values are escaped by the template."""
    unit = unit_for([arm.makespan_s for arm in summary.arms.values()])
    sources = source_of(quoted)
    template = environment().get_template("report.html.j2")
    return template.render(
        summary=summary,
        title=f"{summary.trace}: {listed(list(summary.arms))}",
        tiles=tiles(summary, unit),
        remarks=remarks(summary, runs),
        surroundings=runs[0].surroundings,
        settings=[(key, f"{value:g}") for key, value in runs[0].settings.items()],
        figures=figures_table(summary.shapes[summary.shape], unit),
        ratios=ratios_table(summary.shapes[summary.shape]),
        shapes=shapes_table(summary, unit),
        seeds=seeds_table(quoted, unit) if len(summary.seeds) > 1 else None,
        by_size=breakdown_table(quoted, "GPUs", lambda job: str(job.gpus), unit),
        by_model=breakdown_table(quoted, "model", lambda job: job.model, unit),
        charts=[Drawn(svg(each), sources, f"{each.name}.png") for each in charts],
        stories=stories_of(quoted, unit),
        arms_told=[(name, arm, STOCK_ARMS.get(name, "")) for name, arm in summary.arms.items()],
        unit=unit,
        baseline=BASELINE,
    )


def environment() -> jinja2.Environment:
    """Templates shipped with the package; every value is escaped, a misspelt one is an error."""
    folder = files("gandiva_core.replay").joinpath("report_pages")
    pages = {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith((".j2", ".css"))
    }
    return jinja2.Environment(
        loader=jinja2.DictLoader(pages),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def tiles(summary: Summary, unit: TimeUnit) -> list[Tile]:
    """The headline numbers of the arm that the comparison is about."""
    name = summary.primary
    base, arm = summary.arms.get(BASELINE), summary.arms.get(name)
    if base is None or arm is None or name not in summary.ratios:
        return []
    bounds = summary.intervals.get(name, {})
    found: list[Tile] = []
    for label, key, field in (
        ("Mean JCT", "mean_jct", "mean_jct_s"),
        ("Median JCT", "median_jct", "median_jct_s"),
        ("Makespan", "makespan", "makespan_s"),
    ):
        value: float | None = getattr(summary.ratios[name], key)
        between = bounds.get(key)
        detail = both_ways(value) + (f"; interval {interval(between)}" if between else "")
        absolute = f"{unit.of(getattr(base, field))} → {unit.of(getattr(arm, field))}"
        found.append(Tile(f"{label}: {BASELINE} ÷ {name}", ratio(value), absolute, detail))
    return found


def charts_of(quoted: Sequence[RunDetails]) -> list[Chart]:
    """Distributions over all seeds, courses of the first seed."""
    names = list(dict.fromkeys(run.arm for run in quoted))
    pooled = {name: [job for r in quoted if r.arm == name for job in r.jobs] for name in names}
    seed = quoted[0].seed
    first = [run for run in quoted if run.seed == seed]
    return [
        distribution("jct-cdf", "Job completion time", pooled, "JCT"),
        distribution("queueing-cdf", "Queueing (first run − arrival)", pooled, "queueing"),
        *courses(first, seed),
    ]


def distribution(name: str, title: str, pooled: dict[str, list[JobRecord]], what: str) -> Chart:
    """A cumulative distribution, one line an arm."""

    def values(jobs: Sequence[JobRecord]) -> list[float]:
        found = [job.jct_s if what == "JCT" else job.queueing_s for job in jobs]
        return [value / MINUTE_S for value in found if value is not None]

    by_arm = {arm: values(jobs) for arm, jobs in pooled.items()}
    least = min((value for found in by_arm.values() for value in found if value > 0), default=0.1)
    floor = max(least, 0.1 if what == "queueing" else 1e-3)
    edge = f"; below {floor:.2g} at the left edge" if what == "queueing" else ""
    return Chart(
        name=name,
        title=title,
        x_label=f"{what} in minutes, logarithmic{edge}",
        y_label="share of jobs",
        lines=tuple(cdf(arm, found, floor) for arm, found in by_arm.items()),
        alt=f"Cumulative distribution of {what} for {', '.join(by_arm)}",
        is_log=True,
        top=1.0,
    )


def courses(first: Sequence[RunDetails], seed: int) -> list[Chart]:
    """Utilisation, load and height over virtual time."""
    origin_s = min((job.arrival_s for run in first for job in run.jobs), default=0.0)
    longest_s = max(len(run.course.load.values) * run.course.load.bin_s - origin_s for run in first)
    unit_s, unit = time_unit(longest_s)
    x_label = f"{unit} from the first arrival (seed {seed})"

    def chart(name: str, title: str, y_label: str, field: str, top: float | None = None) -> Chart:
        return Chart(
            name=name,
            title=title,
            x_label=x_label,
            y_label=y_label,
            lines=tuple(
                over_time(run.arm, getattr(run.course, field), unit_s, origin_s) for run in first
            ),
            alt=f"{title} over time for {', '.join(run.arm for run in first)}",
            is_step=True,
            top=top,
            whole=field == "height",
        )

    return [
        chart("utilization", "GPU utilisation", "busy share of all GPUs", "utilization", 1.0),
        chart("allocated", "GPUs allocated", "share of all GPUs", "allocated", 1.0),
        chart("load", "Load: GPUs asked for by residents ÷ GPUs", "ΣM / ΣN", "load"),
        chart("height", "Highest height of any server", "⌈M/N⌉", "height"),
    ]


def source_of(quoted: Sequence[RunDetails]) -> str:
    """The journals that figures come from, with the start of their hashes; of many, where to find them."""
    if len(quoted) > SOURCES_MAX:
        return (
            f"the {len(quoted)} journals of shape {quoted[0].shape}, listed with their hashes below"
        )
    return "; ".join(f"{run.journal} ({run.journal_sha256[:12]})" for run in quoted)


def stories_of(quoted: Sequence[RunDetails], unit: TimeUnit) -> list[ArmStories]:
    """Of the first seed, each arm."""
    seed = quoted[0].seed
    first = [run for run in quoted if run.seed == seed]
    return [
        ArmStories(run.arm, stories(run, [each for each in first if each is not run], unit))
        for run in first
    ]
