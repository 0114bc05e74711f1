"""A gang's workers on one machine read the same files at the same time; one of them checks, the others take its word.

The word is a file beside them that names the files as they were when they were checked: inode, size and times. It holds
for a minute and one boot; whoever cannot have it, or finds another file, checks for itself. Who could forge it could
forge the manifest.
"""

import fcntl
import os
import time
from typing import Callable, Iterable, Optional

WORTH_BYTES = 1 << 20
"""Less than this is checked sooner than asked about."""

_WORD = ".verified"
_HOLDS_S = 60.0
_WAIT_S = 60.0
_POLL_S = 0.005


def once(folder: str, names: Iterable[str], check: Callable[[], None]) -> None:
    """Run `check`, or wait for another process of this machine that does the same, and take its word.

    Raises:
        Exception: what `check` raises, which gives no word.
    """
    paths = [os.path.join(folder, name) for name in sorted(names)]
    if sum(map(_size, paths)) < WORTH_BYTES:
        check()
        return
    try:
        lock: Optional[int] = os.open(
            os.path.join(folder, _WORD), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
    except OSError:
        lock = None  # a folder that only others may write in
    if lock is None:
        check()
        return
    try:
        _take(lock)
        _check_under(lock, paths, check)
    finally:
        os.close(lock)


def _check_under(lock: int, paths: Iterable[str], check: Callable[[], None]) -> None:
    text = _described(paths)
    word = os.pread(lock, 1 << 16, 0)
    if text and word == text and abs(time.time() - os.fstat(lock).st_mtime) < _HOLDS_S:
        return
    check()
    if text:
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, text, 0)
        except OSError:
            return  # a full disk: everybody checks


def _take(lock: int) -> None:
    """The lock, or none after a while: one that was stopped with it in hand keeps nobody for good."""
    ends_s = time.monotonic() + _WAIT_S
    while time.monotonic() < ends_s:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_POLL_S)
        except OSError:
            return  # a file system without locks


def _described(paths: Iterable[str]) -> bytes:
    """This boot, and the files as they are; empty where that is not known."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts = [file.read().strip()]
        for path in paths:
            found = os.stat(path)
            parts.append(
                "{} {} {} {} {}".format(
                    path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
                )
            )
    except OSError:
        return b""
    return "\n".join(parts).encode()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
