"""Alibaba GPU 2023; case I07."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.reading import ArrivalRule, ReadOptions

COLUMNS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)
GOOD = "p1,6000,12288,2,1000,,LS,Succeeded,1000,5000,1400\n"
SKIP = ReadOptions(on_bad=OnBad.SKIP)


def pods(tmp_path: Path, *rows: str, header: str = COLUMNS) -> Path:
    path = tmp_path / "pods.csv"
    path.write_text(header + "".join(rows))
    return path


def test_a_pod_is_a_job(tmp_path: Path) -> None:
    job = registry.load(pods(tmp_path, GOOD)).jobs[0]
    assert (job.job_id, job.gpus, job.arrival_s, job.ref_duration_s) == ("p1", 2, 0.0, 3600.0)
    assert (job.memory_mib, job.vcores, job.entity) == (6144, 3, "LS")


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("p2,1,1,0,0,,LS,Succeeded,1000,5000,1400\n", "cpu_only"),
        ("p2,1,1,1,1000,,LS,Pending,1000,,\n", "never_ran"),
        ("p2,1,1,1,1000,,LS,Running,1000,,1400\n", "censored"),
        ("p2,1,1,1,1000,,LS,Failed,1000,,1400\n", "missing_end"),
        ("p2,1,1,1,1000,,LS,Failed,1000,1300,1400\n", "negative"),
        ("p2,1,1,1,1000,,LS,Failed,1500,5000,1400\n", "negative"),
        ("p2,1,1,1,1000,,LS,Failed,1000,1400,1400\n", "zero_duration"),
        ("p2,1,1,1,1000,,LS,Failed,,5000,1400\n", "missing_time"),
        (GOOD, "duplicate"),
    ],
)
def test_pods_that_are_no_job_are_counted_by_kind(tmp_path: Path, row: str, kind: str) -> None:
    assert registry.read(pods(tmp_path, GOOD, row), options=SKIP).trace.left_out == {kind: 1}


def test_a_shared_gpu_becomes_a_whole_one_and_is_told(tmp_path: Path) -> None:
    reading = registry.read(pods(tmp_path, GOOD.replace("1000,,LS", "350,,LS").replace("p1", "p2")))
    assert [item.kind.value for item in reading.findings] == ["gpu_shared"]
    assert len(reading.trace.jobs) == 1


DAY = 86_400
NO_CREATION = COLUMNS.replace("creation_time,", "")


@pytest.fixture
def unsubmitted(tmp_path: Path) -> Path:
    """I07: 10,000 rows over 10 days without a submit column; a job file joins 27 of them, all on the last day."""
    rows = (
        f"p{i},1000,1024,1,1000,,LS,Succeeded,{(i // 1000) * DAY + i + 600},{(i // 1000) * DAY + i}\n"
        for i in range(10_000)
    )
    path = pods(tmp_path, *rows, header=NO_CREATION)
    joined = (f"p{i},{9 * DAY + i - 60}\n" for i in range(9973, 10_000))
    (tmp_path / "jobs.csv").write_text("name,creation_time\n" + "".join(joined) + "p5,soon\n")
    return path


def test_case_i07_arrivals_are_not_invented(unsubmitted: Path) -> None:
    """I07: refused without a rule, with the join's coverage in all and by day."""
    join = unsubmitted.with_name("jobs.csv")
    with pytest.raises(InputError) as raised:
        registry.read(unsubmitted, options=ReadOptions(join=join))
    text = str(raised.value)
    assert "no creation_time, so no arrivals; join serves 27 of 10000 rows (0.2700%)" in text
    assert "join on days 0 to 8: 0 of 9000 (0.0000%)" in text
    assert "join on day 9: 27 of 1000 (2.7000%)" in text
    assert "--arrivals" in text
    with pytest.raises(InputError, match="join serves 0 of 10000"):
        registry.read(unsubmitted)


def test_case_i07_with_a_rule(unsubmitted: Path) -> None:
    join = unsubmitted.with_name("jobs.csv")
    options = ReadOptions(OnBad.SKIP, arrivals=ArrivalRule.JOINED, join=join)
    joined = registry.load(unsubmitted, options=options)
    assert len(joined.jobs) == 27
    assert joined.left_out == {"no_arrival": 9973}
    assert "arrivals by rule: joined" in joined.notes
    rule = registry.load(unsubmitted, options=ReadOptions(arrivals=ArrivalRule.SCHEDULED))
    assert len(rule.jobs) == 10_000
    assert rule.left_out == {}


def test_joined_needs_a_file_with_the_two_columns(unsubmitted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without --join"):
        registry.read(unsubmitted, options=ReadOptions(arrivals=ArrivalRule.JOINED))
    other = tmp_path / "other.csv"
    other.write_text("name,when\np1,5\n")
    with pytest.raises(InputError, match="columns name and creation_time"):
        registry.read(unsubmitted, options=ReadOptions(arrivals=ArrivalRule.JOINED, join=other))
