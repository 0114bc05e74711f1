"""Training that moves between nodes: asked for, and because its node is emptied (SPEC G-69, G-13; DESIGN §5)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.live.jobs import Submitted, submit
from tests.live.shells import Live, brought_up, wait_until
from yarn_plugin.operate import job_command, node_command

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="no torch: run `make env-jobs`"
    ),
]
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "nodemanager_agent" / "client" / "moving.py"
MANY = 100_000
"""Steps that nobody does: the test says which is the last."""

LARGE = ("gandiva.job.worker.memory=768m",)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Two nodes of two virtual devices, whose mini-batches take a twentieth of a second."""
    pace = "yarn.scheduler.gandiva.agent.virtual-step-ms=50"
    size = ("--nodes", "2", "--gpus", "2", "--agents", "--set", pace)
    with brought_up(tmp_path_factory.mktemp("live") / "migration", *size) as cluster:
        yield cluster


def asked(app: Any, live: Live, *words: str) -> list[dict[str, Any]]:
    """What a command prints."""
    place = ["--state-dir", str(live.folder.path), "--format", "json"]
    result = CliRunner().invoke(app, [*words, *place])
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout))


def line(live: Live, job: Submitted) -> dict[str, Any]:
    """The job's line in `gandiva job list`."""
    found = [row for row in asked(job_command.app, live, "list") if row["job"] == job.app_id]
    return found[0] if found else {}


def node_of(live: Live, job: Submitted) -> str:
    return str(line(live, job).get("devices", "")).partition("/")[0]


def train(live: Live, out: Path, *settings: str) -> Submitted:
    """A job that computes."""
    command = f"env OMP_NUM_THREADS=1 {sys.executable} {PROGRAM}"
    command = f"{command} --out {out} --last {out}.last --steps {MANY}"
    job = submit(live, out.name, command, *LARGE, *settings)
    wait_until(lambda: int(line(live, job).get("minibatches") or 0) > 5, "it computes")
    return job


def ended(job: Submitted, out: Path) -> int:
    """Let it do some dozens of mini-batches more, and end; how many it did."""
    last = len(out.with_suffix(".0").read_text().splitlines()) + 60
    part = out.with_name("last")
    part.write_text(str(last))
    part.rename(f"{out}.last")  # no rank reads half of it
    assert job.wait() == 0, (job.progress(), job.logs("stderr"))
    return last + 1


def reference(folder: Path, world: int, steps: int) -> list[Path]:
    """The same training, never disturbed; the losses of each rank."""
    out = folder / "plain"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment |= {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29611"}
    words = [sys.executable, str(PROGRAM), "--out", str(out), "--steps", str(steps)]
    ranks = [
        subprocess.Popen(words, env={**environment, "RANK": str(rank)}) for rank in range(world)
    ]
    assert [rank.wait() for rank in ranks] == [0] * world
    return [out.with_suffix(f".{rank}") for rank in range(world)]


def moves(live: Live, job: Submitted) -> list[dict[str, Any]]:
    """What the journal says of its moves that came true."""
    entries = (json.loads(text) for text in live.journal().splitlines())
    events = (entry.get("event", {}) for entry in entries)
    return [e for e in events if e.get("kind") == "GangMoved" and e["job_id"] == job.app_id]


def test_a_job_goes_where_it_was_asked_to_and_losses_stay_bit_exact(
    live: Live, tmp_path: Path
) -> None:
    job = train(live, tmp_path / "moved")
    here = node_of(live, job)
    (there,) = {row["node"] for row in asked(node_command.app, live, "list")} - {here}
    asked(job_command.app, live, "migrate", job.app_id, "--to", there)
    wait_until(lambda: node_of(live, job) == there, "it computes there")
    (plain,) = reference(tmp_path, 1, ended(job, tmp_path / "moved"))
    assert (tmp_path / "moved.0").read_text() == plain.read_text()
    (moved,) = moves(live, job)
    figures = dict(moved["figures"])
    live.record("migration", **figures)
    assert {"warm_s", "save_s", "restore_s", "first_minibatch_s"} <= figures.keys()
    assert "after a move" in story(live, job)


def test_a_node_that_is_emptied_gives_its_gang_away_bit_exact(live: Live, tmp_path: Path) -> None:
    """Both ranks go, and find each other anew; nobody new comes until the node is opened again."""
    job = train(live, tmp_path / "moved", "gandiva.job.worker.instances=2")
    here = node_of(live, job)
    asked(node_command.app, live, "drain", here)
    wait_until(lambda: node_of(live, job) not in ("", here), "it computes elsewhere")
    (row,) = [r for r in asked(node_command.app, live, "list") if r["node"] == here]
    assert (row["running"], row["residents"]) == ("0", "0")
    asked(node_command.app, live, "resume", here)
    plain = reference(tmp_path, 2, ended(job, tmp_path / "moved"))
    for rank in (0, 1):
        moved = (tmp_path / f"moved.{rank}").read_text()
        assert moved == plain[rank].read_text()


def story(live: Live, job: Submitted) -> str:
    """What the journal says of continuity."""
    entries = (json.loads(text) for text in live.journal().splitlines())
    events = (entry.get("event", {}) for entry in entries)
    checks = [e for e in events if e.get("kind") == "ContinuityChecked"]
    assert all(check["is_same"] for check in checks if check["job_id"] == job.app_id)
    return " ".join(f"after a {c['after']}" for c in checks if c["job_id"] == job.app_id)
