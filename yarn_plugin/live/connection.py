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
    stop_when_event_set,
    wait_exponential,
)

from gandiva_core.model.errors import GandivaError
from yarn_plugin.bridge.gateway import Gateway, GatewayError, JsonObject
from yarn_plugin.live.loop import Session

CLIENT = "gandiva-core"
BACK_OFF_S_MAX = 2.0
READ_S = 10.0
"""Ten long polls: a gateway that is silent for longer hangs."""

_GONE = frozenset({"UNREACHABLE", "TIMEOUT", "BROKEN"})
_SUPERSEDED = "STALE_EPOCH"


class GatewayUnreachableError(GandivaError):
    """There is no gateway to begin with, or it does not let us in."""


class SupersededError(GandivaError):
    """Another core has opened a session: only one may decide."""


class LiveGateway(Gateway):
    """The gateway of a ResourceManager that runs by itself, where it is the entry point."""

    def hello(self, client: str) -> JsonObject:
        """Open a session: a new epoch, from which on older sessions are refused."""
        self._scheduler = self._java.entry_point
        return super().hello(client)


class OpenGateway(Session, Protocol):
    """What is used of `LiveGateway`."""

    def hello(self, client: str) -> JsonObject:
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
    connect: Connect, turn: Callable[[Session], None], stop: threading.Event, say: Say
) -> None:
    """Take turns until `stop` is set, over as many connections as it takes.

    Raises:
        GatewayUnreachableError: the first connection cannot be made, or a later one is refused.
        SupersededError: another core took over.
        GandivaError: out of a turn.
    """
    gateway = _first(connect)
    while not stop.is_set():
        try:
            with closing(gateway):
                hello = gateway.hello(CLIENT)
                say("connected", epoch=hello.get("epoch"), hadoop=hello.get("hadoop_version"))
                while not stop.is_set():
                    turn(gateway)
            return
        except GatewayError as error:
            if error.kind == _SUPERSEDED:
                raise SupersededError("another core has opened a session with it") from error
            if error.kind not in _GONE:
                raise GatewayUnreachableError(str(error)) from error
            say("gateway lost", reason=str(error))
        again = _again(connect, stop)
        if again is None:
            return
        gateway = again


def _first(connect: Connect) -> OpenGateway:
    try:
        return connect()
    except GatewayError as error:
        raise GatewayUnreachableError(str(error)) from error


def _again(connect: Connect, stop: threading.Event) -> OpenGateway | None:
    """A new connection, however long it takes; None where `stop` was set first."""
    retrying = Retrying(
        retry=retry_if_exception(lambda error: getattr(error, "kind", "") in _GONE),
        wait=wait_exponential(multiplier=0.2, max=BACK_OFF_S_MAX),
        stop=stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
    )
    try:
        return retrying(connect)
    except RetryError:
        return None
    except GatewayError as error:
        raise GatewayUnreachableError(str(error)) from error
