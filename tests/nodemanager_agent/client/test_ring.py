"""The step ring: what a rank writes and others read (G-41, G-51)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nodemanager_agent.client.ring import SLOTS, Memory, RingReader, StepRing


@pytest.fixture
def ring(tmp_path: Path) -> StepRing:
    return StepRing(str(tmp_path / "ring"))


def test_nothing_is_known_before_the_first(ring: StepRing) -> None:
    reader = RingReader(ring.path)
    assert (reader.minibatches, reader.minibatch_s(), reader.memory) == (0, None, None)
    assert reader.idle_s() is None


def test_the_median_of_the_last_ten_without_the_two_after_a_start(ring: StepRing) -> None:
    """G-51: two cycles after any event count for nothing."""
    reader = RingReader(ring.path)
    at_s = 0.0
    for cycle_s in (100.0, 9.0, 9.0, *[1.0] * 5):
        at_s += cycle_s
        ring.step(at_s)
    assert reader.minibatches == 8
    assert reader.minibatch_s() == 1.0
    for _ in range(10):
        at_s += 2.0
        ring.step(at_s)
    assert reader.minibatch_s() == 2.0


def test_a_cycle_that_spans_a_suspension_is_dropped(ring: StepRing) -> None:
    at_s = 0.0
    for _ in range(20):
        at_s += 1.0
        ring.step(at_s)
    ring.gap()
    at_s += 3600.0
    ring.step(at_s)
    reader = RingReader(ring.path)
    assert reader.minibatch_s() is None
    for cycle_s in (5.0, 5.0, 2.0):
        at_s += cycle_s
        ring.step(at_s)
    assert reader.minibatch_s() == 2.0


def test_it_goes_round(ring: StepRing) -> None:
    reader = RingReader(ring.path)
    for number in range(5 * SLOTS):
        ring.step(number * 0.5)
    assert reader.minibatches == 5 * SLOTS
    assert reader.minibatch_s() == 0.5


def test_memory_and_idleness(ring: StepRing) -> None:
    reader = RingReader(ring.path)
    ring.remember(Memory(3, 5, 2))
    ring.step(time.monotonic() - 2.0)
    assert reader.memory == Memory(3, 5, 2)
    assert 2.0 <= (reader.idle_s() or 0) < 20.0


def test_what_is_no_ring_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"x" * 4096)
    with pytest.raises(ValueError, match="no step ring"):
        RingReader(str(path))
