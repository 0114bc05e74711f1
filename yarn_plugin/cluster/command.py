"""`gandiva cluster`: a real YARN cluster on this machine, for trying things and for tests."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gandiva_core.cli.listing import Format, listing
from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.model.errors import InputError
from yarn_plugin.cluster.configuration import (
    CAPACITY,
    GANDIVA,
    agent_socket,
    scheduler_properties,
)
from yarn_plugin.cluster.state import (
    NODES_MAX,
    RM_HOST,
    Cluster,
    Plan,
    StateFolder,
    default_folder,
)

if TYPE_CHECKING:
    from yarn_plugin.cluster.processes import ProcessTable
    from yarn_plugin.cluster.status import RmReport

app = typer.Typer(
    no_args_is_help=True,
    help="A real ResourceManager and real NodeManagers on this machine, on loopback addresses only.",
)

HEAD = ("name", "state", "pid", "address", "containers", "gpus")
HEIGHT_MAX = 4
"""As the key's own default."""

_KEY = re.compile(r"[A-Za-z][\w.\-/]*")


class Scheduler(StrEnum):
    """Who schedules."""

    CAPACITY = CAPACITY
    GANDIVA = GANDIVA


StateDir = Annotated[
    Path | None,
    typer.Option("--state-dir", help="Folder of the cluster.  [default: the user's state folder]"),
]


@app.command("up")
def bring_up(
    nodes: Annotated[int, typer.Option(help="NodeManagers.", min=1, max=NODES_MAX)] = 3,
    gpus: Annotated[
        int, typer.Option(help="GPUs each node tells of; none needs to be there.", min=0, max=1024)
    ] = 4,
    scheduler: Annotated[Scheduler, typer.Option(help="Who schedules.")] = Scheduler.GANDIVA,
    state_dir: StateDir = None,
    *,
    height_max: Annotated[
        int, typer.Option(help="Jobs per GPU at most, under gandiva.", min=1, max=64)
    ] = HEIGHT_MAX,
    agents: Annotated[
        bool,
        typer.Option(
            "--agents/--no-agents",
            help="An agent beside each node, with a virtual device for each of its GPUs.",
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A Hadoop key; may be repeated."),
    ] = None,
) -> None:
    """Start the cluster, or what is missing of it. Called again, it changes nothing."""
    from yarn_plugin.cluster import lifecycle

    properties = properties_of(settings or [])
    plan = Plan(nodes, gpus, str(scheduler), height_max, properties, agents)
    folder = StateFolder(state_dir or default_folder())
    refuse_own(plan, folder)
    with ended_like_ctrl_c():
        lifecycle.up(folder, plan, say)
    say(f"up: {nodes} nodes under {scheduler}; use {folder.yarn} jar|application|node|…")


@app.command("status")
def show_status(
    state_dir: StateDir = None,
    form: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> None:
    """List processes and nodes. Exit code 0 where all work, 1 where one does not, 4 where none answers."""
    from gandiva_core.site.http import HttpSession
    from yarn_plugin.cluster import status
    from yarn_plugin.cluster.processes import ProcessTable

    folder = StateFolder(state_dir or default_folder())
    cluster = folder.load()
    if cluster is None:
        raise unreachable(f"no cluster is up in {folder.path}")
    try:
        with HttpSession(tries_max=2) as session:
            report = status.ask(cluster, session)
    except status.ClusterUnreachableError as error:
        raise unreachable(str(error)) from error
    rows = rows_of(cluster, report, ProcessTable(folder.run, cluster.cluster_id))
    typer.echo(listing(HEAD, rows, form))
    if any(row[1] not in {"RUNNING", "STARTED"} for row in rows):
        raise typer.Exit(ExitCode.CHECK_FAILED)


@app.command("down")
def take_down(state_dir: StateDir = None) -> None:
    """End the cluster's processes and forget it; its logs and journals stay."""
    from yarn_plugin.cluster import lifecycle

    folder = StateFolder(state_dir or default_folder())
    if not lifecycle.down(folder, say):
        say(f"no cluster is up in {folder.path}")


@contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """SIGTERM interrupts as Ctrl-C does, so that what was started is ended."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def rows_of(cluster: Cluster, report: RmReport, table: ProcessTable) -> list[tuple[str, ...]]:
    """A line for each process; of a node what the ResourceManager thinks of it too."""
    from yarn_plugin.bridge.status import CONNECTED
    from yarn_plugin.cluster.daemons import CORE, RESOURCE_MANAGER, agent_of

    rm = table.alive(RESOURCE_MANAGER)
    address = f"{RM_HOST}:{cluster.ports['web']}"
    apps = f"{report.apps_running} apps, {report.apps_pending} pending"
    rows: list[tuple[str, ...]] = [
        (RESOURCE_MANAGER, report.state if rm else "DEAD", str(rm or ""), address, apps, "")
    ]
    if report.core is not None:
        state = "RUNNING" if report.core.state == CONNECTED else report.core.state
        rows.append((CORE, state, "", f"bridge {cluster.ports['bridge']}", report.core.alarm, ""))
    seen = {node.node_id: node for node in report.nodes}
    for node in cluster.nodes:
        pid, told = table.alive(node.name), seen.get(node.node_id)
        state = "DEAD" if pid is None else told.state if told else "UNKNOWN"
        used = f"{told.gpus_used}/{told.gpus}" if told else ""
        count = str(told.containers) if told else ""
        rows.append((node.name, state, str(pid or ""), node.node_id, count, used))
    for node in cluster.nodes if cluster.plan.agents else ():
        pid = table.alive(agent_of(node))
        state = "RUNNING" if pid else "DEAD"
        socket = str(agent_socket(cluster, node))
        rows.append((agent_of(node), state, str(pid or ""), socket, "", ""))
    return rows


def properties_of(settings: list[str]) -> dict[str, str]:
    """Hadoop keys from ``KEY=VALUE``.

    Raises:
        InputError: no such pair.
    """
    properties: dict[str, str] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise InputError("--set", repr(text), "KEY=VALUE with the name of a Hadoop key")
        properties[key] = value
    return properties


def refuse_own(plan: Plan, folder: StateFolder) -> None:
    """Keys that an option sets cannot be set a second way.

    Raises:
        InputError: the first such key.
    """
    probe = Cluster(plan, "", {"bridge": 0}, ())
    for key in scheduler_properties(folder, probe):
        if key in plan.properties:
            raise InputError("--set", key, "the option for it, or nothing: the cluster sets it")


def unreachable(text: str) -> typer.Exit:
    """Say it in one line; exit code 4."""
    complain(f"error: {text}")
    return typer.Exit(ExitCode.UNREACHABLE)


def say(text: str) -> None:
    """Progress goes to stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
