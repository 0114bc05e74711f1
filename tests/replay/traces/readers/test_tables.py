"""Muri, Tiresias and Pollux: CSV with a header of their own each."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.reading import Reading, ReadOptions

MURI = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n"
)
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
POLLUX = "name,time,application,num_replicas,batch_size\n"


def read(tmp_path: Path, text: str) -> Reading:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return registry.read(path, options=ReadOptions(on_bad=OnBad.SKIP))


def test_muri_times_are_milliseconds(tmp_path: Path) -> None:
    reading = read(tmp_path, MURI + "5,8,60000,2000,vgg16,64,428000,1,214,82,75,66,1\n")
    job = reading.trace.jobs[0]
    assert (reading.format_name, job.job_id, job.gpus, job.batch) == ("muri", "5", 8, 64)
    assert (job.arrival_s, job.ref_duration_s, job.total_steps) == (60.0, 428.0, 2000)
    assert "columns not used: resource_time_0" in reading.trace.notes[1]
    assert reading.findings == ()


def test_muri_durations_decide_over_iteration_times(tmp_path: Path) -> None:
    reading = read(tmp_path, MURI + "5,8,60000,2000,vgg16,64,600000,1,214,82,75,66,1\n")
    assert reading.trace.jobs[0].ref_duration_s == 600.0
    assert [item.kind.value for item in reading.findings] == ["duration_differs"]


def test_tiresias_times_are_seconds(tmp_path: Path) -> None:
    reading = read(tmp_path, TIRESIAS + "0,4,30,133,vgg11,147,23\n1,1,10,5,vgg11,9,1\n")
    assert reading.format_name == "tiresias"
    assert [(j.arrival_s, j.gpus, j.ref_duration_s) for j in reading.trace.jobs] == [
        (10.0, 1, 9.0), (30.0, 4, 147.0),
    ]  # fmt: skip
    assert [item.kind.value for item in reading.findings] == ["clock_backwards"]


def test_pollux_durations_follow_from_the_application(tmp_path: Path) -> None:
    reading = read(tmp_path, POLLUX + "n-0,29,ncf,2,32768\nx-1,30,other,1,1\n")
    job = reading.trace.jobs[0]
    assert (reading.format_name, job.job_id, job.ref_duration_s) == ("pollux", "n-0", 900.0)
    assert reading.trace.left_out == {"bad_text": 1}
    assert "no duration in the file" in reading.trace.notes[0]


@pytest.mark.parametrize(
    ("name", "form", "jobs"),
    [
        ("muri/trace1.csv", "muri", 1494),
        ("muri/trace4.csv", "muri", 2638),
        ("muri/cluster_trace.csv", "muri", 400),
        ("tiresias/60_job.csv", "tiresias", 60),
        ("pollux/workload-1.csv", "pollux", 320),
        ("pollux/workload-8.csv", "pollux", 320),
    ],
)
def test_real_files_read_whole(shared_dir: Path, name: str, form: str, jobs: int) -> None:
    reading = registry.read(shared_dir / "data" / name)
    assert (reading.format_name, len(reading.trace.jobs)) == (form, jobs)
    assert reading.trace.left_out == {}


def test_trace4_has_the_stated_span(shared_dir: Path) -> None:
    """85 days, average demand 100 GPUs, sizes 1/2/4/8 (the data's README)."""
    trace = registry.load(shared_dir / "data" / "muri" / "trace4.csv")
    assert trace.jobs[-1].arrival_s / 86_400 == pytest.approx(85, abs=0.5)
    assert {job.gpus for job in trace.jobs} == {1, 2, 4, 8}
