"""Benchmark `cpu-only`: what Gandiva's scheduler costs asks without GPUs, over several starts of the JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec

from gandiva_core.cli.benchmarks.results import Row, Say
from gandiva_core.config.keys import PREFIX
from yarn_plugin.bench.load import CPU_ONLY, Shape, loaded
from yarn_plugin.bench.rm import GANDIVA, STOCK

ARMS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "full": (GANDIVA, {PREFIX + "mode": "full"}),
    "stock": (STOCK, {}),
}
"""The second of a pair; stock against stock shows what two JVMs of one kind differ by."""


class Plan(msgspec.Struct, frozen=True):
    """What is measured: `pairs` of fresh JVMs an arm, in each so many alternating runs after the warm-ups."""

    nodes: int = 500
    pairs: int = 5
    warm_ups: int = 10
    runs: int = 7
    containers: int = 4000


QUICK = Plan(nodes=3, pairs=1, warm_ups=0, runs=1, containers=20)


def run(*, is_quick: bool, say: Say) -> Sequence[Row]:
    """CPU-only allocations per second of CPU time, the arm's by stock's, in pairs of JVMs that were started for it.

    Two JVMs of one kind differ by some percent for as long as they live, by what they happened to compile and how; no
    number of runs in one pair shows that. So each pair gives the median of alternating runs, and `ratio` is the median
    of the pairs, with the least and the greatest. The arm `stock` is stock against stock.
    """
    plan = QUICK if is_quick else Plan()
    return [_row(arm, plan, say) for arm in ARMS]


def _row(arm: str, plan: Plan, say: Say) -> Row:
    ratios = list(_pairs(arm, plan, say))
    return {
        "arm": arm,
        "nodes": plan.nodes,
        "pairs": plan.pairs,
        "runs": plan.runs,
        "ratio": median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
    }


def _pairs(arm: str, plan: Plan, say: Say) -> Iterator[float]:
    shape = Shape(nodes=plan.nodes, masters=50, burst=20)
    for number in range(plan.pairs):
        say(f"cpu-only: {arm}, pair {number}")
        with loaded(STOCK, {}, shape) as stock, loaded(*ARMS[arm], shape) as other:
            ratios = []
            for round_number in range(-plan.warm_ups, plan.runs):
                base = stock.run(CPU_ONLY, plan.containers).spent.rm_cpu_s
                ours = other.run(CPU_ONLY, plan.containers).spent.rm_cpu_s
                if round_number >= 0:
                    ratios.append(base / ours)
        yield median(ratios)
