"""A bar on a terminal, silence in a pipe (USERS B9)."""

from __future__ import annotations

import io
import sys

import pytest

from gandiva_core.cli.progress import ProgressMode, following
from gandiva_core.replay.experiment import Progress


def drawn(mode: ProgressMode, monkeypatch: pytest.MonkeyPatch) -> str:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with following(mode, []) as on_progress:
        on_progress(Progress("gandiva_server_1", 3, 10, 3723.0))
        on_progress(Progress("gandiva_server_1", 10, 10, 7200.0))
    return stream.getvalue()


def test_a_pipe_stays_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(ProgressMode.AUTO, monkeypatch) == ""
    assert drawn(ProgressMode.NEVER, monkeypatch) == ""


def test_a_bar_shows_jobs_virtual_time_and_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    text = drawn(ProgressMode.ALWAYS, monkeypatch)
    assert "10/0" in text
    assert "jobs/s" in text
