"""From text values, each with the place it came from, to `Settings`; later sources win."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

import msgspec
from pydantic import ValidationError

from gandiva_core.config.keys import (
    BY_ENVIRONMENT_NAME,
    BY_NAME,
    ENVIRONMENT_PREFIX,
    OTHER_VARIABLES,
    PREFIX,
    Key,
    Unit,
)
from gandiva_core.config.settings import Settings
from gandiva_core.model.errors import InputError

WHOLE_MAX = 2**31 - 1
"""Java's greatest int: the plug-in reads the same keys."""

_WHOLE = re.compile(r"[-+]?[0-9]+")


class Located(msgspec.Struct, frozen=True):
    """A value as written, and where: ``yarn-site.xml:12``, ``environment``, ``--quantum-ms``."""

    value: str
    place: str


Source = Mapping[str, Located]
"""Full key name to its value; keys outside `yarn.scheduler.gandiva.` are somebody else's and ignored."""


def environment_source(environment: Mapping[str, str]) -> dict[str, Located]:
    """The settings in an environment (``GANDIVA_QUANTUM_MS``), under their XML names."""
    return {
        BY_ENVIRONMENT_NAME[name].name: Located(value, f"environment {name}")
        for name, value in environment.items()
        if name in BY_ENVIRONMENT_NAME
    }


def unread_environment(environment: Mapping[str, str]) -> list[str]:
    """Names that begin like ours and are no setting's, each with the likely one: a typo changes nothing unnoticed."""
    unread: list[str] = []
    for name in sorted(environment.keys() - BY_ENVIRONMENT_NAME.keys() - OTHER_VARIABLES):
        if name.startswith(ENVIRONMENT_PREFIX):
            close = get_close_matches(name, BY_ENVIRONMENT_NAME, n=1, cutoff=0.8)
            unread.append(f"{name} ({close[0]}?)" if close else name)
    return unread


def read_settings(*sources: Source) -> Settings:
    """The settings of these sources over the defaults; a later source wins.

    Args:
        sources: in rising order of precedence: XML, environment, flags.

    Raises:
        InputError: the first value that cannot be used, or unknown key of ours, with the place of it.
    """
    for problem in problems(*sources):
        raise problem
    return Settings.model_validate(_fields(_merged(sources)))


def problems(*sources: Source) -> Iterator[InputError]:
    """Every reason why these sources cannot be used, in the order of the keys' names."""
    for name, located in sorted(_merged(sources).items()):
        key = BY_NAME.get(name)
        if key is None:
            yield InputError(f"{located.place}: {name}", "an unknown key", _suggestion(name))
        else:
            yield from _value_problem(key, located)


def _merged(sources: Sequence[Source]) -> dict[str, Located]:
    return {
        name: located
        for source in sources
        for name, located in source.items()
        if name.startswith(PREFIX)
    }


def _fields(merged: Source) -> dict[str, float | str]:
    known = ((BY_NAME[name], located) for name, located in merged.items())
    return {key.field: _parse(key, located) for key, located in known if key.field}


def _value_problem(key: Key, located: Located) -> Iterator[InputError]:
    """The one thing wrong with this value, if anything."""
    try:
        value = _parse(key, located)
        Settings.model_validate({key.field: value} if key.field else {})
    except InputError as problem:
        yield problem
    except ValidationError as invalid:
        bound = invalid.errors()[0]["msg"].removeprefix("Input should be ")
        expected = f"{bound} ({_stated(key)})"
        yield InputError(f"{located.place}: {key.name}", repr(located.value), expected)


def _parse(key: Key, located: Located) -> float | str:
    """The value in the field's unit: seconds for milliseconds.

    Raises:
        InputError: not a number of the key's unit.
    """
    text = located.value.strip()
    try:
        match key.unit:
            case Unit.TEXT:
                return _word(key, text)
            case Unit.MILLISECONDS:
                return _whole(key, text) / 1000
            case Unit.COUNT:
                return _whole(key, text)
            case Unit.QUANTA:
                return _finite(text)
            case Unit.FLAG:
                return _flag(text)
    except (ValueError, OverflowError):
        raise InputError(
            f"{located.place}: {key.name}", repr(located.value), _stated(key)
        ) from None


def _word(key: Key, text: str) -> str:
    """Any text, or one of the key's words in any case, as the plug-in takes them."""
    if key.words and text.lower() not in key.words:
        raise ValueError(text)
    return text


def _whole(key: Key, text: str) -> int:
    """As Java reads an int: ASCII digits, 32 bits."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    value = int(text)
    too_small = not key.field and value < key.least
    if too_small or abs(value) > WHOLE_MAX:
        raise OverflowError(text)
    return value


def _flag(text: str) -> bool:
    value = {"true": True, "false": False}.get(text.lower())
    if value is None:
        raise ValueError(text)
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _stated(key: Key) -> str:
    """What a value of this key looks like, with its unit and default."""
    wanted = {
        Unit.MILLISECONDS: "a whole number of milliseconds",
        Unit.COUNT: "a whole number",
        Unit.QUANTA: "a number of quanta",
        Unit.FLAG: "true or false",
        Unit.TEXT: "text",
    }[key.unit]
    if key.words:
        wanted = " or ".join(key.words)
    elif not key.field and key.unit in (Unit.COUNT, Unit.MILLISECONDS):
        wanted = f"{wanted}, at least {key.least}"
    return f"{wanted}, default {key.default}" if key.default else wanted


def _suggestion(name: str) -> str:
    close = get_close_matches(name, BY_NAME, n=1, cutoff=0.8)
    return f"{close[0]}?" if close else f"one of {', '.join(sorted(BY_NAME))}"
