"""GE-2 live in full length: quanta of 5 s, and what a switch costs of a quantum of a minute (G-43)."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import pytest

from tests.live.slicing import six_jobs, sliced, slices, steps, wait_until_even

pytestmark = [
    pytest.mark.live,
    pytest.mark.thorough,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="no torch: run `make env-jobs`"
    ),
]

QUANTUM_S = 5.0
QUANTA = 20
USUAL_QUANTUM_S = 60.0


def test_six_jobs_on_four_devices_over_twenty_quanta_of_five_seconds(tmp_path: Path) -> None:
    """Issue 5: Jain at least 0.98; a switch costs at most 2 % of a quantum of 60 s, waiting for a boundary included."""
    with sliced(tmp_path / "cluster", QUANTUM_S) as live, six_jobs(live):
        wait_until_even(live, QUANTUM_S)
        begins_s = time.time()
        ends_s = begins_s + QUANTA * QUANTUM_S
        before = steps(live)
        time.sleep(ends_s + QUANTUM_S - time.time())
        found, after = slices(live, begins_s, ends_s), steps(live)
        live.record("slicing-thorough", slices=found, share=found.switch_s / USUAL_QUANTUM_S)
        assert found.jain >= 0.98
        assert all(after[container] > before[container] for container in before)
        assert found.switches >= QUANTA
        assert found.switch_s / USUAL_QUANTUM_S <= 0.02
