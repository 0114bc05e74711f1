"""`gandiva policy`: which policies there are, and what each can switch."""

from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint
from typing import Annotated

import typer

from gandiva_core.cli.listing import Format, listing
from gandiva_core.model.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Policies that can be arms of a replay.")


@app.command("list")
def list_policies(
    form: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """List installed policies, those of other packages too."""
    from gandiva_core.replay.arms import policies

    rows = [described(entry) for entry in policies().values()]
    typer.echo(listing(("name", "mechanisms", "from", "package"), rows, form))


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="A policy's name.")]) -> None:
    """Tell what a policy does, its mechanisms, and how to switch them off."""
    from gandiva_core.config.settings import Settings
    from gandiva_core.replay.arms import policies, policy_factory

    entry = policies().get(name)
    if entry is None:
        raise InputError("gandiva policy show", repr(name), f"one of {', '.join(policies())}")
    policy = policy_factory(name)(Settings(), {})
    module = inspect.getmodule(type(policy))
    text = inspect.getdoc(module) or inspect.getdoc(type(policy)) or "(not documented)"
    mechanisms = ", ".join(policy.mechanisms) or "none"
    lines = [name, "", text, "", f"mechanisms, all on unless switched off: {mechanisms}"]
    if policy.mechanisms:
        lines.append(f"as an arm: --arms capacity,{name},{name}:-{policy.mechanisms[0]}")
    typer.echo("\n".join([*lines, f"from {entry.value}, package {package(entry)}"]))


def described(entry: EntryPoint) -> tuple[str, ...]:
    """One row; a policy that does not load is listed with the reason."""
    from gandiva_core.config.settings import Settings
    from gandiva_core.replay.arms import policy_factory

    try:
        mechanisms = ", ".join(policy_factory(entry.name)(Settings(), {}).mechanisms) or "none"
    except InputError as error:
        mechanisms = f"not usable: {error.found}"
    return (entry.name, mechanisms, entry.value, package(entry))


def package(entry: EntryPoint) -> str:
    """The distribution that brings it."""
    return entry.dist.name if entry.dist is not None else "unknown"
