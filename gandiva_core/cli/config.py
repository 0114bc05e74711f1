"""`gandiva config`: a site's own files, read as Hadoop reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.listing import Format, listing
from gandiva_core.cli.main import ExitCode, complain

app = typer.Typer(no_args_is_help=True, help="A site's configuration: show, validate, compare.")

ConfDir = Annotated[Path, typer.Option("--conf-dir", help="A Hadoop configuration folder.")]
Form = Annotated[Format, typer.Option("--format", help="How to print.")]


@app.command("show")
def show(
    conf_dir: ConfDir,
    origin: Annotated[bool, typer.Option("--origin", help="Where each value came from.")] = False,
    form: Form = Format.TABLE,
) -> None:
    """Tell every key of Gandiva, every queue's switches, and Hadoop's keys that matter, as they are in force.

    Exit code 3 where a file cannot be read.
    """
    from gandiva_core.site.configuration import ALL_FILES, SiteConfiguration
    from gandiva_core.site.effective import shown

    site = SiteConfiguration.load(conf_dir, os.environ, ALL_FILES)
    head = ("key", "value", "origin") if origin else ("key", "value")
    rows = [(item.key, item.value, item.origin)[: len(head)] for item in shown(site, os.environ)]
    typer.echo(listing(head, rows, form))


@app.command("validate")
def validate(
    conf_dir: ConfDir,
    is_rm: Annotated[
        bool, typer.Option("--rm", help="It is a ResourceManager's: the default.")
    ] = False,
    is_nm: Annotated[bool, typer.Option("--nm", help="It is a GPU node's.")] = False,
    is_client: Annotated[bool, typer.Option("--client", help="It is a client's.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    form: Annotated[
        Format | None, typer.Option("--format", help="A listing in place of lines.")
    ] = None,
) -> None:
    """Tell whether a cluster could start with these files, and what else is wrong with them, a line each.

    Exit code 0 only where it could start, 1 where it could not (with --strict also after a warning), 3 where a file
    cannot be read. Give several roles where one folder serves all of them.
    """
    from gandiva_core.site.validation import Role, can_start
    from gandiva_core.site.validation import validate as findings_in

    asked = {Role.RM: is_rm, Role.NM: is_nm, Role.CLIENT: is_client}
    roles = [role for role, is_asked in asked.items() if is_asked] or [Role.RM]
    findings = findings_in(conf_dir, roles, os.environ)
    if form is not None:
        head = ("severity", "place", "key", "found", "expected", "advice")
        rows = [
            (f.severity.value, f.place, f.subject, f.found, f.expected, f.advice) for f in findings
        ]
        typer.echo(listing(head, rows, form))
    else:
        for finding in findings:
            typer.echo(_on_one_line(str(finding)))
    _conclude([finding.severity.value for finding in findings], can_start(findings), strict)


@app.command("diff")
def diff(
    left: Annotated[Path, typer.Argument(help="A Hadoop configuration folder.")],
    right: Annotated[Path, typer.Argument(help="Another.")],
    form: Form = Format.TABLE,
) -> None:
    """Tell which keys have other values in force, and where each is set.

    Exit code 0 where there are none, 1 where there are, 3 where a file cannot be read.
    """
    from gandiva_core.site.configuration import ALL_FILES, SiteConfiguration
    from gandiva_core.site.effective import differences

    sites = [SiteConfiguration.load(folder, os.environ, ALL_FILES) for folder in (left, right)]
    rows = [
        (a.key, a.value, b.value, a.origin, b.origin) for a, b in differences(sites[0], sites[1])
    ]
    if rows or form is not Format.TABLE:
        typer.echo(listing(("key", "left", "right", "left from", "right from"), rows, form))
    if rows:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _conclude(severities: Sequence[str], starts: bool, strict: bool) -> None:
    """One line on stderr, and the exit code."""
    counts = [f"{severities.count(kind)} {kind}" for kind in ("error", "warning", "info")]
    verdict = "a cluster could start with it" if starts else "no cluster starts with it"
    complain(f"{verdict}: {', '.join(counts)}")
    if not starts or (strict and "warning" in severities):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _on_one_line(text: str) -> str:
    """Line breaks and control characters of a value are shown, not sent."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
