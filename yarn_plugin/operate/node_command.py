"""`gandiva node`."""

from __future__ import annotations

from typing import Annotated

import typer

from gandiva_core.cli.listing import Format
from gandiva_core.cli.main import complain
from gandiva_core.messages.operations import (
    DrainNode,
    NodeLine,
    Nodes,
    OperationReply,
    ShowNodes,
)
from yarn_plugin.operate.calling import ConfDir, Form, Place, StateDir, Table, TokenFile

app = typer.Typer(
    no_args_is_help=True, help="Look at the servers of a running core, and empty them."
)

Name = Annotated[str, typer.Argument(metavar="NODE", help="As `gandiva node list` has it.")]


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


def _nodes(reply: OperationReply) -> tuple[NodeLine, ...]:
    return reply.nodes if isinstance(reply, Nodes) else ()


NODES = Table(
    ("node", "state", "agent", "gpus", "running", "residents", "shares"),
    lambda reply: list(map(row_of, _nodes(reply))),
)


@app.command("list")
def show_list(
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """List servers, their agents and how full they are."""
    NODES.show(Place(conf_dir, state_dir, token_file).ask(ShowNodes()), form)


@app.command("drain")
def drain(
    name: Name,
    conf_dir: ConfDir = None,
    state_dir: StateDir = None,
    token_file: TokenFile = None,
    form: Form = Format.TABLE,
) -> None:
    """Let nobody new come to a server; who is there stays until it ends, and is listed."""
    reply = Place(conf_dir, state_dir, token_file).ask(DrainNode(name, True))
    NODES.show(reply, form)
    for node in _nodes(reply):
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
    NODES.show(Place(conf_dir, state_dir, token_file).ask(DrainNode(name, False)), form)
