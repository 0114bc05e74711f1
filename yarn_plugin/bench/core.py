"""The core of a benchmark: the very loop that runs beside a ResourceManager, with a stop-watch at its commits.

It has a process of its own, as a live one has: what plays nodes and masters does not take its interpreter's time.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.model.errors import InvariantError
from gandiva_core.runtime.clock import live_clock
from yarn_plugin.bridge.drained import DRAIN_S
from yarn_plugin.bridge.gateway import Gateway
from yarn_plugin.live.loop import CoreLoop
from yarn_plugin.live.process import Site, opened

READ_S = 600.0


class Decided(msgspec.Struct, frozen=True):
    """What came of one `decide`.

    Attributes:
        cpu_s: of the core's thread, since it began.
        decisions_s: for each container committed, from when its ask waited for the core to the commit's answer.
    """

    cpu_s: float
    decisions_s: tuple[float, ...]


class _Clock:
    """The live clock, which can be put forward."""

    def __init__(self) -> None:
        self._clock = live_clock()
        self.skipped_s = 0.0

    def __call__(self) -> float:
        return self._clock() + self.skipped_s


class _Loop:
    """Decides when it is told to."""

    def __init__(self, gateway: Gateway, loop: CoreLoop) -> None:
        self._gateway = gateway
        self._loop = loop
        self._asked_s = 0.0
        self._is_more = False
        self._decisions_s: list[float] = []

    def decide(self, asked_s: float) -> Decided:
        """Take what waits since `asked_s` (of `time.monotonic`), and answer it."""
        self._asked_s = asked_s
        self._is_more = True
        while self._is_more:
            self._loop.turn(self, 0)
        decisions_s, self._decisions_s = tuple(self._decisions_s), []
        return Decided(time.thread_time(), decisions_s)

    def take_events_text(self, count_max: int, wait_ms: int) -> str:
        """The scheduler's next events, undecoded."""
        text = self._gateway.take_events_text(count_max, wait_ms)
        self._is_more = text.endswith('"more":true}')
        return text

    def apply(self, effects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Orders to the scheduler."""
        results = self._gateway.apply(effects)
        took_s = time.monotonic() - self._asked_s
        for effect, result in zip(effects, results, strict=True):
            if effect["op"] == "commit_gang" and result["code"] == "OK":
                self._decisions_s += [took_s] * len(result["containers"])
        return results


class Core:
    """The core's process, seen from the benchmark. One `decide` at a time.

    Attributes:
        cpu_s: of the core's thread, so far.
        decisions_s: see `Decided`; of all so far.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._is_deciding = False
        self.cpu_s = 0.0
        self.decisions_s: list[float] = []

    def decide(self) -> None:
        """Have it take what waits from now on, and answer it, while the caller goes on."""
        self.wait()
        self._pipe.send(time.monotonic())
        self._is_deciding = True

    def skip(self) -> None:
        """Let time pass for it, so that jobs whose masters let all workers go count as finished."""
        self.wait()
        self._pipe.send(None)
        self._is_deciding = True
        self.wait()

    def wait(self) -> None:
        """Until it has answered.

        Raises:
            InvariantError: it ended instead.
        """
        if self._is_deciding:
            self._is_deciding = False
            try:
                decided: Decided = msgspec.msgpack.decode(self._pipe.recv_bytes(), type=Decided)
            except EOFError:
                raise InvariantError("the core of a benchmark ended") from None
            self.cpu_s = decided.cpu_s
            self.decisions_s += decided.decisions_s


@contextmanager
def opened_core(port: int, token_file: Path, settings: Settings) -> Iterator[Core]:
    """A core with a journal, as a live one has, and a connection of its own to the plug-in."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=_serve, args=(its, port, token_file, settings), daemon=True)
    with ours:
        process.start()
        its.close()
        core = Core(ours)
        core.decide()
        core.wait()
        yield core
    process.join()


def _serve(pipe: Connection, port: int, token_file: Path, settings: Settings) -> None:
    """The core's process: until the other end of the pipe is closed."""
    with ExitStack() as stack:
        stack.enter_context(pipe)
        gateway = stack.enter_context(Gateway.connect(port, token_file, read_timeout_s=READ_S))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        site = Site(settings, oversubscribes_without_agent=True)
        clock = _Clock()
        loop = _Loop(gateway, stack.enter_context(opened(site, Path(folder), clock)))
        gateway.hello("gandiva-bench")
        while True:
            try:
                asked_s = pipe.recv()
            except (EOFError, ConnectionResetError):
                return
            if asked_s is None:
                clock.skipped_s += 2 * DRAIN_S
                asked_s = time.monotonic()
            pipe.send_bytes(msgspec.msgpack.encode(loop.decide(asked_s)))
