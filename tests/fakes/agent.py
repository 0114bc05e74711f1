"""A node's agent as a launcher sees it: a real unix socket that speaks `nodemanager_agent.client.wire`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodemanager_agent.client.wire import Line

ROOT = Path(__file__).resolve().parents[2]
Message = dict[str, Any]


class Refused(Exception):  # noqa: N818 - an answer
    """The launcher answered ``failed``."""

    def __init__(self, message: Message) -> None:
        super().__init__(f"{message.get('code')}: {message.get('detail')}")
        self.code = str(message.get("code"))


class FakeAgent:
    """One launcher's agent; commands are sent by hand, and everything it says is kept.

    Attributes:
        heard: every message of the launcher, in order.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fake-agent-")
        self.path = str(Path(self._folder.name) / "agent")
        self.heard: list[Message] = []
        self._asked = 0
        self._line: Line | None = None
        self._listen()

    def _listen(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen()

    def attend(self, limit_s: float = 30.0) -> Message:
        """Let a launcher in; what it registered with."""
        self._listener.settimeout(limit_s)
        connection, _ = self._listener.accept()
        self._line = Line(connection)
        message = self._read(limit_s)
        assert message["op"] == "register"
        self._line.send("welcome", token="t", never=[])
        return message

    def send(self, op: str, **values: Any) -> str:
        """A command, without waiting for its answer; its id."""
        assert self._line is not None
        self._asked += 1
        key = f"a{self._asked}"
        self._line.send(op, id=key, **values)
        return key

    def answer(self, key: str, limit_s: float = 60.0) -> Message:
        """The answer to a command.

        Raises:
            Refused: it was ``failed``.
        """
        message = self.await_message(lambda each: each.get("id") == key, limit_s)
        if message["op"] == "failed":
            raise Refused(message)
        return message

    def command(self, op: str, wait_s: float = 60.0, **values: Any) -> Message:
        """Send and wait for the answer."""
        return self.answer(self.send(op, **values), wait_s)

    def await_message(self, is_it: Any, limit_s: float = 60.0) -> Message:
        """The next message that is it, among those to come."""
        ends = time.monotonic() + limit_s
        while True:
            message = self._read(ends - time.monotonic())
            if is_it(message):
                return message

    def await_op(self, op: str, limit_s: float = 60.0) -> Message:
        """The next message of this kind."""
        return self.await_message(lambda each: each["op"] == op, limit_s)

    def said(self, op: str) -> list[Message]:
        """What was heard of one kind."""
        return [each for each in self.heard if each["op"] == op]

    def hang_up(self) -> None:
        """As an agent that was killed."""
        assert self._line is not None
        self._line.close()
        self._listener.close()
        Path(self.path).unlink()

    def come_back(self) -> Message:
        """As one that was started again."""
        self._listen()
        return self.attend()

    def close(self) -> None:
        """Remove the socket."""
        if self._line is not None:
            self._line.close()
        self._listener.close()
        self._folder.cleanup()

    def _read(self, limit_s: float) -> Message:
        assert self._line is not None
        message = self._line.read(max(0.01, limit_s))
        assert message is not None, "the launcher hung up"
        self.heard.append(message)
        return message


class Job:
    """A launcher with a command under a fake agent.

    Args:
        environment: what the agent gives with the device.
        container: what the container begins with besides.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        name: str = "job",
        container: Mapping[str, str] | None = None,
    ) -> None:
        self.agent = FakeAgent()
        self.log = folder / f"{name}.log"
        self._environment = dict(environment or {})
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nodemanager_agent.client.launch", "--", *command],
                env=job_environment(
                    GANDIVA_AGENT_SOCKET=self.agent.path,
                    CONTAINER_ID=f"container_{name}",
                    **(container or {}),
                ),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.registered = self.agent.attend()

    def start(self) -> None:
        """Give it a device, and see it start."""
        self.agent.command("start", gpus=[0], uuids=["virtual-0"], environment=self._environment)

    def wait(self, limit_s: float = 120.0) -> int:
        """The launcher's exit code."""
        return self.process.wait(limit_s)

    def text(self) -> str:
        """What the job printed."""
        return self.log.read_text(errors="replace")

    def close(self) -> None:
        """Leave no process behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.agent.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def job_environment(**values: str) -> dict[str, str]:
    """A job's environment: one thread, and nothing of another job's."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("GANDIVA")
    }
    return {**inherited, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **values}
