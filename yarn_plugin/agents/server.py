"""The gRPC port that agents dial: one stream an agent, an event loop in a thread of its own.

Nothing here knows a job. What agents say waits in one queue for the core's thread; what they are told goes out from
theirs. An agent that does not read its commands is cut off, and dials again.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

import grpc
import msgspec

from gandiva_core.messages.agents import (
    MESSAGE_BYTES_MAX,
    METHOD,
    SERVICE,
    AgentHello,
    Command,
    Report,
    decode_report,
    encode,
)
from gandiva_core.model.errors import InputError
from gandiva_core.site.credentials import Credentials

Heard = tuple[str, Report | None]
"""A node's id, and what its agent said; None: its stream is over."""

_WAITING_MAX = 1000
_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),  # a second core must not share the port
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)


class Agents(Protocol):
    """What the world uses of an `AgentServer`."""

    def heard(self) -> list[Heard]:
        """Everything since the last call, in order."""

    def send(self, node: str, command: Command) -> None:
        """Tell an agent; nothing where it is not there."""


class AgentServer:
    """Serves from `start` until `close`; implements `Agents`.

    Args:
        credentials: what agents have to show.
        address, port: where to listen; port 0 takes a free one.
        say: told of agents that come and go.
        methods: of the same service, for others than agents; each looks after who calls itself.
    """

    def __init__(
        self,
        credentials: Credentials,
        address: str,
        port: int,
        say: Callable[..., object],
        methods: Mapping[str, Any] | None = None,
    ) -> None:
        credentials.check_address(address, "yarn.scheduler.gandiva.agents.address")
        self._credentials = credentials
        self._address = f"{address}:{port}"
        self._say = say
        self._methods = {} if methods is None else methods
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._streams: dict[str, asyncio.Queue[bytes | None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agents", daemon=True)
        self._server: grpc.aio.Server | None = None
        self.port = 0

    def start(self) -> None:
        """Listen.

        Raises:
            InputError: the address cannot be had.
        """
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    def close(self) -> None:
        """End all streams."""
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._server.stop(0.2), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def heard(self) -> list[Heard]:
        """Everything since the last call, in order."""
        found: list[Heard] = []
        while not self._heard.empty():
            found.append(self._heard.get())
        return found

    def send(self, node: str, command: Command) -> None:
        """Tell an agent; nothing where it is not there."""
        self._loop.call_soon_threadsafe(self._put, node, encode(command))

    def _put(self, node: str, data: bytes) -> None:
        stream = self._streams.get(node)
        if stream is None:
            return
        if stream.qsize() >= _WAITING_MAX:
            self._say("an agent does not read its commands", node=node)
            self._end(node, stream)
            return
        stream.put_nowait(data)

    async def _start(self) -> None:
        handler = grpc.stream_stream_rpc_method_handler(self._attend)
        server = grpc.aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {**self._methods, METHOD: handler}),)
        )
        tls = self._credentials.tls
        secured = None if tls is None else tls.of_server()
        try:
            if secured is None:
                self.port = server.add_insecure_port(self._address)
            else:
                self.port = server.add_secure_port(self._address, secured)
        except RuntimeError as error:
            raise InputError("agents", f"{self._address}: {error}", "a free address") from error
        await server.start()
        self._server = server

    async def _attend(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[bytes]:
        if not self._credentials.are_shown_in(context.invocation_metadata()):
            self._say("an agent without the token was refused", peer=context.peer())
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no valid token")
        hello = await self._hello(requests, context)
        stream: asyncio.Queue[bytes | None] = asyncio.Queue()
        before = self._streams.get(hello.node)
        if before is not None:
            self._end(hello.node, before)
        self._streams[hello.node] = stream
        self._heard.put((hello.node, hello))
        self._say("an agent is there", node=hello.node, devices=len(hello.devices))
        reader = asyncio.ensure_future(self._read(hello.node, requests, stream))
        try:
            while (data := await stream.get()) is not None:
                yield data
        finally:
            reader.cancel()
            self._end(hello.node, stream)

    async def _hello(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AgentHello:
        async for data in requests:
            report = _decoded(data)
            if isinstance(report, AgentHello):
                return report
            break
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no AgentHello of this version")
        raise AssertionError  # abort raises

    async def _read(
        self, node: str, requests: AsyncIterator[bytes], stream: asyncio.Queue[bytes | None]
    ) -> None:
        try:
            async for data in requests:
                report = _decoded(data)
                if report is None:
                    self._say("an agent said what is no report", node=node)
                elif self._streams.get(node) is stream:
                    self._heard.put((node, report))
        finally:
            stream.put_nowait(None)

    def _end(self, node: str, stream: asyncio.Queue[bytes | None]) -> None:
        if self._streams.get(node) is stream:
            del self._streams[node]
            self._heard.put((node, None))
            self._say("an agent is gone", node=node)
        stream.put_nowait(None)


def _decoded(data: bytes) -> Report | None:
    try:
        return decode_report(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
