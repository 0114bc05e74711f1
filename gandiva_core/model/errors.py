"""Errors that tell whose fault it is: the input's, or the program's own."""

from __future__ import annotations


class GandivaError(Exception):
    """Root of every error this project raises on purpose."""


class InputError(GandivaError):
    """Bad input from outside: a file, a configuration, an argument or a message.

    Args:
        place: where it was found, for people (``trace.csv:12``, ``--seed``, ``yarn-site.xml: key``).
        found: what stood there.
        expected: what would have been right.
    """

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(f"{place}: found {found}; expected {expected}")
        self.place = place
        self.found = found
        self.expected = expected


class InvariantError(GandivaError):
    """A bug of ours: the ledger or a lifecycle contradicts itself (G-11)."""
