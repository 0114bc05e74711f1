"""The CSV of Tiresias' simulator, times in s.

``job_id,num_gpu,submit_time,iterations,model_name,duration,interval``
"""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.replay.traces.reading import Found, Source, TraceFormat
from gandiva_core.replay.traces.records import TraceJob
from gandiva_core.replay.traces.text import (
    Line,
    Row,
    duration,
    gpu_count,
    header_of,
    identity,
    jobs_of,
    name_text,
    require,
    rows_of,
    seconds,
    step_count,
)

COLUMNS = {"job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration"}


def read(source: Source) -> Found:
    """Read the format."""
    columns = header_of(source.lines, source.place)
    require(columns, COLUMNS, source.place)
    rows = source.lines[1:]
    table = rows_of(rows, columns, source.tally)
    jobs = jobs_of(table, job_of, source.tally, is_sorted=True)
    notes = ("models of another table: rates from the file, factors 1 (C-3)",)
    return Found(jobs=jobs, rows=len(rows), notes=notes)


def job_of(row: Row) -> TraceJob:
    """One row."""
    return TraceJob(
        job_id=identity(row["job_id"], "job_id"),
        arrival_s=seconds(row["submit_time"], "submit_time"),
        gpus=gpu_count(row["num_gpu"], "num_gpu"),
        total_steps=step_count(row["iterations"], "iterations"),
        model=name_text(row["model_name"], "model_name"),
        ref_duration_s=duration(row["duration"], "duration"),
    )


def matches(lines: Sequence[Line]) -> bool:
    """Whether the header has these columns; Muri's header has them too and is asked before."""
    return lines[0].text is not None and set(lines[0].text.split(",")) >= COLUMNS


FORMAT = TraceFormat(
    name="tiresias", summary="Tiresias simulator CSV, times in s", matches=matches, read=read
)
