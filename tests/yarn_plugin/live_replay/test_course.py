"""What a job went through, from a ResourceManager's log and from what the training printed."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from gandiva_core.replay.live import JobRun
from yarn_plugin.live_replay.course import observed, trained

APP, WORKER = "application_17_0003", "container_e02_17_0003_01_000002"
LOG = f"""\
2026-12-01 04:49:53,181 INFO rmcontainer.RMContainerImpl: container_e02_17_0003_01_000001 Container \
Transitioned from NEW to ALLOCATED
2026-12-01 04:49:54,851 INFO resourcemanager.RMAuditLogger: USER=ann\tIP=127.0.0.1\tOPERATION=Register App \
Master\tTARGET=ApplicationMasterService\tRESULT=SUCCESS\tAPPID={APP}\tAPPATTEMPTID=x
2026-12-01 04:49:56,188 INFO rmcontainer.RMContainerImpl: {WORKER} Container Transitioned from NEW to ALLOCATED
2026-12-01 04:49:56,976 INFO rmcontainer.RMContainerImpl: {WORKER} Container Transitioned from ALLOCATED to ACQUIRED
a line of something else, Transitioned
2026-12-01 04:51:06,946 INFO rmcontainer.RMContainerImpl: {WORKER} Container Transitioned from RUNNING to COMPLETED
"""


def at(text: str) -> float:
    return datetime.fromisoformat(f"2026-12-01 {text}").astimezone().timestamp()


def test_both_logs_together_tell_the_whole_course(tmp_path: Path) -> None:
    """docs/LIVE.md: where each measured figure of a prediction comes from."""
    first_s = at("04:49:50")
    (tmp_path / "resourcemanager.log").write_text(LOG)
    out = tmp_path / "node-1-containers" / APP / WORKER / "stdout"
    out.parent.mkdir(parents=True)
    marks = "".join(f"{n} {first_s + 9 + n / 10:.3f} 4.1\n" for n in range(0, 31, 10))
    out.write_text(f"begin {first_s + 7.5:.3f}\nsomething a framework says\n{marks}")
    (run,) = observed([JobRun("a", 0.0, 78.0, "SUCCEEDED", APP)], tmp_path, first_s, {})
    assert run.registered_s == pytest.approx(4.851)
    assert run.allocated_s == pytest.approx(6.188)
    assert run.begun_s == pytest.approx(7.5, abs=0.001)
    assert run.first_s == pytest.approx(9.0, abs=0.001)
    assert run.last_s == pytest.approx(12.0, abs=0.001)
    assert run.released_s == pytest.approx(76.946)
    assert run.minibatch_s == pytest.approx(0.1, abs=0.001)


def test_what_is_not_told_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "resourcemanager.log").write_text("")
    before = JobRun("a", 0.0, 78.0, "FAILED", APP)
    assert observed([before], tmp_path, 0.0, {}) == (before,)


def test_a_stop_between_two_lines_does_not_make_mini_batches_long() -> None:
    found = trained(["begin 1.0", "0 10.0 1", "10 42.0 1", "20 43.0 1"])
    assert found.minibatch_s() == pytest.approx((3.2 + 0.1) / 2)
    assert found.minibatch_s([11.0]) == pytest.approx(0.1)
    assert found.minibatch_s([11.0, 42.5]) is None
