"""The Philly job log; cases I01 and I03."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.reading import GpusFrom, ReadOptions

SKIP = ReadOptions(on_bad=OnBad.SKIP)


def attempt(start: str | None, end: str | None, **gpus: int) -> dict[str, Any]:
    detail = [{"ip": ip, "gpus": [f"gpu{i}" for i in range(n)]} for ip, n in gpus.items()]
    return {"start_time": start, "end_time": end, "detail": detail}


def entry(
    job_id: str, *attempts: dict[str, Any], submitted: str | None = "2017-10-07 01:00:00"
) -> Any:
    return {
        "jobid": job_id, "vc": "v", "user": "u", "status": "Pass", "submitted_time": submitted,
        "attempts": list(attempts),
    }  # fmt: skip


def log(tmp_path: Path, *entries: Any, machines: str | None = None) -> Path:
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    if machines is not None:
        (tmp_path / "cluster_machine_list").write_text(machines)
    return path


FIVE = "2017-10-07 01:05:00"
SIX = "2017-10-07 01:06:00"
NINE = "2017-10-07 01:09:00"


def test_a_job_of_two_attempts(tmp_path: Path) -> None:
    path = log(tmp_path, entry("j", attempt(FIVE, SIX, m1=2), attempt(SIX, NINE, m1=1, m2=3)))
    reading = registry.read(path, options=SKIP)
    job, run = reading.trace.jobs[0], reading.trace.observed[0]
    assert (job.gpus, job.ref_duration_s, job.user, job.entity) == (4, 240.0, "u", "v")
    assert (run.wait_s, run.run_s, run.gpu_s, run.jct_s, run.status) == (300, 240, 840, 540, "pass")
    assert reading.trace.left_out == {}
    assert reading.unit == "entry"
    assert "gpus_vary: 1 kept, adjusted" in reading.trace.notes


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (entry("b"), "never_ran"),
        (entry("b", attempt(None, None, m=1)), "missing_time"),
        (entry("b", attempt(FIVE, SIX, m=1), submitted=None), "missing_time"),
        (entry("b", attempt(FIVE, None, m=1)), "censored"),
        (entry("b", attempt(FIVE, SIX)), "zero_gpu"),
        (entry("good", attempt(FIVE, SIX, m=1)), "duplicate"),
        (entry("b", attempt(SIX, FIVE, m=1)), "negative"),
        (entry("b", attempt(FIVE, SIX, m=1), submitted=NINE), "negative"),
        (entry("b", attempt(FIVE, FIVE, m=1)), "zero_duration"),
        (entry("b", attempt("soon", SIX, m=1)), "not_a_number"),
        ({"attempts": []}, "missing_value"),
        (entry("b\x07", attempt(FIVE, SIX, m=1)), "bad_text"),
        ({"jobid": "b", "attempts": "none"}, "bad_text"),
        ({"jobid": "b", "attempts": [1]}, "bad_text"),
    ],
)
def test_entries_that_are_no_job_are_counted_by_kind(tmp_path: Path, bad: Any, kind: str) -> None:
    path = log(tmp_path, entry("good", attempt(FIVE, SIX, m=1)), bad)
    reading = registry.read(path, options=SKIP)
    assert reading.trace.left_out == {kind: 1}
    assert reading.findings[0].lines == (2,)


@pytest.mark.parametrize("text", ["[{]", '{"a": 1}', "[1, 2]", '[{"jobid": "a"'])
def test_what_is_no_job_list_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(InputError, match="JSON"):
        registry.read(path)


LISTED = "machineId,number of GPUs, single GPU mem\nm1,2, 12GB\n"


def test_more_gpus_than_listed_stops_until_a_rule_is_named(tmp_path: Path) -> None:
    """I03, a small input of the same trait."""
    path = log(
        tmp_path,
        entry("a", attempt(FIVE, SIX, m1=4)),
        entry("b", attempt(FIVE, SIX, m1=2, m9=1)),
        machines=LISTED,
    )
    with pytest.raises(InputError, match="machine m1 used with 4 GPUs, listed with 2"):
        registry.read(path, options=SKIP)
    observed = registry.load(path, options=ReadOptions(OnBad.SKIP, gpus_from=GpusFrom.OBSERVED))
    assert observed.machine_gpus == {"m1": 4, "m9": 1}
    listed = registry.load(path, options=ReadOptions(OnBad.SKIP, gpus_from=GpusFrom.LIST))
    assert listed.machine_gpus == {"m1": 2, "m9": 1}
    assert listed.left_out == {"machine_gpu_mismatch": 1}


def test_a_broken_machine_list_names_its_line(tmp_path: Path) -> None:
    path = log(tmp_path, entry("a", attempt(FIVE, SIX, m1=1)), machines=LISTED + "m2,many\n")
    with pytest.raises(InputError, match=r"cluster_machine_list:3"):
        registry.read(path)


def test_case_i01(shared_dir: Path) -> None:
    """I01: usable 1: wait 30 s, run 3,660 s, 7,320 GPU-s, JCT 3,720 s; six left out, one a kind; the sum is 7."""
    path = shared_dir / "cases" / "trace" / "I01_philly_job_log.json"
    reading = registry.read(path, options=SKIP)
    trace = reading.trace
    assert [(r.wait_s, r.run_s, r.gpu_s, r.jct_s) for r in trace.observed] == [
        (30, 3660, 7320, 3720)
    ]
    assert trace.left_out == {
        "never_ran": 1, "missing_time": 1, "censored": 1, "zero_gpu": 1, "duplicate": 1, "negative": 1,
    }  # fmt: skip
    assert len(trace.jobs) + sum(trace.left_out.values()) == reading.rows == 7


def test_case_i03(shared_dir: Path) -> None:
    """I03: one mismatch (m51: 2 vs 8); stops unless a rule is given; observed: m51 = 8; a blank in " 12GB" is fine."""
    path = shared_dir / "cases" / "trace" / "I03_philly_job_log.json"
    with pytest.raises(
        InputError, match="machine_gpu_mismatch: found machine m51 used with 8 GPUs"
    ):
        registry.read(path)
    observed = registry.load(path, options=ReadOptions(gpus_from=GpusFrom.OBSERVED))
    assert observed.machine_gpus == {"m51": 8, "m60": 8}
    assert observed.jobs[0].gpus == 8
    with pytest.raises(InputError, match="machine_gpu_mismatch 1"):
        registry.load(path, options=ReadOptions(OnBad.SKIP, gpus_from=GpusFrom.LIST))
