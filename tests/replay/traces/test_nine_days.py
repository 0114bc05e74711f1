"""The nine-day trace and its three-hour cut (GE-13, GE-14)."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from gandiva_core.replay.traces import synthesis
from gandiva_core.replay.traces.nine_days import (
    MODEL_SHARES,
    NINE_DAYS,
    SIZE_SHARES,
    THREE_HOURS,
    BurstyLaw,
    make_bursty,
    take_slot,
)
from gandiva_core.replay.traces.readers import own
from gandiva_core.replay.traces.records import Trace
from gandiva_core.replay.traces.workload_figures import figures_of, run_time_s

MINUTE_S = 60.0


@pytest.fixture(scope="module")
def nine() -> Trace:
    return synthesis.make("gandiva-9d", 1)


def test_same_seed_same_bytes_other_seed_other_bytes(nine: Trace) -> None:
    """C-6."""
    assert own.write(synthesis.make("gandiva-9d", 1)) == own.write(nine)
    assert own.write(synthesis.make("gandiva-9d", 2)) != own.write(nine)


def test_seed_one_is_the_trace_that_was_calibrated(nine: Trace) -> None:
    """A change here changes every published figure: calibrate again, and say so in docs/TRACES.md."""
    content = own.write(nine)
    assert hashlib.sha256(content).hexdigest()[:16] == "64da4af89b522b9c"


def test_counts_sizes_and_models_are_the_law(nine: Trace) -> None:
    assert len(nine.jobs) == NINE_DAYS.jobs
    sizes = Counter(job.gpus for job in nine.jobs)
    for gpus, share in SIZE_SHARES.items():
        assert sizes[gpus] == pytest.approx(share * NINE_DAYS.jobs, abs=1)
    models = Counter(job.model for job in nine.jobs)
    for model, share in MODEL_SHARES.items():
        assert models[model] == pytest.approx(share * NINE_DAYS.jobs, abs=1)


def test_run_times_follow_the_published_cdf(nine: Trace) -> None:
    runs = [run_time_s(job) / MINUTE_S for job in nine.jobs]
    for minutes, share in ((10, 0.35), (55, 0.57), (300, 0.74), (1000, 0.93)):
        below = sum(run <= minutes * 1.001 for run in runs) / len(runs)
        assert below == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_job_must_end_after_the_published_run(seed: int) -> None:
    """Published Gandiva ended at 11,349 min (GE-14), so every arrival + run time did; arrivals within 11,000 (E-10)."""
    trace = synthesis.make("gandiva-9d", seed)
    figures = figures_of(trace)
    assert figures.earliest_end_s <= 11_349 * MINUTE_S
    assert figures.span_s <= 11_000 * MINUTE_S


def test_every_seed_brings_nearly_the_same_work() -> None:
    work = [figures_of(synthesis.make("gandiva-9d", seed)).gpu_s for seed in range(1, 6)]
    assert max(work) / min(work) < 1.05


def test_jobs_come_in_bursts(nine: Trace) -> None:
    """Half of all gaps are short against the mean gap: far more than a Poisson process of that rate has."""
    arrivals = [job.arrival_s for job in nine.jobs]
    gaps = [later - earlier for earlier, later in pairwise(arrivals)]
    mean = sum(gaps) / len(gaps)
    assert sum(gap > 3 * mean for gap in gaps) < 0.05 * len(gaps)
    assert max(gaps) > 10 * mean


def test_ids_and_arrivals_are_in_order(nine: Trace) -> None:
    assert [job.job_id for job in nine.jobs] == sorted(job.job_id for job in nine.jobs)
    assert nine.jobs[0].arrival_s == 0.0
    assert nine.cluster_name == "gandiva-100"


def test_three_hours_is_the_cut_law_at_a_comparable_load() -> None:
    """GE-13: run times conditioned on three hours, arrivals within three hours, the load of the nine days."""
    short = [synthesis.make("gandiva-3h", seed) for seed in range(1, 6)]
    long = [synthesis.make("gandiva-9d", seed) for seed in range(1, 6)]
    for trace in short:
        assert figures_of(trace).span_s <= 3 * 3600
        assert max(run_time_s(job) for job in trace.jobs) <= 3 * 3600 * 1.001
        assert len(trace.jobs) == THREE_HOURS.jobs
    assert mean_load(short) == pytest.approx(mean_load(long), rel=0.05)


def mean_load(traces: list[Trace]) -> float:
    loads = [figures_of(trace, 100).load or 0.0 for trace in traces]
    return sum(loads) / len(loads)


def test_a_long_job_takes_an_early_slot_and_the_last_of_them() -> None:
    class Last:
        def random(self) -> float:
            return 0.0

    law = BurstyLaw(10, 1, 0.0, 100.0, last_end_min=100.0, long_run_min=50.0, long_window=0.5)
    slots = [float(minute) for minute in range(0, 100, 10)]
    assert take_slot(list(slots), law, 60.0, Last()) == 20.0  # 0…40 usable, the last half of them
    assert take_slot(list(slots), law, 10.0, Last()) == 0.0
    assert take_slot(list(slots), law, 1000.0, Last()) == 0.0  # none early enough: the first


def test_a_law_of_one_burst_is_a_trace_too() -> None:
    trace = make_bursty("tiny", BurstyLaw(3, 10, 1.0, 5.0), seed=4)
    assert len(trace.jobs) == 3
    assert msgspec.json.decode(trace.notes[1].removeprefix("parameters: "))["jobs"] == 3
