"""How the mechanisms are switched and composed (G-0, DESIGN §10)."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.model.errors import InputError
from gandiva_core.policies.gandiva import MECHANISMS, create


def test_all_mechanisms_are_on_by_default() -> None:
    """`gandiva` without a switch."""
    assert create(Settings(), {}).mechanisms == MECHANISMS


def test_a_mechanism_is_switched_off_by_name() -> None:
    """`gandiva:-slicing`, and `:+slicing` says what is so anyway."""
    assert create(Settings(), {"slicing": False}).mechanisms == ("migration",)
    assert create(Settings(), {"slicing": True}).mechanisms == MECHANISMS
    assert create(Settings(), {"migration": False}).mechanisms == ("slicing",)


def test_an_unknown_mechanism_is_refused_with_those_there_are() -> None:
    """One clear line."""
    with pytest.raises(InputError, match=r"gandiva: found mechanism 'slcing'; expected .*slicing"):
        create(Settings(), {"slcing": False})


@pytest.mark.parametrize("name", ["gandiva", "fifo"])
def test_it_is_found_by_its_entry_point(name: str) -> None:
    """As an arm, and by anybody who asks the group."""
    (point,) = entry_points(group="gandiva.policies", name=name)
    assert point.load()(Settings(), {}).name == name
