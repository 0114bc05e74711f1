"""What a rank does when something fails while its state is out of device memory: the job is never left without it."""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any

import pytest

from nodemanager_agent.client import peers
from nodemanager_agent.client.framework import Figures, Framework, Limits, Refusal
from nodemanager_agent.client.rank import Rank

SUSPEND = {"op": "suspend", "id": "1"}


class Memory(Framework):
    """A framework whose state is one word.

    Attributes:
        full: how often there is no room on the device; fails: what breaks.
    """

    def __init__(self, fails: str = "", full: int = 0) -> None:
        self.place = "device"
        self.fails = fails
        self.full = full

    def limits(self) -> Limits:
        return Limits(["framework"])

    def offload(self) -> Figures:
        self.place = "host"
        return {}

    def reload(self) -> Figures:
        if self.full:
            self.full -= 1
            raise Refusal("DEVICE_MEMORY", "no room")
        self.place = "device"
        return {}

    def settle(self, is_stopped: bool) -> bool:
        if self.fails == "settle":
            raise RuntimeError("the store is gone")
        return is_stopped and self.fails != "gang"


class Line:
    """A launcher that says what it was given; `fails` is where its line breaks."""

    folder = ""

    def __init__(self, *said: dict[str, Any], fails: str = "") -> None:
        self.said = list(said)
        self.fails = fails
        self.heard: list[str] = []

    def poll(self) -> list[dict[str, Any]]:
        said, self.said = self.said[:1], self.said[1:]
        return said

    def wait(self, limit_s: float | None) -> None:
        if self.fails == "wait":
            raise ValueError("no such file")

    def send(self, op: str, **_: Any) -> bool:
        self.heard.append(op)
        return True

    def introduce(self, _: dict[str, Any]) -> bool:
        return True

    def report(self, *_: Any) -> None:
        """Nobody reads it."""

    def close(self) -> None:
        """Nothing to close."""


def rank_of(monkeypatch: pytest.MonkeyPatch, framework: Framework, line: Line) -> Rank:
    monkeypatch.setattr(peers, "is_managed", lambda: True)
    monkeypatch.setattr(peers, "dial", lambda: line)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return Rank(framework)


@pytest.mark.parametrize(
    ("fails", "line_fails"), [("settle", ""), ("", "wait")], ids=["the gang's store", "the line"]
)
def test_whatever_fails_while_it_is_stopped_the_state_comes_back(
    monkeypatch: pytest.MonkeyPatch, fails: str, line_fails: str
) -> None:
    framework = Memory(fails, full=2)
    rank = rank_of(monkeypatch, framework, Line(SUSPEND, fails=line_fails))
    rank.boundary()
    assert framework.place == "device"
    rank.boundary()
    assert framework.place == "device", "it is left alone from then on"


def test_a_gang_that_does_not_stop_waits_for_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tenant may have taken what was given back a moment ago."""
    framework = Memory("gang", full=3)
    line = Line(SUSPEND)
    rank = rank_of(monkeypatch, framework, line)
    rank.boundary()
    assert (framework.place, line.heard) == ("device", ["failed"])


def test_what_a_handler_of_the_jobs_raises_is_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead loader worker: swallowed, the job would wait for it for ever."""

    def raising(number: int, _: FrameType | None) -> None:
        raise RuntimeError("a worker died")

    class Dying(Memory):
        def offload(self) -> Figures:
            signal.raise_signal(signal.SIGUSR1)
            return super().offload()

    framework = Dying()
    line = Line(SUSPEND, {"op": "resume", "id": "2"}, SUSPEND, {"op": "resume", "id": "4"})
    rank = rank_of(monkeypatch, framework, line)
    before = signal.signal(signal.SIGUSR1, raising)
    try:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="a worker died"):
                rank.boundary()
            assert framework.place == "device"
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert line.heard.count("done") == 4, "it answers to its launcher as before"
