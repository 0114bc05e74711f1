"""The real command line in a process of its own, and small inputs for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

GANDIVA = Path(sys.executable).with_name("gandiva")

Finished = subprocess.CompletedProcess[str]
CommandLine = Callable[..., Finished]

OWN_HEADER = (
    "job_id,arrival_s,model,batch,g,total_steps,priority_class,weight,growshrink,"
    "multi_job_id,entity,slo_factor,ref_duration_s"
)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """As a user's shell has it, without what a developer's may add."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GANDIVA_")}
    return {**kept, "COLUMNS": "200", **(extra or {})}


@pytest.fixture
def gandiva(tmp_path: Path) -> CommandLine:
    """Run `gandiva ARGUMENTS` in an empty folder."""

    def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Finished:
        return subprocess.run(
            [str(GANDIVA), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=240,
            cwd=tmp_path,
            env=environment(env),
            check=False,
        )

    return run


@pytest.fixture
def write_trace(tmp_path: Path) -> Callable[..., Path]:
    """A trace in the own format from (job id, arrival in s, GPUs, steps) rows; a step takes a second."""

    def write(*rows: tuple[str, float, int, int], name: str = "trace.csv") -> Path:
        lines = [f"{job},{at},,,{gpus},{steps},0,1,false,,,," for job, at, gpus, steps in rows]
        path = tmp_path / name
        path.write_text("\n".join([OWN_HEADER, *lines]) + "\n", encoding="utf-8")
        return path

    return write


@pytest.fixture
def write_cluster(tmp_path: Path) -> Callable[..., Path]:
    """A cluster file of alike servers."""

    def write(servers: int = 1, gpus: int = 1, name: str = "small") -> Path:
        path = tmp_path / f"{name}.toml"
        path.write_text(
            f'name = "{name}"\n[[servers]]\ncount = {servers}\ngpus = {gpus}\n'
            "memory_mib = 65536\nvcores = 64\n",
            encoding="utf-8",
        )
        return path

    return write
