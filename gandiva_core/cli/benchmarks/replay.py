"""How many jobs a second a replay plays, by engine and arm."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gandiva_core.cli.benchmarks.results import Row, Say
from gandiva_core.replay.details import read
from gandiva_core.replay.planning import Shape
from gandiva_core.replay.preparation import Request, prepare
from gandiva_core.replay.run import RunOrder, run_one


class Plan(msgspec.Struct, frozen=True):
    """What is measured: every arm on every engine, one run at a time."""

    engines: tuple[str, ...] = ("sim", "yarn")
    traces: tuple[str, ...] = ("gandiva-3h", "gandiva-9d")
    arms: str = "capacity,gandiva"
    shape: Shape = Shape.SERVER
    jobs_max: int | None = None


QUICK = Plan(engines=("sim",), traces=("gandiva-3h",), jobs_max=20)


def run(*, is_quick: bool, say: Say) -> Sequence[Row]:
    """Whole runs of the built-in traces (seed 1, one container a server), journal included, one at a time.

    `wall_s` includes the start of the JVM and of its ResourceManager; `cpu_s` is this process's own, without the JVM's.
    """
    plan = QUICK if is_quick else Plan()
    with tempfile.TemporaryDirectory() as folder:
        return [_row(order, say) for order in _orders(plan, Path(folder))]


def _orders(plan: Plan, folder: Path) -> Iterator[RunOrder]:
    for engine in plan.engines:
        for trace in plan.traces:
            request = Request(
                trace=trace,
                arms=plan.arms,
                engine=engine,
                seeds=(1,),
                shapes=(plan.shape,),
                out=folder / engine / trace,
            )
            for order in prepare(request).orders:
                yield _cut(order, plan.jobs_max)


def _cut(order: RunOrder, jobs_max: int | None) -> RunOrder:
    if jobs_max is None:
        return order
    shorter = msgspec.structs.replace(order.plan, jobs=order.plan.jobs[:jobs_max])
    return msgspec.structs.replace(order, plan=shorter)


def _row(order: RunOrder, say: Say) -> Row:
    trace = order.surroundings.trace
    say(f"replay: {trace}, {order.engine}, {order.arm.name}")
    started_s = time.process_time()
    details = read(run_one(order))
    cpu_s = time.process_time() - started_s
    jobs = len(order.plan.jobs)
    return {
        "trace": trace,
        "engine": order.engine,
        "arm": order.arm.name,
        "jobs": jobs,
        "events": details.figures.events,
        "virtual_hours": (details.figures.makespan_s or 0.0) / 3600,
        "wall_s": details.wall_s,
        "cpu_s": cpu_s,
        "jobs_per_s": jobs / details.wall_s,
    }
