"""Gavel's traces in their three ages; cases F03 and F08 (reading side)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.reading import ReadOptions

SKIP = ReadOptions(on_bad=OnBad.SKIP)


def line(steps: object = 600, gpus: object = 2, arrival: object = 30, batch: int = 32) -> str:
    fields = (
        f"GPT-9 (batch size {batch})", "python3 main.py", "lm", "--steps", 0, steps, gpus, 5, "1.2",
        arrival,
    )  # fmt: skip
    return "\t".join(map(str, fields))


def trace_file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "jobs.trace"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_ten_columns(tmp_path: Path) -> None:
    job = registry.load(trace_file(tmp_path, line())).jobs[0]
    assert (job.job_id, job.model, job.batch, job.gpus, job.total_steps) == (
        "0",
        "GPT-9",
        32,
        2,
        600,
    )
    assert (job.weight, job.slo_factor, job.arrival_s, job.ref_duration_s) == (
        5.0,
        1.2,
        30.0,
        600.0,
    )


def test_seven_columns_with_arrival_before_scale_factor(tmp_path: Path) -> None:
    path = trace_file(tmp_path, "GPT-9\tcd x && run\t--steps\t1\t600\t12.0\t8")
    job = registry.load(path).jobs[0]
    assert (job.model, job.batch, job.arrival_s, job.gpus) == ("GPT-9", None, 12.0, 8)


def test_twelve_columns_bring_durations(tmp_path: Path) -> None:
    fields = ("GPT-9", "run", "lm", "-s", 1, 600, 4, "gns", 1, "-1.000000", 300, 7)
    job = registry.load(trace_file(tmp_path, "\t".join(map(str, fields)))).jobs[0]
    assert (job.ref_duration_s, job.arrival_s, job.slo_factor) == (300.0, 7.0, None)


def test_without_a_table_a_note_says_one_step_a_second(tmp_path: Path) -> None:
    assert "1 step per second" in registry.load(trace_file(tmp_path, line())).notes[0]


def table(tmp_path: Path, content: object) -> ReadOptions:
    path = tmp_path / "rates.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return ReadOptions(on_bad=OnBad.SKIP, throughputs=path, reference_type="v100")


def test_a_throughput_table_turns_steps_into_time(tmp_path: Path) -> None:
    """V-55: the rate is that of all GPUs of the job together."""
    key = "('GPT-9 (batch size 32)', 2)"
    options = table(tmp_path, {"v100": {key: {"null": 4.0, key: [3.0, 3.0]}}})
    path = trace_file(tmp_path, line(), line(batch=64))
    reading = registry.read(path, options=options)
    assert [job.ref_duration_s for job in reading.trace.jobs] == [150.0]
    assert reading.trace.left_out == {"no_throughput": 1}


def test_the_oldest_table_has_keys_without_gpus(tmp_path: Path) -> None:
    options = table(tmp_path, {"v100": {"GPT-9 (batch size 32)": {"null": 4.0}}})
    assert (
        registry.load(trace_file(tmp_path, line(gpus=1)), options=options).jobs[0].ref_duration_s
        == 150.0
    )


@pytest.mark.parametrize(
    "content",
    [[], {"k80": {}}, {"v100": {"('a', 'b')": {"null": 1.0}}}, {"v100": {"a": {"null": "x"}}},
     {"v100": {"(": {"null": 1.0}}}, {"v100": {"a": {}}}],
)  # fmt: skip
def test_a_table_that_is_none_is_refused(tmp_path: Path, content: object) -> None:
    with pytest.raises(InputError, match=r"rates\.json"):
        registry.read(trace_file(tmp_path, line()), options=table(tmp_path, content))


def test_lines_need_no_order_and_short_ones_are_counted(tmp_path: Path) -> None:
    """F08, a small input of the same trait."""
    path = trace_file(
        tmp_path, line(arrival=50), line(gpus=0), line(steps=0), line(arrival=10), "a\tb\tc"
    )
    reading = registry.read(path, options=SKIP)
    assert [(job.job_id, job.arrival_s) for job in reading.trace.jobs] == [("3", 10.0), ("0", 50.0)]
    lines = {item.kind.value: item.lines for item in reading.findings}
    assert lines == {"zero_gpu": (2,), "zero_duration": (3,), "column_count": (5,)}


def test_no_width_of_gavels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tab-separated columns; expected 7, 10 or 12"):
        registry.read(trace_file(tmp_path, "a\tb"), format_name="gavel")


def test_weights_must_be_positive(tmp_path: Path) -> None:
    bad = line().replace("\t5\t", "\t0\t")
    assert registry.read(trace_file(tmp_path, line(), bad), options=SKIP).trace.left_out == {
        "negative": 1
    }


def test_case_f08(shared_dir: Path) -> None:
    """F08: accepted 2, lines 1 and 4, sorted by arrival 100, 500; refused 2 (scale 0), 3 (steps 0), 5 (8 columns)."""
    reading = registry.read(shared_dir / "cases" / "trace" / "F08_bad.tsv", options=SKIP)
    assert [(job.job_id, job.arrival_s) for job in reading.trace.jobs] == [
        ("3", 100.0),
        ("0", 500.0),
    ]
    found = {item.kind.value: (item.lines, item.found) for item in reading.findings}
    assert found == {
        "zero_gpu": ((2,), "scale factor 0"),
        "zero_duration": ((3,), "steps 0"),
        "column_count": ((5,), "8 columns, expected 10"),
    }


def test_case_f03_arrivals_are_kept_as_they_are(shared_dir: Path) -> None:
    """F03: a first arrival at 86,400 s and an idle gap are read as they stand."""
    folder = shared_dir / "cases" / "trace"
    gap = [job.arrival_s for job in registry.load(folder / "F03_gap.tsv").jobs]
    shifted = [job.arrival_s for job in registry.load(folder / "F03_gap_shifted.tsv").jobs]
    assert (gap, shifted) == ([86_400.0, 186_400.0], [0.0, 100_000.0])


def test_the_artefacts_traces_read_without_a_fault(shared_dir: Path) -> None:
    files = sorted((shared_dir / "data" / "gavel").glob("*/*.trace"))
    files += sorted((shared_dir / "data" / "shockwave").glob("*.trace"))
    assert len(files) >= 20
    for path in files:
        reading = registry.read(path)
        assert (reading.format_name, reading.findings) == ("gavel", ()), path
        assert len(reading.trace.jobs) == reading.rows


def test_the_artefacts_throughputs_serve_its_own_trace(shared_dir: Path) -> None:
    folder = shared_dir / "data" / "gavel"
    options = ReadOptions(throughputs=folder / "simulation_throughputs.json")
    trace = registry.load(folder / "generated" / "single_l3600_s0.trace", options=options)
    runs = sorted(job.ref_duration_s or 0.0 for job in trace.jobs)
    assert runs[0] > 60 * 10**1.4  # V-56: 60 × 10^1.5 … 10^4 s
    assert runs[-1] < 60 * 10**4.1
