"""The unix socket that launchers dial: bounded lines, peers by the kernel's word, and nobody harms anybody else.

A launcher that says what is no message, sends too long a line or does not read is cut off; its job runs on, and it may
dial again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
import struct
from pathlib import Path
from typing import Any, Protocol

import msgspec

from gandiva_core.model.errors import InputError
from nodemanager_agent.client.wire import LINE_BYTES_MAX
from nodemanager_agent.ports import Admission, Admitted, Refused, Registration
from nodemanager_agent.processes import container_of

PATH_BYTES_MAX = 100
"""The kernel takes 107; the rest is for whoever makes a path of it."""
LINES_MAX = 1024
"""Open lines at once; more are closed at once."""
_UNREAD_BYTES_MAX = 1 << 20
_AGAIN_S = 0.2


class Desk(Protocol):
    """Who decides about launchers."""

    def admit(self, registration: Registration) -> Admission:
        """Whether a launcher is let in; None: not known yet."""

    def registered(self, registration: Registration) -> None:
        """Its line is open."""

    def launcher_said(self, container_id: str, message: dict[str, Any]) -> None:
        """A message of it; raises msgspec.ValidationError where a field is wrong."""

    def gone(self, container_id: str) -> None:
        """Its line is closed."""


class _Told(msgspec.Struct, frozen=True):
    """``register`` as it comes."""

    container_id: str
    start_ticks: int | None = None
    role: str = "launcher"
    token: str | None = None
    state: str = "waiting"
    gpus: tuple[int, ...] = ()
    asked: int | None = None


class LauncherSockets:
    """Listens; implements `nodemanager_agent.ports.Launchers`.

    Args:
        path: of the socket, at most 100 bytes.
        is_open: other users' launchers may dial (mode 0666), else this user's only (0600).
        say: a line of the log.
    """

    def __init__(self, path: Path, is_open: bool, say: Any) -> None:
        if len(os.fsencode(path)) > PATH_BYTES_MAX:
            raise InputError("--socket", f"{path}", f"a path of at most {PATH_BYTES_MAX} bytes")
        self._path = path
        self._mode = 0o666 if is_open else 0o600
        self._say = say
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._attending: set[asyncio.Task[Any]] = set()
        self._desk: Desk | None = None
        self._server: asyncio.AbstractServer | None = None

    async def start(self, desk: Desk) -> None:
        """Listen.

        Raises:
            InputError: the path cannot be had, or another agent listens there.
        """
        self._desk = desk
        self._clear()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            listener.bind(str(self._path))
        except OSError as error:
            listener.close()
            raise InputError(
                "--socket", f"{self._path}: {error.strerror}", "a free path"
            ) from error
        finally:
            os.umask(before)
        self._path.chmod(self._mode)
        self._server = await asyncio.start_unix_server(
            self._attend, sock=listener, limit=LINE_BYTES_MAX
        )

    async def close(self) -> None:
        """Hang up on everybody; jobs run on."""
        if self._server is not None:
            self._server.close()
        attending = list(self._attending)
        for task in attending:
            task.cancel()
        await asyncio.gather(*attending, return_exceptions=True)
        await asyncio.sleep(0)  # what was aborted is closed
        with contextlib.suppress(OSError):
            self._path.unlink()

    def send(self, container_id: str, op: str, **values: Any) -> bool:
        """Tell a launcher; False where it is not there."""
        writer = self._writers.get(container_id)
        if writer is None or writer.is_closing():
            return False
        _put(writer, {"op": op, **values})
        if writer.transport.get_write_buffer_size() > _UNREAD_BYTES_MAX:
            self._say("warning", "a launcher does not read", container_id=container_id)
            writer.transport.abort()
            return False
        return True

    def _clear(self) -> None:
        """Remove a socket that a killed agent left; never one that somebody listens on."""
        try:
            if not stat.S_ISSOCK(self._path.stat().st_mode):
                raise InputError("--socket", f"{self._path}, which is no socket", "a free path")
        except OSError:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if probe.connect_ex(str(self._path)) == 0:
                raise InputError("--socket", f"{self._path}, where an agent listens", "a free path")
        self._path.unlink(missing_ok=True)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._attending.add(task)
        try:
            if len(self._attending) <= LINES_MAX:
                await self._serve(reader, writer)
        except (ValueError, KeyError, RecursionError, msgspec.ValidationError) as error:
            self._say("warning", "a launcher said what is no message", problem=str(error)[:200])
        except OSError:
            pass  # it is gone
        finally:
            if task is not None:
                self._attending.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        desk = self._desk
        message = await _message(reader)
        if desk is None or message is None or message["op"] != "register":
            return
        registration = _registration(message, writer)
        admission = await self._admission(desk, registration, reader)
        if isinstance(admission, Refused):
            self._say(
                "warning",
                "a launcher was refused",
                container_id=registration.container_id[:120],
                code=admission.code,
                detail=admission.detail,
            )
            _put(writer, {"op": "refused", "code": admission.code, "detail": admission.detail})
            await writer.drain()
            return
        if admission is not None:
            await self._heard(desk, registration, admission, reader, writer)

    async def _admission(
        self, desk: Desk, registration: Registration, reader: asyncio.StreamReader
    ) -> Admission:
        """Wait for the core to know the container, as long as the launcher does."""
        while (admission := desk.admit(registration)) is None:
            if reader.at_eof():
                return None
            await asyncio.sleep(_AGAIN_S)
        return admission

    async def _heard(
        self,
        desk: Desk,
        registration: Registration,
        admitted: Admitted,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        container_id = registration.container_id
        before = self._writers.get(container_id)
        self._writers[container_id] = writer
        if before is not None:
            before.transport.abort()
        _put(writer, {"op": "welcome", "token": admitted.token, "never": list(admitted.never)})
        desk.registered(registration)
        try:
            while (message := await _message(reader)) is not None:
                if self._writers.get(container_id) is not writer:
                    return
                desk.launcher_said(container_id, message)
        finally:
            if self._writers.get(container_id) is writer:
                del self._writers[container_id]
                desk.gone(container_id)


async def _message(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next one; None at the end of the line.

    Raises:
        ValueError: no message, or too long.
    """
    line = await reader.readline()
    if not line.endswith(b"\n"):
        return None
    message = json.loads(line)
    if not isinstance(message, dict) or not isinstance(message.get("op"), str):
        raise ValueError("no object with op")
    return message


def _registration(message: dict[str, Any], writer: asyncio.StreamWriter) -> Registration:
    told = msgspec.convert(message, _Told)
    connection: socket.socket = writer.get_extra_info("socket")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", packed)
    return Registration(
        told.container_id,
        pid,
        uid,
        told.start_ticks,
        container_of(pid),
        told.token or "",
        told.state,
        told.gpus,
        told.role,
        told.asked,
    )


def _put(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
