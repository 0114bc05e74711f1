"""The replay benchmark measures what it says, on twenty jobs."""

from __future__ import annotations

from gandiva_core.cli.benchmarks import replay


def test_a_quick_run_gives_a_row_an_arm() -> None:
    told: list[str] = []
    rows = replay.run(is_quick=True, say=told.append)
    assert [(row["engine"], row["arm"], row["jobs"]) for row in rows] == [
        ("sim", "capacity", 20),
        ("sim", "gandiva", 20),
    ]
    assert told == ["replay: gandiva-3h, sim, capacity", "replay: gandiva-3h, sim, gandiva"]
    for row in rows:
        assert float(row["wall_s"]) > 0
        assert float(row["jobs_per_s"]) > 0
        assert float(row["virtual_hours"]) > 0
        assert int(row["events"]) >= 40
