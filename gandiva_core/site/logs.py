"""The log of a long-running process: JSON lines on stderr, so that what comes from outside cannot forge a line."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog


def logger() -> Any:
    """A structlog logger, called as `logger().info(text, name=value)`; a traceback is a value like others."""
    return structlog.wrap_logger(
        structlog.PrintLogger(cast("TextIO", _Stderr())),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.BoundLogger,
        cache_logger_on_first_use=True,
    )


class _Stderr:
    """Where nobody reads any more, as after the parent's end, lines are lost and nothing else."""

    def write(self, text: str) -> int:
        with suppress(BrokenPipeError):
            return sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(BrokenPipeError):
            sys.stderr.flush()
