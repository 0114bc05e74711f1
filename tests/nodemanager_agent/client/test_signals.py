"""Handlers that wait until a rank's state is back."""

from __future__ import annotations

import signal
from types import FrameType

import pytest

from nodemanager_agent.client.signals import DeferredSignals


def test_a_handler_that_raises_does_so_after(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(number: int, _: FrameType | None) -> None:
        raise RuntimeError(f"a worker died: {number}")

    before = signal.signal(signal.SIGUSR1, raising)
    reached = []

    def hold() -> None:
        with DeferredSignals() as signals:
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR1)
            reached.append("the end")
        signals.deliver()

    try:
        with pytest.raises(RuntimeError, match="a worker died"):
            hold()
        assert signal.getsignal(signal.SIGUSR1) is raising
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert reached == ["the end"]


def test_what_has_no_handler_keeps_its_disposition() -> None:
    with DeferredSignals():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
