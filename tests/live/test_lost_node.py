"""A node that is lost with a worker on it (B03 of the cases)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.live.jobs import Submitted, python, submit, until
from tests.live.shells import Live, brought_up

pytestmark = [pytest.mark.live, pytest.mark.slow]  # JVMs

EXPIRY_MS = 6000
STEPS = 200
EVERY = 50
LOST_AT = 120

TRAINING = r"""
import json, os, pathlib, sys, time

folder, rank = pathlib.Path(sys.argv[1]), os.environ["GANDIVA_RANK"]
checkpoint, accepted = folder / ("checkpoint-" + rank), folder / ("accepted-" + rank)
done = json.loads(checkpoint.read_text()) if checkpoint.exists() else []
print("generation", os.environ["GANDIVA_GENERATION"], "from", len(done), flush=True)
while len(done) < {steps}:
    done.append(len(done) + 1)
    if len(done) % {every} == 0:
        part = checkpoint.with_suffix(".part")
        part.write_text(json.dumps(done))
        part.replace(checkpoint)
    while len(done) == {lost_at} and os.environ["GANDIVA_GENERATION"] == "1":
        (folder / ("there-" + rank)).touch()
        time.sleep(0.1)
accepted.write_text(json.dumps(done))
"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """Three nodes of one GPU that count as lost after seconds."""
    size = ("--nodes", "3", "--gpus", "1", "--scheduler", "gandiva")
    soon = (f"yarn.nm.liveness-monitor.expiry-interval-ms={EXPIRY_MS}",)
    with brought_up(tmp_path / "cluster", *size, *(w for s in soon for w in ("--set", s))) as live:
        yield live


def test_a_gang_goes_on_from_its_last_checkpoint_on_other_nodes(live: Live, tmp_path: Path) -> None:
    program = TRAINING
    for name, value in (("steps", STEPS), ("every", EVERY), ("lost_at", LOST_AT)):
        program = program.replace("{" + name + "}", str(value))
    command = f"{python(tmp_path, 'training', program)} {tmp_path}"
    job = submit(
        live,
        "training",
        command,
        "gandiva.job.launcher=false",
        "gandiva.job.worker.instances=2",
    )
    until(lambda: (tmp_path / "there-0").exists() and (tmp_path / "there-1").exists(), "step 120")
    bystander = live.daemon("resourcemanager")
    lose(live, job)
    assert job.wait(180) == 0, (job.progress(), job.logs("stderr"))
    for rank in (0, 1):
        accepted = (tmp_path / f"accepted-{rank}").read_text()
        assert accepted == str(list(range(1, STEPS + 1))), "every step once"
    said = "".join(job.logs())
    assert said.count("generation 2 from 100") == 2, said
    attempts = live.get(f"/ws/v1/cluster/apps/{job.app_id}/appattempts")["appAttempts"]
    assert len(attempts["appAttempt"]) == 1, "no attempt of the application was spent"
    assert bystander.is_running()


def lose(live: Live, job: Submitted) -> None:
    """End a node that has a worker and not the master, and all that runs on it."""
    node = next(n for n in live.cluster.nodes if has(live, job, n.name) == "worker")
    live.daemon(node.name).kill()
    place = str(live.folder.nodes / node.name)
    for each in live.processes():
        with contextlib.suppress(psutil.Error):
            if each.cwd().startswith(place):
                each.kill()


def has(live: Live, job: Submitted, node: str) -> str:
    """What of a job is on a node."""
    folders = live.folder.logs.glob(f"{node}-containers/{job.app_id}/container_*")
    names = [folder.name for folder in folders]
    return "" if not names else "master" if any(n.endswith("_000001") for n in names) else "worker"
