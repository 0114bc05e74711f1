"""The driver's rung of the ladder through a launcher, with a small executable in the place of `cuda-checkpoint`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from nodemanager_agent.client.driver import has_rights
from tests.fakes.agent import Job, Refused
from tests.nodemanager_agent.client.jobs import tree
from tests.nodemanager_agent.client.test_driver import CUDA

COUNTING = str(Path(__file__).parent / "counting.py")
GPU: dict[str, Any] = {"gpus": [0], "uuids": ["GPU-1"], "environment": {}}

pytestmark = pytest.mark.skipif(not has_rights(), reason="needs the right to checkpoint processes")


class Tool:
    """`cuda-checkpoint` on the path of a container; `fails` names actions."""

    def __init__(self, folder: Path) -> None:
        self._log, self._fails = folder / "log", folder / "fails"
        self._folder = folder / "tools"
        self._folder.mkdir()
        self._log.touch()
        fails = f"open({str(self._fails)!r}).read()"
        text = CUDA.format(python=sys.executable, log=str(self._log))
        file = self._folder / "cuda-checkpoint"
        file.write_text(text.replace('os.environ.get("CUDA_FAILS", "")', fails))
        file.chmod(0o755)
        self.fails()

    def fails(self, *actions: str) -> None:
        """From now on."""
        self._fails.write_text(" ".join(actions))

    def said(self) -> list[str]:
        """Actions since the last call."""
        lines = self._log.read_text().split("\n")[:-1]
        self._log.write_text("")
        return [line.partition(" ")[2] for line in lines]

    def job(self, folder: Path, behaviour: str = "graphs") -> Job:
        """A rank that holds addresses of device memory, on a GPU."""
        path = f"{self._folder}:{os.environ['PATH']}"
        command = [sys.executable, COUNTING, behaviour, "1000000", "1"]
        job = Job(command, folder, container={"PATH": path})
        job.agent.command("start", **GPU)
        return job


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)


def running(job: Job, minibatches: int = 0) -> int:
    seen = job.agent.await_message(
        lambda m: m["op"] == "progress" and m["minibatches"] > minibatches and m["method"]
    )
    assert (seen["state"], seen["method"]) == ("running", "driver")
    return int(seen["minibatches"])


def test_memory_goes_to_the_host_and_comes_back_and_none_is_claimed(
    tool: Tool, tmp_path: Path
) -> None:
    """DESIGN §5 (2), C07."""
    with tool.job(tmp_path) as job:
        running(job)
        stopped = job.agent.command("suspend", limit_s=20)
        assert tool.said() == ["lock", "checkpoint"]
        assert {each.state for each in tree(job)} == {"T"}
        assert {"driver_s", "halt_s", "switch_s"} == set(stopped["figures"])
        with pytest.raises(Refused, match="OTHER_DEVICE"):
            job.agent.command("resume", gpus=[1], uuids=["GPU-2"], environment={})
        job.agent.command("resume", **GPU)
        assert tool.said() == ["restore", "unlock"]
        running(job, stopped["minibatches"])


def test_what_the_driver_refuses_leaves_the_job_as_it_was(tool: Tool, tmp_path: Path) -> None:
    """G-12: one that cannot go runs on; one that cannot come back stays suspended, and is asked again."""
    with tool.job(tmp_path) as job:
        done = running(job)
        tool.fails("checkpoint")
        with pytest.raises(Refused, match="FAILED: cuda-checkpoint checkpoint"):
            job.agent.command("suspend", limit_s=20)
        assert tool.said() == ["lock", "checkpoint", "unlock"]
        running(job, done)
        tool.fails("restore")
        stopped = job.agent.command("suspend", limit_s=20)
        with pytest.raises(Refused, match="FAILED: cuda-checkpoint restore"):
            job.agent.command("resume", **GPU)
        assert job.agent.await_op("progress")["state"] == "suspended"
        tool.fails()
        job.agent.command("resume", **GPU)
        running(job, stopped["minibatches"])


def test_without_the_tool_it_says_so_or_takes_the_next_rung(tmp_path: Path) -> None:
    """Refused with the reason; a job that can be saved is."""
    for behaviour, method in (("graphs", "none"), ("leaves", "checkpoint")):
        folder = tmp_path / behaviour
        folder.mkdir()
        command = [sys.executable, COUNTING, behaviour, "1000000", "1"]
        with Job(command, folder) as job:
            job.agent.command("start", **GPU)
            seen = job.agent.await_message(
                lambda m: m["op"] == "progress" and m["minibatches"] > 3 and m["method"]
            )
            assert seen["method"] == method
            if method == "none":
                assert seen["reason"] == "it holds addresses; no cuda-checkpoint"
