"""Commands about jobs, with what a core would say (DESIGN §10)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from gandiva_core.cli.main import ExitCode
from gandiva_core.messages import operations as o
from gandiva_core.model.units import JobId
from yarn_plugin.operate import job_command
from yarn_plugin.operate.calling import Place

APP = "application_1_1"


def line(name: str, **fields: object) -> o.JobLine:
    return o.JobLine(JobId(name), APP, "", "ann", "root.a", "running", 1, **fields)  # type: ignore[arg-type]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[o.OperationReply]:
    """What the core answers, in turn."""
    replies: list[o.OperationReply] = []
    turn: Iterator[o.OperationReply] = (replies.pop(0) for _ in iter(int, 1))
    monkeypatch.setattr(Place, "ask", lambda _place, _operation: next(turn))
    monkeypatch.setattr(job_command, "_LOOK_S", 0.0)
    return replies


def test_a_resize_waits_until_the_job_has_its_devices(said: list[o.OperationReply]) -> None:
    under_way = line(APP, resizing="to 2 workers", is_resizing=True)
    added = line(f"{APP}#2")
    said += [o.Jobs((under_way,)), o.Jobs((under_way, added)), o.Jobs((line(APP),))]
    done = CliRunner().invoke(job_command.app, ["resize", APP, "--gpus", "2"])
    assert (done.exit_code, said) == (0, []), done.output
    assert APP in done.stdout


def test_a_job_that_ends_while_it_is_resized_is_told_in_a_line(
    said: list[o.OperationReply],
) -> None:
    """An application's id stands for all of its jobs: another may still be there."""
    under_way = line(APP, resizing="to 2 workers", is_resizing=True)
    said += [o.Jobs((under_way,)), o.Jobs((line(f"{APP}#2"),))]
    done = CliRunner().invoke(job_command.app, ["resize", APP, "--gpus", "2"])
    assert done.exit_code == ExitCode.REFUSED
    assert done.stderr.strip() == f"gandiva: error: {APP}: it has ended"


def test_what_came_to_nothing_is_told(said: list[o.OperationReply]) -> None:
    said += [o.Jobs((line(APP, resizing="not resized: its master called it off"),))]
    done = CliRunner().invoke(job_command.app, ["resize", APP, "--gpus", "2"])
    assert done.exit_code == ExitCode.REFUSED
    assert "called it off" in done.stderr
