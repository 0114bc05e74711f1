"""Measured rows, with what they were measured on: as JSON, and as a page."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from gandiva_core.replay.provenance import commit, versions

Cell = int | float | str
Row = Mapping[str, Cell]
"""Column to value; units are in the column's name. All rows of a benchmark have the same columns."""

Say = Callable[[str], None]
"""Progress, for people."""


class Benchmark(Protocol):
    """What an entry point of `gandiva.benchmarks` names; its docstring says what the columns mean."""

    def __call__(self, *, is_quick: bool, say: Say) -> Sequence[Row]:
        """Measure. `is_quick` asks for a run of seconds whose figures mean nothing, for tests."""


class Measurement(msgspec.Struct, frozen=True):
    """One benchmark's rows and where they come from."""

    benchmark: str
    explained: str
    is_quick: bool
    commit: str
    versions: Mapping[str, str]
    machine: str
    rows: Sequence[Row]


def measure(name: str, benchmark: Benchmark, *, is_quick: bool, say: Say) -> Measurement:
    """Run a benchmark on this machine."""
    where = machine()
    return Measurement(
        benchmark=name,
        explained=" ".join((benchmark.__doc__ or "").split()),
        is_quick=is_quick,
        commit=commit(),
        versions=versions(),
        machine=where,
        rows=benchmark(is_quick=is_quick, say=say),
    )


def machine() -> str:
    """What matters for a figure, without the machine's name: also how busy others kept it."""
    cpus = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    return f"{cpus} CPUs ({platform.machine()}), {platform.system()}, load average {load:.1f} at the start"


def percentile(values: Sequence[float], ratio: float) -> float:
    """The smallest value that at least this part of all does not exceed; 0 for none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[max(0, math.ceil(ratio * len(ordered)) - 1)]


def shown(cell: Cell) -> str:
    """A cell for people: three significant digits, thousands apart."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 1000:
        return f"{cell:,.0f}"
    return f"{cell:.3g}"


def table(measurement: Measurement) -> str:
    """Rows as aligned text, never wrapped or cut: it may end in a pipe."""
    if not measurement.rows:
        return f"{measurement.benchmark}: nothing measured"
    lines = [list(measurement.rows[0])]
    lines += [[shown(cell) for cell in row.values()] for row in measurement.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = (
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join([f"{measurement.benchmark} ({measurement.machine})", *text])


def document(measurements: Sequence[Measurement]) -> str:
    """`docs/BENCHMARKS.md`."""
    parts = [_HEAD]
    for each in measurements:
        columns = list(each.rows[0]) if each.rows else []
        known = ", ".join(f"{name} {version}" for name, version in sorted(each.versions.items()))
        parts += [
            f"\n## {each.benchmark}\n\n{each.explained}\n",
            f"\nOn {each.machine}; commit {each.commit}; {known}.\n\n",
            "| " + " | ".join(columns) + " |\n",
            "|" + "---|" * len(columns) + "\n",
            *(
                "| " + " | ".join(shown(row[name]) for name in columns) + " |\n"
                for row in each.rows
            ),
        ]
    return "".join(parts)


_HEAD = """# Benchmarks

Written by `make bench` (`gandiva bench all --document docs/BENCHMARKS.md`); nothing here is typed by hand. No test
compares a time with a limit: figures depend on the machine. `gandiva bench NAME --json` prints the same rows as JSON.
"""
