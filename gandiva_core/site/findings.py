"""What a check of a site's files has to say."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gandiva_core.model.errors import InputError


class Severity(StrEnum):
    """How much it matters."""

    ERROR = "error"
    """Hadoop, or we, refuse to start with it."""
    WARNING = "warning"
    """It starts, and does something other than the file seems to say, or something dangerous."""
    INFO = "info"
    """Worth knowing; nothing has to be done."""


class Finding(msgspec.Struct, frozen=True):
    """One observation, one line.

    Attributes:
        place: file and line, ``capacity-scheduler.xml:12``.
        subject: the key, queue or file it is about.
        found: what is there.
        expected: what would be right.
        advice: what follows from it, and what to do.
    """

    severity: Severity
    place: str
    subject: str
    found: str
    expected: str
    advice: str

    @property
    def text(self) -> str:
        """What is the case and what to do, without the place."""
        return f"found {self.found}, expected {self.expected}: {self.advice}"

    def __str__(self) -> str:
        """``error: FILE:LINE: KEY: found …, expected …: what to do``."""
        return f"{self.severity}: {self.place}: {self.subject}: {self.text}"


def from_problem(problem: InputError, advice: str, severity: Severity = Severity.ERROR) -> Finding:
    """A value that cannot be read, as a finding; the error's place is ``FILE:LINE: KEY``."""
    place, _, subject = problem.place.rpartition(": ")
    if not place:
        place, subject = subject, subject.rpartition("/")[2].partition(":")[0]
    return Finding(severity, place, subject, problem.found, problem.expected, advice)
