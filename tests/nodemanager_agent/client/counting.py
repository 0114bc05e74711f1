"""A quick stand-in for a training process: a framework whose device memory is one list, hooked by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from nodemanager_agent.client.continuity import Fingerprint
from nodemanager_agent.client.framework import Figures, Framework, Limits, Refusal
from nodemanager_agent.client.rank import Rank
from nodemanager_agent.client.ring import Memory

MIB = 1024 * 1024
WORK_S = {"computes": (0.004, 0.0), "reads": (0.002, 0.036)}
"""Behaviours with a memory: seconds of a mini-batch on a core, and waiting."""


class Counting(Framework):
    """Behaves as `sys.argv` says.

    Attributes:
        state: its "device memory"; None while it is on the host.
    """

    name = "counting"

    def __init__(self, behaviour: str) -> None:
        self.behaviour = behaviour
        self.state: list[int] | None = [0]
        self.host: list[int] = []
        self.rank = int(os.environ.get("RANK", "0"))

    def limits(self) -> Limits:
        if self.behaviour == "graphs":
            return Limits([], reason="it holds addresses")
        if self.behaviour == "leaves":
            return Limits([], can_move=True, reason="it keeps what it frees")
        return Limits(["framework"])

    def offload(self) -> Figures:
        if self.behaviour == "leaves":
            raise Refusal("NOT_SUSPENDABLE", "it keeps what it frees")
        if self.behaviour == "refuses" and self.rank == 1:
            raise Refusal("HOST_MEMORY", "no room")
        assert self.state is not None
        self.host, self.state = list(self.state), None
        return {"state_mib": 1.0, "copy_s": 0.5 + self.rank}

    def reload(self) -> Figures:
        if self.behaviour == "no room" and not Path("room").exists():
            raise Refusal("DEVICE_MEMORY", "no room yet")
        self.state = list(self.host)
        if self.behaviour in ("spoils", "spoils for good"):
            self.state.append(-1)
        return {"copy_s": 0.25}

    def fingerprint(self, minibatches: int) -> Fingerprint:
        return Fingerprint(minibatches, "", "", repr(self.state))

    def memory(self) -> Memory | None:
        if self.behaviour not in WORK_S:
            return None
        return Memory(40 * MIB, 60 * MIB, 30 * MIB)

    def repair(self) -> bool:
        if self.behaviour == "spoils for good":
            return False
        self.state = list(self.host)
        return True


def main() -> None:
    behaviour, steps, ranks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if ranks > 1 and "RANK" not in os.environ:
        raise SystemExit(agent(behaviour, steps, ranks))
    framework = Counting(behaviour)
    rank = Rank(framework)
    rank.handlers["save"] = lambda order: write(Path(order["folder"]), framework, rank)
    if behaviour in ("moves", "leaves") and os.environ.get("GANDIVA_WARM"):
        warm_up(framework, rank)
    for number in range(steps):
        assert framework.state is not None, "a step without its state"
        framework.state.append(number)
        work(behaviour)
        rank.boundary()
        if behaviour == "forks":
            fork(rank)
        if behaviour == "hangs" and number == 5:
            time.sleep(3600)


def work(behaviour: str) -> None:
    computes_s, waits_s = WORK_S.get(behaviour, (0.0, 0.01))
    ends_s = time.process_time() + computes_s
    while time.process_time() < ends_s:
        pass
    time.sleep(waits_s)


def write(folder: Path, framework: Counting, rank: Rank) -> Figures:
    (folder / "state").write_text(f"{rank.minibatches} {len(framework.state or [])}")
    return {"save_s": 0.1}


def warm_up(framework: Counting, rank: Rank) -> None:
    """Wait where state would be loaded; load what was saved and go on from there."""
    rank.join(is_warm=True)
    message = rank.receive()
    while message is not None and message["op"] != "restore":
        message = rank.receive()
    assert message is not None
    minibatches, size = map(int, (Path(message["folder"]) / "state").read_text().split())
    framework.state = [0] * size
    rank.adopt(minibatches)
    if Path(os.environ.get("NO_START", "/no such file")).exists():
        raise SystemExit(7)
    rank.answer(message, {"from": minibatches})


def fork(rank: Rank) -> None:
    """As a data loader does; a child that came to a boundary would have nothing to say there."""
    children = []
    for _ in range(5):
        pid = os.fork()
        if pid == 0:
            rank.boundary()
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 5


def agent(behaviour: str, steps: int, ranks: int) -> int:
    """As torchrun: ranks in sessions of their own."""
    children: list[subprocess.Popen[Any]] = [
        subprocess.Popen(
            [sys.executable, __file__, behaviour, str(steps), str(ranks)],
            env={**os.environ, "RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks)},
            start_new_session=True,
        )
        for rank in range(ranks)
    ]
    return max(child.wait() for child in children)


if __name__ == "__main__":
    main()
