"""Alibaba's GPU traces, pod by pod: the 2023 columns, times in s.

A pod runs from `scheduled_time` to `deletion_time` and arrives at `creation_time`. A file without creation times
gives no arrival, and none is invented: it is refused, with the share of rows that a join could serve by day, until
a rule is named (`ArrivalRule`). A pod that shares a GPU (`gpu_milli` below 1000) gets a whole one, and is counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import Kind, RowFaultError, Tally
from gandiva_core.replay.traces.readers.philly_csv import from_zero
from gandiva_core.replay.traces.reading import ArrivalRule, Found, Source, TraceFormat
from gandiva_core.replay.traces.records import TraceJob
from gandiva_core.replay.traces.text import (
    GPUS_MAX,
    Line,
    Row,
    header_of,
    identity,
    jobs_of,
    lines_of,
    name_text,
    read_bytes,
    require,
    rows_of,
    seconds,
    steps_at_one_per_s,
    whole,
)

COLUMNS = {"name", "num_gpu", "gpu_milli", "deletion_time", "scheduled_time"}
MILLI = 1000
DAY_S = 86_400
AMOUNT_MAX = 1 << 40
NOTE = "no model in the file: 1 mini-batch per second on every GPU type, factors 1 (C-3)"


def read(source: Source) -> Found:
    """Read the pods.

    Raises:
        InputError: no creation times and no rule for arrivals.
    """
    columns = header_of(source.lines, source.place)
    require(columns, COLUMNS, source.place)
    rows = source.lines[1:]
    rule = source.options.arrivals
    created = creation_times(source)
    notes: tuple[str, ...] = (NOTE,)
    if created is not None or rule is not None:
        notes += coverage_notes(source, columns, created or {})
    has_own = "creation_time" in columns
    if rule is None and not has_own:
        share = "; ".join(coverage_notes(source, columns, created or {}))
        found = f"no creation_time, so no arrivals; {share}"
        raise InputError(
            source.place, found, "--arrivals scheduled, or --arrivals joined --join FILE"
        )
    if rule is ArrivalRule.JOINED and created is None:
        raise InputError(source.place, "--arrivals joined without --join", "--join FILE")

    def job_of(row: Row) -> TraceJob:
        return pod(row, arrival_of(row, rule, created or {}), source)

    table = rows_of(rows, columns, source.tally)
    jobs = jobs_of(table, job_of, source.tally, is_sorted=False)
    if rule is not None:
        notes += (f"arrivals by rule: {rule}",)
    return Found(jobs=from_zero(jobs), rows=len(rows), notes=notes)


def arrival_of(row: Row, rule: ArrivalRule | None, created: Mapping[str, float]) -> float:
    """When the pod arrived.

    Raises:
        RowFaultError: by the rule in force it has no arrival.
    """
    if rule is ArrivalRule.JOINED:
        if row["name"] not in created:
            raise RowFaultError(Kind.NO_ARRIVAL, f"{row['name'][:40]} has no creation_time to join")
        return created[row["name"]]
    if rule is ArrivalRule.SCHEDULED:
        return scheduled(row)
    if not row["creation_time"]:
        raise RowFaultError(Kind.MISSING_TIME, "no creation_time")
    return seconds(row["creation_time"], "creation_time")


def scheduled(row: Row) -> float:
    """When the pod got its machine.

    Raises:
        RowFaultError: it never did.
    """
    if not row["scheduled_time"]:
        raise RowFaultError(Kind.NEVER_RAN, "no scheduled_time")
    return seconds(row["scheduled_time"], "scheduled_time")


def pod(row: Row, arrival_s: float, source: Source) -> TraceJob:
    """One pod as a job.

    Raises:
        RowFaultError: it used no GPU, never ran, or has no end.
    """
    gpus = whole(row["num_gpu"] or "0", "num_gpu", GPUS_MAX)
    if gpus == 0:
        raise RowFaultError(Kind.CPU_ONLY, f"pod {row['name'][:40]} asks for no GPU")
    start_s = scheduled(row)
    if not row["deletion_time"]:
        running = row.get("pod_phase").lower() in ("running", "pending")
        raise RowFaultError(Kind.CENSORED if running else Kind.MISSING_END, "no deletion_time")
    run_s = seconds(row["deletion_time"], "deletion_time") - start_s
    if run_s < 0 or start_s < arrival_s:
        found = f"arrives {arrival_s:g}, scheduled {start_s:g}, deleted {start_s + run_s:g}"
        raise RowFaultError(Kind.NEGATIVE, found)
    if run_s == 0:
        raise RowFaultError(Kind.ZERO_DURATION, f"pod {row['name'][:40]} ran 0 s")
    if whole(row["gpu_milli"] or "1000", "gpu_milli", MILLI * GPUS_MAX) < MILLI:
        found = f"gpu_milli {row['gpu_milli']}: gets a whole GPU"
        source.tally.add(Kind.GPU_SHARED, row.number, found)
    return TraceJob(
        job_id=identity(row["name"], "name"),
        arrival_s=arrival_s,
        gpus=gpus,
        total_steps=steps_at_one_per_s(run_s),
        entity=name_text(row.get("qos"), "qos") or None,
        ref_duration_s=run_s,
        memory_mib=per_gpu(row.get("memory_mib"), "memory_mib", gpus),
        vcores=per_gpu(row.get("cpu_milli"), "cpu_milli", gpus * MILLI),
    )


def per_gpu(text: str, column: str, parts: int) -> int | None:
    """A pod's amount divided and rounded up; None where absent or 0."""
    amount = whole(text, column, AMOUNT_MAX) if text else 0
    return math.ceil(amount / parts) or None


def creation_times(source: Source) -> dict[str, float] | None:
    """`creation_time` by name from the join file; None without one."""
    path = source.options.join
    return read_join(path) if path else None


def read_join(path: Path) -> dict[str, float]:
    """The join file's times; rows without a usable one are no partners.

    Raises:
        InputError: the header lacks ``name`` or ``creation_time``.
    """
    lines = lines_of(read_bytes(path))
    columns = header_of(lines, str(path))
    if not {"name", "creation_time"} <= set(columns):
        raise InputError(f"{path}:1", ",".join(columns), "columns name and creation_time")
    created: dict[str, float] = {}
    for row in rows_of(lines[1:], columns, Tally(str(path))):
        try:
            created[row["name"]] = seconds(row["creation_time"], "creation_time")
        except RowFaultError:
            continue
    return created


def coverage_notes(
    source: Source, columns: Sequence[str], created: Mapping[str, float]
) -> tuple[str, ...]:
    """How many rows the join serves, in all and by day of `scheduled_time`."""
    rows, joined = Counter[int](), Counter[int]()
    for row in rows_of(source.lines[1:], columns, Tally(source.place)):
        try:
            day = int(scheduled(row) // DAY_S)
        except RowFaultError:
            day = -1
        rows[day] += 1
        joined[day] += row["name"] in created
    total = rows.total() or 1
    notes = [f"join serves {joined.total()} of {rows.total()} rows ({joined.total() / total:.4%})"]
    return (*notes, *by_day(rows, joined))


def by_day(rows: Mapping[int, int], joined: Mapping[int, int]) -> list[str]:
    """Coverage of each day; neighbours where nothing, or everything, is joined stand together."""
    spans: list[tuple[int, int, int, int]] = []
    for day in sorted(rows):
        here, served = rows[day], joined.get(day, 0)
        if spans and served in (0, here) and day >= 0:
            first, last, before, before_served = spans[-1]
            is_alike = before_served == (before if served else 0)
            if last == day - 1 and first >= 0 and is_alike:
                spans[-1] = (first, day, before + here, before_served + served)
                continue
        spans.append((day, day, here, served))
    return [
        f"join on {span_text(first, last)}: {served} of {here} ({served / here:.4%})"
        for first, last, here, served in spans
    ]


def span_text(first: int, last: int) -> str:
    """Name of a span of days; day -1 is that of pods never scheduled."""
    if first < 0:
        return "no day"
    return f"day {first}" if first == last else f"days {first} to {last}"


def matches(lines: Sequence[Line]) -> bool:
    """Whether the header has the columns, creation time or not."""
    return lines[0].text is not None and set(lines[0].text.split(",")) >= COLUMNS


FORMAT = TraceFormat(
    name="alibaba", summary="Alibaba GPU 2023 pods, times in s", matches=matches, read=read
)
