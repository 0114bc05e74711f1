"""The console script: builds the command line and turns every failure into one line and an exit code (DESIGN §10)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import IntEnum

from gandiva_core.model.errors import GandivaError, InputError

DEBUG = "GANDIVA_DEBUG"
"""Environment variable: set to 1, a failure shows its traceback."""


class ExitCode(IntEnum):
    """What the shell is told (DESIGN §10)."""

    DONE = 0
    CHECK_FAILED = 1
    WRONG_USAGE = 2
    BAD_INPUT = 3
    UNREACHABLE = 4
    REFUSED = 5
    INTERRUPTED = 130


def main() -> None:
    """Entry point of the `gandiva` script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; never a traceback unless `GANDIVA_DEBUG=1`."""
    try:
        from gandiva_core.cli.compose import application

        application()(list(arguments), prog_name="gandiva")
    except SystemExit as stop:
        if is_interrupt(stop):
            complain("interrupted")
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        complain("interrupted")
        return ExitCode.INTERRUPTED
    except Exception as error:  # a user is never shown a traceback unasked
        if os.environ.get(DEBUG) == "1":
            raise
        return explained(error)
    return ExitCode.DONE


def is_interrupt(stop: SystemExit) -> bool:
    """Whether a Ctrl-C is behind it that no command answered: typer turns one into a silent exit."""
    reason: BaseException | None = stop
    while reason is not None and not isinstance(reason, KeyboardInterrupt):
        reason = reason.__cause__ or reason.__context__
    return reason is not None


def explained(error: Exception) -> int:
    """Say what went wrong in one line on stderr, and the code for it."""
    if isinstance(error, ModuleNotFoundError):
        from gandiva_core.cli.compose import missing

        error = missing("gandiva", error)
    if isinstance(error, InputError):
        complain(f"error: {error}")
        return ExitCode.BAD_INPUT
    if isinstance(error, GandivaError):
        complain(f"error: {error}")
        return ExitCode.CHECK_FAILED
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        complain(f"error: {place}{error.strerror or error}")
        return ExitCode.BAD_INPUT
    complain(f"internal error: {type(error).__name__}: {error} ({DEBUG}=1 shows where)")
    return ExitCode.CHECK_FAILED


def complain(text: str) -> None:
    """One line on stderr, whatever the text holds: control characters are shown, not sent."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    sys.stderr.write(f"gandiva: {shown}\n")
    sys.stderr.flush()
