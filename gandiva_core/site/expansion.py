"""`${…}` in values, as Hadoop's `Configuration.substituteVars` does it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gandiva_core.model.errors import InputError

DEPTH_MAX = 20
"""Hadoop's MAX_SUBST: more replacements in one value mean a circle."""

_REFERENCE = re.compile(r"\$\{([^}$ ]+)\}")
_ENVIRONMENT = re.compile(r"(?P<name>.*?)(?:(?P<operator>:-|-)(?P<default>.*))?", re.DOTALL)

Lookup = Callable[[str], str | None]


def expand(text: str, lookup: Lookup, environment: Mapping[str, str], place: str) -> str:
    """Replaces references until none is left that can be.

    ``${env.NAME}`` reads the environment, with ``-default`` for an unset and ``:-default`` for an empty
    variable too; anything else is a system property or another key. At the first reference that means
    nothing Hadoop stops, and leaves it and all that follow as they are.

    Args:
        text: the value as written.
        lookup: a system property's or another key's raw value.
        environment: for ``env.``.
        place: of the value, for the error.

    Raises:
        InputError: references that go in a circle.
    """
    result = text
    for _ in range(DEPTH_MAX):
        match = _REFERENCE.search(result)
        if match is None:
            return result
        value = _from_environment(match[1], environment)
        if value is None:
            value = lookup(match[1])
        if value is None:
            return result
        result = result[: match.start()] + value + result[match.end() :]
    raise InputError(place, repr(text), "references without a circle")


def _from_environment(reference: str, environment: Mapping[str, str]) -> str | None:
    """The value of ``env.NAME``, ``env.NAME-default`` or ``env.NAME:-default``; None for other references."""
    if not reference.startswith("env.") or len(reference) == len("env."):
        return None
    match = _ENVIRONMENT.fullmatch(reference.removeprefix("env."))
    if match is None:
        return None
    value = environment.get(match["name"])
    if match["operator"] is None:
        return value
    unset = value is None if match["operator"] == "-" else not value
    return str(match["default"]) if unset else value
