"""Small traces under the modelled stock scheduler; the simulated side of cases F03 and F07."""

from __future__ import annotations

from pathlib import Path

import pytest

from baselines.capacity.substrate import fifo
from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.units import ServerId
from gandiva_core.replay.planning import Shape
from gandiva_core.replay.stock_arm import Outcome, play_stock
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.calibrate import Calibration, Target, is_met
from gandiva_core.replay.traces.clusters import load_cluster
from gandiva_core.replay.traces.nine_days import NINE_DAYS
from gandiva_core.replay.traces.records import Trace, TraceJob

ONE_GPU = Cluster("one", (Server(ServerId("s1"), 1, 65_536, 16),))


def play(trace: Trace, shape: Shape = Shape.SERVER) -> Outcome:
    return play_stock(trace, ONE_GPU, shape, fifo)


@pytest.mark.parametrize("shape", Shape)
def test_case_f07_the_run_ends_when_the_jobs_do(shape: Shape) -> None:
    """F07: 1 GPU, 100 s and 1,000 s at t = 0: JCTs 100 and 1,100 under FIFO, makespan 1,100, 2 of 2 finished."""
    jobs = (TraceJob("a", 0.0, 1, 100), TraceJob("b", 0.0, 1, 1000))
    assert play(Trace("f07", jobs), shape) == Outcome(mean_jct_s=600.0, makespan_s=1100.0)


def gap_trace(first_s: float) -> Trace:
    return Trace(
        "gap", (TraceJob("a", first_s, 1, 1000), TraceJob("b", first_s + 100_000, 1, 1000))
    )


def test_case_f03_a_late_first_arrival_changes_nothing() -> None:
    """F03: equal JCTs in both files; makespan counts from the first arrival (C-4)."""
    late, shifted = play(gap_trace(86_400.0)), play(gap_trace(0.0))
    assert late == shifted == Outcome(mean_jct_s=1000.0, makespan_s=101_000.0)


def test_case_f03_on_its_own_files(shared_dir: Path) -> None:
    folder = shared_dir / "cases" / "trace"
    late = play(registry.load(folder / "F03_gap.tsv"))
    shifted = play(registry.load(folder / "F03_gap_shifted.tsv"))
    assert late == shifted == Outcome(mean_jct_s=1000.0, makespan_s=101_000.0)


def test_the_nine_day_trace_gives_the_published_baseline() -> None:
    """GE-14: capacity 832 min mean JCT and 13,371 min makespan, seeds 1 to 5 and seed 1 alone within 5 %."""

    def arm(trace: Trace, cluster: Cluster) -> tuple[float, float]:
        outcome = play_stock(trace, cluster, Shape.SERVER, fifo)
        return outcome.mean_jct_s, outcome.makespan_s

    search = Calibration(arm, load_cluster("gandiva-100"), range(1, 6), Target())
    assert is_met(search.try_law(NINE_DAYS), Target())
