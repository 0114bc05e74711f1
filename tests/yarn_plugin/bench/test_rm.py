"""The benchmark of the ResourceManager measures what it says, on three nodes."""

from __future__ import annotations

import msgspec
import pytest

from gandiva_core.cli.benchmarks import results
from yarn_plugin.bench import rm
from yarn_plugin.bench.load import Ran, Spent


@pytest.mark.yarn
def test_a_quick_run_gives_a_row_a_mode_with_every_column() -> None:
    """Three JVMs, each with a ResourceManager: a quarter of a minute."""
    told: list[str] = []
    measured = results.measure("rm", rm.run, is_quick=True, say=told.append)
    assert told == ["rm: 3 nodes", "rm: 3 nodes, CPU-only round 0", "rm: 3 nodes, mixed round 0"]
    again = msgspec.json.decode(msgspec.json.encode(measured), type=results.Measurement)
    assert again == measured
    full, observe = measured.rows
    assert [full["mode"], observe["mode"]] == ["full", "observe"]
    assert list(full) == list(observe)
    for row in (full, observe):
        assert (row["nodes"], row["runs"]) == (3, 1)
        for name in ("cpu_only_ratio", "gpu_allocations_per_s", "gpu_gang_ratio"):
            assert float(row[name]) > 0
    assert 0 < float(full["gpu_p50_ms"]) <= float(full["gpu_p99_ms"])


def test_a_ratio_is_the_median_of_pairs_and_a_rate_counts_what_the_arm_spent() -> None:
    three = [_ran(10, 2.0), _ran(10, 1.0), _ran(10, 4.0)]
    ours, stock = rm.Runs(three, three, three, three), rm.Runs(*[[_ran(10, 1.0)] * 3] * 4)
    row = rm._row(7, "full", ours, stock)
    assert (row["nodes"], row["mode"], row["runs"]) == (7, "full", 3)
    assert (row["cpu_only_ratio"], row["cpu_only_ratio_min"]) == (0.5, 0.25)
    assert (row["cpu_only_ratio_max"], row["cpu_only_allocations_per_cpu_s"]) == (1.0, 5.0)
    assert (row["gpu_allocations_per_s"], row["stock_gpu_allocations_per_s"]) == (10 / 6, 5.0)
    assert row["gpu_core_cpu_ms"] == 200.0
    assert row["missed"] == (
        "cpu_only_ratio, cpu_only_mixed_ratio, gpu_ratio, gpu_gang_ratio, gpu_allocations_per_s"
    )
    observed = rm._row(7, "observe", ours, stock)
    assert (observed["gpu_allocations_per_s"], observed["missed"]) == (2.5, "")
    assert (row["gpu_p50_ms"], row["gpu_p99_ms"]) == (10.0, 20.0)


def test_a_run_never_asks_for_more_gpus_than_both_arms_have() -> None:
    plan = rm.Plan()
    assert plan.gpu_containers_on(100) == 360
    assert plan.gpu_containers_on(2000) == plan.gpu_containers


def _ran(allocations: int, seconds: float) -> Ran:
    spent = Spent(
        rm_cpu_s=seconds,
        jvm_cpu_s=seconds,
        core_cpu_s=seconds,
        rm_s=2 * seconds,
        elapsed_s=3 * seconds,
    )
    return Ran(allocations, spent, (0.01, 0.02))
