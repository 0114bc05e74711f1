"""Benchmark `move`: how long a training process stands still while it moves to one that has warmed up (G-75)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import msgspec

from gandiva_core.model.errors import InputError
from nodemanager_agent.bench.suspend import Node, Row, launched

_STEPS = "1000000"
_GRANT = {"gpus": [0], "uuids": [], "environment": {}}
_RAM_DISK = Path("/dev/shm")


class Case(msgspec.Struct, frozen=True):
    """A job that moves: MiB of one replica's state, and how many workers have it."""

    state_mib: int
    workers: int = 1


class Plan(msgspec.Struct, frozen=True):
    """What is measured, and how often; cases take turns."""

    cases: tuple[Case, ...] = (Case(3), Case(100), Case(380), Case(100, 8))
    moves: int = 3


QUICK = Plan(cases=(Case(3), Case(3, 2)), moves=1)


def run(*, is_quick: bool, say: Callable[[str], None]) -> Sequence[Row]:
    """A move of a PyTorch job to warm processes on this machine, by the size of its state and its workers; medians.

    `frozen_s`: from the source's stop at its mini-batch boundary to the end of the destination's first mini-batch. Its
    parts: `save_s` (write, hash and sync on a RAM disk), `restore_s` (`verify_s` and loading in place),
    `first_minibatch_s`, and `transfer_s`, the rest: orders on their way, since here nothing has to be copied.
    `minibatch_s`: of the source, for comparison. `warm_s`: what the destination did before the source stopped; a move
    without it would be frozen for that long too. `order_s`: from the order to save to the confirmed restore.

    Of several workers one saves, one checks, and all load the same file; of each part the slowest worker's counts.
    Workers on more devices than the machine has cores wait for cores and not for each other, so `save_cpu_s` and
    `restore_cpu_s` are what the busiest worker computed for its part; `flat_ratio`: the least of both over the least of
    one worker with the same state, measured in turns with it (the aim is within 1.2). `wall_ratio`: by the clock.
    """
    if find_spec("torch") is None:
        raise InputError(
            "gandiva bench move", "no torch", "torch in this environment: make env-jobs"
        )
    plan = QUICK if is_quick else Plan()
    moves: dict[Case, list[dict[str, float]]] = {case: [] for case in plan.cases}
    for number in range(plan.moves):
        for case in plan.cases:
            size = f"{case.state_mib} MiB x {case.workers}"
            say(f"move: {size}, {number + 1} of {plan.moves}")
            moves[case].append(_move(case))
    return [_row(case, moves) for case in plan.cases]


def _medians(moves: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: median(each[name] for each in moves) for name in moves[0]}


def _row(case: Case, moves: Mapping[Case, Sequence[Mapping[str, float]]]) -> Row:
    alone = moves[Case(case.state_mib)]
    return {
        "state_mib": case.state_mib,
        "workers": case.workers,
        **_medians(moves[case]),
        "flat_ratio": _least(moves[case], "cpu_s") / _least(alone, "cpu_s"),
        "wall_ratio": _least(moves[case], "s") / _least(alone, "s"),
    }


def _least(moves: Sequence[Mapping[str, float]], unit: str) -> float:
    """What other work on the machine changes least."""
    return min(each[f"save_{unit}"] + each[f"restore_{unit}"] for each in moves)


def _move(case: Case) -> dict[str, float]:
    ram_disk = _RAM_DISK if _RAM_DISK.is_dir() else None
    program = ["nodemanager_agent.bench.moving", str(case.state_mib), _STEPS]
    if case.workers > 1:
        program = ["nodemanager_agent.bench.ranks", str(case.workers), *program]
    with tempfile.TemporaryDirectory(prefix="gandiva-bench-") as name:
        folder = Path(name)
        state = Path(tempfile.mkdtemp(prefix="gandiva-bench-", dir=ram_disk))
        try:
            with (
                launched(program, folder / "a") as source,
                launched(program, folder / "b") as other,
            ):
                source.command("start", **_GRANT)
                while source.minibatch_s == 0:
                    source.run_for(1.0)
                with ThreadPoolExecutor(1) as pool:
                    warm = pool.submit(other.command, "warm", **_GRANT)
                    while not warm.done():  # a launcher hangs up on who does not read
                        source.run_for(0.5)
                    warm.result()
                return _measured(source, other, state)
        finally:
            shutil.rmtree(state, ignore_errors=True)


def _measured(source: Node, destination: Node, state: Path) -> dict[str, float]:
    began_s = perf_counter()
    _, saved = source.command("save", folder=str(state), limit_s=60)
    _, restored = destination.command("restore", folder=str(state), **_GRANT)
    order_s = perf_counter() - began_s
    source.command("release")
    parts = {
        "save_s": saved["save_s"],
        "restore_s": restored["restore_s"],
        "first_minibatch_s": restored["first_minibatch_s"],
    }
    frozen_s = restored["frozen_s"]
    return {
        "frozen_s": frozen_s,
        **parts,
        "verify_s": restored["verify_s"],
        "transfer_s": max(0.0, frozen_s - sum(parts.values())),  # parts of different workers
        "order_s": order_s,
        "save_cpu_s": saved["save_cpu_s"],
        "restore_cpu_s": restored["restore_cpu_s"],
        "minibatch_s": source.minibatch_s,
        "warm_s": restored["warm_s"],
        "saved_mib": saved["saved_mib"],
    }
