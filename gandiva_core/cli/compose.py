"""Joins the parts that must not import each other: commands, and whatever entry points bring."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated

import typer

import gandiva_core
from gandiva_core.model.errors import InputError

COMMAND_GROUP = "gandiva.commands"
"""Entry point group: name → a typer application (a command with sub-commands) or a function (a command)."""

EXTRAS = {
    "apscheduler": "core",
    "jinja2": "replay",
    "matplotlib": "replay",
    "numpy": "replay",
    "psutil": "core",
    "py4j": "core",
    "requests": "core",
    "structlog": "core",
    "tenacity": "core",
}
"""Which extra brings a library that a command may miss."""


def application() -> typer.Typer:
    """The command line with every installed command; one that cannot be loaded says so when it is called."""
    app = typer.Typer(
        name="gandiva",
        help="GPU scheduling on Hadoop YARN: replays, reports, traces, policies.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for entry in sorted(entry_points(group=COMMAND_GROUP), key=lambda entry: entry.name):
        add_command(app, entry)
    return app


def show_version(is_asked: bool) -> None:
    """Print version and commit, and stop."""
    if is_asked:
        from gandiva_core.replay.provenance import commit

        typer.echo(f"gandiva {gandiva_core.__version__} (commit {commit()})")
        raise typer.Exit


def root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show version and commit.", is_eager=True, callback=show_version
        ),
    ] = False,
) -> None:
    """GPU scheduling on Hadoop YARN: replays, reports, traces, policies."""


def add_command(app: typer.Typer, entry: EntryPoint) -> None:
    """Put one entry point's command under its name."""
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        app.command(entry.name, help="Not available: its parts are not installed.")(
            broken(entry, error)
        )
        return
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=entry.name)
    else:
        app.command(entry.name)(loaded)


def broken(entry: EntryPoint, error: Exception) -> Callable[[], None]:
    """A command in place of one that does not load."""

    def command() -> None:
        raise missing(f"gandiva {entry.name}", error)

    return command


def missing(place: str, error: Exception) -> InputError:
    """What to install where a library is not there."""
    name = (getattr(error, "name", None) or "").partition(".")[0]
    extra = EXTRAS.get(name)
    expected = f"pip install 'gandiva-yarn[{extra}]'" if extra else "a complete installation"
    return InputError(place, str(error), expected)
