"""`gandiva report`: a report from runs made before, apart from each other if need be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.replay import in_short


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that replays were written to.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to; default: the folder, if it is one.")
    ] = None,
) -> None:
    """Join arms that were run apart, and report how they compare.

    Refused where their nodes, queue file, trace or engine differ beyond what a baseline prescribes.
    """
    from gandiva_core.replay.compare import join, target
    from gandiva_core.replay.report import write_report
    from gandiva_core.replay.summary import summarise

    where = target(folders, out)
    runs = join(folders, where)
    summary = summarise(runs)
    page = write_report(summary, runs, where)
    typer.echo(in_short(summary))
    typer.echo(f"report: {page}")
