"""Processes of this machine as /proc shows them: by number and start, by container, and by parent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nodemanager_agent.client.wire import CONTAINER_ID, start_ticks

_PROC = Path("/proc")


def is_alive(pid: int, ticks: int | None) -> bool:
    """Whether the process that had this number and start is there, and no other one with its number."""
    now = start_ticks(pid)
    return now is not None and (ticks is None or now == ticks)


def container_of(pid: int) -> str | None:
    """CONTAINER_ID in a process's first environment; empty for none; None where it may not be read."""
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    prefix = CONTAINER_ID.encode() + b"="
    found = (item for item in environment.split(b"\0") if item.startswith(prefix))
    return next(found, prefix).removeprefix(prefix).decode(errors="replace")


def by_container() -> dict[str, set[int]]:
    """Live processes of each container, as far as their environment may be read."""
    found: dict[str, set[int]] = {}
    for pid in _pids():
        container_id = container_of(pid)
        if container_id and start_ticks(pid) is not None:
            found.setdefault(container_id, set()).add(pid)
    return found


def ancestors(pid: int) -> frozenset[int]:
    """Parents up to the first process."""
    found: set[int] = set()
    while (pid := parent_of(pid)) > 0 and pid not in found:
        found.add(pid)
    return frozenset(found)


def parent_of(pid: int) -> int:
    """0 where there is none, or no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def memory_mib(pids: set[int]) -> int:
    """Resident memory of processes together, without what is shared with files."""
    return sum(_anonymous_kib(pid) for pid in pids) // 1024


def _anonymous_kib(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), 0)


def _pids() -> Iterator[int]:
    return (int(name) for name in (each.name for each in _PROC.iterdir()) if name.isdigit())
