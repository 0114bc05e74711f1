"""The same code on a real GPU: skipped where there is none, and not yet run on one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.agent import Job
from tests.nodemanager_agent.client.jobs import cycle, needs_torch, plain, suspend, training

GPU = Path("/dev/nvidia0")
pytestmark = [
    needs_torch,
    pytest.mark.gpu,
    pytest.mark.skipif(not GPU.exists(), reason="needs an NVIDIA GPU"),
]
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
ON_THE_GPU = {"CUDA_VISIBLE_DEVICES": "0", "GANDIVA_VIRTUAL_STEP_S": "0.03", **DETERMINISTIC}


def grant(job: Job) -> None:
    job.agent.command("resume", gpus=[0], uuids=[], environment={})


def test_losses_on_a_gpu_bit_exact_over_20_suspends(tmp_path: Path) -> None:
    """Storages to pinned memory and back, the allocator's pool emptied (FACTS §5)."""
    options: dict[str, Any] = {"steps": 60, "device": "cuda", "width": 4096}
    reference = plain(tmp_path / "plain", DETERMINISTIC, **options)
    with Job(training(tmp_path / "stopped", **options), tmp_path, ON_THE_GPU) as job:
        job.start()
        answers = [each[0] for each in cycle(20, job)]
        assert job.wait() == 0, job.text()
        assert {each["is_same"] for each in job.agent.said("continuity")} == {True}
    assert reference.wait() == 0
    assert (tmp_path / "stopped").read_text() == (tmp_path / "plain").read_text()
    for answer in answers:
        assert answer["figures"]["freed_mib"] >= answer["figures"]["state_mib"] > 0


def test_a_second_job_fits_once_the_first_is_suspended(tmp_path: Path) -> None:
    """Case C07: 80 % of the card and 60 % of it, one after the other, and the first goes on."""
    first: dict[str, Any] = {"steps": 40, "device": "cuda", "ballast_ratio": 0.8}
    second: dict[str, Any] = {"steps": 5, "device": "cuda", "ballast_ratio": 0.6}
    with Job(training(tmp_path / "first", **first), tmp_path, ON_THE_GPU) as job:
        job.start()
        suspend(job)
        assert plain(tmp_path / "second", DETERMINISTIC, **second).wait() == 0
        grant(job)
        assert job.wait() == 0, job.text()
        assert {each["is_same"] for each in job.agent.said("continuity")} == {True}


@pytest.mark.skipif(shutil.which("cuda-checkpoint") is None, reason="needs cuda-checkpoint")
def test_losses_bit_exact_of_a_job_with_cuda_graphs_over_suspends_by_the_driver(
    tmp_path: Path,
) -> None:
    """DESIGN §5 (2), E01: what cannot give its memory back itself; another job has the card meanwhile (C07)."""
    options: dict[str, Any] = {"steps": 60, "device": "cuda", "graph": 1, "ballast_ratio": 0.6}
    second: dict[str, Any] = {"steps": 5, "device": "cuda", "ballast_ratio": 0.6}
    reference = plain(tmp_path / "plain", DETERMINISTIC, **options)
    assert reference.wait() == 0
    card = {"gpus": [0], "uuids": [gpu_uuid()], "environment": DETERMINISTIC}
    with Job(training(tmp_path / "stopped", **options), tmp_path) as job:
        job.agent.command("start", 60, **card)
        seen = job.agent.await_message(lambda m: m["op"] == "progress" and m["method"])
        assert seen["method"] == "driver", seen
        suspend(job)
        assert plain(tmp_path / "second", DETERMINISTIC, **second).wait() == 0
        job.agent.command("resume", 60, **card)
        assert job.wait() == 0, job.text()
    assert (tmp_path / "stopped").read_text() == (tmp_path / "plain").read_text()


def gpu_uuid() -> str:
    """Of the first GPU, as the driver names it."""
    text = next(Path("/proc/driver/nvidia/gpus").glob("*/information")).read_text()
    return next(line.split()[-1] for line in text.splitlines() if line.startswith("GPU UUID"))
