"""`gandiva job` and `gandiva node` on a cluster with agents: what people order is what training does (DESIGN §10)."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.live.shells import Live, Shell, brought_up, wait_until
from yarn_plugin.operate import job_command, node_command

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="no torch: run `make env-jobs`"
    ),
]
IN_ORDER = True
ROOT = Path(__file__).resolve().parents[2]
QUANTUM_S = 2.0


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One node with an agent and two virtual devices."""
    quantum = f"yarn.scheduler.gandiva.quantum-ms={QUANTUM_S * 1000:.0f}"
    options = ("--nodes", "1", "--gpus", "2", "--agents", "--set", quantum)
    with brought_up(tmp_path_factory.mktemp("live") / "operate", *options) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def trained(live: Live) -> Iterator[Shell]:
    """One job that trains."""
    train = f"{sys.executable} {ROOT / 'tests' / 'live' / 'training.py'} 1000000"
    launch = f"{sys.executable} -m nodemanager_agent.client.launch -- {train}"
    command = f"env PYTHONPATH={ROOT} OMP_NUM_THREADS=1 {launch}"
    resources = "memory-mb=768,vcores=1,yarn.io/gpu=1"
    with live.shell(1, name="trained", resources=resources, command=command) as shell:
        wait_until(lambda: bool(jobs(live)) and done(live) > 0, "it computes")
        yield shell


def asked(app: Any, live: Live, *words: str, code: int = 0) -> list[dict[str, str]]:
    """What a command prints; its exit code is as expected."""
    place = ["--state-dir", str(live.folder.path), "--format", "json"]
    result = CliRunner().invoke(app, [*words, *place])
    assert result.exit_code == code, result.output
    return list(json.loads(result.stdout)) if code == 0 else []


def jobs(live: Live) -> list[dict[str, str]]:
    return asked(job_command.app, live, "list")


def done(live: Live) -> int:
    """Mini-batches of the one job."""
    return int(jobs(live)[0]["minibatches"] or 0)


def is_held(live: Live) -> bool:
    return (jobs(live)[0]["phase"], jobs(live)[0]["note"]) == ("suspended", "held")


def test_a_job_that_is_suspended_by_hand_does_nothing_until_it_is_resumed(
    live: Live, trained: Shell
) -> None:
    """Not even with a free device beside it."""
    app_id = trained.app_id()
    asked(job_command.app, live, "suspend", app_id)
    wait_until(lambda: is_held(live), "it stops")
    (worker,) = asked(job_command.app, live, "status", app_id)
    wait_until(
        lambda: asked(job_command.app, live, "status", app_id)[0]["state"] == "suspended",
        "its agent says so",
    )
    assert worker["method"] == "framework"
    before = done(live)
    time.sleep(3 * QUANTUM_S)
    assert done(live) == before
    asked(job_command.app, live, "resume", app_id)
    wait_until(lambda: done(live) > before, "it goes on where it was")


def test_a_node_that_is_emptied_takes_nobody_new_and_lets_who_is_there_train(
    live: Live, trained: Shell
) -> None:
    (node,) = asked(node_command.app, live, "list")
    assert (node["state"], node["agent"], node["shares"]) == ("OPEN", "there", "yes")
    asked(node_command.app, live, "drain", node["node"])
    before = done(live)
    with live.shell(1, name="late") as late:
        app_id = late.app_id()
        wait_until(lambda: len(jobs(live)) == 2, "it is known")
        time.sleep(2 * QUANTUM_S)
        phases = {job["job"]: job["phase"] for job in jobs(live)}
        assert phases[app_id] == "queued"
        assert done(live) > before
        asked(node_command.app, live, "resume", node["node"])
        wait_until(
            lambda: {job["job"]: job["phase"] for job in jobs(live)}[app_id] != "queued", "it goes"
        )
        late.finish()


def test_what_is_not_there_is_said_so(live: Live, trained: Shell) -> None:
    """Exit codes of DESIGN §10."""
    asked(job_command.app, live, "suspend", "application_1_0001", code=3)
    asked(node_command.app, live, "drain", "nowhere:1", code=3)
