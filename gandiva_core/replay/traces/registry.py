"""All formats and built-in traces by name, and the one way to load either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces import synthesis
from gandiva_core.replay.traces.findings import Tally
from gandiva_core.replay.traces.readers import (
    alibaba,
    gavel,
    helios,
    muri,
    own,
    philly_csv,
    philly_json,
    pollux,
    tiresias,
)
from gandiva_core.replay.traces.reading import (
    Reading,
    ReadOptions,
    Source,
    TraceFormat,
    reading_of,
)
from gandiva_core.replay.traces.records import Trace
from gandiva_core.replay.traces.text import Line, lines_of, read_bytes

FORMATS: tuple[TraceFormat, ...] = (
    own.FORMAT,
    philly_json.FORMAT,
    philly_csv.FORMAT,
    muri.FORMAT,
    tiresias.FORMAT,
    pollux.FORMAT,
    helios.FORMAT,
    alibaba.FORMAT,
    gavel.FORMAT,
)
"""In the order in which detection asks: each knows its header, Gavel's tab-separated lines have none."""


def load(name_or_path: str | Path, *, seed: int = 1, options: ReadOptions | None = None) -> Trace:
    """A trace by built-in name, else by path.

    Args:
        name_or_path: a generator's name wins over a file of that name.
        options: for a file.
        seed: of a generator; a file is the same for every seed.

    Raises:
        InputError: unknown name, unreadable file, unknown format, or more faults than the options allow.
    """
    name = str(name_or_path)
    if name in synthesis.GENERATORS:
        return synthesis.make(name, seed)
    return read(Path(name), options=options).trace


def read(
    path: Path, *, format_name: str | None = None, options: ReadOptions | None = None
) -> Reading:
    """Read a file, its format detected unless named.

    Raises:
        InputError: as `load`.
    """
    reading, tally = examine(path, format_name=format_name, options=options)
    tally.refuse_above_limit(reading.rows)
    return reading


def examine(
    path: Path, *, format_name: str | None = None, options: ReadOptions | None = None
) -> tuple[Reading, Tally]:
    """Read a file without the limit on faults: for a report that tells them all before it refuses.

    Raises:
        InputError: the file as a whole is unusable.
    """
    options = options or ReadOptions()
    if str(path) in synthesis.GENERATORS and not path.exists():
        expected = f"a trace file; `gandiva trace synth {path} FILE` makes one"
        raise InputError(str(path), "the name of a built-in trace", expected)
    content = read_bytes(path)
    lines = lines_of(content)
    form = format_named(format_name) if format_name else detect(lines, str(path))
    unit = "entry" if form is philly_json.FORMAT else "line"
    tally = Tally(str(path), options.on_bad, unit)
    source = Source(path=path, content=content, lines=lines, options=options, tally=tally)
    return reading_of(source, form, form.read(source)), tally


def format_named(name: str) -> TraceFormat:
    """A format by name.

    Raises:
        InputError: there is none of it.
    """
    for form in FORMATS:
        if form.name == name:
            return form
    raise InputError("--format", repr(name), f"one of {', '.join(form.name for form in FORMATS)}")


def detect(lines: Sequence[Line], place: str) -> TraceFormat:
    """The first format whose header or shape fits.

    Raises:
        InputError: none does.
    """
    for form in FORMATS:
        if form.matches(lines):
            return form
    start = lines[0].text
    shown = repr(start[:60]) if start is not None else "bytes that are not UTF-8"
    names = ", ".join(form.name for form in FORMATS)
    raise InputError(f"{place}:{lines[0].number}", shown, f"a trace in one of the formats {names}")
