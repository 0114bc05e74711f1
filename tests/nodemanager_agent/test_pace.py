"""Mini-batch times alone and packed (G-51 … G-53)."""

from __future__ import annotations

from nodemanager_agent.pace import SETTLED_MINIBATCHES, Pace

ALONE: frozenset[str] = frozenset()
PACKED = frozenset({"other"})


def times(pace: Pace) -> tuple[float | None, float | None]:
    return pace.alone_s, pace.packed_s


def test_a_time_counts_once_no_cycle_before_the_change_is_in_it() -> None:
    """G-51: ten cycles, two dropped; the time alone is kept while it is packed, that with others is of these others."""
    pace = Pace()
    pace.note(ALONE, SETTLED_MINIBATCHES - 1, 1.0)
    assert times(pace) == (None, None)
    pace.note(ALONE, SETTLED_MINIBATCHES, None)
    assert times(pace) == (None, None)
    pace.note(ALONE, SETTLED_MINIBATCHES, 1.0)
    assert times(pace) == (1.0, None)
    pace.note(PACKED, 100, 1.0)
    pace.note(PACKED, 100 + SETTLED_MINIBATCHES - 1, 1.5)
    assert times(pace) == (1.0, None)
    pace.note(PACKED, 100 + SETTLED_MINIBATCHES, 2.0)
    assert times(pace) == (1.0, 2.0)
    pace.note(PACKED | {"third"}, 200, 2.0)
    assert times(pace) == (1.0, None)
    pace.note(ALONE, 300, 2.5)
    pace.note(ALONE, 300 + SETTLED_MINIBATCHES, 1.1)
    assert times(pace) == (1.1, None)
