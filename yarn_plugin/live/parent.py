"""The core as a child of a ResourceManager: what ties its life to its parent's."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import msgspec

STDIN = 0
OOM_SCORE = 500
"""A machine that runs out of memory ends the core before the ResourceManager (DESIGN §4)."""


class Parent(msgspec.Struct, frozen=True):
    """The ResourceManager that started this process.

    Attributes:
        child_id: says in every hello which of its children this is; the gateway admits the youngest only.
    """

    child_id: str

    def tie(self, stop: threading.Event, descriptor: int = STDIN) -> None:
        """Set `stop` once the pipe from the parent ends, as it does however the parent ends.

        The memory killer is told to take this process first, as far as the kernel lets us.
        """
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(f"{OOM_SCORE}\n", encoding="ascii")
        threading.Thread(target=_until_end, args=(descriptor, stop), daemon=True).start()


def _until_end(descriptor: int, stop: threading.Event) -> None:
    # Not through sys.stdin: its lock, held by a daemon thread, would break the interpreter's own end.
    with contextlib.suppress(OSError):
        while os.read(descriptor, 4096):
            pass
    stop.set()
