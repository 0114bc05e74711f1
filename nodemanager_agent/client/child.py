"""The training command: started in a session of its own, and never left behind by a launcher that was killed."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional, Tuple

from nodemanager_agent.client.processes import Tree, below, send
from nodemanager_agent.client.wire import LAUNCHER_SOCKET

HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")

_GUARD = """
trap "" HUP INT TERM
read -r _
kill -KILL "-$1" 2>/dev/null
for again in 1 2; do
  for each in /proc/[0-9]*; do
    grep -qsF "$2" "$each/environ" && kill -KILL "${each#/proc/}" 2>/dev/null
  done
done
"""
"""Ends the command's group, and whoever has the launcher's socket in its environment, once the pipe closes: the kernel
closes it however the launcher ends, and a NodeManager's SIGKILL goes to the launcher's own group only."""


class Child:
    """The command of a worker.

    Attributes:
        exit_code: as a shell would say it; None while it runs.

    Raises:
        OSError: the command cannot be started.
    """

    def __init__(self, command: List[str], environment: Dict[str, str], tree: Tree) -> None:
        self.exit_code: Optional[int] = None
        self._process = subprocess.Popen(command, env=environment, start_new_session=True)
        try:
            self._guard, self._pipe = _guarded(self.pid, environment[LAUNCHER_SOCKET])
        except BaseException:  # without a guard it could be left behind
            self.signal_group(signal.SIGKILL)
            self._process.wait()
            raise
        self._tree = tree
        tree.leave_out(self._guard.pid)

    @property
    def pid(self) -> int:
        """Of the command; its process group and session too."""
        return self._process.pid

    def collect(self, pid: int, status: int) -> None:
        """A process has ended; perhaps it is the command."""
        if pid == self.pid:
            self.exit_code = _exit_code(status)
            self._process.returncode = self.exit_code

    def signal_group(self, number: int) -> None:
        """To the command's process group, as a terminal or a NodeManager would."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def end(self) -> None:
        """Kill what is left of the tree, and let the guard go."""
        self._tree.signal(signal.SIGKILL)
        os.close(self._pipe)
        self._guard.wait()

    def end_alone(self) -> None:
        """Kill this command and what is below it, while another one of the same launcher lives."""
        for pid in [self.pid, *[each.pid for each in below(self.pid)]]:
            send(pid, signal.SIGKILL)
        os.close(self._pipe)  # the guard looks for those that left the tree
        self._guard.wait()


_tools: List[object] = []


@contextmanager
def no_reaping() -> Iterator[None]:
    """While a tool of the launcher's own runs; to be entered in the launcher's thread, before the tool's begins."""
    mark = object()
    _tools.append(mark)
    try:
        yield
    finally:
        _tools.remove(mark)


def reaped() -> Iterator[Tuple[int, int]]:
    """Whoever has ended below the launcher, which is the parent of orphans too: process and status.

    Nobody, while a tool of the launcher's own runs in a thread: the thread waits for it, and has its status.
    """
    while not _tools:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def _guarded(pid: int, launcher: str) -> "Tuple[subprocess.Popen[bytes], int]":
    """The guard of a process group, and the pipe whose end it waits for."""
    read, pipe = os.pipe()
    try:
        command = ["/bin/sh", "-c", _GUARD, "gandiva-guard", str(pid), launcher]
        environment = {"PATH": os.defpath}
        guard = subprocess.Popen(command, stdin=read, start_new_session=True, env=environment)
    except BaseException:
        os.close(pipe)
        raise
    finally:
        os.close(read)
    return guard, pipe


def _exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def with_hook(environment: Dict[str, str]) -> Dict[str, str]:
    """The environment with our hook first on PYTHONPATH."""
    paths = [HOOK] + [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)}


def say(text: str) -> None:
    """A line of the launcher on the container's stderr."""
    print("gandiva: {}".format(text), file=sys.stderr, flush=True)
