"""From a file's bytes to rows and values, whatever stands in them."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import Kind, RowFaultError, Tally
from gandiva_core.replay.traces.records import TraceJob

SECONDS_MAX = 1e9
"""About 31 years: later arrivals and longer runs are taken for garbage, or for a time since 1970."""

YEAR_MIN, YEAR_MAX = 1990, 2100
"""Years that a cluster's log may name."""

STEPS_MAX = 10**12
GPUS_MAX = 65_536
FILE_BYTES_MAX = 2 << 30
NUL_LOOKED_FOR_IN = 8192
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Line(msgspec.Struct, frozen=True):
    """A line of a text file.

    Attributes:
        number: from 1.
        text: without its end; None where the bytes are not UTF-8.
        is_cut: the file's last line, without a line end.
    """

    number: int
    text: str | None
    is_cut: bool = False


class Row(msgspec.Struct, frozen=True):
    """A line split into fields.

    Attributes:
        fields: by column name.
    """

    number: int
    fields: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.fields[column]

    def get(self, column: str) -> str:
        """The field, empty where the file has no such column."""
        return self.fields.get(column, "")


def read_bytes(path: Path) -> bytes:
    """The content of a text file.

    Raises:
        InputError: missing, a directory, unreadable, empty, or binary.
    """
    place = str(path)
    if path.is_dir():
        raise InputError(place, "a directory", "a trace file")
    if not path.exists():
        raise InputError(place, "no such file", "a trace file")
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise InputError(place, f"{path.stat().st_size} bytes", f"at most {FILE_BYTES_MAX}")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(place, error.strerror or "an error", "a readable file") from error
    if not content.removeprefix(BYTE_ORDER_MARK).strip():
        raise InputError(place, "an empty file", "a trace with at least one job")
    if b"\0" in content[:NUL_LOOKED_FOR_IN]:
        raise InputError(place, "binary data", "a text file in UTF-8")
    return content


def lines_of(content: bytes) -> list[Line]:
    """The lines, blank ones left out; a byte order mark is not part of the first."""
    raw = content.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    last = len(raw)
    lines = []
    for number, ended in enumerate(raw, 1):
        chunk = ended.removesuffix(b"\r")
        if not chunk.strip():
            continue
        try:
            text: str | None = chunk.decode("utf-8")
        except UnicodeDecodeError:
            text = None
        lines.append(Line(number, text, is_cut=number == last))
    return lines


def split_line(text: str, separator: str) -> list[str]:
    """Fields of one line; quoted as CSV has it, never over a line end."""
    if separator not in text and '"' not in text:
        return [text.strip()]
    if '"' not in text:
        return [field.strip() for field in text.split(separator)]
    try:
        return [
            field.strip() for field in next(csv.reader([text], delimiter=separator, strict=True))
        ]
    except csv.Error as error:
        raise RowFaultError(Kind.BAD_TEXT, f"{error}") from error


def header_of(lines: Sequence[Line], place: str, separator: str = ",") -> list[str]:
    """The names in the first line.

    Raises:
        InputError: not UTF-8, broken quotes, or a name twice.
    """
    first = lines[0]
    expected = "a header in UTF-8, every column once"
    if first.text is None:
        raise InputError(f"{place}:{first.number}", "bytes that are not UTF-8", expected)
    try:
        names = split_line(first.text, separator)
    except RowFaultError as fault:
        raise InputError(f"{place}:{first.number}", fault.found, expected) from fault
    if len(set(names)) < len(names):
        raise InputError(f"{place}:{first.number}", f"columns {', '.join(names)}", expected)
    return names


def require(columns: Sequence[str], needed: Iterable[str], place: str) -> None:
    """Refuse a header that lacks a column its format needs.

    Raises:
        InputError: naming what is missing.
    """
    missing = sorted(set(needed) - set(columns))
    if missing:
        found = f"no column {', '.join(missing)}"
        raise InputError(f"{place}:1", found, f"at least {', '.join(sorted(needed))}")


def rows_of(
    lines: Sequence[Line], columns: Sequence[str], tally: Tally, separator: str = ","
) -> Iterator[Row]:
    """Each line as a row; what cannot be one is counted."""
    for line in lines:
        if line.text is None:
            tally.add(Kind.NOT_UTF8, line.number, "bytes that are not UTF-8")
            continue
        try:
            fields = split_line(line.text, separator)
        except RowFaultError as fault:
            kind = Kind.TRUNCATED if line.is_cut else fault.kind
            tally.add(kind, line.number, fault.found)
            continue
        if len(fields) == len(columns):
            yield Row(line.number, dict(zip(columns, fields, strict=True)))
            continue
        kind = Kind.TRUNCATED if line.is_cut and len(fields) < len(columns) else Kind.COLUMN_COUNT
        tally.add(kind, line.number, f"{len(fields)} columns, expected {len(columns)}")


def jobs_of(
    rows: Iterator[Row], parse: Callable[[Row], TraceJob], tally: Tally, *, is_sorted: bool
) -> list[TraceJob]:
    """Parse each row; faults are counted, a second job of one id too.

    Args:
        rows: of a reader.
        parse: raises RowFaultError for a row that is no job.
        tally: where faults are counted.
        is_sorted: the format promises rows in order of arrival, so that a step back is worth a line.
    """
    jobs: list[TraceJob] = []
    seen: set[str] = set()
    latest_s = -math.inf
    for row in rows:
        try:
            job = parse(row)
        except RowFaultError as fault:
            tally.add(fault.kind, row.number, fault.found)
            continue
        if job.job_id in seen:
            tally.add(Kind.DUPLICATE, row.number, f"a second job {job.job_id}")
            continue
        seen.add(job.job_id)
        if is_sorted and job.arrival_s < latest_s:
            found = f"arrival {job.arrival_s:g} s after one at {latest_s:g} s"
            tally.add(Kind.CLOCK_BACKWARDS, row.number, found)
        latest_s = max(latest_s, job.arrival_s)
        jobs.append(job)
    return jobs


def decimal(text: str, column: str) -> float:
    """A finite number.

    Raises:
        RowFaultError: missing, not a number, NaN or infinite.
    """
    if not text:
        raise RowFaultError(Kind.MISSING_VALUE, f"no {column}")
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value) and text.strip().lower().lstrip("+-") != "nan":
        raise RowFaultError(Kind.NOT_A_NUMBER, f"{column} {text[:40]!r}")
    if not math.isfinite(value):
        raise RowFaultError(Kind.NOT_FINITE, f"{column} {text[:40]!r}")
    return value


def seconds(text: str, column: str, unit_s: float = 1.0) -> float:
    """A point in time from the start of the trace, at least 0.

    Raises:
        RowFaultError: not a number, negative, or beyond `SECONDS_MAX`.
    """
    value = decimal(text, column) * unit_s
    if value < 0:
        raise RowFaultError(Kind.NEGATIVE, f"{column} {text}")
    if value > SECONDS_MAX:
        raise RowFaultError(Kind.TOO_LARGE, f"{column} {text[:40]}")
    return value


def duration(text: str, column: str, unit_s: float = 1.0) -> float:
    """A length of time above 0, in s.

    Raises:
        RowFaultError: as `seconds`, and zero.
    """
    value = seconds(text, column, unit_s)
    if value == 0:
        raise RowFaultError(Kind.ZERO_DURATION, f"{column} {text}")
    return value


def whole(text: str, column: str, high: int) -> int:
    """A whole number from 0 to `high`; ``4.0`` is one.

    Raises:
        RowFaultError: not a whole number, negative, or too large.
    """
    value = decimal(text, column)
    if value < 0:
        raise RowFaultError(Kind.NEGATIVE, f"{column} {text}")
    if value > high:
        raise RowFaultError(Kind.TOO_LARGE, f"{column} {text[:40]}")
    if value != int(value):
        raise RowFaultError(Kind.NOT_A_NUMBER, f"{column} {text[:40]!r} is not whole")
    return int(value)


def gpu_count(text: str, column: str) -> int:
    """GPUs of a job, at least 1.

    Raises:
        RowFaultError: as `whole`, and zero.
    """
    gpus = whole(text, column, GPUS_MAX)
    if gpus == 0:
        raise RowFaultError(Kind.ZERO_GPU, f"{column} 0")
    return gpus


def step_count(text: str, column: str) -> int:
    """Mini-batches of a job, at least 1.

    Raises:
        RowFaultError: as `whole`, and zero.
    """
    steps = whole(text, column, STEPS_MAX)
    if steps == 0:
        raise RowFaultError(Kind.ZERO_DURATION, f"{column} 0")
    return steps


def clock_time(text: str | None, column: str) -> float:
    """``2017-10-07 01:00:30`` as seconds since 1970, daylight saving left out.

    Raises:
        RowFaultError: missing, or no such time.
    """
    if text is None or text in ("", "None", "NaT", "null"):
        raise RowFaultError(Kind.MISSING_TIME, f"no {column}")
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        raise RowFaultError(Kind.NOT_A_NUMBER, f"{column} {text!s:.40}") from None
    if not YEAR_MIN <= moment.year <= YEAR_MAX:
        raise RowFaultError(Kind.TOO_LARGE, f"{column} {text!s:.40}")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def name_text(text: str, column: str) -> str:
    """A printable name of at most 256 characters.

    Raises:
        RowFaultError: control characters, or too long.
    """
    if not text.isprintable() or len(text) > 256:
        raise RowFaultError(Kind.BAD_TEXT, f"{column} {text[:40]!r}")
    return text


def identity(text: str, column: str) -> str:
    """A job's own name: as `name_text`, and not empty.

    Raises:
        RowFaultError: as `name_text`, and empty.
    """
    if not text:
        raise RowFaultError(Kind.MISSING_VALUE, f"no {column}")
    return name_text(text, column)


def steps_at_one_per_s(run_s: float) -> int:
    """Mini-batches of a job of which only the running time is known: 1 step/s (C-3), at least one."""
    return max(1, round(run_s))
