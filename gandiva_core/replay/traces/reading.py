"""What a reader gets and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import (
    Finding,
    OnBad,
    Tally,
    adjustments,
    left_out,
)
from gandiva_core.replay.traces.records import ObservedRun, Trace, TraceJob, in_order
from gandiva_core.replay.traces.text import Line


class GpusFrom(StrEnum):
    """Which GPU count of a machine to believe where a Philly log and its machine list differ."""

    LIST = "list"
    OBSERVED = "observed"


class ArrivalRule(StrEnum):
    """Where arrivals come from when an Alibaba file has none of its own."""

    SCHEDULED = "scheduled"
    """The time the pod was scheduled: its waiting is lost."""
    JOINED = "joined"
    """`creation_time` of the same name in the file given by ``--join``; pods without one are left out."""


class ReadOptions(msgspec.Struct, frozen=True):
    """How to read a trace; the defaults invent nothing.

    Attributes:
        on_bad: what to do with faulty rows.
        throughputs: Gavel's throughput JSON, which turns steps into durations.
        reference_type: its entry that `ref_duration_s` is stated for.
        machines: Philly's machine list; None looks beside the log.
        gpus_from: which count to believe where list and log differ.
        vc_gpus: Helios' table of GPUs by virtual cluster and day; None looks beside the log.
        arrivals: rule for Alibaba files without creation times.
        join: file with ``name`` and ``creation_time`` for `ArrivalRule.JOINED`.
    """

    on_bad: OnBad = OnBad.LIMIT
    throughputs: Path | None = None
    reference_type: str = "v100"
    machines: Path | None = None
    gpus_from: GpusFrom | None = None
    vc_gpus: Path | None = None
    arrivals: ArrivalRule | None = None
    join: Path | None = None


class Source(msgspec.Struct, frozen=True):
    """An input as a reader sees it.

    Attributes:
        lines: blank ones left out.
        tally: where the reader counts what it does not take.
    """

    path: Path
    content: bytes
    lines: Sequence[Line]
    options: ReadOptions
    tally: Tally

    @property
    def place(self) -> str:
        """The file, for errors."""
        return str(self.path)


class Found(msgspec.Struct, frozen=True):
    """What a reader made of its input.

    Attributes:
        rows: rows or entries looked at, the measure of the fault limit.
    """

    jobs: Sequence[TraceJob]
    rows: int
    notes: tuple[str, ...] = ()
    observed: tuple[ObservedRun, ...] = ()
    machine_gpus: dict[str, int] = {}
    name: str | None = None
    cluster_name: str | None = None
    origin: str | None = None
    earlier_left_out: dict[str, int] = {}


class TraceFormat(msgspec.Struct, frozen=True):
    """One format.

    Attributes:
        matches: whether the first lines look like it; formats are asked in the registry's order.
        read: raises InputError where the file as a whole is unusable; single rows are counted.
    """

    name: str
    summary: str
    matches: Callable[[Sequence[Line]], bool]
    read: Callable[[Source], Found]


class Reading(msgspec.Struct, frozen=True):
    """A file read: the trace, and what was found in it.

    Attributes:
        unit: what line numbers in `findings` count: lines, or entries of a JSON file.
    """

    trace: Trace
    format_name: str
    findings: tuple[Finding, ...]
    rows: int
    place: str
    unit: str = "line"

    def report(self) -> tuple[str, ...]:
        """One line a kind, with place, first lines and count."""
        return tuple(item.text(self.place, self.unit) for item in self.findings)


def reading_of(source: Source, form: TraceFormat, found: Found) -> Reading:
    """Put a reader's result together.

    Raises:
        InputError: no job is left.
    """
    findings = source.tally.findings()
    if not found.jobs:
        kinds = ", ".join(f"{item.kind} {item.count}" for item in findings) or "no row"
        raise InputError(source.place, f"no usable job ({kinds})", "at least one job")
    trace = Trace(
        name=found.name or source.path.name,
        jobs=in_order(found.jobs),
        cluster_name=found.cluster_name,
        source=found.origin or f"{form.name} {source.path.name}",
        left_out={**found.earlier_left_out, **left_out(findings)},
        notes=(*found.notes, *adjustments(findings)),
        observed=found.observed,
        machine_gpus=found.machine_gpus,
    )
    return Reading(
        trace=trace,
        format_name=form.name,
        findings=findings,
        rows=found.rows,
        place=source.place,
        unit=source.tally.unit,
    )
