"""`gandiva replay`: one trace, several schedulers, one report."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.cli.progress import ProgressMode, following
from gandiva_core.replay.planning import Shape
from gandiva_core.replay.traces.findings import OnBad

if TYPE_CHECKING:
    from gandiva_core.replay.preparation import Prepared
    from gandiva_core.replay.summary import Summary

DEFAULT_TRACE = "gandiva-9d"
DEFAULT_ARMS = "capacity,gandiva"
SEEDS_MAX = 1000


class ShapeChoice(StrEnum):
    """What `--shape` takes."""

    GPU = "gpu"
    SERVER = "server"
    BOTH = "both"


def replay(
    trace: Annotated[
        str, typer.Argument(help="A trace file, or gandiva-9d, gandiva-3h, gandiva-180.")
    ] = DEFAULT_TRACE,
    *,
    cluster: Annotated[
        str | None,
        typer.Option(help="A cluster file or gandiva-100, gandiva-180; default: the trace's own."),
    ] = None,
    arms: Annotated[
        str, typer.Option(help="Schedulers to compare, by commas; gandiva:-slicing switches.")
    ] = DEFAULT_ARMS,
    engine: Annotated[
        str, typer.Option(help="yarn: a real ResourceManager; sim: no JVM, stock arms modelled.")
    ] = "yarn",
    seed: Annotated[int | None, typer.Option(min=0, help="One seed; default 1.")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=SEEDS_MAX, help="Seeds 1 to this number.")
    ] = None,
    shape: Annotated[
        ShapeChoice, typer.Option(help="A container a GPU, or one a server; both for both.")
    ] = ShapeChoice.BOTH,
    conf_dir: Annotated[
        Path | None, typer.Option(help="A site's Hadoop configuration, used in every arm.")
    ] = None,
    height_max: Annotated[
        int | None, typer.Option(help="Residents a device at most; default 4.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for journals and report.")] = Path("out/replay"),
    on_bad: Annotated[
        OnBad, typer.Option(help="Faulty rows: limit refuses above 1 %, skip never, fail at once.")
    ] = OnBad.LIMIT,
    trace_format: Annotated[
        str | None, typer.Option(help="The trace's format, where it is not recognised.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option("--processes", "-j", min=1, help="Runs at a time; default: CPUs.")
    ] = None,
    progress: Annotated[
        ProgressMode, typer.Option(help="A bar on a terminal, always, or never.")
    ] = ProgressMode.AUTO,
) -> None:
    """Play one trace under several schedulers and report how they compare.

    Writes OUT/report.html, OUT/summary.json, charts as PNG, and a journal a run under OUT/journals. Ctrl-C
    leaves a report of what was played, marked partial.
    """
    from gandiva_core.replay.preparation import Request, prepare
    from gandiva_core.replay.traces.reading import ReadOptions

    if seed is not None and seeds is not None:
        raise typer.BadParameter("--seed and --seeds exclude each other")
    prepared = prepare(
        Request(
            trace=trace,
            arms=arms,
            engine=engine,
            seeds=tuple(range(1, seeds + 1)) if seeds else (1 if seed is None else seed,),
            shapes=tuple(Shape) if shape is ShapeChoice.BOTH else (Shape(shape.value),),
            out=out,
            cluster=cluster,
            conf_dir=conf_dir,
            height_max=height_max,
            read_options=ReadOptions(on_bad=on_bad),
            format_name=trace_format,
            environment=os.environ,
        )
    )
    for finding in prepared.findings:
        complain(finding)
    play(prepared, out, processes, progress)


def play(prepared: Prepared, out: Path, processes: int | None, mode: ProgressMode) -> None:
    """Run, report, and say where the report is."""
    from gandiva_core.replay.earlier import replacing
    from gandiva_core.replay.experiment import run_all
    from gandiva_core.replay.report import write_report
    from gandiva_core.replay.summary import summarise

    with replacing(out) as has_earlier, following(mode, prepared.orders) as on_progress:
        result = run_all(prepared.orders, processes, on_progress)
        if not result.runs:
            left = "the earlier report stands" if has_earlier else "no report"
            complain(f"interrupted before anything was played; {left}")
            raise typer.Exit(ExitCode.INTERRUPTED)
    is_partial = result.is_interrupted or len(result.runs) < len(prepared.orders)
    summary = summarise(result.runs, is_partial)
    page = write_report(summary, result.runs, out)
    if result.is_interrupted:
        complain("interrupted: the report holds what was played, and says that it is partial")
    typer.echo(in_short(summary))
    typer.echo(f"report: {page}")
    if result.is_interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def in_short(summary: Summary) -> str:
    """The figures that everybody asks for first, a line an arm and shape."""
    from gandiva_core.replay.wording import MISSING, interval, ratio, unit_for

    unit = unit_for([arm.makespan_s for arm in summary.arms.values()])
    lines = []
    for shape, each in summary.shapes.items():
        for name, arm in each.arms.items():
            line = f"{shape:7} {name:24} {arm.finished}/{arm.jobs} jobs  "
            line += f"mean JCT {unit.of(arm.mean_jct_s)}  makespan {unit.of(arm.makespan_s)}"
            ratios = each.ratios.get(name)
            if ratios is not None:
                line += f"  ratio {ratio(ratios.mean_jct)}"
                between = interval(each.intervals[name].get("mean_jct"))
                line += f" ({between})" if between != MISSING else ""
            lines.append(line)
    return "\n".join(lines)
