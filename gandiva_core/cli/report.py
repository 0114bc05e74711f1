"""`gandiva report`: a report from runs made before, apart from each other if need be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.cli.replay import in_short


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that replays were written to.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to; default: the folder, if it is one.")
    ] = None,
) -> None:
    """Join arms that were run apart, and report how they compare; arms of replays, or of live replays.

    Refused where their nodes, queue file, trace or engine differ beyond what a baseline prescribes.
    """
    from gandiva_core.replay.compare import join, target
    from gandiva_core.replay.live import is_live
    from gandiva_core.replay.report import write_report
    from gandiva_core.replay.summary import summarise

    where = target(folders, out)
    if all(is_live(folder) for folder in folders):
        _report_live(folders, where)
        return
    runs = join(folders, where)
    summary = summarise(runs)
    page = write_report(summary, runs, where)
    typer.echo(in_short(summary))
    typer.echo(f"report: {page}")


def _report_live(folders: list[Path], where: Path) -> None:
    from gandiva_core.replay import live

    run = live.join([(str(folder), live.read(folder)) for folder in folders])
    where.mkdir(parents=True, exist_ok=True)
    file = where / live.SUMMARY
    file.write_text(json.dumps(live.summary(run), indent=1) + "\n", encoding="utf-8")
    for line in live.in_short(run):
        typer.echo(line)
    typer.echo(f"summary: {file}")
    if not run.is_valid:
        complain("not valid: a job failed, or the processors were the bottleneck")
        raise typer.Exit(ExitCode.CHECK_FAILED)
