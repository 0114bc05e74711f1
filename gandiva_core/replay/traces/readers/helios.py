"""Helios' ``cluster_log.csv``, with the GPUs of each virtual cluster by day beside it.

Kept are GPU jobs that fit their virtual cluster and reached an end state; `duration` is computed again from start
and end where it differs, a negative wait counts as 0, and both are reported. FAILED, TIMEOUT and NODE_FAIL are
failures: the job ran all the same, and is replayed for as long as it ran.
"""

from __future__ import annotations

import bisect
import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import Kind, RowFaultError
from gandiva_core.replay.traces.readers.philly_csv import CLOCK_NOTE, shifted
from gandiva_core.replay.traces.reading import Found, Source, TraceFormat
from gandiva_core.replay.traces.records import ObservedRun, TraceJob
from gandiva_core.replay.traces.text import (
    GPUS_MAX,
    Line,
    Row,
    clock_time,
    decimal,
    header_of,
    identity,
    jobs_of,
    lines_of,
    name_text,
    read_bytes,
    require,
    rows_of,
    steps_at_one_per_s,
    whole,
)

COLUMNS = {"job_id", "user", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time"}
STATUS = {
    "COMPLETED": "completed",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "TIMEOUT": "failed",
    "NODE_FAIL": "failed",
}
SECOND = 1.0

VcGpus = Mapping[str, Sequence[tuple[str, int]]]
"""By virtual cluster: (day as YYYY-MM-DD, GPUs from that day on), by day."""


def read(source: Source) -> Found:
    """Read the log.

    Raises:
        InputError: the header or the table of virtual clusters is not theirs.
    """
    columns = header_of(source.lines, source.place)
    require(columns, COLUMNS, source.place)
    rows = source.lines[1:]
    sizes, sizes_name = vc_gpus(source)
    observed: dict[str, ObservedRun] = {}

    def job_of(row: Row) -> TraceJob:
        job, run = parsed(row, sizes, source)
        observed.setdefault(job.job_id, run)
        return job

    table = rows_of(rows, columns, source.tally)
    jobs = jobs_of(table, job_of, source.tally, is_sorted=False)
    start_s = min((job.arrival_s for job in jobs), default=0.0)
    ends = Counter(observed[job.job_id].status for job in jobs)
    notes = (
        "no model in the file: 1 mini-batch per second on every GPU type, factors 1 (C-3)",
        CLOCK_NOTE,
        "end states: " + ", ".join(f"{status} {count}" for status, count in sorted(ends.items())),
        f"virtual clusters from {sizes_name}"
        if sizes_name
        else "sizes of virtual clusters unknown",
    )
    return Found(
        jobs=[shifted(job, start_s) for job in jobs],
        rows=len(rows),
        notes=notes,
        observed=tuple(observed[job.job_id] for job in jobs),
    )


def parsed(row: Row, sizes: VcGpus, source: Source) -> tuple[TraceJob, ObservedRun]:
    """One job and what was observed of it.

    Raises:
        RowFaultError: no GPU job, no end, does not fit its virtual cluster.
    """
    gpus = whole(row["gpu_num"], "gpu_num", GPUS_MAX)
    if gpus == 0:
        raise RowFaultError(Kind.CPU_ONLY, f"job {row['job_id']} asks for no GPU")
    if row["state"] not in STATUS:
        raise RowFaultError(Kind.NO_END_STATE, f"state {row['state'][:40]!r}")
    check_vc(row, gpus, sizes)
    submit_s = clock_time(row["submit_time"], "submit_time")
    start_s = clock_time(row["start_time"], "start_time")
    if row["end_time"] in ("", "None"):
        raise RowFaultError(Kind.MISSING_END, "no end_time")
    end_s = clock_time(row["end_time"], "end_time")
    run_s = end_s - start_s
    if run_s < 0:
        raise RowFaultError(Kind.NEGATIVE, f"ends {-run_s:g} s before it starts")
    if run_s == 0:
        raise RowFaultError(Kind.ZERO_DURATION, f"job {row['job_id']} ran 0 s")
    if row.get("duration") and abs(decimal(row["duration"], "duration") - run_s) > SECOND:
        found = f"duration {row['duration']} s, start to end {run_s:g} s: the latter"
        source.tally.add(Kind.DURATION_RECOMPUTED, row.number, found)
    if start_s < submit_s:
        found = f"started {submit_s - start_s:g} s before it was submitted: wait 0"
        source.tally.add(Kind.WAIT_CLAMPED, row.number, found)
    job = TraceJob(
        job_id=identity(row["job_id"], "job_id"),
        arrival_s=submit_s,
        gpus=gpus,
        total_steps=steps_at_one_per_s(run_s),
        entity=name_text(row["vc"], "vc") or None,
        ref_duration_s=run_s,
        user=name_text(row["user"], "user") or None,
    )
    wait_s = max(0.0, start_s - submit_s)
    run = ObservedRun(job.job_id, wait_s, run_s, run_s * gpus, wait_s + run_s, STATUS[row["state"]])
    return job, run


def check_vc(row: Row, gpus: int, sizes: VcGpus) -> None:
    """Refuse what its virtual cluster could never run, where the sizes are known."""
    if not sizes:
        return
    days = sizes.get(row["vc"], ())
    at = bisect.bisect_right([day for day, _ in days], row["submit_time"][:10])
    size = days[max(0, at - 1)][1] if days else 0
    if size == 0:
        raise RowFaultError(Kind.VC_WITHOUT_GPUS, f"virtual cluster {row['vc'][:40]!r} has no GPU")
    if gpus > size:
        found = f"{gpus} GPUs in virtual cluster {row['vc'][:40]!r} of {size}"
        raise RowFaultError(Kind.LARGER_THAN_VC, found)


def vc_gpus(source: Source) -> tuple[VcGpus, str]:
    """(sizes, file name): from the option, or from the file beside the log; empty where there is none."""
    path = source.options.vc_gpus
    if path is None:
        name = source.path.name.replace("cluster_log", "cluster_gpu_number")
        beside = source.path.with_name(name)
        if name == source.path.name or not beside.is_file():
            return {}, ""
        path = beside
    return read_vc_gpus(path), path.name


def read_vc_gpus(path: Path) -> VcGpus:
    """``date,VC,VC,…,total``: GPUs of each virtual cluster by day.

    Raises:
        InputError: naming the line.
    """
    table = list(csv.reader(line.text or "" for line in lines_of(read_bytes(path))))
    names = [name.strip() for name in table[0]]
    if names[0] != "date":
        raise InputError(f"{path}:1", ",".join(names), "date, one column a virtual cluster, total")
    sizes: dict[str, list[tuple[str, int]]] = {name: [] for name in names[1:] if name != "total"}
    for number, fields in enumerate(table[1:], 2):
        if len(fields) != len(names):
            raise InputError(f"{path}:{number}", f"{len(fields)} columns", f"{len(names)} columns")
        for name, text in zip(names, fields, strict=True):
            if name in sizes:
                try:
                    size = whole(text.strip() or "0", name, GPUS_MAX)
                except RowFaultError as fault:
                    raise InputError(f"{path}:{number}", fault.found, "a number of GPUs") from fault
                sizes[name].append((fields[0].strip()[:10], size))
    return {name: sorted(days) for name, days in sizes.items()}


def matches(lines: Sequence[Line]) -> bool:
    """Whether the header has Helios' columns."""
    return lines[0].text is not None and set(lines[0].text.split(",")) >= COLUMNS


FORMAT = TraceFormat(
    name="helios",
    summary="Helios cluster_log.csv with cluster_gpu_number.csv",
    matches=matches,
    read=read,
)
