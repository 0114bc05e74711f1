"""The core benchmark measures what it says, on a cluster of five servers."""

from __future__ import annotations

import pytest

from gandiva_core.cli.benchmarks import core


def test_a_quick_run_gives_one_row_with_every_column() -> None:
    told: list[str] = []
    (row,) = core.run(is_quick=True, say=told.append)
    assert told == ["core: 5 servers"]
    assert (row["servers"], row["gpus"]) == (5, 20)
    figures = {name: value for name, value in row.items() if name.endswith(("_ms", "_per_s"))}
    assert len(figures) == 7
    for name in ("decisions_per_s", "placement_p50_ms", "placement_p99_ms"):
        value = figures[name]
        assert isinstance(value, float)
        assert value > 0
    assert row["placement_p50_ms"] <= row["placement_p99_ms"]  # type: ignore[operator]  # floats


@pytest.mark.parametrize(("gpus", "parts"), [(1, [1]), (4, [4]), (8, [4, 4])])
def test_gangs_have_one_container_a_server(gpus: int, parts: list[int]) -> None:
    workers = core._spec(0, gpus, core.QUICK).workers
    assert [worker.gpus for worker in workers] == parts
