"""Our own CSV (C-9)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import registry
from gandiva_core.replay.traces.findings import OnBad
from gandiva_core.replay.traces.readers import own
from gandiva_core.replay.traces.reading import ReadOptions
from gandiva_core.replay.traces.records import Trace, TraceJob, in_order

HEADER = "job_id,arrival_s,g,total_steps"
SKIP = ReadOptions(on_bad=OnBad.SKIP)

names = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12
).filter(lambda text: not text.startswith("#"))
positive = st.floats(0.001, 1e9, allow_nan=False)
jobs = st.builds(
    TraceJob,
    job_id=names,
    arrival_s=st.floats(0, 1e9),
    gpus=st.integers(1, 65_536),
    total_steps=st.integers(1, 10**12),
    model=st.one_of(st.just(""), names),
    batch=st.none() | st.integers(1, 10**6),
    priority_class=st.integers(-1000, 1000),
    weight=positive,
    growshrink=st.booleans(),
    multi_job_id=st.none() | names,
    entity=st.none() | names,
    slo_factor=st.none() | positive,
    ref_duration_s=st.none() | positive,
    queue=st.none() | names,
    user=st.none() | names,
    memory_mib=st.none() | st.integers(1, 10**9),
    vcores=st.none() | st.integers(1, 10**6),
)


def write_text(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


@given(st.lists(jobs, min_size=1, max_size=8, unique_by=lambda job: job.job_id), names)
def test_writing_and_reading_gives_the_same_trace_and_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, given_jobs: list[TraceJob], name: str
) -> None:
    trace = Trace(
        name=name,
        jobs=in_order(given_jobs),
        cluster_name="gandiva-100",
        source="a generator, seed 1",
        left_out={"negative": 2},
        notes=("first note", "second: with a colon"),
    )
    path = tmp_path_factory.mktemp("own") / "trace.csv"
    path.write_bytes(own.write(trace))
    again = registry.read(path).trace
    assert again == trace
    assert own.write(again) == own.write(trace)


def test_columns_are_those_of_c9_and_the_sites_own() -> None:
    assert ",".join(own.COLUMNS) == (
        "job_id,arrival_s,model,batch,g,total_steps,priority_class,weight,growshrink,multi_job_id,"
        "entity,slo_factor,ref_duration_s,queue,user,memory_mib,vcores"
    )


def test_a_file_by_hand_needs_four_columns_in_any_order(tmp_path: Path) -> None:
    path = write_text(
        tmp_path, "# made by hand\ng,total_steps,job_id,arrival_s\n2,10,a,5\n4,20,b,1\n"
    )
    trace = registry.load(path, options=SKIP)
    assert [(job.job_id, job.gpus, job.arrival_s) for job in trace.jobs] == [
        ("b", 4, 1.0), ("a", 2, 5.0),
    ]  # fmt: skip
    assert trace.notes == ("clock_backwards: 1 kept, in order of arrival",)
    assert trace.cluster_name is None


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("job_id,arrival_s,total_steps", "no column g"),
        (f"{HEADER},colour", "unknown column colour"),
        (f"{HEADER},g", "columns"),
    ],
)
def test_a_header_with_a_column_too_few_or_unknown_is_refused(
    tmp_path: Path, header: str, found: str
) -> None:
    with pytest.raises(InputError, match=found):
        registry.read(write_text(tmp_path, f"{header}\n"))


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("a,1,0,10", "zero_gpu"),
        ("a,1,1,0", "zero_duration"),
        ("a,-1,1,10", "negative"),
        ("a,x,1,10", "not_a_number"),
        ("a,nan,1,10", "not_finite"),
        ("a,1,1,1e20", "too_large"),
        ("a,1,1", "column_count"),
        (",1,1,10", "missing_value"),
        ("first,1,1,10", "duplicate"),
    ],
)
def test_dirt_of_every_kind_is_counted(tmp_path: Path, row: str, kind: str) -> None:
    path = write_text(tmp_path, f"{HEADER}\nfirst,0,1,10\n{row}\nlast,2,1,10\n")
    reading = registry.read(path, options=SKIP)
    assert reading.trace.left_out == {kind: 1}
    assert [job.job_id for job in reading.trace.jobs] == ["first", "last"]
    assert reading.report()[0].startswith(f"{path}:3: {kind}: 1 left out (line 3)")
    with pytest.raises(InputError, match=rf"{kind} 1 \(first in line 3\)"):
        registry.read(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("weight", "0"),
        ("weight", "1e12"),
        ("growshrink", "perhaps"),
        ("priority_class", "1.5"),
        ("vcores", "0"),
        ("ref_duration_s", "-3"),
    ],
)
def test_optional_columns_are_checked_too(tmp_path: Path, column: str, value: str) -> None:
    path = write_text(tmp_path, f"{HEADER},{column}\na,0,1,10,\nb,0,1,10,{value}\n")
    reading = registry.read(path, options=SKIP)
    assert [job.job_id for job in reading.trace.jobs] == ["a"]
    assert sum(reading.trace.left_out.values()) == 1


def test_a_cut_last_line_is_called_truncated(tmp_path: Path) -> None:
    path = write_text(tmp_path, f"{HEADER}\na,0,1,10\nb,0,")
    assert registry.read(path, options=SKIP).trace.left_out == {"truncated": 1}


def test_a_job_named_like_a_comment_is_still_a_job(tmp_path: Path) -> None:
    path = write_text(tmp_path, f"{HEADER}\n#1,0,1,10\n")
    assert [job.job_id for job in registry.load(path).jobs] == ["#1"]


def test_nothing_left_is_an_error_with_the_kinds(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no usable job \(zero_gpu 1\)"):
        registry.read(write_text(tmp_path, f"{HEADER}\na,0,0,10\n"), options=SKIP)
    with pytest.raises(InputError, match=r"no usable job \(no row\)"):
        registry.read(write_text(tmp_path, f"{HEADER}\n"))
    with pytest.raises(InputError, match="# only a comment"):
        registry.read(write_text(tmp_path, "# only a comment\n"))
