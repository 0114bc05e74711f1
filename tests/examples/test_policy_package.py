"""The example of a policy from outside: installed as its own package, tested by the shipped suite, run as an arm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COLUMNS = (
    "job_id,arrival_s,model,batch,g,total_steps,priority_class,weight,"
    "growshrink,multi_job_id,entity,slo_factor,ref_duration_s"
)
ROWS = ("a,0,,,2,100,0,1,0,,,,100", "b,0,,,4,100,0,1,0,,,,100", "c,10,,,1,50,0,1,0,,,,50")


def call(arguments: list[str], folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the installed example on its path."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, repo_root: Path) -> Path:
    """A folder that the example was installed into by pip, without network."""
    folder = tmp_path_factory.mktemp("site")
    target = ["--target", str(folder), str(repo_root / "docs" / "examples" / "policy")]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    done = call(["-m", "pip", "install", *options, *target], folder, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_its_package_holds_the_policy_and_its_entry_point(site: Path) -> None:
    """One file, one entry point in the group that `--arms` reads."""
    assert [path.name for path in site.glob("*.py")] == ["largest_first.py"]
    points = next(site.glob("*.dist-info")) / "entry_points.txt"
    assert "largest-first = largest_first:create" in points.read_text()


@pytest.mark.slow
def test_its_own_tests_pass(site: Path, repo_root: Path, tmp_path: Path) -> None:
    """The inherited suite, run as its author would; slow because it is the whole suite in another process."""
    own = repo_root / "docs" / "examples" / "policy" / "test_largest_first.py"
    (tmp_path / own.name).write_text(own.read_text())
    done = call(["-m", "pytest", "-q", "-p", "no:cacheprovider", own.name], tmp_path, site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_it_runs_as_an_arm(site: Path, tmp_path: Path) -> None:
    """`gandiva replay --arms capacity,largest-first` finds it by its entry point; all jobs finish in both arms."""
    (tmp_path / "tiny.csv").write_text("\n".join((COLUMNS, *ROWS)) + "\n")
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\n\n[[servers]]\ncount = 2\ngpus = 4\nmemory_mib = 458752\nvcores = 48\n'
    )
    options = ["--engine", "sim", "--cluster", "tiny.toml", "--shape", "gpu", "--out", "out"]
    arms = ["--arms", "capacity,largest-first"]
    run = ["-c", "from gandiva_core.cli.main import main; main()"]
    done = call([*run, "replay", "tiny.csv", *options, *arms], tmp_path, site)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    finished = {name: arm["finished"] for name, arm in summary["arms"].items()}
    assert finished == {"capacity": 3, "largest-first": 3}
