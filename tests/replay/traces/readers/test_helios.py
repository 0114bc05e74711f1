"""Helios; case I05."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.reading import ReadOptions

HEADER = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
)
GOOD = "1,u,a,2,8,1,COMPLETED,2020-06-09 10:00:00,2020-06-09 10:01:00,2020-06-09 11:01:00,3600,60\n"
SKIP = ReadOptions(on_bad=OnBad.SKIP)


def log(tmp_path: Path, *rows: str, sizes: str | None = None) -> Path:
    path = tmp_path / "cluster_log.csv"
    path.write_text(HEADER + "".join(rows))
    if sizes is not None:
        (tmp_path / "cluster_gpu_number.csv").write_text(sizes)
    return path


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (GOOD.replace("a,2,8", "a,0,8"), "cpu_only"),
        (GOOD.replace("COMPLETED", "SUSPENDED"), "no_end_state"),
        (GOOD.replace("a,2,8", "a,16,8"), "larger_than_vc"),
        (GOOD.replace("u,a", "u,b"), "vc_without_gpus"),
        (GOOD.replace("u,a", "u,nowhere"), "vc_without_gpus"),
        (GOOD.replace("2020-06-09 11:01:00", ""), "missing_end"),
        (GOOD.replace("2020-06-09 10:01:00", ""), "missing_time"),
        (GOOD.replace("2020-06-09 11:01:00", "2020-06-09 09:01:00"), "negative"),
        (GOOD.replace("2020-06-09 11:01:00", "2020-06-09 10:01:00"), "zero_duration"),
        (GOOD, "duplicate"),
    ],
)
def test_rows_that_are_no_job_are_counted_by_kind(tmp_path: Path, row: str, kind: str) -> None:
    row = row if kind == "duplicate" else row.replace("1,", "9,", 1)
    path = log(tmp_path, GOOD, row, sizes="date,a,b,total\n2020-06-01,8,0,8\n2020-07-01,32,0,32\n")
    assert registry.read(path, options=SKIP).trace.left_out == {kind: 1}


def test_the_size_of_the_day_counts(tmp_path: Path) -> None:
    large = GOOD.replace("1,u,a,2", "2,u,a,16").replace("2020-06-09", "2020-07-02")
    path = log(tmp_path, GOOD, large, sizes="date,a,total\n2020-06-01,8,8\n2020-07-01,32,32\n")
    assert len(registry.load(path).jobs) == 2


def test_without_sizes_nothing_is_left_out_for_its_size(tmp_path: Path) -> None:
    trace = registry.load(log(tmp_path, GOOD.replace("a,2,8", "a,64,8")))
    assert trace.jobs[0].gpus == 64
    assert "sizes of virtual clusters unknown" in trace.notes


def test_a_broken_size_table_names_its_line(tmp_path: Path) -> None:
    for sizes, line in (("day,a\n1,2\n", 1), ("date,a\n1,2,3\n", 2), ("date,a\n1,x\n", 2)):
        with pytest.raises(InputError, match=rf"cluster_gpu_number\.csv:{line}"):
            registry.read(log(tmp_path, GOOD, sizes=sizes))


def test_case_i05(shared_dir: Path) -> None:
    """I05: kept 101 (7,200 s), 104 (600 s recomputed), 105 (wait clamped); TIMEOUT and NODE_FAIL are failures."""
    reading = registry.read(shared_dir / "cases" / "trace" / "I05_cluster_log.csv")
    trace = reading.trace
    runs = {run.job_id: (run.run_s, run.wait_s, run.status) for run in trace.observed}
    assert runs == {
        "101": (7200.0, 0.0, "completed"),
        "104": (600.0, 0.0, "failed"),
        "105": (3600.0, 0.0, "failed"),
    }
    assert {job.job_id: job.ref_duration_s for job in trace.jobs} == {
        "105": 3600.0, "101": 7200.0, "104": 600.0,
    }  # fmt: skip
    assert trace.left_out == {
        "cpu_only": 1, "larger_than_vc": 1, "vc_without_gpus": 1, "no_end_state": 1,
    }  # fmt: skip
    lines = {item.kind.value: item.lines for item in reading.findings}
    assert lines == {
        "cpu_only": (3,), "larger_than_vc": (4,), "vc_without_gpus": (7,), "no_end_state": (8,),
        "duration_recomputed": (5,), "wait_clamped": (6,),
    }  # fmt: skip
