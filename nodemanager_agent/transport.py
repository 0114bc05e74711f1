"""The stream to the core: dialled again with back-off, by a shared secret or certificates and nothing without.

The agent starts no process, before or after gRPC: a fork with gRPC's threads running hangs the child (case C06).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import msgspec
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from gandiva_core.messages.agents import (
    MESSAGE_BYTES_MAX,
    METHOD,
    SERVICE,
    AgentHello,
    Command,
    Report,
    Welcome,
    decode_command,
    encode,
)
from gandiva_core.site.credentials import Credentials

WELCOME_S = 15.0
"""A core that has not let us in by then is dialled anew."""
AGAIN_S_MAX = 5.0
_WAITING_MAX = 10_000
_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)


class CoreAddress(msgspec.Struct, frozen=True):
    """Where the core is, and what is shown there."""

    host: str
    port: int
    credentials: Credentials

    def channel(self) -> grpc.aio.Channel:
        """A channel, not connected yet.

        Raises:
            InputError: certificates that cannot be read.
        """
        target, tls = f"{self.host}:{self.port}", self.credentials.tls
        if tls is None:
            return grpc.aio.insecure_channel(target, options=_OPTIONS)
        return grpc.aio.secure_channel(target, tls.of_client(), options=_OPTIONS)


class _AgainError(Exception):
    """The stream is over; dial again."""


class CoreStream:
    """Keeps a stream to the core.

    Args:
        hello: the first message of each stream.
        told: called with each command.
        say: a line of the log.
    """

    def __init__(
        self,
        address: CoreAddress,
        hello: Callable[[], AgentHello],
        told: Callable[[Command], None],
        say: Callable[..., None],
    ) -> None:
        self._address = address
        self._hello = hello
        self._told = told
        self._say = say
        self._out: asyncio.Queue[bytes] | None = None

    @property
    def is_open(self) -> bool:
        """The core has let us in."""
        return self._out is not None

    def send(self, report: Report) -> None:
        """To the core; nothing where it is away: the next stream begins with the state."""
        if self._out is None:
            return
        if self._out.qsize() >= _WAITING_MAX:
            self._say("warning", "the core does not read; a report is dropped")
            return
        self._out.put_nowait(encode(report))

    async def run(self) -> None:
        """Until cancelled."""
        async for attempt in AsyncRetrying(
            wait=wait_random_exponential(multiplier=0.1, max=AGAIN_S_MAX),
            retry=retry_if_exception_type(_AgainError),
        ):
            with attempt:
                await self._attend()

    async def _attend(self) -> None:
        while True:  # a stream that was let in begins the back-off anew
            async with self._address.channel() as channel:
                was_open = await self._stream(channel)
            if not was_open:
                raise _AgainError
            await asyncio.sleep(0.1)

    async def _stream(self, channel: grpc.aio.Channel) -> bool:
        """One stream to its end; whether the core let us in."""
        out: asyncio.Queue[bytes] = asyncio.Queue()
        metadata = self._address.credentials.shown()
        call = channel.stream_stream(f"/{SERVICE}/{METHOD}")(
            _outgoing(encode(self._hello()), out), metadata=metadata
        )
        was_open = False
        try:
            while True:
                limit_s = None if was_open else WELCOME_S
                data = await asyncio.wait_for(call.read(), limit_s)
                if data is grpc.aio.EOF:
                    break
                command = self._decoded(data)
                if isinstance(command, Welcome) and not was_open:
                    was_open, self._out = True, out
                    self._say("info", "the core is there")
                if command is not None and was_open:
                    self._told(command)
            status = await call.code()
            self._say("info", "the core ended the stream", code=str(status))
        except TimeoutError:
            self._say("warning", "the core does not let us in")
        except grpc.aio.AioRpcError as error:
            if was_open or error.code() is not grpc.StatusCode.UNAVAILABLE:
                self._say("warning", "no stream to the core", code=str(error.code()))
        finally:
            self._out = None
            call.cancel()
        return was_open

    def _decoded(self, data: Any) -> Command | None:
        try:
            return decode_command(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._say("warning", "the core said what is no command", problem=str(error)[:200])
            return None


async def _outgoing(first: bytes, out: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    yield first
    while True:
        yield await out.get()
