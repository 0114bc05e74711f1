"""`gandiva core`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.main import ExitCode, complain


def core(
    port: Annotated[int, typer.Option(help="Of the bridge, on loopback.", min=1, max=65535)],
    token_file: Annotated[Path, typer.Option(help="File of mode 0600 with the bridge's secret.")],
    journal_dir: Annotated[
        Path | None, typer.Option(help="Folder for the journal; without it none is kept.")
    ] = None,
    conf_dir: Annotated[
        Path | None, typer.Option(help="The ResourceManager's configuration folder.")
    ] = None,
    exit_after_lost_s: Annotated[
        float | None,
        typer.Option(help="End when the gateway has been lost for so long; else look on.", min=0.0),
    ] = None,
    managed: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Set by the ResourceManager that runs this as its child.",
            hidden=True,
        ),
    ] = None,
) -> None:
    """Decide for a running ResourceManager until told to end (SIGTERM).

    Exit code 4 where its gateway cannot be reached at the start, or for longer than told to wait; 5 where another
    core has taken over, or the ResourceManager runs its own.
    """
    from yarn_plugin.live.connection import GatewayUnreachableError, SupersededError
    from yarn_plugin.live.parent import Parent
    from yarn_plugin.live.process import decide

    parent = None if managed is None else Parent(managed)
    try:
        decide(port, token_file, journal_dir, conf_dir, exit_after_lost_s, parent)
    except GatewayUnreachableError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.UNREACHABLE) from error
    except SupersededError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.REFUSED) from error
