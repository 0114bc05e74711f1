"""The 1,000 jobs of GE-12."""

from __future__ import annotations

from collections import Counter

import pytest

from gandiva_core.replay.traces import synthesis
from gandiva_core.replay.traces.packing_mix import PackingMix
from gandiva_core.replay.traces.workload_figures import run_time_s


def test_counts_arrivals_and_classes() -> None:
    trace = synthesis.make("gandiva-180", 1)
    assert len(trace.jobs) == 1000
    assert trace.cluster_name == "gandiva-180"
    assert trace.jobs[-1].arrival_s <= 7200
    models = Counter(job.model for job in trace.jobs)
    for probability, names in PackingMix().classes:
        assert sum(models[name] for name in names) / 1000 == pytest.approx(probability, abs=0.05)


@pytest.mark.parametrize("seed", [1, 2])
def test_total_gpu_time_reading_of_e8(seed: int) -> None:
    for job in synthesis.make("gandiva-180", seed).jobs:
        gpu_min = run_time_s(job) * job.gpus / 60
        assert 29.9 <= gpu_min <= 45.1
        large = job.model in PackingMix().large_models
        assert job.gpus in ((2, 4) if large else (1,))


def test_same_seed_same_trace() -> None:
    assert synthesis.make("gandiva-180", 3) == synthesis.make("gandiva-180", 3)
    assert synthesis.make("gandiva-180", 3) != synthesis.make("gandiva-180", 4)
