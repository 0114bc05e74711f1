"""Rows to tables, pages and percentiles."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gandiva_core.cli.benchmarks.results import (
    Measurement,
    Row,
    Say,
    document,
    measure,
    percentile,
    shown,
    table,
)


def two_rows(*, is_quick: bool, say: Say) -> Sequence[Row]:
    """What is
    measured."""
    say("working")
    return [{"servers": 25, "p99_ms": 0.12345}, {"servers": 2500, "p99_ms": 1234.5}]


@pytest.fixture
def measured() -> Measurement:
    told: list[str] = []
    result = measure("core", two_rows, is_quick=True, say=told.append)
    assert told == ["working"]
    return result


@pytest.mark.parametrize(
    ("values", "ratio", "expected"),
    [
        ([], 0.5, 0.0),
        ([7.0], 0.99, 7.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([float(value) for value in range(1, 101)], 0.99, 99.0),
        ([float(value) for value in range(1, 101)], 1.0, 100.0),
        ([1.0, 2.0], 0.0, 1.0),
    ],
)
def test_percentiles_are_values_that_were_measured(
    values: list[float], ratio: float, expected: float
) -> None:
    assert percentile(values, ratio) == expected


def test_a_measurement_says_where_it_comes_from(measured: Measurement) -> None:
    assert measured.explained == "What is measured."
    assert "CPUs" in measured.machine
    assert measured.versions["gandiva"]


def test_cells_are_short() -> None:
    assert [shown(cell) for cell in (2500, 1234.5, 0.12345, "gpu")] == [
        "2,500",
        "1,234",
        "0.123",
        "gpu",
    ]


def test_a_table_is_aligned(measured: Measurement) -> None:
    lines = table(measured).splitlines()
    assert lines[1:] == ["servers  p99_ms", "     25   0.123", "  2,500   1,234"]


def test_a_page_has_a_table_and_its_origin(measured: Measurement) -> None:
    page = document([measured])
    assert "## core\n\nWhat is measured.\n" in page
    assert "| 2,500 | 1,234 |" in page
    assert f"commit {measured.commit}" in page


def test_nothing_measured_is_said() -> None:
    empty = Measurement("core", "", True, "c", {}, "m", [])
    assert table(empty) == "core: nothing measured"
