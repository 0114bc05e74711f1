"""Gavel's tab-separated traces without a header, in three ages told apart by their columns.

====  =====================================================================================
  7   type, command, steps argument, data flag, steps, arrival, scale factor (the oldest)
 10   type, command, folder, steps argument, data flag, steps, scale factor, weight, SLO, arrival
 12   as 10, with the mode after the scale factor and the duration before the arrival (Shockwave)
====  =====================================================================================

A job's id is the number of its line, from 0, as in the artefact's own results. Steps become durations by a
throughput table (`ReadOptions.throughputs`); without one a job does 1 step per second (C-3), and the notes say so.
Lines need not be in order of arrival.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import Kind, RowFaultError
from gandiva_core.replay.traces.readers.throughputs import Throughputs, read_throughputs
from gandiva_core.replay.traces.reading import Found, Source, TraceFormat
from gandiva_core.replay.traces.records import TraceJob
from gandiva_core.replay.traces.text import (
    Line,
    Row,
    decimal,
    duration,
    gpu_count,
    jobs_of,
    name_text,
    rows_of,
    seconds,
    step_count,
)

LAYOUTS: dict[int, tuple[str, ...]] = {
    7: ("type", "command", "argument", "flag", "steps", "arrival", "scale_factor"),
    10: (
        "type", "command", "folder", "argument", "flag", "steps", "scale_factor", "weight", "slo",
        "arrival",
    ),
    12: (
        "type", "command", "folder", "argument", "flag", "steps", "scale_factor", "mode", "weight",
        "slo", "duration", "arrival",
    ),
}  # fmt: skip
JOB_TYPE = re.compile(r"(?P<model>.+?) \(batch size (?P<batch>\d{1,9})\)")
NO_TABLE = "no throughput table (--throughputs): 1 step per second, factors 1 (C-3)"


def read(source: Source) -> Found:
    """Read any of the three layouts, the one most lines have.

    Raises:
        InputError: no line has 7, 10 or 12 columns.
    """
    layout = layout_of(source.lines, source.place)
    table = None
    if source.options.throughputs:
        table = read_throughputs(source.options.throughputs, source.options.reference_type)
    parse = parser(table)
    rows = rows_of(source.lines, layout, source.tally, "\t")
    jobs = jobs_of(rows, parse, source.tally, is_sorted=False)
    return Found(jobs=jobs, rows=len(source.lines), notes=notes_of(layout, table))


def notes_of(layout: Sequence[str], table: Throughputs | None) -> tuple[str, ...]:
    """Where the durations come from."""
    if table is not None:
        return (f"rates from {table.name}, type {table.reference_type}",)
    if "duration" in layout:
        return ("rates from the file's durations and steps; modes not used",)
    return (NO_TABLE,)


def parser(table: Throughputs | None) -> Callable[[Row], TraceJob]:
    """How to read a row with, or without, a throughput table."""

    def job_of(row: Row) -> TraceJob:
        job_type = name_text(row["type"], "job type")
        named = JOB_TYPE.fullmatch(job_type)
        gpus = gpu_count(row["scale_factor"], "scale factor")
        steps = step_count(row["steps"], "steps")
        run_s = float(steps)
        if table is not None:
            run_s = steps / table.rate_per_s(job_type, gpus)
        elif "duration" in row.fields:
            run_s = duration(row["duration"], "duration")
        return TraceJob(
            job_id=str(row.number - 1),
            arrival_s=seconds(row["arrival"], "arrival"),
            gpus=gpus,
            total_steps=steps,
            model=named["model"] if named else job_type,
            batch=int(named["batch"]) if named else None,
            weight=weight_of(row),
            slo_factor=slo_of(row),
            ref_duration_s=run_s,
        )

    return job_of


def weight_of(row: Row) -> float:
    """The weight, 1 in the oldest layout."""
    weight = decimal(row.fields.get("weight", "1"), "weight")
    if not 0 < weight <= 1e9:
        raise RowFaultError(Kind.NEGATIVE, f"weight {row['weight']}, expected above 0")
    return weight


def slo_of(row: Row) -> float | None:
    """The SLO factor; -1 says none."""
    slo = decimal(row.fields.get("slo", "-1"), "SLO")
    return slo if slo > 0 else None


def layout_of(lines: Sequence[Line], place: str) -> tuple[str, ...]:
    """The layout that most lines have; lines of another width are then faults."""
    widths = [len(line.text.split("\t")) for line in lines if line.text is not None]
    known = [width for width in LAYOUTS if width in widths]
    if not known:
        found = f"{widths[0] if widths else 0} tab-separated columns"
        raise InputError(f"{place}:{lines[0].number}", found, "7, 10 or 12")
    return LAYOUTS[max(known, key=widths.count)]


def matches(lines: Sequence[Line]) -> bool:
    """Whether one of the first lines has a width of Gavel's."""
    texts = [line.text for line in lines[:20] if line.text is not None]
    return any(len(text.split("\t")) in LAYOUTS for text in texts)


FORMAT = TraceFormat(
    name="gavel",
    summary="Gavel, tab-separated, 7, 10 or (Shockwave) 12 columns",
    matches=matches,
    read=read,
)
