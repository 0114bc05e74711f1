"""Pollux' workloads: ``name,time,application,num_replicas,batch_size``.

The file has no duration; how long a job runs follows from its application. Pollux sorts its applications by GPU time
into classes (small up to 1 GPU-hour, medium 1 to 10, large 10 to 100, extra-large 100 to 1,000); a job here does its
class's geometric mean (small: half an hour) of GPU time [D], spread evenly over its replicas, at 1 mini-batch per
second. The trace's notes say so.
"""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.replay.traces.findings import Kind, RowFaultError
from gandiva_core.replay.traces.reading import Found, Source, TraceFormat
from gandiva_core.replay.traces.records import TraceJob
from gandiva_core.replay.traces.text import (
    Line,
    Row,
    gpu_count,
    header_of,
    identity,
    jobs_of,
    require,
    rows_of,
    seconds,
    steps_at_one_per_s,
    whole,
)

COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
GPU_HOURS = {
    "ncf": 0.5,
    "cifar10": 0.5,
    "bert": 3.16,
    "deepspeech2": 3.16,
    "yolov3": 31.6,
    "imagenet": 316.0,
}
BATCH_MAX = 1 << 30
NOTE = (
    "no duration in the file: GPU-hours by application [D]: "
    + ", ".join(f"{name} {hours:g}" for name, hours in GPU_HOURS.items())
    + "; 1 mini-batch per second, factors 1 (C-3)"
)


def read(source: Source) -> Found:
    """Read the format."""
    columns = header_of(source.lines, source.place)
    require(columns, COLUMNS, source.place)
    rows = source.lines[1:]
    table = rows_of(rows, columns, source.tally)
    jobs = jobs_of(table, job_of, source.tally, is_sorted=True)
    return Found(jobs=jobs, rows=len(rows), notes=(NOTE,))


def job_of(row: Row) -> TraceJob:
    """One row."""
    application = row["application"]
    if application not in GPU_HOURS:
        raise RowFaultError(
            Kind.BAD_TEXT, f"application {application[:40]!r}, not in Pollux' table"
        )
    gpus = gpu_count(row["num_replicas"], "num_replicas")
    run_s = GPU_HOURS[application] * 3600 / gpus
    return TraceJob(
        job_id=identity(row["name"], "name"),
        arrival_s=seconds(row["time"], "time"),
        gpus=gpus,
        total_steps=steps_at_one_per_s(run_s),
        model=application,
        batch=whole(row["batch_size"], "batch_size", BATCH_MAX) or None,
        ref_duration_s=run_s,
    )


def matches(lines: Sequence[Line]) -> bool:
    """Whether the header is Pollux'."""
    return lines[0].text is not None and tuple(lines[0].text.split(",")) == COLUMNS


FORMAT = TraceFormat(name="pollux", summary="Pollux workload CSV", matches=matches, read=read)
