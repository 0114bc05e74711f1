"""Benchmark `move`: how long a training process stands still while it moves to one that has warmed up (G-75)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
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


class Plan(msgspec.Struct, frozen=True):
    """What is measured: sizes of the state, and moves of each."""

    state_mib: tuple[int, ...] = (3, 100, 380)
    moves: int = 3


QUICK = Plan(state_mib=(3,), moves=1)


def run(*, is_quick: bool, say: Callable[[str], None]) -> Sequence[Row]:
    """A move of one PyTorch process to a warm one on this machine, by the size of its state; medians.

    `frozen_s`: from the source's stop at its mini-batch boundary to the end of the destination's first mini-batch. Its
    parts: `save_s` (write, hash and sync on a RAM disk), `restore_s` (`verify_s` and loading in place),
    `first_minibatch_s`, and `transfer_s`, the rest: orders on their way, since here nothing has to be copied.
    `minibatch_s`: of the source, for comparison. `warm_s`: what the destination did before the source stopped; a move
    without it would be frozen for that long too. `order_s`: from the order to save to the confirmed restore.
    """
    if find_spec("torch") is None:
        raise InputError(
            "gandiva bench move", "no torch", "torch in this environment: make env-jobs"
        )
    plan = QUICK if is_quick else Plan()
    return [_row(mib, plan, say) for mib in plan.state_mib]


def _row(mib: int, plan: Plan, say: Callable[[str], None]) -> Row:
    moves = []
    for number in range(plan.moves):
        say(f"move: {mib} MiB, {number + 1} of {plan.moves}")
        moves.append(_move(mib))
    return {"state_mib": mib, **{name: median(each[name] for each in moves) for name in moves[0]}}


def _move(mib: int) -> dict[str, float]:
    ram_disk = _RAM_DISK if _RAM_DISK.is_dir() else None
    program = ["nodemanager_agent.bench.moving", str(mib), _STEPS]
    with tempfile.TemporaryDirectory(prefix="gandiva-bench-") as name:
        folder = Path(name)
        state = Path(tempfile.mkdtemp(prefix="gandiva-bench-", dir=ram_disk))
        try:
            with (
                launched(program, folder / "a") as source,
                launched(program, folder / "b") as other,
            ):
                source.command("start", **_GRANT)
                other.command("warm", **_GRANT)
                while source.minibatch_s == 0:
                    source.run_for(1.0)
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
        "transfer_s": frozen_s - sum(parts.values()),
        "order_s": order_s,
        "minibatch_s": source.minibatch_s,
        "warm_s": restored["warm_s"],
        "saved_mib": saved["saved_mib"],
    }
