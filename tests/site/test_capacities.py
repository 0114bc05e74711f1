"""How a queue's capacity may be written."""

from __future__ import annotations

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.site.capacities import Amount, Kind, parse_capacity

PERCENT, WEIGHT, ABSOLUTE = Kind.PERCENTAGE, Kind.WEIGHT, Kind.ABSOLUTE


@pytest.mark.parametrize(
    ("text", "resource", "amount"),
    [
        ("40", "yarn.io/gpu", Amount(40.0, PERCENT)),
        (" 33.333 ", "memory-mb", Amount(33.333, PERCENT)),
        ("2w", "yarn.io/gpu", Amount(2.0, WEIGHT)),
        ("[memory=4096,vcores=8,yarn.io/gpu=12]", "yarn.io/gpu", Amount(12.0, ABSOLUTE)),
        ("[memory=4096,vcores=8]", "memory-mb", Amount(4096.0, ABSOLUTE)),
        ("[memory=4Gi]", "memory-mb", Amount(4096.0, ABSOLUTE)),
        ("[memory=4096]", "yarn.io/gpu", Amount(0.0, ABSOLUTE)),
        ("[ memory = 50% , yarn.io/gpu = 2w ]", "yarn.io/gpu", Amount(2.0, WEIGHT)),
        ("[ memory = 50% , yarn.io/gpu = 2w ]", "memory-mb", Amount(50.0, PERCENT)),
    ],
)
def test_every_spelling_is_read(text: str, resource: str, amount: Amount) -> None:
    assert parse_capacity(text, "f.xml:1: k").of(resource) == amount


@pytest.mark.parametrize(
    "text", ["abc", "", "w", "nan", "inf", "[]", "[memory]", "[memory=]", "[memory=4Xi]", "40%"]
)
def test_anything_else_is_told_with_its_place(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_capacity(text, "f.xml:1: k")
    assert caught.value.place == "f.xml:1: k"
    assert caught.value.found == repr(text)
