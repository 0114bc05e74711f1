"""Gavel's iterator (SPEC V-40 … V-44)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodemanager_agent.client.iterator import (
    DURATION_S,
    STEPS,
    Grant,
    Lease,
    LeaseIterator,
    gang_lease,
)


class Clock:
    """Goes on by what a test says."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Granting:
    """A scheduler that gives what it has, one lease after another, and then nothing new."""

    def __init__(self, *leases: Lease) -> None:
        self.leases = list(leases)
        self.asked: list[tuple[int, float]] = []

    def __call__(self, steps: int, active_s: float, lease: Lease) -> Lease:
        self.asked.append((steps, active_s))
        return self.leases.pop(0) if self.leases else lease


def iterator(
    folder: Path,
    grant: Grant | None,
    clock: Clock,
    meet: Callable[[], None] = lambda: None,
    **options: Any,
) -> LeaseIterator:
    def save(path: str, text: str) -> None:
        Path(path).write_text(text)
        if text == "fails":
            raise RuntimeError(text)

    return LeaseIterator(
        range(40),
        str(folder / "checkpoints"),
        lambda path: Path(path).read_text(),
        save,
        grant=grant,
        meet=meet,
        now=clock,
        **options,
    )


def train(batches: LeaseIterator, clock: Clock, step_s: float = 1.0, epochs: int = 10) -> list[int]:
    seen = []
    for _ in range(epochs):
        for batch in batches:
            seen.append(batch)
            clock.now_s += step_s
        if batches.done:
            break
        clock.now_s += 1000  # between epochs nothing is active
    return seen


def test_the_lease_ends_by_steps_whatever_the_epoch(tmp_path: Path) -> None:
    """V-41; steps go on over epochs, and whatever lies between two of them is no active time."""
    met: list[int] = []
    clock = Clock()
    batches = iterator(tmp_path, Granting(Lease(50, 1e6)), clock, lambda: met.append(1))
    assert train(batches, clock) == [*range(40), *range(10)]
    assert (batches.done, batches.is_expired, batches.steps, met) == (True, True, 50, [1])
    assert batches.active_s == pytest.approx(50)
    assert list(batches) == []


def test_the_lease_ends_by_time(tmp_path: Path) -> None:
    clock = Clock()
    batches = iterator(tmp_path, Granting(Lease(1000, 12.0)), clock)
    assert len(train(batches, clock, step_s=5.0)) == 3
    assert batches.is_expired


def test_more_is_asked_for_after_three_quarters_of_the_extension(tmp_path: Path) -> None:
    """V-42: of 40 steps at 30; of 20 more at 40 + 15; one answer without anything new is the last."""
    clock = Clock()
    grant = Granting(Lease(40, 1e6), Lease(60, 1e6))
    batches = iterator(tmp_path, grant, clock)
    assert len(train(batches, clock)) == 60
    assert [steps for steps, _ in grant.asked] == [0, 30, 55]


def test_more_is_asked_for_by_time_too(tmp_path: Path) -> None:
    """Whichever comes first: 7.5 of 10 s here, steps far away."""
    clock = Clock()
    grant = Granting(Lease(1000, 10.0), Lease(1000, 30.0))
    batches = iterator(tmp_path, grant, clock)
    train(batches, clock, step_s=0.5)
    assert [used for _, used in grant.asked] == [0, 7.5, 25]
    assert batches.steps == 60


def test_complete_ends_it_without_a_meeting(tmp_path: Path) -> None:
    met: list[int] = []
    clock = Clock()
    batches = iterator(tmp_path, Granting(Lease()), clock, lambda: met.append(1))
    for batch in batches:
        if batch == 7:
            batches.complete()
    assert (batches.steps, batches.done, batches.is_expired, met) == (8, True, False, [])


def test_checkpoints_are_the_scripts_own_and_whole(tmp_path: Path) -> None:
    batches = iterator(tmp_path, None, Clock())
    assert batches.load_checkpoint() is None
    batches.save_checkpoint("one")
    with pytest.raises(RuntimeError):
        batches.save_checkpoint("fails")
    assert batches.load_checkpoint() == "one"
    assert [each.name for each in (tmp_path / "checkpoints").iterdir()] == ["model.checkpoint"]


def test_synthetic_batches_are_the_first_again_and_again(tmp_path: Path) -> None:
    clock = Clock()
    batches = iterator(tmp_path, Granting(Lease(3)), clock, is_synthetic=True)
    assert train(batches, clock) == [0, 0, 0]


def test_without_an_agent_the_environment_says_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    assert len(train(iterator(tmp_path, None, clock), clock, epochs=2)) == 80
    monkeypatch.setenv(STEPS, "5")
    monkeypatch.setenv(DURATION_S, "no number")
    assert len(train(iterator(tmp_path, None, clock), clock)) == 5


def test_a_gang_gets_one_number_of_steps(tmp_path: Path) -> None:
    """V-44: at 2 steps a second and 60 s of the round left, 120 more; never more than the job has; no time limit."""
    lease = Lease(10_000, 60.0)
    assert gang_lease(lease, 10_000, 200, 100.0, 60.0) == Lease(320, math.inf)
    assert gang_lease(lease, 250, 200, 100.0, 60.0) == Lease(250, math.inf)
    assert gang_lease(lease, 50_000, 0, 0.0, 60.0) == Lease(10_000, math.inf)
