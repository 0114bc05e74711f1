"""Starts a benchmark's training program once a rank, as `torchrun` does: arguments are a number and a module."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence


def main(count: int, module: Sequence[str]) -> int:
    """Run `count` ranks of one gang; the greatest of their exit codes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    gang = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", *module],
            env={**os.environ, **gang, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(count)
    ]
    return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
