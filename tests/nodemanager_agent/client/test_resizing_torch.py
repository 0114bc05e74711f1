"""PyTorch jobs that go on with another number of workers, and show nothing of it but that (SPEC G-80 … G-84)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.agent import Job
from tests.fakes.master import SECRET, FakeMaster
from tests.nodemanager_agent.client.jobs import GRANT, needs_torch, suspend, tree
from tests.nodemanager_agent.client.sequences import (
    assert_one_sequence,
    lines_of,
    losses,
    sizes,
)

pytestmark = needs_torch
PROGRAM = Path(__file__).parent / "growing.py"
PACE = {"GANDIVA_VIRTUAL_STEP_S": "0.05"}


@pytest.fixture
def master(tmp_path: Path) -> Iterator[FakeMaster]:
    (tmp_path / "token").write_text(SECRET)
    master = FakeMaster()
    yield master
    master.shutdown()
    master.server_close()


def container(master: FakeMaster, folder: Path, generation: int = 1) -> dict[str, str]:
    """What a container of the job begins with."""
    names = {"GANDIVA_AM_URL": master.url, "GANDIVA_AM_TOKEN_FILE": str(folder / "token")}
    job = {"GANDIVA_RESIZE": "allow", "GANDIVA_JOB_ID": f"resized-{os.getpid()}"}
    return {**names, **job, "NM_HOST": "127.0.0.1", "GANDIVA_GENERATION": str(generation)}


def added(
    master: FakeMaster, folder: Path, generation: int, rank: int, size: int
) -> dict[str, str]:
    """What a container begins with that was added."""
    joins = {"GANDIVA_JOINS": "true", "GANDIVA_RANK": str(rank)}
    sizes = {"GANDIVA_WORLD_SIZE": str(size), "GANDIVA_TASKS": str(size)}
    return {**container(master, folder, generation), **joins, **sizes}


def until(what: object, limit_s: float = 60.0) -> None:
    ends_s = time.monotonic() + limit_s
    while not what():  # type: ignore[operator]
        assert time.monotonic() < ends_s
        time.sleep(0.05)


@pytest.mark.slow  # a dozen starts of torch
def test_losses_bit_exact_from_one_worker_to_two_and_back_twice(
    master: FakeMaster, tmp_path: Path
) -> None:
    """GE-6's mechanism, and case G01: who joins after an orderly leave gets the state, and nobody waits for ever.

    Where sums are exact, losses are those of one worker throughout; else they would differ in the last bits, since an
    average over two workers adds up in another order.
    """
    out, plain, end = tmp_path / "resized", tmp_path / "plain", tmp_path / "end"
    master.workers[1] = ["container_a"]
    command = [sys.executable, str(PROGRAM), str(out), "100000", str(end)]
    jobs: list[Job] = []
    with Job(command, tmp_path, PACE, "a", container(master, tmp_path)) as first:
        jobs.append(first)
        first.start()
        until(lambda: master.can_resize.get("container_a") == (True, "it does not run yet"))
        for times, grown, name in ((1, 2, "b"), (2, 4, "c")):
            before = sizes(out).count(2)
            master.resize(grown, ["container_a", f"container_{name}"])
            extra = added(master, tmp_path, grown, 1, 2)
            with Job(command, tmp_path, PACE, name, extra) as second:
                jobs.append(second)
                key = second.agent.send("start", **GRANT | {"environment": PACE})
                answer = second.agent.answer(key)
                assert answer["figures"]["frozen_s"] > 0
                until(partial(has_grown, first, times))
                assert suspend(first, second)[0]["figures"]["freed_mib"] >= 0, "as any other gang"
                for each in (first, second):
                    each.agent.send("resume", **GRANT)
                until(partial(has_done, out, before + 20))
                master.resize(grown + 1, ["container_a"])
                assert second.wait() == 0, second.text()
                until(lambda: sizes(out)[-1] == 1)
                until(lambda: len(tree(first)) == 1)  # one command, and nothing left of the others
        end.touch()
        assert first.wait() == 0, first.text()
    for job in jobs:
        checks = [each for each in job.agent.said("continuity") if each["after"] == "resize"]
        assert all(each["is_same"] for each in checks), checks
        assert checks
    steps = max(losses(out)) + 1
    assert_one_sequence(lines_of(out), steps)
    assert sorted(set(sizes(out))) == [1, 2]
    with Job([sys.executable, str(PROGRAM), str(plain), str(steps)], tmp_path, {}, "p") as job:
        job.start()
        assert job.wait() == 0
    assert losses(out) == losses(plain)
    assert not list(Path("/dev/shm").glob(f"resized-{os.getpid()}-*"))


def has_grown(job: Job, times: int) -> bool:
    """Whether a launcher said so often that its job goes on with two workers."""
    return job.text().count("is one of 2 workers") >= times


def has_done(out: Path, count: int) -> bool:
    """Whether two workers have written more lines than that."""
    return sizes(out).count(2) > count


@pytest.mark.slow  # seven starts of torch
@pytest.mark.parametrize("stage", [1, 3])
def test_what_is_called_off_leaves_the_job_as_it_was(
    master: FakeMaster, tmp_path: Path, stage: int
) -> None:
    """Before the job stops for it, and after: the present processes go on, at the step where they stopped."""
    out, steps = tmp_path / "out", 100_000
    master.workers[1] = ["container_a"]
    command = [sys.executable, str(PROGRAM), str(out), str(steps)]
    with Job(command, tmp_path, PACE, "a", container(master, tmp_path)) as first:
        first.start()
        until(lambda: master.can_resize.get("container_a", (False, ""))[0])
        master.fails_at = stage
        master.resize(2, ["container_a", "container_b"])
        extra = added(master, tmp_path, 2, 1, 2)
        with Job(command, tmp_path, PACE, "b", extra) as second:
            second.agent.send("start", **GRANT | {"environment": PACE})
            until(lambda: len(tree(first)) == 2)
            with pytest.raises(Exception, match="RESIZING"):
                first.agent.command("suspend", limit_s=5)
            assert second.wait() == 0, second.text()
        assert "does not join: the test wants it" in second.text()
        assert "stays as it is: the test wants it" in first.text()
        before = len(lines_of(out))
        until(lambda: len(lines_of(out)) > before + 20)
        assert len(tree(first)) == 1
        kept = [line for line in lines_of(out) if line[2] == 1]
        assert [line[0] for line in kept] == list(range(len(kept)))
        tried = [line for line in lines_of(out) if line[2] == 2]
        assert len(tried) == (2 if stage == 3 else 0), "one mini-batch, which does not count"
