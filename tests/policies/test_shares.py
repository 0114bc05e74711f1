"""The water fill of G-31."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.policies.shares import fill, fill_in_tiers


@pytest.mark.parametrize(
    ("gpus", "claims", "expected"),
    [
        (4, [(0, 1.0, 1)] * 6, [4 / 6] * 6),
        (4, [(0, 1.0, 1)] * 4, [1.0] * 4),
        (4, [(0, 1.0, 4), (0, 1.0, 1)], [0.8, 0.8]),
        (4, [(0, 8.0, 1)] + [(0, 1.0, 1)] * 4, [1.0] + [3 / 4] * 4),
        (4, [(0, 2.0, 4), (0, 1.0, 4)], [2 / 3, 1 / 3]),
        (4, [(1, 1.0, 2), (0, 1.0, 2), (0, 1.0, 2)], [1.0, 0.5, 0.5]),
        (4, [(0, 1.0, 4), (1, 1.0, 4)], [0.0, 1.0]),
        (4, [(1, 1.0, 4), (1, 1.0, 4), (0, 1.0, 1)], [0.5, 0.5, 0.0]),
        (4, [], []),
    ],
)
def test_known_fills(
    gpus: int, claims: list[tuple[int, float, int]], expected: list[float]
) -> None:
    """Six on four is 4/6 [S]; a weight worth more than all the time is capped; higher classes first."""
    assert fill(gpus, tuple(claims)) == pytest.approx(expected)


CLAIMS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from((0.5, 1.0, 2.0, 3.0)), st.integers(1, 8)),
    min_size=1,
    max_size=12,
)


@given(st.integers(1, 16), CLAIMS)
def test_the_server_is_full_and_nobody_gets_more_than_all_the_time(
    gpus: int, claims: list[tuple[int, float, int]]
) -> None:
    """Σ g·s = min(N, Σ g), 0 ≤ s ≤ 1, and inside a class s is in proportion to weight unless capped."""
    shares = fill(gpus, tuple(claims))
    demand = sum(claim[2] for claim in claims)
    used = sum(claim[2] * share for claim, share in zip(claims, shares, strict=True))
    assert used == pytest.approx(min(gpus, demand))
    assert all(-1e-12 <= share <= 1.0 for share in shares)
    for (class_a, weight_a, _), share_a in zip(claims, shares, strict=True):
        for (class_b, weight_b, _), share_b in zip(claims, shares, strict=True):
            if class_a == class_b and share_a < 1.0 - 1e-9:
                assert share_b / weight_b <= share_a / weight_a + 1e-9
            if class_a > class_b and share_a < 1.0 - 1e-9:
                assert share_b == pytest.approx(0.0, abs=1e-9)


class TestInTiers:
    """While a queue lacks what it is entitled to, tiers come one after the other (DESIGN §4)."""

    def test_the_first_tier_has_its_time_and_the_others_the_rest(self) -> None:
        """A06's crowded server: two of a, entitled to all of the time, eight of b to a third."""
        claims = ((0, 1.0, 1),) * 10
        tiers = ((0, 1.0),) * 2 + ((1, 1 / 3),) * 8
        assert fill_in_tiers(4, claims, tiers) == pytest.approx((1.0,) * 2 + (0.25,) * 8)

    def test_what_is_left_is_divided_among_all(self) -> None:
        claims = ((0, 1.0, 1),) * 4
        tiers = ((0, 0.5),) * 2 + ((1, 0.25),) * 2
        assert fill_in_tiers(2, claims, tiers) == pytest.approx((0.625, 0.625, 0.375, 0.375))

    def test_classes_come_before_tiers(self) -> None:
        """G-34: a higher class is never suspended for a lower one, whatever its queue is entitled to."""
        claims = ((0, 1.0, 1), (1, 1.0, 1))
        assert fill_in_tiers(1, claims, ((0, 1.0), (1, 0.0))) == (0.0, 1.0)

    def test_weights_count_inside_a_tier(self) -> None:
        claims = ((0, 3.0, 1), (0, 1.0, 1), (0, 1.0, 1))
        tiers = ((0, 0.4), (0, 0.4), (1, 0.2))
        assert fill_in_tiers(1, claims, tiers) == pytest.approx((0.6, 0.2, 0.2))

    @given(
        st.integers(1, 8),
        st.lists(
            st.tuples(
                st.integers(0, 1),
                st.sampled_from((0.5, 1.0, 2.0)),
                st.integers(1, 4),
                st.integers(0, 2),
                st.floats(0, 1),
            ),
            min_size=1,
            max_size=8,
        ),
    )
    def test_no_device_is_left_and_none_is_given_twice(
        self, gpus: int, rows: list[tuple[int, float, int, int, float]]
    ) -> None:
        claims = tuple((priority, weight, count) for priority, weight, count, _, _ in rows)
        tiers = tuple((place, level) for *_, place, level in rows)
        found = fill_in_tiers(gpus, claims, tiers)
        assert all(0.0 <= share <= 1.0 + 1e-9 for share in found)
        used = sum(share * claim[2] for share, claim in zip(found, claims, strict=True))
        assert used == pytest.approx(min(gpus, sum(claim[2] for claim in claims)))
