"""`gandiva cluster` as an administrator types it: exit codes, one line on stderr, results on stdout."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from gandiva_core.cli.main import ExitCode, run
from gandiva_core.config.settings import Settings
from yarn_plugin.cluster import command, daemons, lifecycle, status
from yarn_plugin.cluster.processes import ProcessTable, note
from yarn_plugin.cluster.state import Plan, StateFolder, addressed
from yarn_plugin.cluster.status import CoreReport, NodeReport, RmReport

CONNECTED = CoreReport("CONNECTED", 1, "")
PLAN = Plan(1, 4, "gandiva", 4)


def test_without_a_cluster_status_is_4_and_down_is_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--state-dir", str(tmp_path / "none")]
    assert run(["cluster", "status", *place]) == ExitCode.UNREACHABLE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "no cluster is up in" in told.err
    assert run(["cluster", "down", *place]) == ExitCode.DONE
    assert not (tmp_path / "none").exists(), "asking makes nothing"


def test_a_resource_manager_that_does_not_answer_is_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    StateFolder(tmp_path).save(addressed(PLAN))
    assert run(["cluster", "status", "--state-dir", str(tmp_path)]) == ExitCode.UNREACHABLE
    assert "not reachable" in capsys.readouterr().err


def test_jars_that_are_not_there_are_bad_input_with_what_brings_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class_path = daemons.class_path
    monkeypatch.setattr(daemons, "class_path", lambda: class_path(tmp_path / "target"))
    state = tmp_path / "state"
    assert run(["cluster", "up", "--state-dir", str(state)]) == ExitCode.BAD_INPUT
    assert "run `make cluster-jars`" in capsys.readouterr().err
    assert not state.exists()


def test_a_listing_of_jars_that_are_gone_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gandiva-yarn-1.jar").touch()
    (tmp_path / daemons.LISTING).write_text(f"{tmp_path}/gone.jar")
    class_path = daemons.class_path
    monkeypatch.setattr(daemons, "class_path", lambda: class_path(tmp_path))
    assert run(["cluster", "up", "--state-dir", str(tmp_path / "s")]) == ExitCode.BAD_INPUT
    assert "gone.jar" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--nodes", "0"],
        ["--nodes", "three"],
        ["--gpus", "-1"],
        ["--scheduler", "fair"],
        ["--height-max", "0"],
        ["--format", "xml"],
    ],
)
def test_values_that_mean_nothing_are_wrong_usage(tmp_path: Path, options: list[str]) -> None:
    assert run(["cluster", "up", "--state-dir", str(tmp_path), *options]) == ExitCode.WRONG_USAGE


@pytest.mark.parametrize(
    "text",
    ["height", "=x", "two words=1", "yarn.scheduler.gandiva.height.max=2", "<x>=1"],
)
def test_a_setting_that_cannot_be_used_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    place = ["--state-dir", str(tmp_path)]
    assert run(["cluster", "up", *place, "--set", text]) == ExitCode.BAD_INPUT
    told = capsys.readouterr().err
    assert told.startswith("gandiva: error: --set")
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_usual_height_is_the_keys_own() -> None:
    assert Settings().height_max == command.HEIGHT_MAX


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_is_interrupted_and_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    undone: list[str] = []

    def up(*_: object) -> None:
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            undone.append("what was started")

    monkeypatch.setattr(lifecycle, "up", up)
    before = signal.getsignal(signal.SIGTERM)
    assert run(["cluster", "up", "--state-dir", str(tmp_path)]) == ExitCode.INTERRUPTED
    assert undone == ["what was started"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_value_may_hold_anything() -> None:
    assert command.properties_of(["a.b=", "c=d=e", "a.b=f"]) == {"a.b": "f", "c": "d=e"}


def shown(
    tmp_path: Path,
    form: str,
    node_pid: int | None,
    told: str | None,
    core: CoreReport = CONNECTED,
) -> int:
    folder = StateFolder(tmp_path)
    cluster = addressed(PLAN)
    folder.save(cluster)
    folder.run.mkdir()
    for name, pid in (
        ("resourcemanager", os.getpid()),
        ("node-1", node_pid),
    ):
        noted = None if pid is None else note(pid)
        if noted is not None:
            text = json.dumps({key: getattr(noted, key) for key in noted.__struct_fields__})
            (folder.run / f"{name}.json").write_text(text)
    node = NodeReport(cluster.nodes[0].node_id, told or "", 9, 8, 4)
    report = RmReport("STARTED", "3.4.2", "gandiva", (node,) if told else (), 1, 0, core)
    assert ProcessTable(folder.run, "").alive("resourcemanager") == os.getpid()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(status, "ask", lambda *_: report)
        return run(["cluster", "status", "--state-dir", str(tmp_path), "--format", form])


def test_a_whole_cluster_is_0_and_told_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(tmp_path, "json", os.getpid(), "RUNNING") == ExitCode.DONE
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == ["resourcemanager", "core", "node-1"]
    assert (rows[2]["gpus"], rows[2]["containers"]) == ("8/4", "9")


@pytest.mark.parametrize(
    ("is_alive", "told", "state"),
    [(False, "RUNNING", "DEAD"), (True, None, "UNKNOWN"), (True, "LOST", "LOST")],
)
def test_a_part_that_does_not_work_is_1(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    is_alive: bool,
    told: str | None,
    state: str,
) -> None:
    pid = os.getpid() if is_alive else None
    assert shown(tmp_path, "table", pid, told) == ExitCode.CHECK_FAILED
    assert f"node-1           {state}" in capsys.readouterr().out


def test_a_core_that_is_silent_is_1_and_its_alarm_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = CoreReport("SILENT", 3, "exit code 1")
    assert shown(tmp_path, "wide", os.getpid(), "RUNNING", silent) == ExitCode.CHECK_FAILED
    (line,) = [text for text in capsys.readouterr().out.splitlines() if text.startswith("core")]
    assert "SILENT" in line
    assert "exit code 1" in line
