"""The rung of the ladder that saves, ends the process and starts it again (DESIGN §5; case C09)."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.fakes.agent import Job, Refused
from tests.fakes.core import until
from tests.nodemanager_agent.client.jobs import GRANT, tree

COUNTING = str(Path(__file__).parent / "counting.py")
FOLDERS = Path("/dev/shm")


def command(ranks: int = 1) -> list[str]:
    return [sys.executable, COUNTING, "leaves", "1000000", str(ranks)]


def saved(minibatches: int) -> list[Path]:
    """Folders with a state after so many mini-batches; runs beside this one have others."""
    states = FOLDERS.glob("gandiva-state-*/state")
    return [each.parent for each in states if each.read_text().split()[0] == str(minibatches)]


def running(job: Job, minibatches: int = 0) -> int:
    """Until it has done more than so many; how many."""
    found = job.agent.await_message(
        lambda m: m["op"] == "progress" and m["minibatches"] > minibatches and m["method"]
    )
    assert (found["state"], found["method"]) == ("running", "checkpoint")
    return int(found["minibatches"])


def test_it_ends_with_its_state_saved_and_goes_on_in_another_process(tmp_path: Path) -> None:
    """G-40 by the third rung, twice; the container, its launcher and the count of mini-batches stay."""
    with Job(command(), tmp_path) as job:
        job.start()
        running(job)
        for _ in range(2):
            stopped = job.agent.command("suspend", limit_s=20)
            assert tree(job) == []
            assert {"end_s", "switch_s"} <= set(stopped["figures"])
            assert "freed_mib" not in stopped["figures"]  # nothing is claimed that was not measured
            assert job.agent.command("suspend")["minibatches"] == stopped["minibatches"]
            seen = job.agent.await_op("progress")
            assert (seen["state"], seen["method"]) == ("suspended", "checkpoint")
            assert seen["minibatches"] == stopped["minibatches"]
            back = job.agent.command("resume", **GRANT | {"gpus": [1], "uuids": ["GPU-another"]})
            assert back["figures"]["from"] == stopped["minibatches"]
            assert not saved(stopped["minibatches"])
            running(job, stopped["minibatches"])
        assert "ended" not in {each["op"] for each in job.agent.heard}


def test_a_start_that_fails_loses_nothing(tmp_path: Path) -> None:
    """G-13: the state stays where it is, the worker suspended, and the next resume goes on from it."""
    trap = tmp_path / "trap"
    with Job(command(), tmp_path, {"NO_START": str(trap)}) as job:
        job.start()
        running(job)
        stopped = job.agent.command("suspend", limit_s=20)
        trap.touch()
        for _ in range(2):
            with pytest.raises(Refused, match=r"NOT_STARTED|RANK_LOST"):
                job.agent.command("resume", **GRANT | {"environment": {"NO_START": str(trap)}})
            assert job.agent.await_op("progress")["state"] == "suspended"
        trap.unlink()
        assert job.agent.command("resume", **GRANT)["figures"]["from"] == stopped["minibatches"]
        running(job, stopped["minibatches"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_ends_it_while_it_is_away_leaves_no_state_behind(tmp_path: Path, number: int) -> None:
    """A node's memory is not lost to jobs that were killed."""
    with Job(command(), tmp_path) as job:
        job.start()
        running(job)
        found = saved(job.agent.command("suspend", limit_s=20)["minibatches"])
        made = max(found, key=lambda each: each.stat().st_mtime)
        assert made.stat().st_mode & 0o777 == 0o700
        job.process.send_signal(number)
        job.wait()
        until(lambda: not made.exists())


def test_several_processes_are_refused_and_run_on(tmp_path: Path) -> None:
    """Others would have to meet anew."""
    with Job(command(2), tmp_path) as job:
        job.start()
        job.agent.await_message(lambda m: m["op"] == "progress" and m["ranks"] == 2)
        seen = job.agent.await_message(lambda m: m["op"] == "progress" and m["minibatches"] > 3)
        assert seen["method"] == "none"
        with pytest.raises(Refused, match="NOT_SUSPENDABLE"):
            job.agent.command("suspend", limit_s=5)
        later = job.agent.await_message(
            lambda m: m["op"] == "progress" and m["minibatches"] > seen["minibatches"]
        )
        assert later["state"] == "running"
