"""One node for tests: a real agent process, real launchers, and a core that says what it is told to."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from gandiva_core.messages.agents import Expected
from tests.fakes.agent import job_environment
from tests.fakes.core import FakeCore, until

COUNTING = str(Path(__file__).parent / "client" / "counting.py")
TOKEN = "a secret of this test"


class Node:
    """Starts the agent at once; `close` ends all that was started."""

    def __init__(self, folder: Path, gpus: int = 2, *options: str) -> None:
        self.folder = folder
        self._short = TemporaryDirectory(prefix="gn", dir="/tmp")
        self.socket = f"{self._short.name}/a.sock"
        self._gpus = gpus
        self._options = options
        token_file = folder / "token"
        token_file.write_text(TOKEN)
        token_file.chmod(0o600)
        self.core = FakeCore(TOKEN)
        self.jobs: list[subprocess.Popen[bytes]] = []
        self.agent = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the agent, another time too."""
        with (self.folder / "agent.log").open("ab") as log:
            self.agent = subprocess.Popen(
                [
                    sys.executable, "-m", "nodemanager_agent",
                    "--node", "node-1:4001", "--core", f"127.0.0.1:{self.core.port}",
                    "--token-file", str(self.folder / "token"), "--socket", self.socket,
                    "--state-dir", str(self.folder / "state"),
                    "--ram-dir", str(self.folder / "ram"),
                    "--virtual-gpus", str(self._gpus), *self._options,
                ],
                env=job_environment(),
                stderr=log,
            )  # fmt: skip
        return self.agent

    def kill(self) -> None:
        """As the machine would, or somebody with kill -9."""
        self.agent.kill()
        self.agent.wait()

    def launch(self, name: str, *command: str, asked: int | None = None) -> subprocess.Popen[bytes]:
        """A container's launcher with a quick stand-in for training, or with a command.

        Args:
            asked: devices, where its environment says so.
        """
        told = {} if asked is None else {"GANDIVA_GPUS": str(asked)}
        words = command or (sys.executable, COUNTING, "well", "100000", "1")
        with (self.folder / f"{name}.log").open("wb") as log:
            job = subprocess.Popen(
                [sys.executable, "-m", "nodemanager_agent.client.launch", "--", *words],
                env=job_environment(GANDIVA_AGENT_SOCKET=self.socket, CONTAINER_ID=name, **told),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.jobs.append(job)
        return job

    def expect(self, *names: str, gpus: int = 1) -> None:
        """The core knows these containers."""
        self.core.expect(*(expected(name, gpus) for name in names))

    def state(self, name: str) -> str:
        """As last reported."""
        return self.core.worker(name).state.value

    def ready(self) -> Self:
        """Once the agent has said hello."""
        until(lambda: self.core.heard)
        return self

    def close(self) -> None:
        """Leave nothing behind."""
        for job in self.jobs:
            job.send_signal(signal.SIGCONT)
            job.kill()
            job.wait()
        if self.agent.poll() is None:
            self.agent.terminate()
            self.agent.wait(10)
        self.core.close()
        self._short.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def expected(name: str, gpus: int = 1, user: str = "ann") -> Expected:
    """A worker that is a job of its own."""
    return Expected(name, f"job_{name}", gpus, user=user)
