"""The driver's rung of the ladder: `cuda-checkpoint` for device memory, CRIU for a process (G-68 A; cases E01, E03).

Nothing is frozen before everything that is needed was found; whatever fails, the source runs on; and a copy counts only
once it lives and has done a step. Commands are injected: this was run with small stand-ins, never yet on a GPU.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from typing import Callable, List, NamedTuple, Optional, Tuple

from nodemanager_agent.client.wire import start_ticks

CUDA_CHECKPOINT = "cuda-checkpoint"
CRIU = "criu"
CRIU_VERSION = (4, 0)
"""The first that comes with a plug-in for CUDA."""

_SYS_ADMIN, _CHECKPOINT_RESTORE = 21, 40
_LOCK_MS = 10_000


class DriverError(Exception):
    """Why it was not done. The source runs.

    Attributes:
        code: ``NO_DRIVER_CHECKPOINT`` where it was not begun: save by the framework instead; ``FAILED`` where it was.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    text: str


Run = Callable[[List[str], float], Ran]


def run(command: List[str], limit_s: float) -> Ran:
    """Run a command to its end; 127 where there is none, 124 where it took too long."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ran(124, "{} took over {:.0f} s".format(command[0], limit_s))
    except OSError as error:
        return Ran(127, "{}: {}".format(command[0], error.strerror))
    return Ran(done.returncode, done.stdout.decode(errors="replace").strip())


class Driver:
    """Stops, dumps and restores one process by the driver and CRIU.

    Args:
        may: whether this process has the rights; by default by its effective capabilities.
        find: where a command is; None for nowhere.
        settle_s: how long a restored process must live before it is believed (E03).
    """

    def __init__(
        self,
        run: Run = run,
        *,
        may: Optional[Callable[[], bool]] = None,
        find: Callable[[str], Optional[str]] = shutil.which,
        limit_s: float = 60.0,
        settle_s: float = 2.0,
    ) -> None:
        self._run = run
        self._may = may or has_rights
        self._find = find
        self._limit_s = limit_s
        self._settle_s = settle_s

    # ------------------------------------------------------------------ before anything is frozen

    def obstacle(self, is_move: bool) -> str:
        """What is missing for a suspend, or for a move; empty for nothing. Touches no process (E01)."""
        if self._find(CUDA_CHECKPOINT) is None:
            return "no {}".format(CUDA_CHECKPOINT)
        if is_move:
            if self._find(CRIU) is None:
                return "no {}".format(CRIU)
            version = self._criu_version()
            if version < CRIU_VERSION:
                return "criu {}.{} is older than {}.{}".format(*version, *CRIU_VERSION)
        if not self._may():
            return "not allowed to checkpoint processes"
        return ""

    def _criu_version(self) -> Tuple[int, int]:
        found = re.search(r"(\d+)\.(\d+)", self._run([CRIU, "--version"], 10.0).text)
        return (int(found.group(1)), int(found.group(2))) if found else (0, 0)

    # ------------------------------------------------------------------ device memory in place

    def suspend(self, pid: int) -> None:
        """Device memory to the host, in place.

        Raises:
            DriverError: the process runs as before.
        """
        self._check(is_move=False)
        self._act(pid, "lock", "--timeout", str(_LOCK_MS))
        try:
            self._act(pid, "checkpoint")
        except DriverError:
            self._run([CUDA_CHECKPOINT, "--action", "unlock", "--pid", str(pid)], self._limit_s)
            raise

    def resume(self, pid: int) -> None:
        """Back onto the device; may be tried again.

        Raises:
            DriverError: it stays on the host.
        """
        self._act(pid, "restore")
        self._act(pid, "unlock")

    def _act(self, pid: int, action: str, *more: str) -> None:
        command = [CUDA_CHECKPOINT, "--action", action, "--pid", str(pid), *more]
        ran = self._run(command, self._limit_s)
        if ran.code:
            raise DriverError("FAILED", "{} {}: {}".format(CUDA_CHECKPOINT, action, ran.text))

    # ------------------------------------------------------------------ a whole process

    def copy(
        self, pid: int, folder: str, has_stepped: Callable[[int], bool], limit_s: float
    ) -> int:
        """A copy of a process that lives and has done a step; the source stands still until it is told to end.

        Args:
            pid: of the source.
            folder: for the images; made where it is not there.
            has_stepped: of the copy's pid: whether it has done a mini-batch since.
            limit_s: for that mini-batch.

        Returns:
            The copy's pid.

        Raises:
            DriverError: there is no copy, and the source runs as before.
        """
        self._check(is_move=True)
        self.suspend(pid)
        copy: Optional[int] = None
        try:
            self._dump(pid, folder)
            copy = self._restore(folder)
            self._believe(copy, has_stepped, limit_s)
        except BaseException:
            if copy is not None and copy != pid and start_ticks(copy) is not None:
                os.kill(copy, signal.SIGKILL)
            self._go_on(pid)
            raise
        return copy

    def _check(self, is_move: bool) -> None:
        obstacle = self.obstacle(is_move)
        if obstacle:
            raise DriverError("NO_DRIVER_CHECKPOINT", obstacle)

    def _dump(self, pid: int, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        command = [CRIU, "dump", "--tree", str(pid), "--images-dir", folder, "--leave-stopped"]
        ran = self._run([*command, "--shell-job", "--tcp-established"], self._limit_s)
        if ran.code:
            raise DriverError("FAILED", "criu dump: {}".format(ran.text))

    def _restore(self, folder: str) -> int:
        path = os.path.join(folder, "restored.pid")
        command = [CRIU, "restore", "--images-dir", folder, "--pidfile", path, "--restore-detached"]
        ran = self._run([*command, "--shell-job", "--tcp-established"], self._limit_s)
        if ran.code:
            raise DriverError("FAILED", "criu restore: {}".format(ran.text))
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError) as error:
            raise DriverError("FAILED", "criu restore told no pid: {}".format(error)) from error

    def _believe(self, pid: int, has_stepped: Callable[[int], bool], limit_s: float) -> None:
        born = start_ticks(pid)
        began_s = time.monotonic()
        while True:
            if born is None or start_ticks(pid) != born:
                raise DriverError("FAILED", "criu restored process {}, which ended".format(pid))
            past_s = time.monotonic() - began_s
            if past_s >= self._settle_s and has_stepped(pid):
                return
            if past_s > self._settle_s + limit_s:
                raise DriverError("FAILED", "the restored process {} does no step".format(pid))
            time.sleep(0.02)

    def _go_on(self, pid: int) -> None:
        """The source, from wherever it was stopped."""
        if start_ticks(pid) is None:
            return
        os.kill(pid, signal.SIGCONT)
        self.resume(pid)


def has_rights() -> bool:
    """Whether this process may checkpoint others: CAP_CHECKPOINT_RESTORE, or CAP_SYS_ADMIN."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("CapEff:"):
                bits = int(line.split()[1], 16)
                return bool(bits >> _SYS_ADMIN & 1 or bits >> _CHECKPOINT_RESTORE & 1)
    return False
