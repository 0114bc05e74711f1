"""`gandiva recheck`: run journals through the scheduler again and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gandiva_core.cli.main import ExitCode
from gandiva_core.model.errors import InputError

if TYPE_CHECKING:
    from gandiva_core.runtime.journal import Header
    from gandiva_core.runtime.recheck import Figures, RecheckReport

SUFFIXES = (".jsonl.zst", ".jsonl")


def recheck(
    journals: Annotated[
        list[Path], typer.Argument(help="Journals, or folders to look for them in.")
    ],
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Accept a journal that a crash has cut off.")
    ] = False,
) -> None:
    """Run each journal again and compare every decision, refusal, effect and figure.

    Of a stock arm, whose decisions are not ours, its figures are computed again. Exit code 1 where anything differs.
    """
    from gandiva_core.replay.arms import policy_factory
    from gandiva_core.runtime import recheck as rechecking

    differences = 0
    for path in found(journals):
        report = rechecking.recheck(path, policy_factory, figures_of, is_open_ended=unfinished)
        differences += report.difference_count
        typer.echo(in_words(report))
    if differences:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def found(paths: list[Path]) -> list[Path]:
    """Files as given; of a folder every journal under it, by name.

    Raises:
        InputError: a folder without a journal.
    """
    journals: list[Path] = []
    for path in paths:
        if not path.is_dir():
            journals.append(path)
            continue
        inside = sorted(p for p in path.rglob("*.jsonl*") if p.name.endswith(SUFFIXES))
        if not inside:
            raise InputError(str(path), "no journal under it", "a file or folder of journals")
        journals += inside
    return journals


def figures_of(header: Header) -> Figures:
    """How a replay's figures are computed, for comparison with its trailer."""
    from gandiva_core.replay.run import collector_of, trailer_of
    from gandiva_core.runtime.recheck import Figures

    collector = collector_of(header)
    return Figures(collector.observe, lambda: trailer_of(collector))


def in_words(report: RecheckReport) -> str:
    """One line a journal, and the first differences below it."""
    cut = "" if report.is_complete else ", of an interrupted run"
    lines = [
        f"{report.path}: {report.arm}: {report.entries} events, "
        f"{report.difference_count} differences{cut}, sha256 {report.sha256 or 'unknown'}"
    ]
    for each in report.differences:
        lines.append(f"  line {each.line}, event {each.number}, {each.what}:")
        lines += [f"    journal: {each.recorded}", f"    now:     {each.recomputed}"]
    return "\n".join(lines)
