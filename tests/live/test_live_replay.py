"""The same jobs under stock code and under Gandiva: real training in real containers, one command."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from gandiva_core.cli.main import run
from tests.live.shells import require_hadoop

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="no torch: run `make env-jobs`"
    ),
]

JOBS = "long,0,1,300,,30\nshort-1,3,1,30,,3\nshort-2,4,1,30,,3\n"


def test_short_jobs_need_not_wait_for_a_long_one(tmp_path: Path) -> None:
    """One device: the CapacityScheduler runs one job after the other, Gandiva shares it by time."""
    require_hadoop()
    trace = tmp_path / "t.csv"
    trace.write_text(f"job_id,arrival_s,g,total_steps,model,ref_duration_s\n{JOBS}")
    out = tmp_path / "out"
    options = ["--scale", "1", "--gpus", "1", "--quantum-ms", "3000", "--out", str(out)]
    code = run(["live-replay", str(trace), *options])
    assert code in {0, 1}, "1: this machine's processors were the bottleneck"
    found = json.loads((out / "summary.json").read_text())
    assert [arm["succeeded"] for arm in found["arms"].values()] == [3, 3]
    assert found["ratios"]["gandiva"]["mean_jct"] > 1.0
    journal = found["arms"]["gandiva"]["journal"]
    assert found["arms"]["capacity"]["journal"] == ""
    segments = sorted(str(path) for path in Path(journal).glob("*.jsonl"))
    assert segments
    assert run(["recheck", *segments]) == 0
