"""The same jobs under stock code and under Gandiva: real training in real containers, one command."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from gandiva_core.cli.main import ExitCode, run
from gandiva_core.replay import live
from tests.live.shells import brought_up, require_hadoop

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="no torch: run `make env-jobs`"
    ),
]

HEAD = "job_id,arrival_s,g,total_steps,model,ref_duration_s\n"
JOBS = "long,0,1,300,,30\nshort-1,3,1,30,,3\nshort-2,4,1,30,,3\n"


def test_short_jobs_need_not_wait_for_a_long_one(tmp_path: Path) -> None:
    """One device: the CapacityScheduler runs one job after the other, Gandiva shares it by time."""
    require_hadoop()
    trace = tmp_path / "t.csv"
    trace.write_text(HEAD + JOBS)
    out = tmp_path / "out"
    options = ["--scale", "1", "--gpus", "1", "--quantum-ms", "3000", "--out", str(out)]
    code = run(["live-replay", str(trace), *options])
    assert code in {0, 1}, "1: this machine's processors were the bottleneck"
    found = json.loads((out / "summary.json").read_text())
    assert [arm["succeeded"] for arm in found["arms"].values()] == [3, 3]
    assert found["ratios"]["gandiva"]["mean_jct"] > 1.0
    for arm in found["arms"].values():
        told = arm["prediction"]
        assert told["live_mean_jct_s"] == arm["mean_jct_s"]
        # The summary has it beside its target of 10 %; a test has to hold on a busy machine too, where starts differ.
        assert told["error_ratio"] <= 0.5
    journal = found["arms"]["gandiva"]["journal"]
    assert found["arms"]["capacity"]["journal"] == ""
    segments = sorted(str(path) for path in Path(journal).glob("*.jsonl"))
    assert segments
    assert run(["recheck", *segments]) == 0


def test_arms_played_before_and_after_the_switch_on_a_cluster_that_is_there_are_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 5, item 9: submitted as a user by the cluster's own configuration; nothing is started or stopped."""
    trace = tmp_path / "t.csv"
    trace.write_text(HEAD + "a,0,1,20,,2\nb,0,1,20,,2\n")
    play = ["live-replay", str(trace), "--scale", "1", "--python", sys.executable]
    for scheduler, other in (("capacity", "gandiva"), ("gandiva", "capacity")):
        options = ("--nodes", "1", "--gpus", "1", "--scheduler", scheduler, "--agents")
        with brought_up(tmp_path / f"cluster-{scheduler}", *options) as cluster:
            here = ["--conf-dir", str(cluster.folder.conf), "--out", str(tmp_path / scheduler)]
            daemons = {each.pid for each in cluster.processes()}
            assert run([*play, *here, "--arm", other]) == ExitCode.BAD_INPUT
            assert "the ResourceManager runs" in capsys.readouterr().err.splitlines()[-1]
            assert run([*play, *here, "--arm", scheduler]) == 0
            assert {each.pid for each in cluster.processes()} >= daemons
    out = tmp_path / "joint"
    folders = [str(tmp_path / "gandiva"), str(tmp_path / "capacity")]
    assert run(["report", *folders, "--out", str(out)]) == 0
    joint = live.read(out)
    assert [arm.arm for arm in joint.arms] == ["capacity", "gandiva"]
    assert [[job.status for job in arm.jobs] for arm in joint.arms] == [["SUCCEEDED"] * 2] * 2
    assert joint.arms[0].scheduler_class.endswith(".CapacityScheduler")
    assert dict(joint.arms[1].settings) == {"quantum_s": 60.0, "height_max": 4.0}
    assert (joint.setting.nodes, joint.setting.gpus) == (1, 1)
