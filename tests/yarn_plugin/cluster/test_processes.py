"""Whose process is it: number and start time, or the cluster's id; nothing else is signalled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from yarn_plugin.cluster.processes import ProcessTable, note

SLEEP = ["sleep", "600"]


@pytest.fixture
def table(tmp_path: Path) -> ProcessTable:
    return ProcessTable(tmp_path / "run", "id-of-this-test")


def test_a_process_is_found_again_by_another_command(table: ProcessTable, tmp_path: Path) -> None:
    pid = table.start("a", SLEEP, tmp_path / "a.log")
    again = ProcessTable(tmp_path / "run", "id-of-this-test")
    assert again.alive("a") == pid
    again.stop("a")
    assert again.alive("a") is None
    assert note(pid) is None


def test_a_number_that_went_to_another_process_is_not_ours(
    table: ProcessTable, tmp_path: Path
) -> None:
    """The file names a process that runs, with another start time: it must survive."""
    with subprocess.Popen(SLEEP) as stranger:
        noted = note(stranger.pid)
        assert noted is not None
        older = msgspec.structs.replace(noted, start_ticks=noted.start_ticks - 1)
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "a.json").write_bytes(msgspec.json.encode(older))
        assert table.alive("a") is None
        table.stop("a")
        assert stranger.poll() is None
        stranger.kill()


def test_a_file_of_an_earlier_boot_or_a_damaged_one_means_nothing_runs(
    table: ProcessTable, tmp_path: Path
) -> None:
    own = note(os.getpid())
    assert own is not None
    (tmp_path / "run").mkdir()
    file = tmp_path / "run" / "a.json"
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(own, boot_id="earlier")))
    assert table.alive("a") is None
    file.write_text("{")
    assert table.alive("a") is None


def test_one_that_does_not_listen_is_made_to_end(table: ProcessTable, tmp_path: Path) -> None:
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    log = tmp_path / "a.log"
    pid = table.start("a", [sys.executable, "-c", deaf], log)
    while "deaf" not in log.read_text():
        assert note(pid) is not None
    table.stop("a", grace_s=0.1)
    assert note(pid) is None


def test_output_is_appended_to_the_log(table: ProcessTable, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    for word in ("one", "two"):
        pid = table.start("a", ["echo", word], log)
        while note(pid) is not None:
            pass
    assert log.read_text() == "one\ntwo\n"


def test_strays_are_those_with_the_clusters_id(table: ProcessTable, tmp_path: Path) -> None:
    pid = table.start("a", ["sh", "-c", "setsid sleep 600 & setsid sleep 601"], tmp_path / "a.log")
    assert note(pid) is not None
    assert ProcessTable(tmp_path / "run", "another").stop_strays() == 0
    assert table.stop_strays() >= 1
    assert table.stop_strays() == 0
    assert note(pid) is None


def test_a_stray_that_leaves_a_child_when_it_ends_leaves_none(
    table: ProcessTable, tmp_path: Path
) -> None:
    """A container's shell may start its next command after the look at the processes, before its own end."""
    script = "trap 'setsid sleep 600 & exit' TERM; echo ready; while :; do sleep 0.05; done"
    log = tmp_path / "a.log"
    pid = table.start("a", ["sh", "-c", script], log)
    while "ready" not in log.read_text():
        assert note(pid) is not None
    assert table.stop_strays() >= 2
    assert table.stop_strays() == 0


def test_a_process_that_has_ended_is_nobody() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie from here on
        assert note(process.pid) is None
