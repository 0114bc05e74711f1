"""C-2: sizes and their affinity class."""

from __future__ import annotations

import pytest

from gandiva_core.model.job import (
    DEVICE_PHASES,
    RESIDENT_PHASES,
    TERMINAL_PHASES,
    JobPhase,
    JobSpec,
    Worker,
)
from gandiva_core.model.units import JobId


@pytest.mark.parametrize(
    ("gpus", "expected"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 16)]
)
def test_the_affinity_class_is_the_next_power_of_two(gpus: int, expected: int) -> None:
    spec = JobSpec(JobId("j"), (Worker(1, 1, 1),) * gpus)
    assert (spec.gpus, spec.affinity_class) == (gpus, expected)


def test_a_gang_counts_the_gpus_of_all_workers() -> None:
    assert JobSpec(JobId("j"), (Worker(4, 1, 1), Worker(2, 1, 1))).gpus == 6


def test_phases_are_either_waiting_resident_or_over() -> None:
    waiting = {JobPhase.SUBMITTED, JobPhase.QUEUED}
    assert waiting | RESIDENT_PHASES | TERMINAL_PHASES == set(JobPhase)
    assert not RESIDENT_PHASES & TERMINAL_PHASES
    assert DEVICE_PHASES < RESIDENT_PHASES
