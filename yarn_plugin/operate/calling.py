"""What the commands have in common: where the core is, how it is asked, and how its refusals end a command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from gandiva_core.cli.listing import Format, listing
from gandiva_core.cli.main import ExitCode, complain
from gandiva_core.messages.operations import Operation, OperationReply, Refused
from gandiva_core.model.errors import InputError
from yarn_plugin.cluster.chosen import NoClusterError, chosen, yarn_of
from yarn_plugin.cluster.state import StateFolder

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


Form = Annotated[Format, typer.Option("--format", help="How to print.")]


class Place(msgspec.Struct, frozen=True):
    """Where a command's core is, as its options say."""

    conf_dir: Path | None
    state_dir: Path | None
    token_file: Path | None = None

    def address(self) -> CoreAddress:
        """The core that is meant.

        Raises:
            InputError: two places, or files that cannot be used.
        """
        from yarn_plugin.operate.client import core_address

        with _ending():
            folder = chosen(self.conf_dir, self.state_dir)
        conf_dir = folder.conf if isinstance(folder, StateFolder) else folder
        return core_address(conf_dir, self.token_file)

    def yarn(self) -> tuple[str, dict[str, str]]:
        """The `yarn` of the cluster that is meant, and its whole environment.

        Raises:
            InputError: two places, or no `yarn` on PATH.
        """
        with _ending():
            yarn, environment = yarn_of(self.conf_dir, self.state_dir)
        if yarn is None:
            raise InputError("PATH", "no yarn", "Hadoop's yarn command")
        return yarn, {**os.environ, **environment}

    def ask(self, operation: Operation) -> OperationReply:
        """The core's answer; a refusal ends the command (DESIGN §10)."""
        with _ending():
            reply = self.address().call(operation)
        if isinstance(reply, Refused):
            complain(f"error: {reply.detail}")
            raise typer.Exit(ExitCode.BAD_INPUT if reply.code == "UNKNOWN" else ExitCode.REFUSED)
        return reply


class Table(msgspec.Struct, frozen=True):
    """How answers are printed.

    Attributes:
        rows: the lines of an answer; none of one that is of another kind.
    """

    head: Sequence[str]
    rows: Callable[[OperationReply], Sequence[Sequence[str]]]

    def show(self, reply: OperationReply, form: Format) -> None:
        """Print an answer."""
        typer.echo(listing(self.head, self.rows(reply), form))


@contextmanager
def _ending() -> Iterator[None]:
    """A core that is not there, or lets nobody in, ends the command."""
    from yarn_plugin.operate.client import CoreUnreachableError, NotAdmittedError

    try:
        yield
    except (CoreUnreachableError, NoClusterError) as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.UNREACHABLE) from error
    except NotAdmittedError as error:
        complain(f"error: {error}")
        raise typer.Exit(ExitCode.REFUSED) from error
