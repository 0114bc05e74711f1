"""What is wrong with an input, counted by kind: nothing is dropped silently, nothing is reported a thousand times.

A *fault* is dirt: a row that its own format forbids. An *exclusion* is a row that is well formed and is no job to
replay by a stated rule of the format (a CPU-only job). Both are counted and shown; only faults count towards the
limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from gandiva_core.model.errors import InputError

FAULT_SHARE_MAX = 0.01
"""Default limit: more faulty rows than this share, and the file is refused."""

LINES_SHOWN = 5


class OnBad(StrEnum):
    """What to do with a faulty row."""

    LIMIT = "limit"
    """Leave it out; refuse the file where more than 1 % of its rows are faulty. The default."""
    SKIP = "skip"
    """Leave it out, however many there are."""
    FAIL = "fail"
    """Refuse the file at the first."""


class Kind(StrEnum):
    """Kinds of finding; the value is what reports and `Trace.left_out` say."""

    NOT_UTF8 = "not_utf8"
    COLUMN_COUNT = "column_count"
    TRUNCATED = "truncated"
    NOT_A_NUMBER = "not_a_number"
    NOT_FINITE = "not_finite"
    TOO_LARGE = "too_large"
    NEGATIVE = "negative"
    ZERO_DURATION = "zero_duration"
    ZERO_GPU = "zero_gpu"
    MISSING_TIME = "missing_time"
    MISSING_END = "missing_end"
    MISSING_VALUE = "missing_value"
    BAD_TEXT = "bad_text"
    DUPLICATE = "duplicate"
    CLOCK_BACKWARDS = "clock_backwards"
    MACHINE_GPU_MISMATCH = "machine_gpu_mismatch"
    NO_THROUGHPUT = "no_throughput"
    NEVER_RAN = "never_ran"
    CENSORED = "censored"
    CPU_ONLY = "cpu_only"
    LARGER_THAN_VC = "larger_than_vc"
    VC_WITHOUT_GPUS = "vc_without_gpus"
    NO_END_STATE = "no_end_state"
    NO_ARRIVAL = "no_arrival"
    DURATION_DIFFERS = "duration_differs"
    DURATION_RECOMPUTED = "duration_recomputed"
    WAIT_CLAMPED = "wait_clamped"
    GPU_SHARED = "gpu_shared"
    GPUS_VARY = "gpus_vary"


class Treatment(StrEnum):
    """What became of the rows of a finding."""

    FAULT = "left out"
    EXCLUDED = "left out by rule"
    KEPT_FAULT = "kept, in order of arrival"
    ADJUSTED = "kept, adjusted"
    NOTED = "kept as it is"


TREATMENTS = {
    Kind.CLOCK_BACKWARDS: Treatment.KEPT_FAULT,
    Kind.NEVER_RAN: Treatment.EXCLUDED,
    Kind.CENSORED: Treatment.EXCLUDED,
    Kind.CPU_ONLY: Treatment.EXCLUDED,
    Kind.LARGER_THAN_VC: Treatment.EXCLUDED,
    Kind.VC_WITHOUT_GPUS: Treatment.EXCLUDED,
    Kind.NO_END_STATE: Treatment.EXCLUDED,
    Kind.NO_ARRIVAL: Treatment.EXCLUDED,
    Kind.DURATION_DIFFERS: Treatment.NOTED,
    Kind.DURATION_RECOMPUTED: Treatment.ADJUSTED,
    Kind.WAIT_CLAMPED: Treatment.ADJUSTED,
    Kind.GPU_SHARED: Treatment.ADJUSTED,
    Kind.GPUS_VARY: Treatment.ADJUSTED,
}
"""Kinds that are not plain faults."""


def treatment(kind: Kind) -> Treatment:
    """What becomes of a row of `kind`."""
    return TREATMENTS.get(kind, Treatment.FAULT)


class RowFaultError(Exception):
    """Raised by a reader: this row is no job.

    Args:
        kind: what it is.
        found: what stood there, for people.
    """

    def __init__(self, kind: Kind, found: str) -> None:
        super().__init__(f"{kind}: {found}")
        self.kind = kind
        self.found = found


class Finding(msgspec.Struct, frozen=True):
    """All rows of one kind.

    Attributes:
        lines: the first few line numbers (of a JSON file: numbers of the entries), from 1.
        found: what stood at the first.
    """

    kind: Kind
    treatment: Treatment
    count: int
    lines: tuple[int, ...]
    found: str

    def text(self, place: str, unit: str) -> str:
        """One line for people."""
        numbers = ", ".join(map(str, self.lines)) + (", …" if self.count > len(self.lines) else "")
        first = f"{place}:{self.lines[0]}"
        return (
            f"{first}: {self.kind}: {self.count} {self.treatment} ({unit} {numbers}): {self.found}"
        )


class Tally:
    """Counts findings of one file.

    Args:
        place: the file, for errors.
        on_bad: under `OnBad.FAIL` the first fault raises.
        unit: what the numbers count: ``line`` or ``entry``.
    """

    def __init__(self, place: str, on_bad: OnBad = OnBad.LIMIT, unit: str = "line") -> None:
        self.place = place
        self.unit = unit
        self._on_bad = on_bad
        self._counts: dict[Kind, int] = {}
        self._lines: dict[Kind, list[int]] = {}
        self._found: dict[Kind, str] = {}

    def add(self, kind: Kind, line: int, found: str) -> None:
        """Count one row.

        Raises:
            InputError: a fault under `OnBad.FAIL`.
        """
        is_fault = treatment(kind) in (Treatment.FAULT, Treatment.KEPT_FAULT)
        if is_fault and self._on_bad is OnBad.FAIL:
            raise InputError(
                f"{self.place}:{line}", f"{kind}: {found}", "a clean file (--on-bad fail)"
            )
        self._counts[kind] = self._counts.get(kind, 0) + 1
        lines = self._lines.setdefault(kind, [])
        if len(lines) < LINES_SHOWN:
            lines.append(line)
        self._found.setdefault(kind, found)

    def findings(self) -> tuple[Finding, ...]:
        """One a kind, in the order of `Kind`."""
        return tuple(
            Finding(
                kind,
                treatment(kind),
                self._counts[kind],
                tuple(self._lines[kind]),
                self._found[kind],
            )
            for kind in Kind
            if kind in self._counts
        )

    def refuse_above_limit(self, rows: int) -> None:
        """Refuse the file where too many of its `rows` are faulty.

        Raises:
            InputError: under `OnBad.LIMIT`, above `FAULT_SHARE_MAX`; counts every kind.
        """
        found = [item for item in self.findings() if is_fault(item)]
        faults = sum(item.count for item in found)
        if self._on_bad is not OnBad.LIMIT or faults <= rows * FAULT_SHARE_MAX:
            return
        kinds = "; ".join(
            f"{item.kind} {item.count} (first in {self.unit} {item.lines[0]})" for item in found
        )
        raise InputError(
            f"{self.place}:{min(item.lines[0] for item in found)}",
            f"{faults} of {rows} rows faulty: {kinds}",
            f"at most {FAULT_SHARE_MAX:.0%} faulty, or --on-bad skip",
        )


def is_fault(finding: Finding) -> bool:
    """Whether a finding counts towards the limit."""
    return finding.treatment in (Treatment.FAULT, Treatment.KEPT_FAULT)


def left_out(findings: Sequence[Finding]) -> dict[str, int]:
    """Rows that are not among the jobs, by kind."""
    gone = (Treatment.FAULT, Treatment.EXCLUDED)
    return {item.kind.value: item.count for item in findings if item.treatment in gone}


def adjustments(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Sentences on rows that were kept although something was the matter."""
    kept = (Treatment.KEPT_FAULT, Treatment.ADJUSTED, Treatment.NOTED)
    return tuple(
        f"{item.kind}: {item.count} {item.treatment}" for item in findings if item.treatment in kept
    )
