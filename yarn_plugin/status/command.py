"""`gandiva status`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.listing import Format, listing
from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.model.errors import InputError

HEAD = ("item", "value")


def status(
    rm: Annotated[
        str | None, typer.Option("--rm", metavar="URL", help="Web address of a ResourceManager.")
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option("--state-dir", help="Folder of a local cluster.  [default: the user's own]"),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """Say how Gandiva does in a ResourceManager: mode, core, breaker, fallback, heights, counters.

    Exit code 0 where the core is connected, 1 where it is silent, gives an alarm or is not there, 4 where no
    ResourceManager answers.
    """
    from gandiva_core.site.http import HttpSession
    from yarn_plugin.bridge.status import RmUnreachableError, ask, rows_of

    address = _address(rm, state_dir)
    try:
        with HttpSession(tries_max=2) as session:
            found = ask(address, session)
    except RmUnreachableError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.UNREACHABLE) from error
    typer.echo(listing(HEAD, rows_of(address, found), form))
    if found.bean is None:
        complain(f"error: no Gandiva in the ResourceManager at {address}")
    if found.bean is None or not found.bean.is_well:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _address(rm: str | None, state_dir: Path | None) -> str:
    from yarn_plugin.bridge.status import rm_address
    from yarn_plugin.cluster.state import StateFolder, default_folder

    if rm is not None:
        address = rm_address(rm)
        if address is None or state_dir is not None:
            found = repr(rm) if state_dir is None else "a --state-dir as well"
            raise InputError("--rm", found, "http://HOST:PORT, or a --state-dir")
        return address
    folder = StateFolder(state_dir or default_folder())
    cluster = folder.load()
    if cluster is None:
        complain(f"error: no cluster is up in {folder.path}; --rm URL asks another one")
        raise typer.Exit(ExitCode.UNREACHABLE)
    return cluster.web
