"""The ResourceManager under replay, as typed calls; trouble in the JVM becomes one clear line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from gandiva_core.model.errors import GandivaError
from yarn_plugin.bridge.gateway import GatewayError
from yarn_plugin.bridge.wire import Answer, Order, RmEvent, decode_batch
from yarn_plugin.replay.wire import Action, HarnessEvent, Started

_EVENTS_A_CALL = 10_000
_CLIENT = "gandiva-replay"
_JVM_GONE = frozenset({"UNREACHABLE", "TIMEOUT", "BROKEN", "JVM_FAILED"})

T = TypeVar("T")
Json = dict[str, Any]


class ReplayError(GandivaError):
    """The JVM under replay could not do what it was told, or is gone."""


class RefusedError(ReplayError):
    """The ResourceManager is there and refused; the text is its own reason."""


class GatewayPort(Protocol):
    """What is used of `yarn_plugin.bridge.gateway.Gateway`. Each call may raise `GatewayError`."""

    def replay_start(
        self, conf_dir: Path | None, properties: dict[str, str], epoch_s: float = 1.0
    ) -> Json:
        """Start a ResourceManager."""

    def replay_configuration(self) -> dict[str, str]:
        """Its effective configuration."""

    def replay_step(self, now_s: float, actions: list[Json], rounds: int | None = None) -> Json:
        """Move time and do actions."""

    def replay_query(self, **question: object) -> Json:
        """Look at its state."""

    def hello(self, client: str) -> Json:
        """Open a session with its scheduler."""

    def take_events_text(self, count_max: int, wait_ms: int) -> str:
        """The scheduler's next events, undecoded."""

    def apply(self, effects: list[Json]) -> list[Json]:
        """Orders to the scheduler."""


class ReplayedRm:
    """One ResourceManager, and its scheduler's gateway once `hello` was said. Not for two threads.

    Attributes:
        stats: the harness's counts after the last step.
        longest_batch: characters of the longest batch of events so far.

    Args:
        gateway: the connection.
        end: ends the connection and what is behind it.
        log_file: where the JVM writes, for error messages.
    """

    def __init__(self, gateway: GatewayPort, end: Callable[[], None], log_file: str) -> None:
        self._gateway = gateway
        self._end = end
        self._log_file = log_file
        self._is_closed = False
        self.stats: Mapping[str, float] = {}
        self.longest_batch = 0

    def start(self, conf_dir: Path, properties: Mapping[str, str]) -> Started:
        """Start it with the files of a folder and, over them, `properties`.

        Raises:
            ReplayError: where it does not come up, with its own reason.
        """
        reply = self._call("start", lambda: self._gateway.replay_start(conf_dir, dict(properties)))
        return msgspec.convert(reply, Started)

    def configuration(self) -> Mapping[str, str]:
        """Its effective configuration, every key."""
        return self._call("configuration", self._gateway.replay_configuration)

    def step(self, now_s: float, actions: Sequence[Action]) -> Sequence[HarnessEvent]:
        """Move virtual time and do actions; what the AMs saw comes back, in order."""
        plain = msgspec.to_builtins(actions)
        reply = self._call("step", lambda: self._gateway.replay_step(now_s, plain))
        self.stats = reply.get("stats", {})
        return msgspec.convert(reply["events"], tuple[HarnessEvent, ...])

    def query(self, **question: object) -> Mapping[str, Any]:
        """Ask for state that its web pages would show."""
        return self._call("query", lambda: self._gateway.replay_query(**question))

    def hello(self) -> None:
        """Open a session with the scheduler's gateway; its events start with a resync."""
        self._call("hello", lambda: self._gateway.hello(_CLIENT))

    def take_events(self) -> list[RmEvent]:
        """Everything the gateway has by now."""
        events: list[RmEvent] = []
        while True:
            text = self._call(
                "takeEvents", lambda: self._gateway.take_events_text(_EVENTS_A_CALL, 0)
            )
            self.longest_batch = max(self.longest_batch, len(text))
            batch = decode_batch(text)
            events.extend(batch.events)
            if not batch.more:
                return events

    def apply(self, orders: Sequence[Order]) -> Sequence[Answer]:
        """Carry out orders; one answer each, in order."""
        plain = msgspec.to_builtins(orders)
        results = self._call("apply", lambda: self._gateway.apply(plain))
        return msgspec.convert(results, tuple[Answer, ...])

    def close(self) -> None:
        """End it; safe to call twice."""
        if not self._is_closed:
            self._is_closed = True
            self._end()

    def _call(self, what: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except GatewayError as error:
            line = f"ResourceManager under replay, {what}: {error}"
            if error.kind not in _JVM_GONE:
                raise RefusedError(line) from error
            raise ReplayError(f"{line} ({self._last_words()})") from error

    def _last_words(self) -> str:
        return f"{self._log_file}: {last_line(Path(self._log_file))}"


_NOISE = re.compile(r"\s*(at \S+\(|\.\.\. \d+ more|/?\*+/?$|.*SHUTDOWN_MSG: )")


def last_line(log_file: Path) -> str:
    """The last thing a log says, for a one-line message: no banner of a shutdown, no frame of a stack."""
    try:
        lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "no log"
    said = (line.strip() for line in reversed(lines) if line.strip() and not _NOISE.match(line))
    return next(said, "it said nothing")
