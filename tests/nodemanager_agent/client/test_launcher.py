"""The launcher with quick commands, real processes and a real socket (issue 5, item 2)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nodemanager_agent.client import child, orders, rendezvous
from nodemanager_agent.client.processes import Tree, send
from nodemanager_agent.client.ranks import Ranks
from nodemanager_agent.client.wire import LAUNCHER_SOCKET
from nodemanager_agent.client.worker import Failed, Worker
from tests.fakes.agent import Job, Refused, job_environment
from tests.nodemanager_agent.client.jobs import GRANT, tree

COUNTING = str(Path(__file__).parent / "counting.py")


def counting(behaviour: str = "well", steps: int = 100000, ranks: int = 1) -> list[str]:
    return [sys.executable, COUNTING, behaviour, str(steps), str(ranks)]


def until(is_so: Callable[[], bool], limit_s: float = 15.0) -> None:
    ends = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < ends, "it did not come true"
        time.sleep(0.02)


def states(job: Job) -> set[str]:
    return {each.state for each in tree(job)}


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_nothing_runs_before_there_is_a_device_and_the_exit_code_is_the_commands(
    tmp_path: Path,
) -> None:
    """G-91: on start only the client runs; CUDA_VISIBLE_DEVICES is never unset."""
    script = 'echo "devices=[$CUDA_VISIBLE_DEVICES] own=[$OWN]"; exit 7'
    with Job(["/bin/sh", "-c", script], tmp_path, {"OWN": "yes"}) as job:
        assert job.registered["state"] == "waiting"
        assert job.registered["role"] == "launcher"
        time.sleep(0.3)
        assert tree(job) == []
        job.agent.send("start", gpus=[1], uuids=["GPU-1"], environment={"OWN": "yes"})
        assert job.wait() == 7
        assert job.agent.await_op("ended")["exit_code"] == 7
        assert "devices=[GPU-1] own=[yes]" in job.text()


def test_a_command_that_is_not_there_ends_with_127(tmp_path: Path) -> None:
    with Job(["/nonexistent/command"], tmp_path) as job:
        with pytest.raises(Refused, match="NO_COMMAND"):
            job.start()
        assert job.wait() == 127


def test_the_last_signal_is_the_exit_code_and_sigterm_reaches_the_command(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"
    with Job(["/bin/sh", "-c", script], tmp_path) as job:
        job.start()
        until(lambda: "up" in job.text())
        job.process.terminate()
        assert job.wait() == 3
        assert "bye" in job.text()
    with Job(["/bin/sh", "-c", "kill -KILL $$"], tmp_path) as job:
        job.start()
        assert job.wait() == 137


def test_an_order_that_breaks_off_ends_no_job(tmp_path: Path) -> None:
    """Whatever is in it, and whatever is wrong with us: the job runs on, and can be stopped by the next."""
    with Job(counting(), tmp_path) as job:
        job.start()
        job.agent.await_message(lambda each: each.get("ranks") == 1)
        with pytest.raises(Refused, match="FAILED: ValueError"):
            job.agent.command("suspend", limit_s="soon")
        assert job.agent.command("suspend", limit_s=10)["op"] == "done"
        job.agent.command("resume", **GRANT)
        assert job.process.poll() is None


def test_a_command_that_nothing_guards_is_not_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No process more can be started just now: the command ends with its launcher's word that it did not begin."""
    started: list[int] = []

    def refused(pid: int, _launcher: str) -> None:
        started.append(pid)
        raise OSError("no process more")

    monkeypatch.setattr(child, "_guarded", refused)
    with pytest.raises(OSError, match="no process more"):
        child.Child(["sleep", "60"], {"PATH": os.defpath, LAUNCHER_SOCKET: "none"}, Tree())
    assert is_gone(started[0])


def test_a_gang_that_does_not_meet_claims_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher's next line to an agent says what it has: nothing, so another may have it (A13)."""

    def refused(_environment: object) -> None:
        raise rendezvous.NoRendezvous("HTTP 410")

    monkeypatch.setattr(rendezvous, "is_gang", lambda _: True)
    monkeypatch.setattr(rendezvous, "meet", refused)
    ranks = Ranks(lambda: None, lambda _: None)
    worker = Worker(["true"], Tree(), ranks)
    try:
        steps = orders.start(worker, {"gpus": [1], "uuids": ["GPU-1"]})
        with pytest.raises(Failed, match="HTTP 410"):
            list(steps)
        assert worker.standing() == {"state": "waiting", "gpus": []}
    finally:
        ranks.close()


def test_a_signal_while_it_waits_for_a_device_ends_it(tmp_path: Path) -> None:
    with Job(["/bin/true"], tmp_path) as job:
        job.process.terminate()
        assert job.wait() == 143


def test_without_an_agent_the_command_runs_plainly_and_says_so() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "nodemanager_agent.client.launch", "--", "/bin/sh", "-c", "exit 5"],
        env=job_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 5
    assert run.stderr.count("\n") == 1
    assert "runs plainly" in run.stderr


def test_a_command_that_never_joins_is_not_said_to_free_anything(tmp_path: Path) -> None:
    """Case C07: plain Ctrl-Z keeps the memory. Refused, or stopped where that was allowed with 0 MiB freed."""
    with Job([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path) as job:
        job.start()
        with pytest.raises(Refused, match="NOT_SUSPENDABLE"):
            job.agent.command("suspend", limit_s=0.3)
        assert states(job) == {"S"}
        answer = job.agent.command("suspend", limit_s=0.3, may_stop=True)
        assert answer["figures"]["freed_mib"] == 0
        assert states(job) == {"T"}
        job.agent.command("resume", **GRANT)
        assert states(job) == {"S"}
        job.process.terminate()
        assert job.wait() == 143


def test_ranks_in_sessions_of_their_own_are_found_stopped_and_continued_as_one(
    tmp_path: Path,
) -> None:
    """As under torchrun: three processes, two ranks, figures of both as one."""
    with Job(counting(ranks=2), tmp_path) as job:
        job.start()
        for _ in range(5):
            figures = job.agent.command("suspend", limit_s=20)["figures"]
            assert states(job) == {"T"}
            assert len(tree(job)) == 3
            assert figures["state_mib"] == 2.0
            assert figures["copy_s"] == 1.5
            job.agent.command("resume", **GRANT)
        assert {each["is_same"] for each in job.agent.said("continuity")} == {True}
        until(lambda: job.agent.await_op("progress")["method"] == "framework")
        progress = job.agent.await_op("progress")
        assert progress["ranks"] == 2
        assert progress["state"] == "running"
        assert not progress["can_move"]


def test_mini_batches_are_counted_and_timed(tmp_path: Path) -> None:
    """G-51: the median of the last cycles, from the step ring."""
    with Job(counting(steps=300), tmp_path) as job:
        job.start()
        until(lambda: (job.agent.await_op("progress")["minibatch_s"] or 0) > 0)
        progress = job.agent.await_op("progress")
        assert 0.01 <= progress["minibatch_s"] < 0.5
        assert progress["minibatches"] > 10


def test_a_rank_that_never_reaches_a_boundary_leaves_the_job_running(tmp_path: Path) -> None:
    """FAULTS E11, G-12: the stop fails, and is taken back of the rank that did stop; nothing is killed."""
    with Job(counting("hangs"), tmp_path) as job:
        job.start()
        until(lambda: job.agent.await_op("progress")["minibatches"] >= 6)
        with pytest.raises(Refused, match="NO_BOUNDARY"):
            job.agent.command("suspend", limit_s=0.5)
        assert states(job) == {"S"}
        assert job.process.poll() is None
        until(lambda: job.agent.await_op("progress")["state"] == "running")


def test_a_rank_that_cannot_stop_takes_the_others_with_it(tmp_path: Path) -> None:
    """All ranks stop or none does."""
    with Job(counting("refuses", ranks=2), tmp_path) as job:
        job.start()
        until(lambda: job.agent.await_op("progress")["method"] == "framework")
        with pytest.raises(Refused, match="HOST_MEMORY"):
            job.agent.command("suspend", limit_s=10)
        before = job.agent.await_op("progress")["minibatches"]
        until(lambda: job.agent.await_op("progress")["minibatches"] > before)


def test_what_holds_addresses_is_never_stopped(tmp_path: Path) -> None:
    with Job(counting("graphs"), tmp_path) as job:
        job.start()
        until(lambda: job.agent.await_op("progress")["method"] == "none")
        assert job.agent.await_op("progress")["reason"] == "it holds addresses"


def test_a_device_without_room_leaves_the_job_suspended_until_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Job(counting("no room", steps=200), tmp_path) as job:
        job.start()
        job.agent.command("suspend", limit_s=20)
        with pytest.raises(Refused, match="DEVICE_MEMORY"):
            job.agent.command("resume", **GRANT)
        assert states(job) == {"T"}
        (tmp_path / "room").touch()
        job.agent.command("resume", **GRANT)
        assert job.wait() == 0, job.text()


@pytest.mark.parametrize(("behaviour", "is_same"), [("spoils", True), ("spoils for good", False)])
def test_a_state_that_came_back_otherwise_is_rolled_back_or_reported(
    tmp_path: Path, behaviour: str, is_same: bool
) -> None:
    """Issue 5, item 3: a mismatch rolls back, and is told in any case."""
    with Job(counting(behaviour, steps=200), tmp_path) as job:
        job.start()
        job.agent.command("suspend", limit_s=20)
        job.agent.send("resume", **GRANT)
        check = job.agent.await_op("continuity")
        assert check["is_same"] is is_same
        assert "state" in check["detail"]
        assert check["after"] == "suspend"


def test_commands_are_idempotent_and_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with Job(counting(), tmp_path) as job:
        with pytest.raises(Refused, match="NOT_RUNNING"):
            job.agent.command("suspend")
        job.start()
        job.agent.command("resume", **GRANT)
        first = job.agent.command("suspend", limit_s=20)
        assert job.agent.command("suspend", limit_s=20)["figures"] == first["figures"]
        job.agent.command("resume", **GRANT)
        job.start()
        with pytest.raises(Refused, match="NOT_WAITING"):
            job.agent.command("start", gpus=[1], uuids=[], environment={})
        with pytest.raises(Refused, match="UNKNOWN"):
            job.agent.command("dance")
        with pytest.raises(Refused, match="FAILED"):
            job.agent.command("save", folder=str(tmp_path / "none"), limit_s=10)
        before = job.agent.await_op("progress")["minibatches"]
        until(lambda: job.agent.await_op("progress")["minibatches"] > before)


def test_a_process_never_goes_to_another_device_than_it_began_on(tmp_path: Path) -> None:
    """It would run on the old one, which is another job's by now (G-11 i)."""
    with Job(counting(), tmp_path) as job:
        job.agent.command("start", gpus=[1], uuids=["GPU-b"], environment={})
        job.agent.command("suspend", limit_s=20)
        with pytest.raises(Refused, match="OTHER_DEVICE"):
            job.agent.command("resume", gpus=[0], uuids=["GPU-a"], environment={})
        assert states(job) == {"T"}
        job.agent.command("resume", gpus=[1], uuids=["GPU-b"], environment={})
        assert "T" not in states(job)


def test_an_agent_that_is_killed_and_comes_back_finds_the_job_as_it_was(tmp_path: Path) -> None:
    """FAULTS E6: suspended stays suspended, with its devices' numbers; it answers the new agent."""
    with Job(counting(), tmp_path) as job:
        job.start()
        job.agent.command("suspend", limit_s=20)
        job.agent.hang_up()
        time.sleep(0.5)
        assert states(job) == {"T"}
        registered = job.agent.come_back()
        assert (registered["state"], registered["gpus"], registered["token"]) == (
            "suspended",
            [0],
            "t",
        )
        job.agent.command("resume", **GRANT)
        assert "T" not in states(job)


def test_sigtstp_is_a_suspend_and_sigcont_a_resume(tmp_path: Path) -> None:
    """As in the paper (G-40): at the boundary, with the state copied out before anything stops."""
    with Job(counting(), tmp_path) as job:
        job.start()
        until(lambda: job.agent.await_op("progress")["minibatches"] >= 3)
        job.process.send_signal(signal.SIGTSTP)
        until(lambda: states(job) == {"T"})
        until(lambda: job.agent.await_op("progress")["state"] == "suspended")
        job.process.send_signal(signal.SIGCONT)
        until(lambda: "T" not in states(job))
        assert job.agent.await_op("continuity")["is_same"]


def test_a_suspended_job_that_is_told_to_end_ends_at_once(tmp_path: Path) -> None:
    """No handler of its own runs: it would save tensors that have no memory."""
    with Job(counting(), tmp_path) as job:
        job.start()
        job.agent.command("suspend", limit_s=20)
        pids = [each.pid for each in tree(job)]
        job.process.terminate()
        assert job.wait(10) == 143
        until(lambda: all(is_gone(pid) for pid in pids))


def test_a_launcher_that_is_killed_leaves_nobody(tmp_path: Path) -> None:
    """FAULTS E19's other half: a NodeManager's SIGKILL reaches the launcher's group only."""
    orphan = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\ntime.sleep(60)"
    script = f"{sys.executable} -c '{orphan}'; echo up; trap '' TERM; sleep 61 & wait; wait"
    with Job(["/bin/sh", "-c", script], tmp_path) as job:
        job.start()
        until(lambda: "up" in job.text() and len(tree(job)) == 3)
        pids = [each.pid for each in tree(job)]
        os.killpg(job.process.pid, signal.SIGKILL)
        until(lambda: all(is_gone(pid) for pid in pids))


def test_a_rank_that_dies_while_suspended_ends_the_job_not_hangs_it(tmp_path: Path) -> None:
    with Job(counting(ranks=2), tmp_path) as job:
        job.start()
        job.agent.command("suspend", limit_s=20)
        victim = max(each.pid for each in tree(job))
        send(victim, signal.SIGKILL)
        job.agent.send("resume", **GRANT)
        until(lambda: victim not in {each.pid for each in tree(job)})
        assert job.process.poll() is None or job.process.returncode != 0


def test_a_rank_forks_a_thousand_times_between_its_stops_and_no_child_hangs(tmp_path: Path) -> None:
    """Case C06, the data loaders' half: no thread and no lock of ours is there at a fork."""
    with Job(counting("forks", steps=200), tmp_path) as job:
        job.start()
        for _ in range(10):
            job.agent.command("suspend", limit_s=20)
            assert states(job) == {"T"}
            job.agent.command("resume", **GRANT)
        assert job.wait() == 0, job.text()


def test_a_worker_moves_from_one_launcher_to_another(tmp_path: Path) -> None:
    """G-69, the client's legs: warm, save, restore, release; the source stands still meanwhile, and could go on."""
    with (
        Job(counting("moves"), tmp_path, name="source") as source,
        Job(counting("moves"), tmp_path, name="destination") as destination,
    ):
        source.start()
        with pytest.raises(Refused, match="NOT_WARM"):
            destination.agent.command("restore", folder=str(tmp_path), **GRANT)
        destination.agent.command("warm", **GRANT)
        until(lambda: destination.agent.await_op("progress")["state"] == "starting")
        saved = source.agent.command("save", folder=str(tmp_path), limit_s=20)
        assert saved["figures"]["save_s"] == 0.1
        until(lambda: source.agent.await_op("progress")["state"] == "saved")
        until(lambda: states(source) == {"S"})  # and not stopped, as a suspended one
        source.agent.command("resume", **GRANT)  # called off: it goes on where it stopped
        saved = source.agent.command("save", folder=str(tmp_path), limit_s=20)
        restored = destination.agent.command("restore", folder=str(tmp_path), **GRANT)
        assert restored["figures"]["from"] == saved["minibatches"]
        source.agent.command("release")
        assert source.wait() == 0
        until(lambda: destination.agent.await_op("progress")["state"] == "running")
        until(lambda: destination.agent.await_op("progress")["minibatches"] > 3)


def test_released_ends_quietly(tmp_path: Path) -> None:
    with Job(counting(), tmp_path) as job:
        job.start()
        job.agent.command("release")
        ended = job.agent.await_op("ended")
        assert (ended["exit_code"], ended["reason"]) == (0, "released")
        assert job.wait() == 0


def test_the_users_own_sitecustomize_runs_too_and_the_agents_libraries_do_not_come_along(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    program = "import sys, nodemanager_agent.client.wire; print([p for p in sys.path if p.endswith('hook')])"
    environment = {"PYTHONPATH": str(tmp_path)}
    with Job([sys.executable, "-c", program], tmp_path, environment) as job:
        job.start()
        assert job.wait() == 0, job.text()
        assert "mine" in job.text()
        assert "client/hook" in job.text()
