"""`gandiva node`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gandiva_core.cli.listing import Format, listing
from gandiva_core.cli.main import complain
from gandiva_core.messages.operations import (
    DrainNode,
    NodeLine,
    Nodes,
    Operation,
    ShowNodes,
)
from yarn_plugin.operate.calling import ConfDir, StateDir, TokenFile, asked

app = typer.Typer(
    no_args_is_help=True, help="Look at the servers of a running core, and empty them."
)

HEAD = ("node", "state", "agent", "gpus", "running", "residents", "shares")
Form = Annotated[Format, typer.Option("--format", help="How to print.")]
Name = Annotated[str, typer.Argument(metavar="NODE", help="As `gandiva node list` has it.")]


@app.command("list")
def show_list(
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """List servers, their agents and how full they are."""
    nodes = _asked(ShowNodes(), conf_dir, state_dir, token_file)
    typer.echo(listing(HEAD, [row_of(node) for node in nodes], form))


@app.command("drain")
def drain(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Let nobody new come to a server; who is there stays until it ends, and is listed."""
    nodes = _asked(DrainNode(name, True), conf_dir, state_dir, token_file)
    typer.echo(listing(HEAD, [row_of(node) for node in nodes], form))
    for node in nodes:
        for job_id in node.residents:
            complain(f"{job_id} is still there")


@app.command("resume")
def resume(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Let jobs come to a server again."""
    nodes = _asked(DrainNode(name, False), conf_dir, state_dir, token_file)
    typer.echo(listing(HEAD, [row_of(node) for node in nodes], form))


def row_of(node: NodeLine) -> tuple[str, ...]:
    """A server in one line."""
    return (
        node.node,
        "DRAINING" if node.is_draining else "OPEN",
        node.agent,
        str(node.gpus),
        str(node.running),
        str(len(node.residents)),
        "yes" if node.can_suspend else "no",
    )


def _asked(
    operation: Operation, conf_dir: Path | None, state_dir: Path | None, token_file: Path | None
) -> tuple[NodeLine, ...]:
    reply = asked(operation, conf_dir, state_dir, token_file)
    return reply.nodes if isinstance(reply, Nodes) else ()
