"""The compact Philly CSV and its windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.reading import ReadOptions


def test_times_count_from_the_first_arrival_and_ids_are_row_numbers(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:00:00,66.5,2,133.0,abc\n"
        "2017-10-09 06:00:00,2951.0,1,2951.0,def\n"
    )
    trace = registry.load(path)
    assert [(j.job_id, j.arrival_s, j.gpus, j.ref_duration_s, j.entity) for j in trace.jobs] == [
        ("1", 0.0, 1, 2951.0, "def"),
        ("0", 3600.0, 2, 66.5, "abc"),
    ]
    assert trace.jobs[1].total_steps == 66
    assert trace.jobs[0].queue is None


def test_a_window(tmp_path: Path) -> None:
    path = tmp_path / "window.csv"
    path.write_text("job_id,submit_s,duration_s,num_gpus,vc\n7,100,0.2,4,abc\n8,90,0,1,abc\n")
    reading = registry.read(path, options=ReadOptions(on_bad=OnBad.SKIP))
    assert [(j.job_id, j.arrival_s, j.total_steps) for j in reading.trace.jobs] == [("7", 100.0, 1)]
    assert reading.trace.left_out == {"zero_duration": 1}


def test_another_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("timestamp,duration\n2017-10-09 07:00:00,5\n")
    with pytest.raises(InputError, match=r"x\.csv:1"):
        registry.read(path, format_name="philly-csv")


@pytest.mark.parametrize(
    ("name", "jobs", "demand"),
    [
        ("gandiva_like_6c71a0_2017-09-27_9d.csv", 435, 88),
        ("gandiva_like_ee9e8c_2017-10-04_9d.csv", 121, 107),
        ("gandiva_like_6214e9_2017-10-11_9d.csv", 9625, 92),
    ],
)
def test_real_windows_have_the_stated_jobs_and_demand(
    shared_dir: Path, name: str, jobs: int, demand: float
) -> None:
    """Demand = Σ duration × GPUs / 9 days, as the data's README states it."""
    reading = registry.read(shared_dir / "data" / "philly" / name)
    trace = reading.trace
    assert (len(trace.jobs), reading.findings) == (jobs, ())
    gpu_s = sum(job.gpus * (job.ref_duration_s or 0.0) for job in trace.jobs)
    assert gpu_s / (9 * 86_400) == pytest.approx(demand, abs=0.6)


def test_the_whole_file(shared_dir: Path) -> None:
    reading = registry.read(shared_dir / "data" / "philly" / "philly.csv")
    assert (len(reading.trace.jobs), reading.findings) == (82_247, ())
    assert reading.trace.jobs[0].arrival_s == 0.0
