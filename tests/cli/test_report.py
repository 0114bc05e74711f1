"""`gandiva report`: again from one folder, joined from two, and refused where they do not belong together."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

CommandLine = Callable[..., subprocess.CompletedProcess[str]]
Writer = Callable[..., Path]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where results of small replays are kept for all tests of this file."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def played(
    gandiva: CommandLine,
    write_trace: Writer,
    write_cluster: Writer,
    tmp_path: Path,
    results: Path,
) -> Callable[..., None]:
    """Puts the result of one arm on a small trace into a folder."""

    def play(arm: str, out: str, *, gpus: int = 4, steps: int = 100) -> None:
        kept = results / f"{arm}-{gpus}-{steps}"
        if not kept.exists():
            trace = write_trace(("a", 0, 2, steps), ("b", 0, 4, 50), ("c", 5, 1, 20))
            done = gandiva(
                *("replay", trace, "--engine", "sim", "--shape", "server", "--arms", arm),
                *("--cluster", write_cluster(1, gpus), "--out", kept),
            )
            assert done.returncode == 0, done.stderr
        shutil.copytree(kept, tmp_path / out)

    return play


def test_arms_run_apart_are_joined(
    gandiva: CommandLine, played: Callable[..., None], tmp_path: Path
) -> None:
    played("capacity", "a")
    played("gandiva", "b")
    done = gandiva("report", "a", "b", "--out", "joint")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "report: joint/report.html"
    summary = json.loads((tmp_path / "joint" / "summary.json").read_bytes())
    assert list(summary["arms"]) == ["capacity", "gandiva"]
    assert summary["ratios"]["gandiva"]["mean_jct"] > 0
    for arm in summary["arms"].values():
        assert (tmp_path / "joint" / arm["runs"][0]["journal"]).resolve().is_file()


def test_one_folder_is_reported_again(
    gandiva: CommandLine, played: Callable[..., None], tmp_path: Path
) -> None:
    played("gandiva", "a")
    page = tmp_path / "a" / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert gandiva("report", "a").returncode == 0
    assert page.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "word"), [({"gpus": 5}, "nodes"), ({"steps": 101}, "trace trace.csv")]
)
def test_what_differs_is_named(
    gandiva: CommandLine, played: Callable[..., None], change: dict[str, int], word: str
) -> None:
    played("capacity", "a")
    played("gandiva", "b", **change)
    done = gandiva("report", "a", "b", "--out", "joint")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert word in line
    assert "b: gandiva, shape server, seed 1" in line
    assert "as in a: capacity" in line


def test_a_folder_that_is_none_is_named(gandiva: CommandLine) -> None:
    done = gandiva("report", "absent")
    assert done.returncode == 3
    assert "absent" in done.stderr
    assert "Traceback" not in done.stderr
