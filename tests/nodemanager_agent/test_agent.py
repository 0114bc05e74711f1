"""The agent as a process, with real launchers and a real stream (issue 5, items 1 and 4)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from gandiva_core.messages import agents as a
from nodemanager_agent.client.processes import Process, below
from tests.fakes.agent import job_environment
from tests.fakes.core import FakeCore, until
from tests.nodemanager_agent.nodes import Node

# Agents look at all of a machine's processes: two runs of these tests must not take each other's for their own.
A, B, C = (f"container_{os.getpid()}_{letter}" for letter in "abc")


def test_a_device_changes_hands_once_its_holder_has_stopped(tmp_path: Path) -> None:
    """G-11 (i), G-40: two jobs in turn on one device; both run on; a repeated command is answered again."""
    with Node(tmp_path, 1).ready() as node:
        core = node.core
        hello = core.of(a.AgentHello)[0]
        assert (hello.node, hello.can_suspend) == ("node-1:4001", True)
        assert [device.is_virtual for device in hello.devices] == [True]
        node.expect(A, B)
        node.launch(A)
        node.launch(B)
        until(lambda: node.state(A) == node.state(B) == "waiting")
        first = core.switch(run=(a.RunWorker(A, (0,)),))
        until(lambda: core.switched(first)[1] == {A})
        busy = core.switch(run=(a.RunWorker(B, (0,)),))
        until(lambda: core.switched(busy)[2] == {B: "DEVICE_BUSY"})
        until(lambda: core.worker(A).minibatches > 5 and core.worker(A).method)
        turn = core.switch(suspend=(A,), run=(a.RunWorker(B, (0,)),))
        until(lambda: core.switched(turn)[:2] == ({A}, {B}))
        until(lambda: (node.state(A), node.state(B)) == ("suspended", "running"))
        assert core.worker(A).gpus == ()
        assert core.worker(B).gpus == (0,)
        back = core.switch(suspend=(B,), run=(a.RunWorker(A, (0,)),))
        until(lambda: core.switched(back)[:2] == ({B}, {A}))
        answers = len(core.of(a.Switched))
        core.say_raw(a.SwitchWorkers(1, turn, turn, (A,), (a.RunWorker(B, (0,)),)))
        until(lambda: len(core.of(a.Switched)) == answers + 2)
        core.say_raw(a.SwitchWorkers(0, 900, 900, (A,)))
        until(lambda: [e.code for e in core.of(a.Answered)] == ["STALE_EPOCH"])
        heard = len(core.of(a.Measured))
        until(lambda: len(core.of(a.Measured)) > heard + 2)
        assert (node.state(A), core.worker(A).method) == ("running", a.Method.FRAMEWORK)
        # C06: the agent has no children, so nothing was forked beside gRPC's threads.
        assert psutil.Process(node.agent.pid).children() == []


def test_an_agent_killed_amid_a_suspend_finds_each_job_either_running_or_suspended(
    tmp_path: Path,
) -> None:
    """E6: killed between the order and its answer, and started again; jobs never notice."""
    with Node(tmp_path, 1).ready() as node:
        core = node.core
        node.expect(A, B)
        job = node.launch(A)
        node.launch(B)
        first = core.switch(run=(a.RunWorker(A, (0,)),))
        until(lambda: core.switched(first)[1] == {A} and core.worker(A).minibatches > 3)
        core.switch(suspend=(A,))
        until(lambda: node.state(A) in ("suspending", "suspended"))
        node.kill()
        heard = len(core.heard)
        node.start()
        until(lambda: any(isinstance(e, a.AgentHello) for e in core.heard[heard:]))
        node.expect(A, B)
        until(lambda: node.state(A) == "suspended")
        assert {each.state for each in _training(job)} == {"T"}
        assert core.worker(A).gpus == ()
        again = core.switch(run=(a.RunWorker(B, (0,)),))
        until(lambda: core.switched(again)[1] == {B})
        node.kill()  # and once more while one runs: its device stays its own
        heard = len(core.heard)
        node.start()
        until(lambda: any(isinstance(e, a.AgentHello) for e in core.heard[heard:]))
        node.expect(A, B)
        until(lambda: node.state(B) == "running" and core.worker(B).gpus == (0,))
        refused = core.switch(run=(a.RunWorker(A, (0,)),))
        until(lambda: core.switched(refused)[2] == {A: "DEVICE_BUSY"})
        assert job.poll() is None


def test_a_process_that_stays_after_its_containers_end_keeps_the_device_from_others(
    tmp_path: Path,
) -> None:
    """E19: in a session of its own, deaf to SIGTERM; quarantined within three beats, and free once it is gone."""
    left = (
        "import os, sys, time, signal; "
        "r = os.fork(); "
        "r and (time.sleep(0.3), os._exit(0)); "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid(); "
        "[os.environ.pop('GANDIVA_LAUNCHER_SOCKET', None)]; "
        "os.fork() and os._exit(0); "
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); "
        "time.sleep(60)"
    )
    with Node(tmp_path, 1).ready() as node:
        core = node.core
        node.expect(A, B)
        job = node.launch(A, sys.executable, "-c", left)
        node.launch(B)
        core.switch(run=(a.RunWorker(A, (0,)),))
        stray = tmp_path / "pid"
        until(lambda: stray.exists() and stray.read_text())
        # A launcher that is killed outright cannot collect what it started.
        guards = [e.pid for e in below(job.pid) if b"gandiva-guard" in _command(e.pid)]
        for pid in guards:
            os.kill(pid, 9)
        job.kill()
        until(lambda: core.of(a.WorkerEnded))
        pid = int(stray.read_text())
        assert psutil.pid_exists(pid)
        refused = core.switch(run=(a.RunWorker(B, (0,)),))
        until(lambda: core.of(a.DeviceLost), 3)
        assert str(pid) in core.of(a.DeviceLost)[0].reason
        until(lambda: core.switched(refused)[2].get(B) == "DEVICE_LOST")
        assert not core.devices()[0].healthy
        os.kill(pid, 9)
        until(lambda: core.devices()[0].healthy)
        granted = core.switch(run=(a.RunWorker(B, (0,)),))
        until(lambda: core.switched(granted)[1] == {B})


def test_a_container_that_never_registers_keeps_its_devices_and_is_told_so(tmp_path: Path) -> None:
    """Item 2, contract 7: an unmodified command is UNHOOKED with method none, runs exclusively, and its end is seen."""
    with Node(tmp_path, 1, "--unhooked-after-s", "1").ready() as node:
        core = node.core
        node.expect(A, B)
        job = subprocess.Popen(
            ["/bin/sleep", "60"], env=job_environment(CONTAINER_ID=A), start_new_session=True
        )
        node.jobs.append(job)
        node.launch(B)
        run = core.switch(run=(a.RunWorker(A, (0,)),))
        until(lambda: core.switched(run)[1] == {A})
        until(lambda: core.worker(A).state is a.WorkerState.UNHOOKED)
        assert core.worker(A).method is a.Method.NONE
        stop = core.switch(suspend=(A,), run=(a.RunWorker(B, (0,)),))
        until(lambda: core.switched(stop)[2] == {A: "NOT_SUSPENDABLE", B: "DEVICE_BUSY"})
        job.kill()
        job.wait()
        until(lambda: [e.container_id for e in core.of(a.WorkerEnded)] == [A])
        granted = core.switch(run=(a.RunWorker(B, (0,)),))
        until(lambda: core.switched(granted)[1] == {B})


def test_residents_turn_while_the_core_is_away(tmp_path: Path) -> None:
    """DESIGN §4: silent for longer than told, the agent rotates by the last table; both jobs make progress."""
    with Node(tmp_path, 1) as node:
        core = node.core
        core.quantum_s, core.silent_s = 1.0, 1.0
        node.ready()
        node.expect(A, B)
        node.launch(A)
        node.launch(B)
        run = core.switch(run=(a.RunWorker(A, (0,)),))
        until(lambda: core.switched(run)[1] == {A} and core.worker(A).method)
        table = ((a.RunWorker(A, (0,)),), (a.RunWorker(B, (0,)),))
        core.say(lambda epoch, key: a.RotationTable(epoch, key, table))
        core.close()
        time.sleep(6)
        again = FakeCore("a secret of this test", core.port, epoch=2)
        node.core = again
        until(lambda: again.of(a.AgentHello))
        assert {node.state(A), node.state(B)} <= {
            "running", "suspended", "suspending", "resuming",
        }  # fmt: skip
        assert again.worker(B).minibatches > 0
        assert again.worker(A).minibatches > 0


@pytest.mark.parametrize("token", ["", "wrong"])
def test_nothing_without_the_secret(tmp_path: Path, token: str) -> None:
    """Item 1: no credentials, no start; wrong ones, no commands."""
    if not token:
        done = subprocess.run(
            [sys.executable, "-m", "nodemanager_agent", "--node", "n:1", "--core", "127.0.0.1:9"],
            capture_output=True, text=True, check=False, env=job_environment(),
        )  # fmt: skip
        assert done.returncode == 3
        assert done.stderr.count("\n") == 1
        assert "neither a token nor certificates" in done.stderr
        return
    with Node(tmp_path, 1) as node:
        other = FakeCore(token)
        try:
            node.kill()
            node.core.close()
            node.core = other
            node.start()
            until(lambda: other.refused)
            assert other.heard == []
        finally:
            other.close()


def _training(job: subprocess.Popen[bytes]) -> list[Process]:
    return [each for each in below(job.pid) if b"gandiva-guard" not in _command(each.pid)]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
