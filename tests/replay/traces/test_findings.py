"""Findings by kind: counted, shown once, limited at one per cent."""

from __future__ import annotations

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import (
    LINES_SHOWN,
    Kind,
    OnBad,
    Tally,
    Treatment,
    adjustments,
    is_fault,
    left_out,
)


def test_one_line_a_kind_with_place_first_lines_and_count() -> None:
    tally = Tally("t.csv", OnBad.SKIP)
    for line in range(2, 12):
        tally.add(Kind.NEGATIVE, line, "duration -1")
    tally.add(Kind.ZERO_GPU, 40, "g 0")
    lines = [item.text("t.csv", "line") for item in tally.findings()]
    assert lines == [
        "t.csv:2: negative: 10 left out (line 2, 3, 4, 5, 6, …): duration -1",
        "t.csv:40: zero_gpu: 1 left out (line 40): g 0",
    ]
    assert len(tally.findings()[0].lines) == LINES_SHOWN


@pytest.mark.parametrize(("rows", "refused"), [(100, False), (99, True)])
def test_default_limit_is_one_per_cent(rows: int, refused: bool) -> None:
    tally = Tally("t.csv")
    tally.add(Kind.NEGATIVE, 7, "duration -1")
    if not refused:
        tally.refuse_above_limit(rows)
        return
    with pytest.raises(InputError, match=r"t\.csv:7: found 1 of 99 rows faulty: negative 1"):
        tally.refuse_above_limit(rows)


def test_explicit_skip_has_no_limit() -> None:
    tally = Tally("t.csv", OnBad.SKIP)
    tally.add(Kind.NEGATIVE, 7, "duration -1")
    tally.refuse_above_limit(1)
    assert left_out(tally.findings()) == {"negative": 1}


def test_fail_stops_at_the_first_fault_and_not_at_an_exclusion() -> None:
    tally = Tally("t.csv", OnBad.FAIL)
    tally.add(Kind.CPU_ONLY, 2, "no GPU")
    with pytest.raises(InputError, match=r"t\.csv:3: found zero_gpu: g 0"):
        tally.add(Kind.ZERO_GPU, 3, "g 0")


def test_exclusions_do_not_count_towards_the_limit() -> None:
    tally = Tally("t.csv")
    for line in range(50):
        tally.add(Kind.CPU_ONLY, line, "no GPU")
    tally.refuse_above_limit(50)
    assert left_out(tally.findings()) == {"cpu_only": 50}


def test_kept_rows_are_told_and_not_left_out() -> None:
    tally = Tally("t.csv", OnBad.SKIP)
    tally.add(Kind.CLOCK_BACKWARDS, 3, "arrival 1 s after one at 5 s")
    tally.add(Kind.WAIT_CLAMPED, 4, "wait 0")
    assert left_out(tally.findings()) == {}
    assert adjustments(tally.findings()) == (
        "clock_backwards: 1 kept, in order of arrival",
        "wait_clamped: 1 kept, adjusted",
    )
    assert [is_fault(item) for item in tally.findings()] == [True, False]
    assert tally.findings()[1].treatment is Treatment.ADJUSTED
