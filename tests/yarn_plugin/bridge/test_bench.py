"""The bridge benchmark measures what it says, in a ResourceManager with five applications."""

from __future__ import annotations

import pytest

from yarn_plugin.bridge import bench


@pytest.mark.yarn
def test_a_quick_run_gives_a_row_a_batch_size() -> None:
    told: list[str] = []
    rows = bench.run(is_quick=True, say=told.append)
    assert [row["batch"] for row in rows] == [1, 10]
    assert told == ["bridge: warming up", "bridge: batches of 1", "bridge: batches of 10"]
    for row, least in zip(rows, (4, 40), strict=True):
        assert int(row["events"]) >= least
        assert float(row["bytes_per_event"]) > 50
        assert float(row["undecoded_events_per_s"]) > 0
        assert float(row["call_p50_ms"]) <= float(row["call_p99_ms"])


@pytest.mark.parametrize(
    ("values", "ratio", "expected"), [([3.0, 1.0, 2.0], 0.5, 2.0), ([1.0], 0.99, 1.0)]
)
def test_percentiles_are_values_that_were_measured(
    values: list[float], ratio: float, expected: float
) -> None:
    assert bench._percentile(values, ratio) == expected
