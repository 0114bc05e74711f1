"""What came of live arms (C-4, C-5), when a run says nothing (C-8), and which arms belong together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from gandiva_core.cli.main import ExitCode, run
from gandiva_core.model.errors import InputError
from gandiva_core.replay.live import ArmRun, JobRun, LiveRun, Setting, is_live, join, read, summary

SETTING = Setting(
    trace="t.csv",
    scale=2.0,
    step_s=0.1,
    jobs=2,
    plan_sha256="0" * 64,
    offered_load_ratio=1.5,
    nodes=1,
    gpus=2,
)


def arm(
    name: str, *jcts_s: float, headroom: float | None = 0.5, status: str = "SUCCEEDED"
) -> ArmRun:
    jobs = tuple(
        JobRun(str(n), 2.0 * n, 2.0 * n + jct_s, status, first_s=2.0 * n + 1.0)
        for n, jct_s in enumerate(jcts_s)
    )
    return ArmRun(name, jobs, headroom)


def found(*arms: ArmRun) -> dict[str, Any]:
    return cast("dict[str, Any]", summary(LiveRun(SETTING, arms)))


def kept(folder: Path, *arms: ArmRun, **changed: object) -> Path:
    """A folder as the command leaves it."""
    folder.mkdir()
    setting = msgspec.structs.replace(SETTING, **changed)
    (folder / "summary.json").write_text(json.dumps(summary(LiveRun(setting, arms))))
    return folder


def test_ratios_are_baseline_by_arm_and_both_absolutes_stand_beside_them() -> None:
    told = found(arm("capacity", 10, 20), arm("gandiva", 5, 7))
    assert told["arms"]["capacity"]["mean_jct_s"] == 15.0
    assert told["arms"]["gandiva"]["mean_jct_s"] == 6.0
    assert told["ratios"]["gandiva"] == {"mean_jct": 2.5, "makespan": 22.0 / 9.0}
    assert told["arms"]["gandiva"]["mean_first_minibatch_s"] == 1.0
    assert told["is_valid"]


def test_busy_processors_and_failed_jobs_make_a_run_invalid() -> None:
    assert not arm("gandiva", 1.0, headroom=0.19).is_valid
    assert not arm("gandiva", 1.0, status="FAILED").is_valid
    assert found(arm("gandiva", 1.0, headroom=0.1))["is_valid"] is False
    assert arm("gandiva", 1.0, headroom=None).is_valid, "processors elsewhere say nothing"


def test_one_arm_alone_has_no_ratio() -> None:
    assert "ratios" not in found(arm("gandiva", 1.0))
    assert "ratios" not in found(arm("capacity", 1.0))


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    run = LiveRun(SETTING, (arm("gandiva", 1.0, 2.0),), is_partial=True)
    (tmp_path / "summary.json").write_text(json.dumps(summary(run)))
    assert read(tmp_path) == run
    assert is_live(tmp_path)
    (tmp_path / "summary.json").write_text('{"arms": {}}')
    assert not is_live(tmp_path)


def test_arms_run_before_and_after_the_switch_are_joined_the_baseline_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = kept(tmp_path / "after", arm("gandiva", 5, 7))
    before = kept(tmp_path / "before", arm("capacity", 10, 20))
    out = tmp_path / "joint"
    assert run(["report", str(after), str(before), "--out", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"summary: {out / 'summary.json'}"
    joint = json.loads((out / "summary.json").read_text())
    assert list(joint["arms"]) == ["capacity", "gandiva"]
    assert joint["ratios"]["gandiva"]["mean_jct"] == 2.5


def test_a_joint_report_of_an_invalid_run_is_not_valid(tmp_path: Path) -> None:
    before = kept(tmp_path / "before", arm("capacity", 10, status="FAILED"))
    assert run(["report", str(before)]) == ExitCode.CHECK_FAILED


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"scale": 3.0}, "--scale 3.0"),
        ({"trace": "u.csv"}, "trace u.csv"),
        ({"jobs": 3}, "number of jobs 3"),
        ({"plan_sha256": "1" * 64}, "jobs 111"),
        ({"gpus": 4}, "GPUs 4"),
    ],
)
def test_arms_of_other_surroundings_are_refused_with_both_places(
    changed: dict[str, object],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """C-5: same trace, same scale, same jobs, same devices."""
    before = kept(tmp_path / "before", arm("capacity", 10, 20))
    after = kept(tmp_path / "after", arm("gandiva", 5, 7), **changed)
    out = ["--out", str(tmp_path / "joint")]
    assert run(["report", str(before), str(after), *out]) == ExitCode.BAD_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert str(before) in line
    assert str(after) in line
    assert not (tmp_path / "joint").exists()


def test_an_arm_is_joined_once() -> None:
    twice = [("a", LiveRun(SETTING, (arm("gandiva", 1.0),)))] * 2
    with pytest.raises(InputError, match="gandiva again"):
        join(twice)
