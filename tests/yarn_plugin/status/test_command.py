"""`gandiva status`: one screen, and an exit code that monitoring can use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from gandiva_core.cli.main import ExitCode, explained
from gandiva_core.model.errors import GandivaError
from gandiva_core.site.http import HttpError
from yarn_plugin.bridge.status import RmUnreachableError, ask, duration, rm_address, rows_of
from yarn_plugin.status.command import status

RM = "http://rm:8088"
BEAN: dict[str, Any] = {
    "name": "Hadoop:service=ResourceManager,name=Gandiva",
    "Mode": "full",
    "CoreState": "CONNECTED",
    "CoreConnected": 1,
    "CoreStateMs": 125_000,
    "CoreEpoch": 3,
    "CoreManaged": 1,
    "CoreRestarts": 1,
    "CoreDownAlarm": 0,
    "CoreDownReason": "",
    "BreakerOpens": 2,
    "Fallback": "wait",
    "FallbackEngaged": 0,
    "OwnErrors": 0,
    "CommitsOk": 7,
    "GarbageRefused": 1,
    "ForeignGpusRefused": 4,
    "PreemptionsReclaimed": 0,
    "EventsQueued": 5,
    "QueueOverflows": 0,
    "EffectsDone": [{"key": "commit_gang", "value": 7}],
    "EffectsRefused": [{"key": "NO_ROOM", "value": 2}],
    "RequestsRefused": [{"key": "BAD_REQUEST", "value": 1}],
    "NodesByHeight": [{"key": "1", "value": 1}, {"key": "4", "value": 2}],
}


class Answers:
    """A session that answers as a ResourceManager does."""

    def __init__(self, beans: object = None, **parts: object) -> None:
        self._parts: dict[str, object] = {
            "info": {"clusterInfo": {"state": "STARTED", "hadoopVersion": "3.4.2"}},
            "metrics": {
                "clusterMetrics": {
                    "activeNodes": 3,
                    "lostNodes": 0,
                    "appsRunning": 1,
                    "appsPending": 2,
                }
            },
            "jmx": {"beans": [BEAN] if beans is None else beans},
            **parts,
        }

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_json(self, url: str) -> object:
        found = self._parts[url.rpartition("/")[2].partition("?")[0]]
        if isinstance(found, Exception):
            raise found
        return found


def call(*arguments: str) -> int | str | None:
    """The command by itself, with the exit code that the console script would give it."""
    app = typer.Typer()
    app.command()(status)
    try:
        app(list(arguments))
    except SystemExit as stop:
        return stop.code
    except GandivaError as error:
        return explained(error)
    raise AssertionError("typer ends with an exit code")


def test_all_that_matters_is_on_one_screen() -> None:
    rows = dict(rows_of(RM, ask(RM, Answers())))
    assert len(rows) <= 20
    assert rows["mode"] == "full"
    assert rows["core"] == "connected since 2 min 5 s, session 3, child, started again once"
    assert rows["breaker"] == "opened 2 times"
    assert rows["heights"] == "1 nodes at 1, 2 nodes at 4"
    assert rows["orders refused"] == "NO_ROOM 2, BAD_REQUEST 1"
    assert rows["nodes"] == "3 active, 0 lost"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"CoreState": "SILENT", "CoreStateMs": 3_000}, "silent since 3 s"),
        ({"CoreState": "NEVER_SEEN", "CoreStateMs": 9_000}, "not there yet, 9 s after the start"),
        ({"CoreDownAlarm": 1, "CoreDownReason": "exit code 1: no module"}, "no module"),
        (
            {"CoreState": "SILENT", "Fallback": "exclusive", "FallbackEngaged": 1},
            "exclusive, stock code serves GPU asks",
        ),
    ],
)
def test_a_core_that_is_not_well_is_1(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, object],
    said: str,
) -> None:
    answers = Answers([{**BEAN, **changes}])
    monkeypatch.setattr("gandiva_core.site.http.HttpSession", lambda **_: answers)
    assert call("--rm", RM) == ExitCode.CHECK_FAILED
    assert said in capsys.readouterr().out


def test_a_core_that_is_well_is_0_and_programs_can_read_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gandiva_core.site.http.HttpSession", lambda **_: Answers())
    assert call("--rm", f"{RM}/cluster", "--format", "csv") == ExitCode.DONE
    assert "mode,full" in capsys.readouterr().out.splitlines()


def test_a_stock_resource_manager_is_1_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gandiva_core.site.http.HttpSession", lambda **_: Answers([]))
    assert call("--rm", RM) == ExitCode.CHECK_FAILED
    assert "no Gandiva" in capsys.readouterr().err


@pytest.mark.parametrize(
    "answers",
    [
        Answers(info=HttpError("http://rm: no connection")),
        Answers(info={}),
        Answers([{"Mode": "full"}]),
        Answers([7]),
        Answers(metrics=[]),
    ],
)
def test_whatever_else_answers_is_unreachable(answers: Answers) -> None:
    with pytest.raises(RmUnreachableError) as refused:
        ask(RM, answers)
    assert "\n" not in str(refused.value)


def test_nobody_there_is_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--rm", "http://127.0.0.1:9") == ExitCode.UNREACHABLE
    assert call("--state-dir", str(tmp_path)) == ExitCode.UNREACHABLE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 2


@pytest.mark.parametrize("text", ["rm:8088", "ftp://rm", "http://", ""])
def test_an_address_that_is_none_is_bad_input(text: str) -> None:
    assert rm_address(text) is None
    assert call("--rm", text) == ExitCode.BAD_INPUT


def test_times_are_for_people() -> None:
    assert [duration(s) for s in (0.9, 59, 61, 3_700, 90_000)] == [
        "0 s",
        "59 s",
        "1 min 1 s",
        "1 h 1 min",
        "1 d 1 h",
    ]
