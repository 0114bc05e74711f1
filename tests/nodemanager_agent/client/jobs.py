"""Real training processes for the client's tests: under a launcher, or plain to compare with."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from nodemanager_agent.client.processes import Process, below
from tests.fakes.agent import Job, job_environment

PROGRAM = Path(__file__).parent / "training.py"
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch: make env-jobs")
GRANT: dict[str, Any] = {"gpus": [0], "uuids": ["virtual-0"], "environment": {}}


def training(out: Path, **options: Any) -> list[str]:
    """The command of a training program that writes its losses, in every bit, to a file."""
    words = [
        word
        for name, value in options.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return [sys.executable, str(PROGRAM), "--out", str(out), *words]


def plain(
    out: Path, environment: dict[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """The same program without us, started."""
    return subprocess.Popen(training(out, **options), env=job_environment(**environment or {}))


def gang_environment(rank: int, port: int) -> dict[str, str]:
    """What a rank of a two-rank gang is told."""
    return {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "WORLD_SIZE": "2",
    }


def free_port() -> int:
    """A port that nobody had a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def suspend(*jobs: Job, limit_s: float = 40.0) -> list[dict[str, Any]]:
    """Suspend all, at about the same time; their answers."""
    keys = [job.agent.send("suspend", limit_s=limit_s) for job in jobs]
    return [job.agent.answer(key, limit_s + 10) for job, key in zip(jobs, keys, strict=True)]


def resume(*jobs: Job) -> list[dict[str, Any]]:
    """Resume all."""
    keys = [job.agent.send("resume", **GRANT) for job in jobs]
    return [job.agent.answer(key) for job, key in zip(jobs, keys, strict=True)]


def cycle(count: int, *jobs: Job, run_s: float = 0.03) -> list[list[dict[str, Any]]]:
    """So many suspends and resumes, with a time to run between; the answers to each suspend."""
    answers = []
    for _ in range(count):
        answers.append(suspend(*jobs))
        resume(*jobs)
        time.sleep(run_s)
    return answers


def tree(job: Job) -> list[Process]:
    """What runs below a launcher, its guard left out."""
    return [
        each
        for each in below(job.process.pid)
        if b"gandiva-guard" not in Path(f"/proc/{each.pid}/cmdline").read_bytes()
    ]


def anonymous_mib(pid: int) -> float:
    """Resident anonymous memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(pid)
