"""The compact CSV of the Philly traces, and windows cut from it.

Two headers: ``timestamp,duration,num_gpus,gpu_time,cluster`` (all jobs, local time) and
``job_id,submit_s,duration_s,num_gpus,vc`` (a window of one virtual cluster). Neither names a model, a user or a
queueing time, so a job is as many mini-batches as it ran seconds (C-3). The virtual cluster becomes the entity, not
the queue.
"""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.reading import Found, Source, TraceFormat
from gandiva_core.replay.traces.records import TraceJob
from gandiva_core.replay.traces.text import (
    Line,
    Row,
    clock_time,
    duration,
    gpu_count,
    header_of,
    identity,
    jobs_of,
    name_text,
    rows_of,
    seconds,
    steps_at_one_per_s,
)

FULL = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
WINDOW = ("job_id", "submit_s", "duration_s", "num_gpus", "vc")
NOTES = ("no model in the file: 1 mini-batch per second on every GPU type, factors 1 (C-3)",)
CLOCK_NOTE = "local times, taken as one time zone without daylight saving"


def read(source: Source) -> Found:
    """Read either header.

    Raises:
        InputError: the header is neither.
    """
    columns = tuple(header_of(source.lines, source.place))
    rows = source.lines[1:]
    if columns == WINDOW:
        table = rows_of(rows, columns, source.tally)
        jobs = jobs_of(table, window_job, source.tally, is_sorted=True)
        return Found(jobs=jobs, rows=len(rows), notes=NOTES)
    if columns != FULL:
        expected = f"{','.join(FULL)} or {','.join(WINDOW)}"
        raise InputError(f"{source.place}:1", ",".join(columns), expected)
    table = rows_of(rows, columns, source.tally)
    jobs = jobs_of(table, full_job, source.tally, is_sorted=False)
    return Found(jobs=from_zero(jobs), rows=len(rows), notes=(*NOTES, CLOCK_NOTE))


def window_job(row: Row) -> TraceJob:
    """One row of a window."""
    run_s = duration(row["duration_s"], "duration_s")
    return TraceJob(
        job_id=identity(row["job_id"], "job_id"),
        arrival_s=seconds(row["submit_s"], "submit_s"),
        gpus=gpu_count(row["num_gpus"], "num_gpus"),
        total_steps=steps_at_one_per_s(run_s),
        entity=name_text(row["vc"], "vc") or None,
        ref_duration_s=run_s,
    )


def full_job(row: Row) -> TraceJob:
    """One row of the whole file; its id is its place among the data rows, from 0."""
    run_s = duration(row["duration"], "duration")
    return TraceJob(
        job_id=str(row.number - 2),
        arrival_s=clock_time(row["timestamp"], "timestamp"),
        gpus=gpu_count(row["num_gpus"], "num_gpus"),
        total_steps=steps_at_one_per_s(run_s),
        entity=name_text(row["cluster"], "cluster") or None,
        ref_duration_s=run_s,
    )


def from_zero(jobs: Sequence[TraceJob]) -> list[TraceJob]:
    """The same jobs with times from the first arrival."""
    start_s = min((job.arrival_s for job in jobs), default=0.0)
    return [shifted(job, start_s) for job in jobs]


def shifted(job: TraceJob, start_s: float) -> TraceJob:
    """The job with its arrival counted from `start_s`."""
    return TraceJob(
        job_id=job.job_id,
        arrival_s=job.arrival_s - start_s,
        gpus=job.gpus,
        total_steps=job.total_steps,
        model=job.model,
        entity=job.entity,
        ref_duration_s=job.ref_duration_s,
        user=job.user,
        memory_mib=job.memory_mib,
        vcores=job.vcores,
    )


def matches(lines: Sequence[Line]) -> bool:
    """Whether the header is one of the two."""
    return lines[0].text is not None and tuple(lines[0].text.split(",")) in (FULL, WINDOW)


FORMAT = TraceFormat(
    name="philly-csv",
    summary="Philly as a compact CSV, whole or a window",
    matches=matches,
    read=read,
)
