"""Names and switches of arms (DESIGN §10)."""

from __future__ import annotations

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.model.errors import InputError
from gandiva_core.replay.arms import STOCK_ARMS, create_policy, parse_arm, parse_arms, policies


def test_a_list_of_arms() -> None:
    capacity, gandiva = parse_arms("capacity, gandiva:-slicing")
    assert (capacity.name, capacity.is_stock, dict(capacity.switches)) == ("capacity", True, {})
    assert (gandiva.base, gandiva.is_stock) == ("gandiva", False)
    assert dict(gandiva.switches) == {"slicing": False}


@pytest.mark.parametrize("name", STOCK_ARMS)
def test_the_baselines_of_design_7_are_stock(name: str) -> None:
    assert parse_arm(name).is_stock


def test_gandiva_and_fifo_are_installed_policies() -> None:
    assert {"gandiva", "fifo"} <= set(policies())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no arm"),
        (" , ", "no arm"),
        ("capacity,capacity", "'capacity' twice"),
        ("gandiva:-slicing,gandiva:-slicing", "twice"),
        ("nonsense", "'nonsense'"),
        ("Capacity", "'Capacity'"),
        ("capacity:-slicing", "'capacity:-slicing'"),
        ("gandiva:slicing", "'slicing' in"),
        ("gandiva:-", "'-' in"),
        ("gandiva:", "'' in"),
        ("gandiva:-slicing:+slicing", "'slicing' twice"),
    ],
)
def test_bad_arms_are_named_with_what_there_is(text: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_arms(text)
    assert caught.value.place == "--arms"
    assert found in caught.value.found


def test_an_unknown_arm_s_message_lists_all() -> None:
    with pytest.raises(InputError, match=r"capacity-preempt.*gandiva"):
        parse_arm("slurm")


def test_a_policy_is_made_with_its_switches() -> None:
    def mechanisms(arm: str) -> tuple[str, ...]:
        return tuple(create_policy(parse_arm(arm), Settings()).mechanisms)

    assert mechanisms("gandiva") == ("slicing", "migration")
    assert mechanisms("gandiva:-slicing") == ("migration",)
    assert mechanisms("gandiva:-slicing:-migration") == ()
    with pytest.raises(InputError, match="'teleport'"):
        create_policy(parse_arm("gandiva:+teleport"), Settings())
