"""From a trace to jobs that a small cluster can really run."""

from __future__ import annotations

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.records import Trace, TraceJob
from yarn_plugin.live_replay.plan import KINDS, scaled


def trace(*jobs: TraceJob) -> Trace:
    return Trace("t", jobs)


def job(
    name: str, arrival_s: float, gpus: int = 1, ref_duration_s: float | None = 600.0
) -> TraceJob:
    return TraceJob(name, arrival_s, gpus, 1000, ref_duration_s=ref_duration_s)


def test_times_are_divided_and_mini_batches_follow_from_them() -> None:
    jobs, notes = scaled(
        trace(job("a", 100.0), job("b", 160.0, 2)), scale=60.0, step_s=0.1, server_gpus=4
    )
    assert [(j.job_id, j.arrival_s, j.gpus, j.minibatches) for j in jobs] == [
        ("a", 0.0, 1, 100),
        ("b", 1.0, 2, 100),
    ]
    assert jobs[0].solo_s == pytest.approx(10.0)
    assert notes == ()


def test_every_kind_of_training_takes_part() -> None:
    jobs, _ = scaled(
        trace(*(job(str(n), float(n)) for n in range(5))), scale=1.0, step_s=0.1, server_gpus=1
    )
    assert [j.kind for j in jobs] == [*KINDS, KINDS[0]]


def test_what_is_left_out_is_told() -> None:
    jobs, notes = scaled(
        trace(job("a", 0.0), job("wide", 1.0, 8), job("b", 2.0), job("c", 3.0)),
        scale=1.0,
        step_s=1.0,
        server_gpus=4,
        jobs_max=2,
    )
    assert [j.job_id for j in jobs] == ["a", "b"]
    assert len(notes) == 2
    assert notes[0].startswith("1 jobs of more than 4 GPUs were left out")
    assert notes[1] == "only the first 2 of 3 jobs were submitted"


def test_nothing_that_fits_and_no_duration_are_refused_with_the_place() -> None:
    with pytest.raises(InputError, match="no job that fits"):
        scaled(trace(job("a", 0.0, 8)), scale=1.0, step_s=1.0, server_gpus=4)
    with pytest.raises(InputError, match=r"job a: .*no ref_duration_s"):
        scaled(trace(job("a", 0.0, ref_duration_s=None)), scale=1.0, step_s=1.0, server_gpus=4)
