"""Benchmark `rm`: allocations a second of a ResourceManager under Hadoop's CapacityScheduler and under Gandiva's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import median

import msgspec

from gandiva_core.cli.benchmarks.results import Cell, Row, Say, percentile
from gandiva_core.config.keys import PREFIX
from yarn_plugin.bench.load import (
    CPU_ONLY,
    GPU,
    GPU_GANG,
    NODE_GPUS,
    Kind,
    LoadedRm,
    Ran,
    Shape,
    loaded,
)

STOCK = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
GANDIVA = "org.gandiva.yarn.GandivaScheduler"
MODES = ("full", "observe")

AIMS: Mapping[str, float] = {
    "cpu_only_ratio": 0.98,
    "cpu_only_mixed_ratio": 0.98,
    "gpu_ratio": 0.5,
    "gpu_gang_ratio": 0.5,
    "gpu_allocations_per_s": 1000.0,
    "gpu_p99_ms": 100.0,
}
"""What mode full is to reach at least, a time at most, so that nobody has to look up what a figure should be."""


class Plan(msgspec.Struct, frozen=True):
    """What is measured.

    Attributes:
        nodes: sizes of the cluster.
        warm_ups: rounds without GPUs that do not count, so that the JVMs have compiled what they run.
        mixed_warm_ups: the same, of rounds with both kinds.
        runs: rounds of each that count; in each the arms take turns.
        cpu_containers, gpu_containers: asked for in a run; of GPUs never more than nine tenths of what there is.
    """

    nodes: tuple[int, ...] = (100, 500, 2000)
    warm_ups: int = 16
    mixed_warm_ups: int = 8
    runs: int = 7
    cpu_containers: int = 4000
    gpu_containers: int = 2000
    masters: int = 50
    burst: int = 24

    def shape(self, nodes: int) -> Shape:
        """The load at this size."""
        return Shape(nodes=nodes, masters=self.masters, burst=self.burst)

    def gpu_containers_on(self, nodes: int) -> int:
        """How many a run asks for: whole gangs."""
        most = min(self.gpu_containers, nodes * NODE_GPUS * 9 // 10)
        return most // GPU_GANG.gang * GPU_GANG.gang


QUICK = Plan(
    nodes=(3,),
    warm_ups=0,
    mixed_warm_ups=0,
    runs=1,
    cpu_containers=20,
    gpu_containers=8,
    masters=4,
    burst=4,
)


class Runs(msgspec.Struct, frozen=True):
    """Counted runs of one arm, in order: `cpu_only` before there ever was a GPU ask, the others in turns."""

    cpu_only: list[Ran] = []
    cpu_only_mixed: list[Ran] = []
    gpu: list[Ran] = []
    gpu_gang: list[Ran] = []


def run(*, is_quick: bool, say: Say) -> Sequence[Row]:
    """Containers a second that a ResourceManager allocates, stock and with Gandiva, CPU-only asks and one-GPU asks.

    Each arm has a JVM and a ResourceManager of its own, all at once, and they take turns, run by run: the same nodes of
    four GPUs, masters, bursts of 24 asks, and after each burst the heartbeats that nodes send in the time that 1,000
    asks a second leave it, at least one a container (Hadoop gives a heartbeat one container of an ask that names no
    node). The ResourceManager's clock is virtual; nodes and masters are played in its JVM, by the one thread that it
    has. `cpu_only` figures are per second of that thread's CPU time, which other work on the machine changes least;
    a ratio is the median of Gandiva's by the stock run before it, with the least and the greatest. They are taken
    before there ever was a GPU ask; `cpu_only_mixed_ratio` is taken between runs of GPU asks, in JVMs that have
    compiled for both. `gpu` rates are by
    wall time. Stock and in mode observe, where stock code allocates and the core only watches, it is that thread's
    time. In mode full (height 4) it is all time from the first ask to the last container in its master's hands: while
    the core, in a process of its own, answers a burst, the next is asked for. For `gpu` every container is a job, a
    decision and a commit of its own; for `gpu_gang` masters ask for gangs of four, as distributed training does.
    `gpu_p50_ms` and `gpu_p99_ms` are of a decision: from when a burst's events wait for the core, over fetching,
    translation, engine, journal and the commit, to the commit's answer; the wait for others before it included.
    `jvm_cpu_ms` and `core_cpu_ms` are CPU time a container, of the JVM with its compiler and collector, and of Python.
    `missed` names what stays behind the aims of mode full: both cpu_only ratios 0.98, both gpu ratios 0.5,
    1,000 GPU allocations a second, gpu_p99_ms 100.
    """
    plan = QUICK if is_quick else Plan()
    return [row for nodes in plan.nodes for row in _rows(nodes, plan, say)]


def _rows(nodes: int, plan: Plan, say: Say) -> list[Row]:
    with ExitStack() as stack:
        say(f"rm: {nodes} nodes")
        stock = stack.enter_context(loaded(STOCK, {}, plan.shape(nodes)))
        arms = {"stock": stock}
        for mode in MODES:
            properties = {PREFIX + "mode": mode}
            arms[mode] = stack.enter_context(loaded(GANDIVA, properties, plan.shape(nodes)))
        measured = _measured(arms, nodes, plan, say)
    return [_row(nodes, mode, measured[mode], measured["stock"]) for mode in MODES]


def _measured(arms: Mapping[str, LoadedRm], nodes: int, plan: Plan, say: Say) -> Mapping[str, Runs]:
    runs = {arm: Runs() for arm in arms}
    for number in range(-plan.warm_ups, plan.runs):
        say(f"rm: {nodes} nodes, CPU-only round {number}")
        for name, arm in arms.items():
            _one(arm, CPU_ONLY, plan.cpu_containers, runs[name].cpu_only, number)
    for number in range(-plan.mixed_warm_ups, plan.runs):
        say(f"rm: {nodes} nodes, mixed round {number}")
        for name, arm in arms.items():
            _one(arm, CPU_ONLY, plan.cpu_containers, runs[name].cpu_only_mixed, number)
        for name, arm in arms.items():
            _one(arm, GPU, plan.gpu_containers_on(nodes), runs[name].gpu, number)
        for name, arm in arms.items():
            _one(arm, GPU_GANG, plan.gpu_containers_on(nodes), runs[name].gpu_gang, number)
    return runs


def _one(arm: LoadedRm, kind: Kind, containers: int, counted: list[Ran], number: int) -> None:
    ran = arm.run(kind, containers)
    if number >= 0:
        counted.append(ran)


def _row(nodes: int, mode: str, ours: Runs, stock: Runs) -> Row:
    row: dict[str, Cell] = {"nodes": nodes, "mode": mode, "runs": len(ours.gpu)}
    cpu = _by_cpu, _by_cpu
    row |= _compared("cpu_only", "cpu_s", ours.cpu_only, stock.cpu_only, cpu)
    mixed = _compared("cpu_only_mixed", "cpu_s", ours.cpu_only_mixed, stock.cpu_only_mixed, cpu)
    row["cpu_only_mixed_ratio"] = mixed["cpu_only_mixed_ratio"]
    wall = _by_elapsed if mode == "full" else _by_rm, _by_rm
    row |= _compared("gpu", "s", ours.gpu, stock.gpu, wall)
    row |= _compared("gpu_gang", "s", ours.gpu_gang, stock.gpu_gang, wall)
    decisions_ms = [took_s * 1000 for ran in ours.gpu for took_s in ran.decisions_s]
    row["gpu_p50_ms"] = percentile(decisions_ms, 0.50)
    row["gpu_p99_ms"] = percentile(decisions_ms, 0.99)
    row["gpu_jvm_cpu_ms"] = _each_ms(ours.gpu, lambda ran: ran.spent.jvm_cpu_s)
    row["gpu_core_cpu_ms"] = _each_ms(ours.gpu, lambda ran: ran.spent.core_cpu_s)
    row["stock_gpu_jvm_cpu_ms"] = _each_ms(stock.gpu, lambda ran: ran.spent.jvm_cpu_s)
    row["missed"] = ", ".join(_missed(row)) if mode == "full" else ""
    return row


def _missed(row: Row) -> Iterator[str]:
    for name, aim in AIMS.items():
        found = float(row[name])
        if found > aim if name.endswith("_ms") else found < aim:
            yield name


Rate = Callable[[Ran], float]


def _compared(
    name: str, unit: str, ours: Sequence[Ran], stock: Sequence[Ran], rates: tuple[Rate, Rate]
) -> dict[str, Cell]:
    our_rates, stock_rates = map(rates[0], ours), map(rates[1], stock)
    pairs = list(zip(our_rates, stock_rates, strict=True))
    ratios = [our / other for our, other in pairs]
    return {
        f"{name}_ratio": median(ratios),
        f"{name}_ratio_min": min(ratios),
        f"{name}_ratio_max": max(ratios),
        f"{name}_allocations_per_{unit}": median(our for our, _ in pairs),
        f"stock_{name}_allocations_per_{unit}": median(other for _, other in pairs),
    }


def _by_cpu(ran: Ran) -> float:
    return ran.allocations / ran.spent.rm_cpu_s


def _by_rm(ran: Ran) -> float:
    return ran.allocations / ran.spent.rm_s


def _by_elapsed(ran: Ran) -> float:
    return ran.allocations / ran.spent.elapsed_s


def _each_ms(runs: Sequence[Ran], cost: Rate) -> float:
    return median(1000 * cost(ran) / ran.allocations for ran in runs)
