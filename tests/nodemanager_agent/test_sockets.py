"""The launchers' socket: who is refused, and that one launcher harms no other (contract 3; FAULTS A13, E16)."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gandiva_core.model.errors import InputError
from nodemanager_agent.client.wire import LINE_BYTES_MAX, Line
from nodemanager_agent.ports import Admission, Admitted, Refused, Registration
from nodemanager_agent.sockets import LauncherSockets
from tests.fakes.core import until


class Desk:
    """Lets in whoever does not say "bad"."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.lost: list[str] = []
        self.seen: list[Registration] = []

    def admit(self, registration: Registration) -> Admission:
        if registration.container_id == "bad":
            return Refused("IDENTITY", "bad")
        return None if registration.container_id == "early" else Admitted("token", ("suspend",))

    def registered(self, registration: Registration) -> None:
        self.seen.append(registration)

    def launcher_said(self, container_id: str, message: dict[str, Any]) -> None:
        self.said.append((container_id, message))

    def gone(self, container_id: str) -> None:
        self.lost.append(container_id)


class Served:
    """The sockets in a loop of their own."""

    def __init__(self, path: Path) -> None:
        self.desk = Desk()
        self.lines: list[Line] = []
        self.path = path
        self.loop = asyncio.new_event_loop()
        self.sockets = LauncherSockets(path, False, lambda *_, **__: None)
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.run(self.sockets.start(self.desk))

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    async def _send(self, name: str, values: dict[str, Any]) -> bool:
        return self.sockets.send(name, "suspend", **values)

    def send(self, name: str, **values: Any) -> bool:
        return bool(self.run(self._send(name, values)))

    def dial(self, name: str) -> Line:
        line = Line.dial(str(self.path))
        self.lines.append(line)
        line.send("register", container_id=name, pid=1, start_ticks=2, state="waiting", gpus=[])
        return line

    def welcome(self, name: str) -> Line:
        line = self.dial(name)
        answer = line.read(10)
        assert answer == {"op": "welcome", "token": "token", "never": ["suspend"]}
        return line

    def close(self) -> None:
        for line in self.lines:
            line.close()
        self.run(self.sockets.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture
def served() -> Iterator[Served]:
    with TemporaryDirectory(prefix="gs", dir="/tmp") as folder:
        made = Served(Path(folder) / "a.sock")
        yield made
        made.close()


def test_the_kernel_says_who_dials_and_only_this_user_may(served: Served) -> None:
    """Contract 3: SO_PEERCRED, not what the launcher claims; mode 0600 unless told otherwise."""
    line = served.welcome("container_1")
    until(lambda: served.desk.seen)
    seen = served.desk.seen[0]
    assert (seen.pid, seen.uid) == (os.getpid(), os.getuid())
    assert seen.claimed == os.environ.get("CONTAINER_ID", "")
    assert stat.S_IMODE(served.path.stat().st_mode) == 0o600
    line.close()


def test_a_launcher_that_is_refused_is_told_why_and_an_early_one_waits(served: Served) -> None:
    refused = served.dial("bad")
    assert refused.read(10) == {"op": "refused", "code": "IDENTITY", "detail": "bad"}
    assert refused.read(10) is None
    early = served.dial("early")
    with pytest.raises(TimeoutError):
        early.read(0.5)
    early.close()


@pytest.mark.parametrize(
    "nonsense",
    [
        b"no json\n",
        b"[" * 100_000 + b"\n",
        b"[]\n",
        b'{"op": 7}\n',
        b'{"op":"register","container_id":["x"]}\n',
        b'{"op":"register","container_id":"container_2","gpus":"x"}\n',
        b"\xff\xfe\n",
        b"x" * (LINE_BYTES_MAX + 2),
    ],
)
def test_nonsense_ends_its_own_line_and_nobody_elses(served: Served, nonsense: bytes) -> None:
    """E16: malformed, of the wrong kind, too long."""
    good = served.welcome("container_1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bad:
        bad.connect(str(served.path))
        bad.settimeout(10)
        try:
            bad.sendall(nonsense)
            assert bad.recv(1) == b""
        except ConnectionError:
            pass
    assert served.send("container_1", id="1")
    answer = good.read(10)
    assert answer is not None
    assert answer["op"] == "suspend"
    assert served.desk.lost == []
    good.close()


def test_who_does_not_read_is_cut_off(served: Served) -> None:
    """An unread megabyte is the limit; the agent never waits for a launcher."""
    lazy = served.welcome("container_1")
    sent = [served.send("container_1", fill="x" * 100_000) for _ in range(40)]
    assert sent[0]
    assert not sent[-1]
    lazy.close()


def test_a_new_line_of_a_container_takes_the_place_of_the_old(served: Served) -> None:
    old = served.welcome("container_1")
    new = served.welcome("container_1")
    assert old.read(10) is None
    until(lambda: len(served.desk.seen) == 2)
    assert served.send("container_1", id="1")
    assert new.read(10) is not None
    assert served.desk.lost == []
    new.close()


def test_a_path_that_is_too_long_or_taken_is_refused(served: Served) -> None:
    with pytest.raises(InputError, match="100 bytes"):
        LauncherSockets(Path("/tmp") / ("x" * 100), False, print)
    second = LauncherSockets(served.path, False, print)
    with pytest.raises(InputError, match="an agent listens"):
        served.run(second.start(served.desk))
