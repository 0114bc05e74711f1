"""Our own CSV (C-9): written canonically, so that reading and writing again gives the same bytes.

First lines ``# key: value`` keep what is not in the columns: name, cluster, source, what was left out, notes. Then the
header; any column with a default may be absent from a file made by hand, and the order of columns is free.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import Kind, RowFaultError
from gandiva_core.replay.traces.reading import Found, Source, TraceFormat
from gandiva_core.replay.traces.records import Trace, TraceJob
from gandiva_core.replay.traces.text import (
    Line,
    Row,
    decimal,
    duration,
    gpu_count,
    header_of,
    identity,
    jobs_of,
    name_text,
    rows_of,
    seconds,
    step_count,
    whole,
)

COLUMNS: Mapping[str, str] = {
    "job_id": "job_id",
    "arrival_s": "arrival_s",
    "model": "model",
    "batch": "batch",
    "g": "gpus",
    "total_steps": "total_steps",
    "priority_class": "priority_class",
    "weight": "weight",
    "growshrink": "growshrink",
    "multi_job_id": "multi_job_id",
    "entity": "entity",
    "slo_factor": "slo_factor",
    "ref_duration_s": "ref_duration_s",
    "queue": "queue",
    "user": "user",
    "memory_mib": "memory_mib",
    "vcores": "vcores",
}
"""Column to attribute, in the order written."""

REQUIRED = ("job_id", "arrival_s", "g", "total_steps")
COMMENT = re.compile(r"# (name|cluster|source|left_out|note): (.*)")
MIB_MAX = 1 << 40


def write(trace: Trace) -> bytes:
    """The trace as a file's content, always the same for the same trace."""
    text = io.StringIO()
    for key, value in preamble(trace):
        text.write(f"# {key}: {value}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for job in trace.jobs:
        writer.writerow([field_text(getattr(job, attribute)) for attribute in COLUMNS.values()])
    return text.getvalue().encode("utf-8")


def preamble(trace: Trace) -> list[tuple[str, str]]:
    """What the columns do not say, as (key, value)."""
    pairs = [("name", trace.name), ("cluster", trace.cluster_name or ""), ("source", trace.source)]
    pairs += [("left_out", f"{kind} {count}") for kind, count in sorted(trace.left_out.items())]
    pairs += [("note", note) for note in trace.notes]
    return [(key, " ".join(value.split())) for key, value in pairs if value]


def field_text(value: object) -> str:
    """A value as the file has it: the shortest text that reads back as the same value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def read(source: Source) -> Found:
    """Read the format.

    Raises:
        InputError: the header lacks a required column or has an unknown one.
    """
    head, body = split_preamble(source.lines)
    if not body:
        raise InputError(source.place, "no header", f"columns {', '.join(COLUMNS)}")
    columns = header_of(body, source.place)
    check_header(columns, f"{source.place}:{body[0].number}")
    rows = body[1:]
    jobs = jobs_of(rows_of(rows, columns, source.tally), job_of, source.tally, is_sorted=True)
    gone: dict[str, int] = {}
    for text in head.get("left_out", []):
        kind, _, count = text.rpartition(" ")
        if kind and count.isdecimal():
            gone[kind] = int(count)
    return Found(
        jobs=jobs,
        rows=len(rows),
        notes=tuple(head.get("note", [])),
        name=last(head, "name"),
        cluster_name=last(head, "cluster"),
        origin=last(head, "source"),
        earlier_left_out=gone,
    )


def last(head: Mapping[str, Sequence[str]], key: str) -> str | None:
    """The value of a key that may stand once."""
    return head[key][-1] if head.get(key) else None


def split_preamble(lines: Sequence[Line]) -> tuple[dict[str, list[str]], Sequence[Line]]:
    """(values by key, lines from the header on); other comments are for people and skipped."""
    head: dict[str, list[str]] = {}
    for index, line in enumerate(lines):
        if line.text is None or not line.text.startswith("#"):
            return head, lines[index:]
        found = COMMENT.fullmatch(line.text)
        if found:
            head.setdefault(found[1], []).append(found[2])
    return head, []


def check_header(columns: Sequence[str], place: str) -> None:
    """Refuse a header with a column too few, or one that nobody would read."""
    missing = [name for name in REQUIRED if name not in columns]
    unknown = [name for name in columns if name not in COLUMNS]
    if missing:
        raise InputError(
            place, f"no column {', '.join(missing)}", f"at least {', '.join(REQUIRED)}"
        )
    if unknown:
        raise InputError(place, f"unknown column {', '.join(unknown)}", f"of {', '.join(COLUMNS)}")


def job_of(row: Row) -> TraceJob:
    """One job.

    Raises:
        RowFaultError: with the kind and column.
    """
    given: dict[str, Any] = {
        COLUMNS[column]: parse(row[column], column)
        for column, parse in OPTIONAL.items()
        if row.get(column)
    }
    return TraceJob(
        job_id=identity(row["job_id"], "job_id"),
        arrival_s=seconds(row["arrival_s"], "arrival_s"),
        gpus=gpu_count(row["g"], "g"),
        total_steps=step_count(row["total_steps"], "total_steps"),
        **given,
    )


def positive(text: str, column: str) -> float:
    """A number above 0."""
    value = decimal(text, column)
    if value <= 0:
        raise RowFaultError(Kind.NEGATIVE, f"{column} {text}, expected above 0")
    if value > 1e9:
        raise RowFaultError(Kind.TOO_LARGE, f"{column} {text[:40]}")
    return value


def truth(text: str, column: str) -> bool:
    """``true`` or ``false``, also as 1 and 0."""
    value = {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if value is None:
        raise RowFaultError(Kind.BAD_TEXT, f"{column} {text[:40]!r}, expected true or false")
    return value


def signed(text: str, column: str) -> int:
    """A whole number, negative too."""
    value = decimal(text, column)
    if value != int(value) or abs(value) > 1e6:
        raise RowFaultError(
            Kind.NOT_A_NUMBER, f"{column} {text[:40]!r} is not a small whole number"
        )
    return int(value)


def at_least_one(text: str, column: str) -> int:
    """A whole number from 1."""
    value = whole(text, column, MIB_MAX)
    if value == 0:
        raise RowFaultError(Kind.NEGATIVE, f"{column} 0, expected at least 1")
    return value


OPTIONAL: Mapping[str, Callable[[str, str], object]] = {
    "model": name_text,
    "batch": at_least_one,
    "priority_class": signed,
    "weight": positive,
    "growshrink": truth,
    "multi_job_id": name_text,
    "entity": name_text,
    "slo_factor": positive,
    "ref_duration_s": duration,
    "queue": name_text,
    "user": name_text,
    "memory_mib": at_least_one,
    "vcores": at_least_one,
}


def matches(lines: Sequence[Line]) -> bool:
    """Whether the header names an own column that no other format has."""
    _, body = split_preamble(lines)
    return bool(body) and body[0].text is not None and "total_steps" in body[0].text.split(",")


FORMAT = TraceFormat(name="own", summary="own CSV, one row a job (C-9)", matches=matches, read=read)
