"""One queue capacity as Hadoop lets it be written: a percentage, a weight, or amounts of resources."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from gandiva_core.model.errors import InputError

_WEIGHT = re.compile(r"(?P<number>[^w]+)w")
_COMPONENT = re.compile(r"(?P<number>[-+0-9.eE]+)\s*(?P<unit>%|w|[A-Za-z]*)")
_BINARY = {"": 1.0, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_DECIMAL = {"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_UNITS = _BINARY | _DECIMAL
EXPECTED = "a percentage, a weight such as 2w, or [memory=…,vcores=…,yarn.io/gpu=…]"


class Kind(StrEnum):
    """How one amount is meant."""

    PERCENTAGE = "percentage"
    WEIGHT = "weight"
    ABSOLUTE = "absolute"


class Amount(msgspec.Struct, frozen=True):
    """One number and how it is meant: 40 % is ``Amount(40, PERCENTAGE)``."""

    number: float
    kind: Kind


class Capacity(msgspec.Struct, frozen=True):
    """A queue's capacity: one amount for all resources, or one for each that is named.

    Attributes:
        uniform: for every resource alike; None where `amounts` name them.
        amounts: resource type to its amount, memory in MiB; a resource not named counts as zero.
    """

    uniform: Amount | None = None
    amounts: Mapping[str, Amount] = {}

    def of(self, resource: str) -> Amount:
        """The amount for one resource."""
        return self.uniform or self.amounts.get(resource, Amount(0.0, Kind.ABSOLUTE))


FULL = Capacity(Amount(100.0, Kind.PERCENTAGE))
NONE = Capacity(Amount(0.0, Kind.PERCENTAGE))


def parse_capacity(text: str, place: str) -> Capacity:
    """Reads ``40``, ``33.3``, ``2w``, ``[memory=4096,vcores=8,yarn.io/gpu=4]`` or ``[memory=50%,…]``.

    Args:
        text: the value, expanded.
        place: file, line and key, for the error.

    Raises:
        InputError: none of these.
    """
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        return Capacity(amounts=_vector(stripped[1:-1], text, place))
    weight = _WEIGHT.fullmatch(stripped)
    if weight is not None:
        return Capacity(Amount(_finite(weight["number"], text, place), Kind.WEIGHT))
    return Capacity(Amount(_finite(stripped, text, place), Kind.PERCENTAGE))


def _vector(inside: str, text: str, place: str) -> dict[str, Amount]:
    amounts: dict[str, Amount] = {}
    for part in filter(None, (piece.strip() for piece in inside.split(","))):
        name, separator, written = (piece.strip() for piece in part.partition("="))
        match = _COMPONENT.fullmatch(written)
        if not separator or not name or match is None:
            raise InputError(place, repr(text), EXPECTED)
        resource = "memory-mb" if name == "memory" else name
        amounts[resource] = _component(resource, match, text, place)
    if not amounts:
        raise InputError(place, repr(text), EXPECTED)
    return amounts


def _component(resource: str, match: re.Match[str], text: str, place: str) -> Amount:
    number = _finite(match["number"], text, place)
    match match["unit"]:
        case "%":
            return Amount(number, Kind.PERCENTAGE)
        case "w":
            return Amount(number, Kind.WEIGHT)
        case unit if unit in _UNITS:
            # A memory without a unit is in MiB already.
            mebi = _BINARY["Mi"] if resource == "memory-mb" and unit else 1.0
            return Amount(number * _UNITS[unit] / mebi, Kind.ABSOLUTE)
        case unit:
            raise InputError(place, repr(text), f"a unit among {', '.join(filter(None, _UNITS))}")


def _finite(number: str, text: str, place: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise InputError(place, repr(text), EXPECTED) from None
    if not math.isfinite(value):
        raise InputError(place, repr(text), "a finite number")
    return value
