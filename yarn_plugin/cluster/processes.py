"""Processes that outlive the command that started them: started, recognised again, ended.

A process is ours where its number *and* the time it started are those that were noted (numbers are used again),
or where its environment has the cluster's id, which is drawn at random. Nothing else is ever signalled.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

CLUSTER_ID = "GANDIVA_CLUSTER_ID"
STOP_S_MAX = 15.0
_POLL_S = 0.05


class Noted(msgspec.Struct, frozen=True):
    """A process as noted when it was started.

    Attributes:
        start_ticks: when it started, in the kernel's ticks since boot.
        boot_id: of that boot.
    """

    pid: int
    start_ticks: int
    boot_id: str


class ProcessTable:
    """The processes of one cluster, a file each.

    Args:
        folder: of the files; made where missing.
        cluster_id: put into the environment of each.
    """

    def __init__(self, folder: Path, cluster_id: str) -> None:
        self._folder = folder
        self._cluster_id = cluster_id

    def start(
        self,
        name: str,
        command: Sequence[str],
        log_file: Path,
        environment: Mapping[str, str] | None = None,
    ) -> int:
        """Start a process of this name, in a session of its own; its output is appended to the log.

        Returns:
            Its number.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = {**os.environ, **(environment or {}), CLUSTER_ID: self._cluster_id}
        with log_file.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=values,
                start_new_session=True,
            )
        process.returncode = 0  # it outlives this command: Python need not wait for it
        noted = note(process.pid)
        if noted is not None:
            part = self._folder / f"{name}.part"
            part.write_bytes(msgspec.json.encode(noted))
            part.replace(self._file(name))
        return process.pid

    def alive(self, name: str) -> int | None:
        """The number of the process of this name; None where it does not run."""
        try:
            noted = msgspec.json.decode(self._file(name).read_bytes(), type=Noted)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        return noted.pid if note(noted.pid) == noted else None

    def stop(self, *names: str, grace_s: float = STOP_S_MAX) -> None:
        """Ask the processes of these names to end, all at once, then make them; nothing where none runs."""
        processes: list[psutil.Process] = []
        for name in names:
            pid = self.alive(name)
            with contextlib.suppress(psutil.NoSuchProcess):
                processes += [] if pid is None else [psutil.Process(pid)]
        end(processes, grace_s)
        for name in names:
            self._file(name).unlink(missing_ok=True)

    def stop_strays(self, grace_s: float = 2.0) -> int:
        """End every other process of the cluster: containers whose NodeManager was killed.

        Returns:
            How many there were.
        """
        # A shell may start a child between the look and its end, and a process that is just being executed shows no
        # environment: look until two looks in a row have found nobody.
        ended = 0
        calm = 0
        deadline_s = time.monotonic() + 4 * STOP_S_MAX
        while calm < 2 and time.monotonic() < deadline_s:
            strays = list(self._of_cluster())
            end(strays, grace_s)
            ended += len(strays)
            calm = 0 if strays else calm + 1
            time.sleep(_POLL_S)
        return ended

    def _of_cluster(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                is_ours = process.environ().get(CLUSTER_ID) == self._cluster_id
            except (psutil.Error, OSError):
                continue  # somebody else's, or gone
            if is_ours and process.pid != os.getpid():
                yield process

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def note(pid: int) -> Noted | None:
    """What tells a running process from every other; None where it has ended, also if nobody has buried it yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return None if fields[0] in {"Z", "X"} else Noted(pid, int(fields[19]), boot_id)


def end(processes: Sequence[psutil.Process], grace_s: float) -> None:
    """End processes, politely at first; psutil signals none whose number went to another meanwhile."""
    for process in processes:
        _signal(process.terminate)
    _wait(processes, grace_s)
    for process in processes:
        _signal(process.kill)
    _wait(processes, STOP_S_MAX)


def _wait(processes: Sequence[psutil.Process], limit_s: float) -> None:
    deadline_s = time.monotonic() + limit_s
    left = list(processes)
    while left and time.monotonic() < deadline_s:
        left = [process for process in left if _runs(process)]
        if left:
            time.sleep(_POLL_S)


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.is_running()
        process.wait(0)  # buries it where it is a child of this process
    return False


def _signal(send: Callable[[], None]) -> None:
    with contextlib.suppress(psutil.Error):  # it has ended
        send()
