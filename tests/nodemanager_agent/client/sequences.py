"""What `growing.py` wrote, as one sequence of mini-batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

EPOCH_STEPS, SAMPLES = 6, 96


class Line(NamedTuple):
    """One rank's part of one step; the loss is the whole batch's, in every bit."""

    step: int
    rank: int
    world: int
    loss: str
    samples: tuple[int, ...]


def lines_of(out: Path) -> list[Line]:
    """All that was written, in order."""
    found = []
    for line in out.read_text().splitlines():
        step, rank, world, loss, samples = line.split(" ", 4)
        numbers = tuple(int(number) for number in samples[1:-1].split(","))
        found.append(Line(int(step), int(rank), int(world), loss, numbers))
    return found


def sizes(out: Path) -> list[int]:
    """Workers at each line; none before the first."""
    return [line.world for line in lines_of(out)] if out.exists() else []


def losses(out: Path) -> dict[int, str]:
    """By step."""
    return {line.step: line.loss for line in lines_of(out)}


def accepted(lines: Sequence[Line]) -> list[Line]:
    """Without what was done again after a restart."""
    kept: list[Line] = []
    for line in lines:
        if kept and line.step < kept[-1].step:
            kept = [each for each in kept if each.step < line.step]
        kept.append(line)
    return kept


def assert_one_sequence(lines: Sequence[Line], steps: int) -> None:
    """Each step once, by all of its workers; in an epoch no sample twice, and none left out."""
    by_step: dict[int, list[Line]] = {}
    for line in lines:
        by_step.setdefault(line.step, []).append(line)
    assert list(by_step) == list(range(steps)), "steps are contiguous"
    for found in by_step.values():
        (world,) = {line.world for line in found}
        assert sorted(line.rank for line in found) == list(range(world)), "no step twice"
        assert len({line.loss for line in found}) == 1
    for first in range(0, steps - EPOCH_STEPS, EPOCH_STEPS):
        epoch = [by_step[step] for step in range(first, first + EPOCH_STEPS)]
        seen = [number for found in epoch for line in found for number in line.samples]
        assert sorted(seen) == list(range(SAMPLES)), "no sample twice, none left out"
