"""Who holds which device (cases A13, D01, D03, D05; G-56)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodemanager_agent.binding import Binding, Claim

CARD_MIB = 16 * 1024


def binding(devices: int = 2, memory_mib: int = CARD_MIB) -> Binding:
    return Binding(dict.fromkeys(range(devices), memory_mib))


def claim(
    name: str,
    *gpus: int,
    asked: int | None = None,
    packed_with: tuple[str, ...] = (),
    user: str = "ann",
    memory_mib: int | None = None,
    with_other_users: bool = False,
) -> Claim:
    count = len(gpus) if asked is None else asked
    return Claim(name, gpus, count, packed_with, user, with_other_users, memory_mib)


def code(ledger: Binding, wanted: Claim) -> str:
    obstacle = ledger.obstacle(wanted)
    return "" if obstacle is None else obstacle.code


def test_containers_have_as_many_devices_as_they_asked_for_and_no_two_the_same() -> None:
    """A13: of two allowed devices, disjoint, of the asked size; a container that asked for none has none."""
    ledger = binding()
    for wanted in (claim("one", 0), claim("none"), claim("other", 1)):
        assert code(ledger, wanted) == ""
        ledger.take(wanted)
    assert [ledger.held_by(name) for name in ("one", "none", "other")] == [(0,), (), (1,)]
    assert code(ledger, claim("third", 0)) == "DEVICE_BUSY"
    assert code(ledger, claim("beyond", 2)) == "GPUS"
    assert code(ledger, claim("greedy", 0, asked=0)) == "GPUS"
    assert code(ledger, claim("poor", asked=1)) == "GPUS"


def test_two_devices_are_two_devices() -> None:
    """D01: never two shares of one card for a container that asked for two."""
    ledger = binding()
    assert code(ledger, claim("job", 0, 0, asked=2)) == "GPUS"
    assert code(ledger, claim("job", 0, 1, asked=2)) == ""


def test_packing_is_held_to_memory() -> None:
    """D03, G-56: peaks and a context for each further process must fit; what is not known does not."""
    ledger = binding()
    ledger.take(claim("one", 0, memory_mib=16_000))
    assert code(ledger, claim("two", 0, memory_mib=16_000, packed_with=("one",))) == "MEMORY"
    assert code(ledger, claim("two", 1, memory_mib=16_000)) == ""
    ledger.release("one")
    ledger.take(claim("one", 0, memory_mib=8_000))
    fits_mib = CARD_MIB - 8_000 - 512
    assert code(ledger, claim("two", 0, memory_mib=fits_mib, packed_with=("one",))) == ""
    assert code(ledger, claim("two", 0, memory_mib=fits_mib + 1, packed_with=("one",))) == "MEMORY"
    assert code(ledger, claim("two", 0, packed_with=("one",))) == "MEMORY"


def test_a_whole_device_is_shared_with_nobody() -> None:
    """D05, both orders: the exclusive one waits until all who share have ended, and the other way round."""
    ledger = binding(1)
    ledger.take(claim("first", 0, memory_mib=1_000))
    ledger.take(claim("second", 0, memory_mib=6_000, packed_with=("first",)))
    whole = claim("whole", 0)
    obstacle = ledger.obstacle(whole)
    assert obstacle is not None
    assert (obstacle.code, obstacle.holders) == ("DEVICE_BUSY", frozenset({"first", "second"}))
    ledger.release("first")
    assert code(ledger, whole) == "DEVICE_BUSY"
    ledger.release("second")
    assert code(ledger, whole) == ""
    ledger.take(whole)
    assert (
        code(ledger, claim("first", 0, memory_mib=1_000, packed_with=("second",))) == "DEVICE_BUSY"
    )


@pytest.mark.parametrize(
    ("user", "allowed", "expected"),
    [("ann", False, ""), ("bob", False, "USERS"), ("bob", True, ""), ("", False, "USERS")],
)
def test_never_two_users_on_one_device_unless_the_queue_allows_it(
    user: str, allowed: bool, expected: str
) -> None:
    """Issue 5, item 5; a user that is not known is nobody's fellow."""
    ledger = binding(1)
    ledger.take(claim("one", 0, user=user, memory_mib=100, with_other_users=allowed))
    other = "ann" if user else ""
    wanted = claim(
        "two", 0, user=other, memory_mib=100, packed_with=("one",), with_other_users=allowed
    )
    assert code(ledger, wanted) == expected


def test_a_closed_device_is_given_to_nobody_and_its_holder_keeps_it() -> None:
    ledger = binding(1)
    ledger.take(claim("one", 0))
    ledger.close(0, "lost")
    assert ledger.held_by("one") == (0,)
    ledger.release("one")
    assert code(ledger, claim("two", 0)) == "DEVICE_LOST"
    ledger.open(0)
    assert code(ledger, claim("two", 0)) == ""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"uid": 1000}, ""),
        ({"uid": 1001}, "USERS"),
        ({"uid": 1001, "with_other_users": True}, ""),
        ({"is_exclusive": True}, "FORBIDDEN"),
        ({"gpus": (0,), "asked": 1}, "GPUS"),
    ],
)
def test_what_the_order_packs_and_must_not_be(change: dict[str, Any], expected: str) -> None:
    """G-56: the kernel's word for whose processes they are counts too; an owner's limit; the same devices for all."""
    ledger = binding()
    both = {"with_other_users": True} if "with_other_users" in change else {}
    holder = msgspec.structs.replace(claim("one", 0, 1, memory_mib=100), uid=1000, **both)
    wanted = claim("two", 0, 1, memory_mib=100, packed_with=("one",))
    ledger.take(holder)
    assert code(ledger, wanted) == ""  # its processes have not come up
    assert code(ledger, msgspec.structs.replace(wanted, **change)) == expected
    ledger.take(msgspec.structs.replace(holder, is_exclusive="is_exclusive" in change))
    assert code(ledger, msgspec.structs.replace(wanted, **change)) == expected
