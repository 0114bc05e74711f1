"""The processes below a launcher: found, stopped and continued as one (FACTS §7)."""

import ctypes
import os
import signal
from typing import Dict, List, NamedTuple, Optional, Set

_PR_SET_CHILD_SUBREAPER = 36


class Process(NamedTuple):
    """One line of /proc/PID/stat."""

    pid: int
    parent: int
    state: str


def adopt_orphans() -> bool:
    """Make this process the parent of what is orphaned below it: a double fork does not leave the tree."""
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def below(root: int) -> List[Process]:
    """All descendants of a process that are no zombies, in any order."""
    processes = _all()
    children: Dict[int, List[Process]] = {}
    for each in processes:
        children.setdefault(each.parent, []).append(each)
    found: List[Process] = []
    stack = [root]
    while stack:
        for each in children.get(stack.pop(), ()):
            stack.append(each.pid)
            if each.state not in "ZX":
                found.append(each)
    return found


class Tree:
    """The training processes of this launcher, whatever sessions and groups they made."""

    def __init__(self) -> None:
        self._excepted: Set[int] = set()

    def leave_out(self, pid: int) -> None:
        """A child that is the launcher's own."""
        self._excepted.add(pid)

    def members(self) -> List[Process]:
        """Those that live."""
        return [each for each in below(os.getpid()) if each.pid not in self._excepted]

    def signal(self, number: int) -> None:
        """To every member; one that has gone meanwhile is no error."""
        for each in self.members():
            send(each.pid, number)

    def stop(self) -> bool:
        """SIGSTOP those that run; True once a look finds all of them in state T."""
        running = [each.pid for each in self.members() if each.state not in "Tt"]
        for pid in running:
            send(pid, signal.SIGSTOP)
        return not running

    def go_on(self) -> bool:
        """SIGCONT those that are stopped; True once a look finds none."""
        stopped = [each.pid for each in self.members() if each.state in "Tt"]
        for pid in stopped:
            send(pid, signal.SIGCONT)
        return not stopped


def send(pid: int, number: int) -> None:
    """A signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _all() -> List[Process]:
    found = []
    for name in os.listdir("/proc"):
        each = _read(name) if name.isdigit() else None
        if each is not None:
            found.append(each)
    return found


def _read(name: str) -> Optional[Process]:
    try:
        with open("/proc/{}/stat".format(name), encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return Process(int(name), int(fields[1]), fields[0])
