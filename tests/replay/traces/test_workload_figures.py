"""A trace in figures."""

from __future__ import annotations

import pytest

from gandiva_core.replay.traces.records import Trace, TraceJob
from gandiva_core.replay.traces.workload_figures import figures_of, run_time_s

TRACE = Trace(
    name="t",
    jobs=(
        TraceJob("a", 0.0, 1, 100, ref_duration_s=100.0),
        TraceJob("b", 50.0, 4, 818, model="VAE"),
        TraceJob("c", 100.0, 2, 10, model="m", ref_duration_s=300.0),
    ),
    left_out={"negative": 3},
)


def test_figures_by_hand() -> None:
    """GPU time 100 + 4 × 10 + 2 × 300 = 740 GPU-s over a span of 100 s."""
    figures = figures_of(TRACE, 10)
    assert (figures.jobs, figures.span_s) == (3, 100.0)
    assert figures.gpu_s == pytest.approx(740.0)
    assert figures.demand_gpus == pytest.approx(7.4)
    assert figures.load == pytest.approx(0.74)
    assert figures.earliest_end_s == pytest.approx(400.0)
    assert figures.sizes == {1: 1, 2: 1, 4: 1}
    assert figures.run_quantiles_s["p50"] == pytest.approx(100.0)
    assert figures.run_quantiles_s["p100"] == pytest.approx(300.0)


def test_a_job_without_a_stated_time_runs_at_its_models_rate() -> None:
    assert run_time_s(TRACE.jobs[1]) == pytest.approx(10.0)


def test_the_table_names_the_cluster_and_what_was_left_out() -> None:
    table = dict(figures_of(TRACE, 10).table("my-cluster"))
    assert table["load of my-cluster"] == "0.74"
    assert table["left out: negative"] == "3"
    assert table["model (none)"] == "1"


def test_one_arrival_has_no_demand() -> None:
    figures = figures_of(Trace("t", TRACE.jobs[:1]), 10)
    assert (figures.demand_gpus, figures.load) == (None, None)
    assert dict(figures.table(None))["demand"] == "-"
