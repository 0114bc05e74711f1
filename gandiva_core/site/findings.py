"""What a check of a site's files has to say."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How much it matters."""

    ERROR = "error"
    """Hadoop, or we, refuse to start with it."""
    WARNING = "warning"
    """It starts, and does something other than the file seems to say."""


class Finding(msgspec.Struct, frozen=True):
    """One observation.

    Attributes:
        place: file and line, ``capacity-scheduler.xml:12``.
        subject: the key, queue or file it is about.
        text: what is the case, and what to do.
    """

    severity: Severity
    place: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.place}: {self.subject}: {self.text}"
