"""Muri's CSV, derived from Philly windows: times in ms, models and mini-batches given."""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.replay.traces.findings import Kind
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
    whole,
)

MS = 1e-3
COLUMNS = {
    "job_id", "num_gpu", "submit_time", "iterations", "model_name", "batch_size", "duration",
    "iteration_time",
}  # fmt: skip
DIFFERENCE_MAX = 0.05
BATCH_MAX = 1 << 30


def read(source: Source) -> Found:
    """Read the format. `duration` decides; where iterations × iteration_time is another time, that is counted."""
    columns = header_of(source.lines, source.place)
    require(columns, COLUMNS, source.place)
    rows = source.lines[1:]

    def job_of(row: Row) -> TraceJob:
        steps = step_count(row["iterations"], "iterations")
        run_s = duration(row["duration"], "duration", MS)
        computed_s = steps * duration(row["iteration_time"], "iteration_time", MS)
        if abs(computed_s - run_s) > max(1.0, DIFFERENCE_MAX * run_s):
            found = f"duration {run_s:g} s, {steps} iterations take {computed_s:g} s: the former"
            source.tally.add(Kind.DURATION_DIFFERS, row.number, found)
        return TraceJob(
            job_id=identity(row["job_id"], "job_id"),
            arrival_s=seconds(row["submit_time"], "submit_time", MS),
            gpus=gpu_count(row["num_gpu"], "num_gpu"),
            total_steps=steps,
            model=name_text(row["model_name"], "model_name"),
            batch=whole(row["batch_size"], "batch_size", BATCH_MAX) or None,
            ref_duration_s=run_s,
        )

    table = rows_of(rows, columns, source.tally)
    jobs = jobs_of(table, job_of, source.tally, is_sorted=True)
    unused = [name for name in columns if name not in COLUMNS and name != "interval"]
    notes = ["models of another table: rates from the file, factors 1 (C-3)"]
    if unused:
        notes.append(f"columns not used: {', '.join(unused)}")
    return Found(jobs=jobs, rows=len(rows), notes=tuple(notes))


def matches(lines: Sequence[Line]) -> bool:
    """Whether the header has Muri's columns."""
    return lines[0].text is not None and set(lines[0].text.split(",")) >= COLUMNS


FORMAT = TraceFormat(name="muri", summary="Muri CSV, times in ms", matches=matches, read=read)
