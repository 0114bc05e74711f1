"""The core's connection to a running ResourceManager: opened, lost, opened again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Protocol

from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_delay,
    stop_never,
    stop_when_event_set,
    wait_exponential,
)

from gandiva_core.model.errors import GandivaError, InputError
from yarn_plugin.bridge.gateway import Gateway, GatewayError, JsonObject
from yarn_plugin.live.loop import Session

CLIENT = "gandiva-core"
BACK_OFF_S_MAX = 2.0
READ_S = 10.0
"""Many long polls: a gateway that is silent for longer hangs."""

_GONE = frozenset({"UNREACHABLE", "TIMEOUT", "BROKEN"})
_SUPERSEDED = frozenset({"STALE_EPOCH", "MANAGED"})


class GatewayUnreachableError(GandivaError):
    """There is no gateway to begin with, or it does not let us in."""


class SupersededError(GandivaError):
    """Another core has opened a session, or alone may: only one decides."""


class LiveGateway(Gateway):
    """The gateway of a ResourceManager that runs by itself, where it is the entry point."""

    def hello(self, client: str, managed: str = "") -> JsonObject:
        """Open a session: a new epoch, from which on older sessions are refused."""
        self._scheduler = self._java.entry_point
        return super().hello(client, managed)


class OpenGateway(Session, Protocol):
    """What is used of `LiveGateway`."""

    def hello(self, client: str, managed: str = "") -> JsonObject:
        """Open a session."""

    def close(self) -> None:
        """Close the connection."""


Connect = Callable[[], OpenGateway]
"""A new connection; raises `GatewayError`."""


class Say(Protocol):
    """A line for the log, with fields."""

    def __call__(self, event: str, **fields: object) -> object:
        """Say it."""


def serve(
    connect: Connect,
    turn: Callable[[Session], None],
    stop: threading.Event,
    say: Say,
    *,
    lost_s_max: float | None = None,
    managed: str = "",
) -> None:
    """Take turns until `stop` is set, over as many connections as it takes.

    Args:
        connect: makes a connection.
        turn: given the session, again and again.
        stop: ends it, after the turn that runs.
        say: told of connections.
        lost_s_max: to look for a gateway that was lost; None for ever.
        managed: which child of the ResourceManager this is; empty for none.

    Raises:
        InputError: a token file that cannot be used, at the start.
        GatewayUnreachableError: the first connection cannot be made, a later one is refused or takes too long.
        SupersededError: another core took over, or is the only one admitted.
        GandivaError: out of a turn.
    """
    gateway = _first(connect)
    while not stop.is_set():
        try:
            with closing(gateway):
                hello = gateway.hello(CLIENT, managed)
                say("connected", epoch=hello.get("epoch"), hadoop=hello.get("hadoop_version"))
                while not stop.is_set():
                    turn(gateway)
            return
        except GatewayError as error:
            if error.kind in _SUPERSEDED:
                raise SupersededError(f"another core decides: {error}") from error
            if error.kind not in _GONE:
                raise GatewayUnreachableError(str(error)) from error
            say("gateway lost", reason=str(error))
        again = _again(connect, stop, lost_s_max)
        if again is None:
            return
        gateway = again


def _first(connect: Connect) -> OpenGateway:
    try:
        return connect()
    except GatewayError as error:
        if error.kind == "TOKEN_FILE":
            expected = "a file of mode 0600 with the bridge's secret in one line"
            raise InputError("--token-file", str(error), expected) from error
        raise GatewayUnreachableError(str(error)) from error


def _again(connect: Connect, stop: threading.Event, lost_s_max: float | None) -> OpenGateway | None:
    """A new connection; None where `stop` was set first."""
    limit = stop_never if lost_s_max is None else stop_after_delay(lost_s_max)
    retrying = Retrying(
        retry=retry_if_exception(lambda error: getattr(error, "kind", "") in _GONE),
        wait=wait_exponential(multiplier=0.2, max=BACK_OFF_S_MAX),
        stop=stop_when_event_set(stop) | limit,
        sleep=sleep_using_event(stop),
    )
    try:
        return retrying(connect)
    except RetryError as error:
        if stop.is_set():
            return None
        raise GatewayUnreachableError(
            f"the gateway was lost and is not back after {lost_s_max:g} s"
        ) from error
    except GatewayError as error:
        raise GatewayUnreachableError(str(error)) from error
