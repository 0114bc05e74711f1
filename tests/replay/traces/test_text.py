"""Bytes to rows and values."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import Kind, OnBad, RowFaultError, Tally
from gandiva_core.replay.traces.text import (
    clock_time,
    decimal,
    duration,
    gpu_count,
    header_of,
    lines_of,
    name_text,
    read_bytes,
    rows_of,
    seconds,
    split_line,
    step_count,
    whole,
)


def kind_of(raised: pytest.ExceptionInfo[RowFaultError]) -> Kind:
    return raised.value.kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", Kind.MISSING_VALUE),
        ("abc", Kind.NOT_A_NUMBER),
        ("nan", Kind.NOT_FINITE),
        ("inf", Kind.NOT_FINITE),
        ("1e999", Kind.NOT_FINITE),
        ("-5", Kind.NEGATIVE),
        ("1e30", Kind.TOO_LARGE),
        ("0", Kind.ZERO_DURATION),
    ],
)
def test_a_bad_duration_says_its_kind(text: str, kind: Kind) -> None:
    with pytest.raises(RowFaultError) as raised:
        duration(text, "duration_s")
    assert kind_of(raised) is kind


def test_units_are_applied_before_the_bounds() -> None:
    assert duration("1500", "duration", 1e-3) == 1.5
    assert seconds("1e12", "submit", 1e-3) == 1e9


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0", Kind.ZERO_GPU),
        ("-1", Kind.NEGATIVE),
        ("1.5", Kind.NOT_A_NUMBER),
        ("1e9", Kind.TOO_LARGE),
    ],
)
def test_a_bad_gpu_count_says_its_kind(text: str, kind: Kind) -> None:
    with pytest.raises(RowFaultError) as raised:
        gpu_count(text, "g")
    assert kind_of(raised) is kind


def test_whole_numbers_may_be_written_as_decimals() -> None:
    assert gpu_count("4.0", "g") == 4
    assert step_count("1e3", "steps") == 1000
    assert whole("0", "n", 10) == 0
    assert decimal(" 2.5", "n") == 2.5


def test_clock_times_are_seconds_apart() -> None:
    earlier = clock_time("2017-10-07 01:00:30", "start")
    assert clock_time("2017-10-07 02:00:30", "start") - earlier == 3600
    for missing in (None, "", "None"):
        with pytest.raises(RowFaultError) as raised:
            clock_time(missing, "start")
        assert kind_of(raised) is Kind.MISSING_TIME
    with pytest.raises(RowFaultError) as raised:
        clock_time("yesterday", "start")
    assert kind_of(raised) is Kind.NOT_A_NUMBER


def test_names_hold_no_control_characters() -> None:
    assert name_text("VGG 16", "model") == "VGG 16"
    with pytest.raises(RowFaultError):
        name_text("a\x1b[31m", "model")
    with pytest.raises(RowFaultError):
        name_text("x" * 257, "model")


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"", "an empty file"), (b" \n\r\n", "an empty file"), (b"\x7fELF\0\0", "binary data")],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=found):
        read_bytes(path)


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a directory"):
        read_bytes(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_bytes(tmp_path / "absent.csv")


def test_lines_keep_their_numbers_over_blank_ones_and_windows_ends() -> None:
    lines = lines_of(b"\xef\xbb\xbfa,b\r\n\r\n1,2\r\n\xff\xfe\n3,4")
    assert [(line.number, line.text) for line in lines] == [
        (1, "a,b"), (3, "1,2"), (4, None), (5, "3,4"),
    ]  # fmt: skip
    assert [line.is_cut for line in lines] == [False, False, False, True]


def test_rows_count_what_they_cannot_split() -> None:
    content = b'a,b\n1,2\n1,2,3\n\xff\n"x,2\n"q,r",s\n7'
    lines = lines_of(content)
    tally = Tally("t.csv", OnBad.SKIP)
    rows = list(rows_of(lines[1:], header_of(lines, "t.csv"), tally))
    assert [(row["a"], row["b"]) for row in rows] == [("1", "2"), ("q,r", "s")]
    assert {item.kind: item.lines for item in tally.findings()} == {
        Kind.NOT_UTF8: (4,),
        Kind.COLUMN_COUNT: (3,),
        Kind.BAD_TEXT: (5,),
        Kind.TRUNCATED: (7,),
    }


def test_a_header_names_every_column_once() -> None:
    with pytest.raises(InputError, match="every column once"):
        header_of(lines_of(b"a,a\n1,2\n"), "t.csv")
    with pytest.raises(InputError, match="not UTF-8"):
        header_of(lines_of(b"\xff,a\n1,2\n"), "t.csv")
    assert split_line("only", ",") == ["only"]
