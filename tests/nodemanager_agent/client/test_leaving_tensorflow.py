"""A Keras job that cannot give a GPU's memory back in place is saved, ended and started again (DESIGN §5; C09)."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fakes.agent import Job, job_environment
from tests.nodemanager_agent.client.jobs import GRANT, tree

PROGRAM = Path(__file__).parent / "keras_loop.py"
PACE = {"GANDIVA_VIRTUAL_STEP_S": "0.05"}
STEPS = 120

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="needs tensorflow: make env-jobs"
)


@pytest.mark.slow  # four starts of TensorFlow, two of them at once
def test_losses_bit_exact_over_an_end_and_a_start_again(tmp_path: Path) -> None:
    """Batch norm, dropout by Keras' generators, Adam, the order of the data by numpy's and noise by Python's."""
    plain = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(tmp_path / "plain"), str(STEPS)], env=job_environment()
    )
    command = [sys.executable, str(PROGRAM), str(tmp_path / "stopped"), str(STEPS)]
    with Job(command, tmp_path, PACE) as job:
        job.start()
        seen = job.agent.await_message(
            lambda m: m["op"] == "progress" and m["minibatches"] > 20 and m["method"]
        )
        assert (seen["method"], seen["can_move"]) == ("checkpoint", True), seen
        for _ in range(2):
            stopped = job.agent.command("suspend", limit_s=30)
            assert tree(job) == []
            assert stopped["figures"]["saved_mib"] > 0
            back = job.agent.command("resume", 120, **GRANT | {"environment": PACE})
            assert back["minibatches"] == stopped["minibatches"] + 1
        assert job.wait() == 0, job.text()
        checks = job.agent.said("continuity")
        assert [(each["after"], each["is_same"]) for each in checks] == [("suspend", True)] * 2
    assert plain.wait() == 0
    assert (tmp_path / "stopped").read_text() == (tmp_path / "plain").read_text()
