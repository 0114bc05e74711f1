"""`gandiva submit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.main import ExitCode, complain


def submit(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]", help="What each worker runs; one word is a line of shell."
        ),
    ] = None,
    *,
    conf_file: Annotated[
        Path | None, typer.Option(help="Keys of the job, as a Hadoop configuration file.")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A key of the job, or of TonY's; may be repeated."),
    ] = None,
    src_dir: Annotated[
        Path | None, typer.Option(help="Folder that every task starts in a copy of.")
    ] = None,
    python_venv: Annotated[Path | None, typer.Option(help="Archive with a Python.")] = None,
    python: Annotated[str, typer.Option(help="Interpreter that is given the command.")] = "",
    name: Annotated[str, typer.Option(help="Of the application.")] = "",
    detach: Annotated[bool, typer.Option("--detach", help="End once it is submitted.")] = False,
    conf_dir: Annotated[
        Path | None, typer.Option(help="The cluster's Hadoop configuration folder.")
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of a local cluster.  [default: the user's own]"),
    ] = None,
) -> None:
    """Submit a training job and follow it to its end (docs/JOBS.md).

    The exit code is the job's own; 3 for bad input, 4 where no ResourceManager answers, 5 where it refused.
    """
    from yarn_plugin.cluster.chosen import NoClusterError
    from yarn_plugin.submit.client import Job, runner, shell_command
    from yarn_plugin.submit.client import submit as run

    job = Job(
        command=shell_command(command) if command else "",
        conf_file=conf_file,
        settings=tuple(conf or ()),
        src_dir=src_dir,
        python_venv=python_venv,
        python=python,
        name=name,
        is_detached=detach,
    )
    try:
        program, environment = runner(conf_dir, state_dir)
    except NoClusterError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.UNREACHABLE) from error
    raise typer.Exit(run(job, program, environment))
