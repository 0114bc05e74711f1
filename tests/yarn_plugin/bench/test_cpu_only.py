"""Benchmark `cpu-only`: pairs of fresh JVMs, stock against stock among them."""

from __future__ import annotations

import pytest

from tests.conftest import in_ci, missing_for_yarn
from yarn_plugin.bench import cpu_only


@pytest.mark.yarn
def test_quick_run_has_a_row_for_the_arm_and_one_for_the_noise() -> None:
    missing = missing_for_yarn()
    if missing is not None:
        (pytest.fail if in_ci() else pytest.skip)(missing)
    said: list[str] = []
    full, stock = cpu_only.run(is_quick=True, say=said.append)
    assert [full["arm"], stock["arm"]] == ["full", "stock"]
    assert list(full) == list(stock)
    assert said == ["cpu-only: full, pair 0", "cpu-only: stock, pair 0"]
    for row in (full, stock):
        assert 0 < float(row["ratio_min"]) <= float(row["ratio"]) <= float(row["ratio_max"])
