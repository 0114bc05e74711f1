"""The core of a benchmark: the very loop that runs beside a ResourceManager, with a stop-watch at its commits."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gandiva_core.config.settings import Settings
from yarn_plugin.bridge.gateway import Gateway
from yarn_plugin.live.loop import CoreLoop
from yarn_plugin.live.process import Site, opened


class Core:
    """Decides when it is told to.

    Attributes:
        cpu_s: of this process's thread, so far.
        decisions_s: for each container committed, from when its ask waited for the core to the commit's answer.
    """

    def __init__(self, gateway: Gateway, loop: CoreLoop) -> None:
        self._gateway = gateway
        self._loop = loop
        self._asked_s = 0.0
        self._is_more = False
        self.cpu_s = 0.0
        self.decisions_s: list[float] = []

    def decide(self, asked_s: float) -> None:
        """Take what waits since `asked_s` (of `time.perf_counter`), and answer it."""
        self._asked_s = asked_s
        began_cpu_s = time.thread_time()
        self._is_more = True
        while self._is_more:
            self._loop.turn(self, 0)
        self.cpu_s += time.thread_time() - began_cpu_s

    def take_events_text(self, count_max: int, wait_ms: int) -> str:
        """The scheduler's next events, undecoded."""
        text = self._gateway.take_events_text(count_max, wait_ms)
        self._is_more = text.endswith('"more":true}')
        return text

    def apply(self, effects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Orders to the scheduler."""
        results = self._gateway.apply(effects)
        took_s = time.perf_counter() - self._asked_s
        for effect, result in zip(effects, results, strict=True):
            if effect["op"] == "commit_gang" and result["code"] == "OK":
                self.decisions_s += [took_s] * len(result["containers"])
        return results


@contextmanager
def opened_core(gateway: Gateway, settings: Settings) -> Iterator[Core]:
    """A core with a journal, as a live one has; the connection is its own and is closed with it."""
    with gateway, tempfile.TemporaryDirectory() as folder:
        site = Site(settings, oversubscribes_without_agent=True)
        with opened(site, Path(folder)) as loop:
            gateway.hello("gandiva-bench")
            core = Core(gateway, loop)
            core.decide(time.perf_counter())
            yield core
