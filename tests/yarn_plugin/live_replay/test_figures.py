"""What came of the arms (C-4, C-5), and when a run says nothing (C-8)."""

from __future__ import annotations

from typing import Any, cast

from yarn_plugin.live_replay.figures import ArmRun, JobRun, summary


def arm(name: str, *jcts_s: float, headroom: float = 0.5, status: str = "SUCCEEDED") -> ArmRun:
    jobs = tuple(
        JobRun(str(n), 2.0 * n, 2.0 * n + jct_s, status, first_s=2.0 * n + 1.0)
        for n, jct_s in enumerate(jcts_s)
    )
    return ArmRun(name, jobs, headroom)


def test_ratios_are_baseline_by_arm_and_both_absolutes_stand_beside_them() -> None:
    found = cast("dict[str, Any]", summary([arm("capacity", 10, 20), arm("gandiva", 5, 7)], {}))
    assert found["arms"]["capacity"]["mean_jct_s"] == 15.0
    assert found["arms"]["gandiva"]["mean_jct_s"] == 6.0
    assert found["ratios"]["gandiva"] == {"mean_jct": 2.5, "makespan": 22.0 / 9.0}
    assert found["arms"]["gandiva"]["mean_first_minibatch_s"] == 1.0
    assert found["is_valid"]


def test_busy_processors_and_failed_jobs_make_a_run_invalid() -> None:
    assert not arm("gandiva", 1.0, headroom=0.19).is_valid
    assert not arm("gandiva", 1.0, status="FAILED").is_valid
    assert summary([arm("gandiva", 1.0, headroom=0.1)], {})["is_valid"] is False


def test_one_arm_alone_has_no_ratio() -> None:
    assert "ratios" not in summary([arm("gandiva", 1.0)], {})
