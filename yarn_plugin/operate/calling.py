"""What the commands have in common: where the core is, and how its refusals end a command."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.messages.operations import Operation, OperationReply, Refused
from gandiva_core.model.errors import InputError
from yarn_plugin.cluster.state import StateFolder, default_folder

if TYPE_CHECKING:
    from yarn_plugin.operate.client import CoreAddress

ConfDir = Annotated[
    Path | None, typer.Option("--conf-dir", help="Hadoop's configuration folder of the core.")
]
StateDir = Annotated[
    Path | None,
    typer.Option("--state-dir", help="Folder of a local cluster.  [default: the user's own]"),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        help="File of mode 0600 with your token.  [default: the administrators', as configured]",
        envvar="GANDIVA_OPERATIONS_TOKEN_FILE",
    ),
]


def address_of(
    conf_dir: Path | None, state_dir: Path | None, token_file: Path | None
) -> CoreAddress:
    """The core that is meant.

    Raises:
        InputError: two places, or files that cannot be used.
    """
    from yarn_plugin.operate.client import core_address

    folder = _local(conf_dir, state_dir)
    return core_address(folder.conf if isinstance(folder, StateFolder) else folder, token_file)


def yarn_of(conf_dir: Path | None, state_dir: Path | None) -> tuple[str, dict[str, str]]:
    """The `yarn` of the cluster that is meant, and its environment.

    Raises:
        InputError: two places, or no `yarn` on PATH.
    """
    folder = _local(conf_dir, state_dir)
    if isinstance(folder, StateFolder):
        return str(folder.yarn), dict(os.environ)
    yarn = shutil.which("yarn")
    if yarn is None:
        raise InputError("PATH", "no yarn", "Hadoop's yarn command")
    return yarn, {**os.environ, "HADOOP_CONF_DIR": str(folder), "YARN_CONF_DIR": str(folder)}


def _local(conf_dir: Path | None, state_dir: Path | None) -> StateFolder | Path:
    """A local cluster that is up, or the folder that was named."""
    if conf_dir is not None:
        if state_dir is not None:
            raise InputError("--conf-dir", "a --state-dir as well", "one of them")
        return conf_dir.absolute()
    folder = StateFolder(state_dir or default_folder())
    if folder.load() is None:
        complain(f"error: no cluster is up in {folder.path}; name a --conf-dir")
        raise typer.Exit(ExitCode.UNREACHABLE)
    return folder


def asked(
    operation: Operation, conf_dir: Path | None, state_dir: Path | None, token_file: Path | None
) -> OperationReply:
    """The core's answer; a refusal ends the command (DESIGN §10)."""
    from yarn_plugin.operate.client import CoreUnreachableError, NotAdmittedError

    try:
        reply = address_of(conf_dir, state_dir, token_file).call(operation)
    except CoreUnreachableError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.UNREACHABLE) from error
    except NotAdmittedError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.REFUSED) from error
    if isinstance(reply, Refused):
        complain(f"error: {reply.detail}")
        raise typer.Exit(ExitCode.BAD_INPUT if reply.code == "UNKNOWN" else ExitCode.REFUSED)
    return reply
