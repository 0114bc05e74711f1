"""Benchmark `suspend`: what it costs to take a training process off its device and to put it back (G-43)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import msgspec

from gandiva_core.model.errors import InputError
from nodemanager_agent.client.wire import Line

AIM_RATIO = 1.0
"""Both ratios are to stay below this: 1.5 plain copies of the same bytes, and one mini-batch."""

_LIMIT_S = 120.0

Cell = int | float | str
Row = Mapping[str, Cell]
"""As `gandiva bench` wants it: column to value."""


class Plan(msgspec.Struct, frozen=True):
    """What is measured: sizes of the state, and suspends of each."""

    state_mib: tuple[int, ...] = (16, 100, 500)
    suspends: int = 12


QUICK = Plan(state_mib=(8,), suspends=2)


class Node:
    """The agent's end of one launcher."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._asked = 0
        self.minibatch_s = 0.0

    def command(self, op: str, **values: Any) -> tuple[float, Mapping[str, float]]:
        """Seconds until it was done, and the client's own figures.

        Raises:
            RuntimeError: it was refused, or the launcher is gone.
        """
        self._asked += 1
        began_s = perf_counter()
        self._line.send(op, id=str(self._asked), **values)
        while True:
            message = self._line.read(_LIMIT_S)
            if message is None or message["op"] == "failed":
                raise RuntimeError(f"{op}: {message}")
            if message["op"] == "done" and message["id"] == str(self._asked):
                return perf_counter() - began_s, message["figures"]
            self.minibatch_s = message.get("minibatch_s") or self.minibatch_s

    def run_for(self, duration_s: float) -> None:
        """Let it train, and hear how long its mini-batches take."""
        ends_s = perf_counter() + duration_s
        while (left_s := ends_s - perf_counter()) > 0:
            try:
                message = self._line.read(left_s)
            except TimeoutError:
                return
            if message is None:
                sleep(left_s)
                return
            self.minibatch_s = message.get("minibatch_s") or self.minibatch_s


def run(*, is_quick: bool, say: Callable[[str], None]) -> Sequence[Row]:
    """Suspend and resume of a PyTorch process by the size of its state, from the agent's order to its answer.

    `copy_s`: a plain copy of the same bytes by the same process, the median of five. `suspend_s` and `resume_s`:
    medians; `first_suspend_s` and `first_buffer_s`: the first one, and what of it was getting the host's buffer
    (allocated in the background from the first mini-batch on). `suspend_ratio` and `resume_ratio`: over 1.5 x copy_s +
    minibatch_s; the aim is below 1. `freed_ratio`: measured fall of resident memory over the state's size.
    """
    if find_spec("torch") is None:
        raise InputError(
            "gandiva bench suspend", "no torch", "torch in this environment: make env-jobs"
        )
    plan = QUICK if is_quick else Plan()
    return [_row(mib, plan, say) for mib in plan.state_mib]


def _row(mib: int, plan: Plan, say: Callable[[str], None]) -> Row:
    say(f"suspend: {mib} MiB")
    with (
        tempfile.TemporaryDirectory(prefix="gandiva-bench-") as folder,
        launched(
            ["nodemanager_agent.bench.state", str(mib), "1000000", f"{folder}/copies.json"],
            Path(folder) / "agent",
        ) as node,
    ):
        node.command("start", gpus=[0], uuids=[], environment={})
        out = Path(folder) / "copies.json"
        while not out.exists() or not out.read_text():
            node.run_for(0.2)
        while node.minibatch_s == 0:
            node.run_for(1.0)
        cycles = [_cycle(node) for _ in range(plan.suspends)]
        copy_s = float(json.loads(out.read_text())["copy_s"])
        return _figures(copy_s, node.minibatch_s, cycles)


def _cycle(node: Node) -> Mapping[str, float]:
    suspend_s, figures = node.command("suspend", limit_s=_LIMIT_S)
    resume_s, _ = node.command("resume", gpus=[0], uuids=[], environment={})
    node.run_for(3 * node.minibatch_s)
    return {**figures, "suspend_s": suspend_s, "resume_s": resume_s}


def _figures(copy_s: float, minibatch_s: float, cycles: Sequence[Mapping[str, float]]) -> Row:
    first, *later = cycles
    suspend_s = median(each["suspend_s"] for each in later)
    resume_s = median(each["resume_s"] for each in later)
    bound_s = 1.5 * copy_s + minibatch_s
    row: dict[str, Cell] = {
        "state_mib": round(first["state_mib"]),
        "copy_s": copy_s,
        "minibatch_s": minibatch_s,
        "first_suspend_s": first["suspend_s"],
        "first_buffer_s": first["buffer_s"],
        "suspend_s": suspend_s,
        "resume_s": resume_s,
        "suspend_ratio": suspend_s / bound_s,
        "resume_ratio": resume_s / bound_s,
        "freed_ratio": median(each["freed_mib"] / each["state_mib"] for each in later),
    }
    return row


@contextmanager
def launched(module: Sequence[str], path: Path) -> Iterator[Node]:
    """A launcher with a training program, registered.

    Args:
        module: the program's module, and its arguments.
        path: of the socket to make for it.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(_LIMIT_S)
        launcher = [sys.executable, "-m", "nodemanager_agent.client.launch", "--"]
        process = subprocess.Popen(
            [*launcher, sys.executable, "-m", *module],
            env={**os.environ, "GANDIVA_AGENT_SOCKET": str(path), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            connection, _ = listener.accept()
            line = Line(connection)
            line.read(_LIMIT_S)
            line.send("welcome", token="bench", never=[])
            yield Node(line)
            line.close()
        finally:
            process.kill()
            process.wait()
