"""A real ResourceManager, real NodeManagers, and Hadoop's own DistributedShell under both schedulers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gandiva_core.cli.main import ExitCode, run
from tests.live.books import entries, residents_over_time
from tests.live.ledger import Ledger
from tests.live.shells import Live, brought_up, listening, wait_until, words
from yarn_plugin.cluster.daemons import RESOURCE_MANAGER
from yarn_plugin.cluster.processes import ProcessTable

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
]  # JVMs: a cluster starts in 13 s on two quiet cores

HEIGHT_MAX = 4
GPUS = 4
OPTIONS = ("--nodes", "1", "--gpus", str(GPUS), "--scheduler", "gandiva")
SHARED = ("--set", "yarn.scheduler.gandiva.oversubscribe-without-agent=true")


@pytest.fixture(scope="module")
def gandiva(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One four-GPU node under Gandiva, whose devices are shared although no agent is there."""
    path = tmp_path_factory.mktemp("live") / "gandiva"
    with brought_up(path, *OPTIONS, *SHARED) as live:
        yield live


def test_eight_independent_containers_share_four_gpus_within_the_height(gandiva: Live) -> None:
    with gandiva.shell(8, "-application_tags", "gandiva.gang=1") as shell:
        wait_until(lambda: gandiva.gpus_used() == 8, "eight containers at once")
        shell.finish()
    wait_until(lambda: gandiva.gpus_used() == 0, "all containers gone")
    most = {len(residents) for residents in residents_over_time(gandiva.journal())}
    assert max(most) == 2, "eight on four devices: two on each, within a height of four"
    assert max(most) <= HEIGHT_MAX


def test_a_gang_of_eight_waits_whole_on_four_gpus(gandiva: Live) -> None:
    with gandiva.shell(8, "-application_tags", "gandiva.gang=8") as shell:
        wait_until(lambda: bool(waiting_jobs(gandiva)), "the gang waits")
        for _ in range(5):
            assert gandiva.gpus_used() == 0
        app = next(iter(waiting_jobs(gandiva)))
        kill = [str(gandiva.folder.yarn), "application", "-kill", app]
        assert subprocess.run(kill, capture_output=True, timeout=120, check=False).returncode == 0
        assert shell.client.wait(timeout=120) != 0


def test_every_port_is_on_loopback(gandiva: Live) -> None:
    found = set[str]().union(*map(listening, gandiva.processes()))
    assert "127.0.0.1" in found
    assert {ip for ip in found if not ip.removeprefix("::ffff:").startswith("127.")} == set()


def test_the_token_is_in_no_log_and_on_no_command_line(gandiva: Live) -> None:
    """I7 of the faults."""
    (file,) = gandiva.folder.logs.glob("bridge-*/token")
    assert file.stat().st_mode & 0o777 == 0o600
    Ledger(gandiva, HEIGHT_MAX).no_secret_is_told()


def test_a_core_that_is_killed_is_started_again_and_nothing_else_ends(gandiva: Live) -> None:
    """E3 of the faults, once."""
    with gandiva.shell(2, "-application_tags", "gandiva.gang=1") as shell:
        wait_until(lambda: gandiva.gpus_used() == 2, "two containers")
        killed, epoch = core_of(gandiva), session(gandiva)
        killed.kill()
        wait_until(lambda: session(gandiva) > epoch, "another core says hello")
        assert core_of(gandiva).pid != killed.pid
        assert gandiva.gpus_used() == 2
        shell.finish()


def test_another_core_is_refused_while_the_resource_manager_has_its_own(gandiva: Live) -> None:
    (token,) = gandiva.folder.logs.glob("bridge-*/token")
    place = ["--port", str(gandiva.cluster.ports["bridge"]), "--token-file", str(token)]
    program = [sys.executable, "-m", "gandiva_core", "core", *place]
    own, epoch = core_of(gandiva).pid, session(gandiva)
    other = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert other.returncode == ExitCode.REFUSED
    assert "yarn.scheduler.gandiva.core.managed=false" in other.stderr
    assert (core_of(gandiva).pid, session(gandiva)) == (own, epoch)


def test_applications_live_on_when_the_resource_manager_is_killed(
    gandiva: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ProcessTable(gandiva.folder.run, gandiva.cluster.cluster_id)
    place = ("--state-dir", str(gandiva.folder.path))
    with gandiva.shell(8, "-application_tags", "gandiva.gang=1") as shell:
        wait_until(lambda: len(shell.pids()) == 8, "eight containers at once")
        shells = shell.pids()
        core, killed = core_of(gandiva), table.alive(RESOURCE_MANAGER)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not core.is_running(), "its core ends with it")
        capsys.readouterr()
        assert run(["cluster", "status", *place]) == ExitCode.UNREACHABLE
        assert "not reachable" in capsys.readouterr().err
        assert run(["cluster", "up", *place, *OPTIONS, *SHARED]) == 0
        wait_until(lambda: gandiva.gpus_used() == 8, "all eight are known again")
        assert shell.pids() == shells
        capsys.readouterr()
        assert run(["cluster", "status", *place, "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [row["state"] for row in rows] == ["STARTED", "RUNNING", "RUNNING"]
        shell.finish()
    wait_until(lambda: gandiva.gpus_used() == 0, "all containers gone")
    with gandiva.shell(1, "-application_tags", "gandiva.gang=1") as shell:
        wait_until(lambda: gandiva.gpus_used() == 1, "a container after the restart")
        shell.finish()


def test_every_decision_of_the_live_core_can_be_made_again(gandiva: Live) -> None:
    """C-7, on what the tests before this one have left."""
    Ledger(gandiva, HEIGHT_MAX).every_decision_can_be_made_again()


def test_the_same_shell_runs_under_the_stock_scheduler(tmp_path: Path) -> None:
    options = ("--nodes", "2", "--gpus", "2", "--scheduler", "capacity")
    with brought_up(tmp_path / "capacity", *options) as live:
        with live.shell(5) as shell:
            wait_until(lambda: live.gpus_used() == 4, "four containers on four GPUs")
            for _ in range(5):
                assert live.gpus_used() == 4, "never more than there are"
            shell.finish()
        assert live.report().hadoop_version == "3.4.2"


def core_of(live: Live) -> psutil.Process:
    """The child of the ResourceManager that decides."""
    (core,) = [each for each in live.processes() if "gandiva_core" in words(each)]
    return core


def session(live: Live) -> int:
    core = live.report().core
    assert core is not None
    return core.epoch


def waiting_jobs(live: Live) -> dict[str, object]:
    """Jobs of eight workers that were put into the queue, with the reason and its numbers."""
    found: dict[str, object] = {}
    for entry in entries(live.journal()):
        decisions = entry.get("decisions", [])
        assert isinstance(decisions, list)
        for decision in decisions:
            if decision["kind"] == "Enqueue" and "8 GPUs" in decision["reason"]:
                found[decision["job_id"]] = decision["reason"]
    return found
