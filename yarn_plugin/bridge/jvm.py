"""Starts the JVM of a replay, and makes sure that it ends."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Final, Self

from yarn_plugin.bridge.gateway import Gateway, GatewayError

PLUGIN_DIR: Final = Path(__file__).resolve().parent.parent
TARGET_DIR: Final = PLUGIN_DIR / "target"
MAIN_CLASS: Final = "org.gandiva.yarn.replay.ReplayMain"
START_S_MAX: Final = 60.0
STOP_S_MAX: Final = 5.0
HEAP_MIB: Final = 1024
# Hadoop 3.4 reflects into java.lang on JDK 17. Name service is replaced by a file: simulated hosts
# are known to none, and asking a slow one would stall the start.
JVM_FLAGS: Final = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    # C1 alone: a replay of 1,300 jobs takes 9 s of CPU with it, 15 s with the optimising compiler.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Dlog4j.configuration=gandiva-replay-log4j.properties",
    "-Djava.awt.headless=true",
)


def java_program() -> Path:
    """Return the ``java`` of JAVA_HOME, else the one on PATH.

    Raises:
        GatewayError: kind ``NO_JAVA``.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if not program.is_file():
            raise GatewayError(
                "NO_JAVA", f"JAVA_HOME={home} has no bin/java, expected the home of a JDK 17"
            )
        return program
    found = shutil.which("java")
    if found is None:
        raise GatewayError(
            "NO_JAVA", "found no java: set JAVA_HOME to a JDK 17, or put its bin on PATH"
        )
    return Path(found)


def class_path(target: Path = TARGET_DIR) -> str:
    """Return the class path of the built plug-in and of Hadoop.

    Raises:
        GatewayError: kind ``NOT_BUILT``.
    """
    jars = [jar for jar in target.glob("gandiva-yarn-*.jar") if "sources" not in jar.name]
    listing = target / "runtime.classpath"
    if len(jars) != 1 or not listing.is_file():
        raise GatewayError("NOT_BUILT", f"the plug-in is not built in {target}: run `make plugin`")
    return f"{jars[0]}{os.pathsep}{listing.read_text(encoding='utf-8').strip()}"


def write_token(file: Path) -> None:
    """Write a fresh random token that only this user may read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(secrets.token_hex(32) + "\n")


class ReplayJvm:
    """A running JVM with the replay harness; use as a context manager.

    Its token, port and log are files of a private folder that goes away with it; ``log_file`` keeps
    the log elsewhere. The JVM ends when its standard input closes, so even a killed Python leaves
    none behind.
    """

    def __init__(
        self, log_file: Path | None = None, heap_mib: int = HEAP_MIB, flags: tuple[str, ...] = ()
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gandiva-replay-")
        folder = Path(self._folder.name)
        self.token_file = folder / "token"
        self.log_file = log_file or folder / "jvm.log"
        self._port_file = folder / "port"
        self._hosts_file = folder / "hosts"
        self._heap_mib = heap_mib
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        """Start the JVM and wait until it listens."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the JVM."""
        self.close()

    def connect(self, read_timeout_s: float = 600.0) -> Gateway:
        """Return a new connection to this JVM."""
        return Gateway.connect(self.port, self.token_file, read_timeout_s=read_timeout_s)

    def command(self) -> list[str]:
        """Return the command line of the JVM. The token is not on it."""
        return [
            str(java_program()),
            *JVM_FLAGS,
            *self._flags,
            f"-Xmx{self._heap_mib}m",
            f"-Djdk.net.hosts.file={self._hosts_file}",
            "-cp",
            class_path(),
            MAIN_CLASS,
            "--token-file",
            str(self.token_file),
            "--port-file",
            str(self._port_file),
        ]

    def _start(self) -> None:
        write_token(self.token_file)
        self._hosts_file.write_text(
            f"127.0.0.1 localhost\n127.0.0.1 {socket.gethostname()}\n", encoding="utf-8"
        )
        command = self.command()
        self._log = self.log_file.open("wb")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the driver, which ends the JVM in order
        )
        self.port = self._wait_for_port(self._process)

    def _wait_for_port(self, process: subprocess.Popen[bytes]) -> int:
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            if self._port_file.is_file():
                return int(self._port_file.read_text(encoding="utf-8"))
            if process.poll() is not None:
                raise GatewayError("JVM_FAILED", f"the JVM ended at once: {self._last_line()}")
            time.sleep(0.02)
        raise GatewayError("JVM_FAILED", f"the JVM did not listen within {START_S_MAX:.0f} s")

    def _last_line(self) -> str:
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it said nothing")

    def close(self) -> None:
        """End the JVM; a second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            try:
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None
        self._folder.cleanup()
