"""Grow and shrink, 1 → 2 → 4 → 2 → 1, of a real job on a real cluster (GE-6 live; SPEC G-80 … G-84; case B03)."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.live.jobs import Submitted, submit
from tests.live.ledger import Ledger
from tests.live.shells import Live, brought_up, wait_until
from tests.nodemanager_agent.client.sequences import (
    accepted,
    assert_one_sequence,
    lines_of,
    sizes,
)
from yarn_plugin.operate import job_command

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="no torch: run `make env-jobs`"
    ),
]
IN_ORDER = True
GROWING = Path(__file__).parents[1] / "nodemanager_agent" / "client" / "growing.py"
EVERY = 40


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One node with an agent and four virtual devices."""
    options = ("--nodes", "1", "--gpus", "4", "--agents")
    with brought_up(tmp_path_factory.mktemp("live") / "resize", *options) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module")
def job(live: Live, folder: Path) -> Iterator[Submitted]:
    """A job of one worker that can be resized, and is saved every so often."""
    command = f"GANDIVA_VIRTUAL_STEP_S=0.05 OMP_NUM_THREADS=1 {sys.executable} {GROWING}"
    job = submit(
        live,
        "resized",
        f"{command} {folder / 'log'} 100000 {folder / 'end'}",
        "gandiva.job.worker.memory=512m",
        f"gandiva.job.checkpoint.dir={folder / 'checkpoints'}",
        f"gandiva.job.checkpoint.every={EVERY}",
    )
    try:
        wait_until(lambda: len(sizes(folder / "log")) > 20, "it computes")
        yield job
    finally:
        job.client.kill()
        job.client.wait()


def asked(live: Live, *words: str, code: int = 0) -> Any:
    """What `gandiva job` prints; its exit code is as expected."""
    place = ["--state-dir", str(live.folder.path), "--format", "json"]
    result = CliRunner().invoke(job_command.app, [*words, *place])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if code == 0 else result.output


def test_a_job_grows_and_shrinks_and_its_data_are_one_sequence(
    live: Live, job: Submitted, folder: Path
) -> None:
    """GE-6: whatever the number of workers, the next global batch is the next one."""
    app, log = job.app_id, folder / "log"
    wait_until(lambda: asked(live, "status", app)[0]["method"] == "framework", "it was probed")
    for workers in (2, 4, 2, 1):
        (line,) = asked(live, "resize", app, "--gpus", str(workers))
        assert (line["gpus"], len(line["devices"].split(","))) == (str(workers), workers), line
        wait_until(lambda n=workers: sizes(log)[-1] == n, f"{workers} compute")  # type: ignore[misc]
        (line,) = asked(live, "list")
        assert (line["job"], line["phase"], line["gpus"]) == (app, "running", str(workers))
    done = lines_of(log)
    assert_one_sequence(done, done[-1].step + 1)
    found = [
        line.world for at, line in enumerate(done) if not at or done[at - 1].world != line.world
    ]
    assert found == [1, 2, 4, 2, 1]
    wait_until(lambda: len(told(job, "frozen_s")) == 6, "told by each that stayed")
    assert len(told(job, "is not needed any more")) == 3
    assert not told(job, "not as it was before")


def told(job: Submitted, what: str) -> list[str]:
    """What its launchers said of something."""
    return [line for text in job.logs("stderr") for line in text.splitlines() if what in line]


def test_what_cannot_be_is_refused_with_the_reason(live: Live, job: Submitted) -> None:
    said = asked(live, "resize", job.app_id, "--gpus", "5", code=5)
    assert "has 3 free GPUs" in said
    asked(live, "resize", "application_1_0001", "--gpus", "2", code=3)


def test_a_lost_worker_goes_on_from_its_last_checkpoint(
    live: Live, job: Submitted, folder: Path
) -> None:
    """B03: at most so many steps are lost, none is counted twice, and the application fails nothing."""
    log = folder / "log"
    (victim,) = [each for each in job.processes(str(GROWING)) if each.name() == "bash"] or [
        each for each in job.processes("client.launch") if "python" in each.name()
    ]
    victim.kill()
    before = lines_of(log)[-1].step
    wait_until(lambda: len(lines_of(log)) > 0 and lines_of(log)[-1].step < before, "again")
    wait_until(lambda: lines_of(log)[-1].step > before, "beyond where it was")
    (folder / "end").touch()
    assert job.wait() == 0, (job.progress(), job.logs("stderr"))
    lines = lines_of(log)
    steps = [line.step for line in lines]
    at = next(at for at in range(1, len(steps)) if steps[at] < steps[at - 1])
    assert steps[at] % EVERY == 0
    assert steps[at - 1] + 1 - steps[at] <= EVERY
    kept = accepted(lines)
    assert_one_sequence(kept, kept[-1].step + 1)
    attempts = live.get(f"/ws/v1/cluster/apps/{job.app_id}/appattempts")["appAttempts"]
    assert len(attempts["appAttempt"]) == 1
    Ledger(live, 4).every_decision_can_be_made_again()
