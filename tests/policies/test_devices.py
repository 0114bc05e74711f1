"""Which devices a gang gets (G-6, G-23, G-32, E-4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.model.placement import level_within
from gandiva_core.model.units import JobId
from gandiva_core.policies.devices import choose, free_mask, gpus_of, mask_of
from tests.builders import server

FOUR, EIGHT, SIXTEEN = server(gpus=4), server(gpus=8), server(gpus=16)


@pytest.mark.parametrize(
    ("free", "count", "expected"),
    [
        ((0, 1, 2, 3), 2, (0, 1)),
        ((1, 2, 3), 2, (2, 3)),  # one socket, rather than the lowest ids
        ((0, 2, 3), 1, (0,)),  # a single one leaves the pair whole
        ((1, 2), 2, (1, 2)),  # nothing closer is there
        ((1, 2, 3), 3, (1, 2, 3)),
        ((1,), 2, None),
        ((), 1, None),
    ],
)
def test_on_four_gpus_in_two_sockets(
    free: tuple[int, ...], count: int, expected: tuple[int, ...] | None
) -> None:
    """E-4: {0,1} and {2,3}."""
    found = choose(FOUR, mask_of(free), count, 0)
    assert (None if found is None else gpus_of(found)) == expected


@pytest.mark.parametrize(
    ("free", "count", "expected"),
    [
        ((0, 1, 2, 3, 4, 5), 2, (0, 1)),
        ((0, 2, 4, 5), 2, (4, 5)),  # same switch before same socket
        ((0, 2, 4, 7), 2, (0, 2)),  # same socket before different ones
        ((0, 1, 2, 3, 4, 5, 6, 7), 4, (0, 1, 2, 3)),
        ((0, 3, 4, 5, 6, 7), 4, (4, 5, 6, 7)),
        ((0, 1, 2, 4, 5, 6, 7), 3, (0, 1, 2)),  # the socket with least to spare
    ],
)
def test_on_eight_gpus_with_two_switches_a_socket(
    free: tuple[int, ...], count: int, expected: tuple[int, ...]
) -> None:
    """E-4: all three levels occur."""
    found = choose(EIGHT, mask_of(free), count, 0)
    assert found is not None
    assert gpus_of(found) == expected


def test_last_devices_are_kept_where_no_others_are_closer() -> None:
    """G-32: where the level is not worse."""
    every = mask_of((0, 1, 2, 3))
    assert choose(FOUR, every, 2, mask_of((2, 3))) == mask_of((2, 3))
    assert choose(FOUR, every, 2, mask_of((1, 2))) == mask_of((0, 1)), "it was apart before"
    assert choose(FOUR, mask_of((0, 1, 2)), 2, mask_of((2, 3))) == mask_of((0, 1)), "one is taken"
    assert choose(FOUR, every, 1, mask_of((3,))) == mask_of((3,))


@given(st.sets(st.integers(0, 15)), st.integers(1, 16))
def test_no_choice_is_closer(free: set[int], count: int) -> None:
    """Nothing closer was there: compared with every run of `count` free devices in order."""
    found = choose(SIXTEEN, mask_of(tuple(sorted(free))), count, 0)
    assert (found is None) == (len(free) < count)
    if found is None:
        return
    gpus = gpus_of(found)
    assert len(gpus) == count
    assert set(gpus) <= free
    ordered = sorted(free)
    level = level_within(SIXTEEN.sockets, gpus)
    for start in range(len(ordered) - count + 1):
        assert level <= level_within(SIXTEEN.sockets, ordered[start : start + count])


def test_a_promised_device_is_not_free() -> None:
    """Neither held nor claimed."""
    a, b = JobId("a"), JobId("b")
    assert free_mask([None, a, None, None], [None, None, b, None]) == mask_of((0, 3))
