"""Hadoop's own CapacityScheduler in a real ResourceManager, as the baselines of DESIGN §7."""

from __future__ import annotations

from pathlib import Path

import pytest

from gandiva_core.messages.events import (
    ContainersHeld,
    GangBroken,
    JobFailed,
    JobSubmitted,
    ServerJoined,
    ServerLost,
)
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import ServerId
from gandiva_core.runtime.ports import Arm, RunSetup
from tests.builders import job
from tests.yarn.runs import Opener, Played, planned, play, small_cluster
from yarn_plugin.replay.configuration import STOCK_CLASS
from yarn_plugin.replay.faults import ServerFault

pytestmark = pytest.mark.yarn


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (4,)])
def test_jobs_run_one_after_another_in_the_order_they_came(
    opener: Opener, tmp_path: Path, shape: tuple[int, ...]
) -> None:
    jobs = [planned(job(f"j{n}", workers=shape), 100.0, float(n)) for n in range(1, 6)]
    played = play(opener, "capacity", jobs, small_cluster(), tmp_path)
    assert played.opened_class == STOCK_CLASS
    assert played.ends == {"j1": 101.0, "j2": 102.0, "j3": 201.0, "j4": 202.0, "j5": 301.0}
    assert played.report.unfinished == ()


def test_two_runs_leave_the_same_bytes(opener: Opener, tmp_path: Path) -> None:
    jobs = [planned(job(f"j{n}", 1 + n % 5), 50.0 + n, n / 3) for n in range(1, 13)]
    digests = set()
    for _ in range(2):
        played = play(opener, "capacity", jobs, small_cluster(), tmp_path)
        assert played.report.journal is not None
        digests.add(played.report.journal.sha256)
    assert len(digests) == 1


def test_a_stock_queue_can_deadlock_on_parts_of_gangs(opener: Opener, tmp_path: Path) -> None:
    """The fault that gangs cure (FACTS §2, B01): under the fair order two jobs of 6 GPUs share 8 for ever."""
    jobs = [planned(job(f"j{n}", 6), 100.0) for n in (1, 2)]
    played = play(opener, "capacity-fair", jobs, small_cluster(), tmp_path)
    assert len(played.report.unfinished) == 2
    assert all(0 < left.held_gpus < 6 for left in played.report.unfinished)
    assert {left.state for left in played.report.unfinished} == {"holding"}
    assert any(isinstance(event, ContainersHeld) for event in played.events)


def test_an_unknown_queue_fails_its_job_only(opener: Opener, tmp_path: Path) -> None:
    jobs = [
        planned(job("lost", queue="root.nowhere"), 10.0),
        planned(job("fine"), 10.0),
    ]
    played = play(opener, "capacity", jobs, small_cluster(), tmp_path)
    [failed] = [event for event in played.events if isinstance(event, JobFailed)]
    assert failed.job_id == "lost"
    assert "root.nowhere" in failed.reason
    assert "\n" not in failed.reason
    assert played.ends == {"fine": 10.0}
    assert played.report.unfinished == ()


@pytest.mark.parametrize("arm", ["capacity", "gandiva"])
def test_an_ask_larger_than_any_server_fails_its_job_only(
    opener: Opener, tmp_path: Path, arm: str
) -> None:
    """The AM is told so, and ends its application; A01's refusal names the resource and the number."""
    jobs = [planned(job("huge", workers=(5,)), 10.0), planned(job("fine"), 10.0)]
    played = play(opener, arm, jobs, small_cluster(), tmp_path)
    [failed] = [event for event in played.events if isinstance(event, JobFailed)]
    assert failed.job_id == "huge"
    assert "yarn.io/gpu: 5" in failed.reason
    assert played.ends == {"fine": 10.0}


def test_a_lost_server_restarts_its_gangs(opener: Opener, tmp_path: Path) -> None:
    """G-13: from the last checkpoint, here the start; the other job goes on."""
    jobs = [planned(job("a", 4), 100.0), planned(job("b", 4), 100.0)]
    faults = (ServerFault(ServerId("s01"), 50.0, 150.0),)
    played = play(opener, "capacity", jobs, small_cluster(), tmp_path, faults=faults)
    kinds = [type(event) for event in played.events]
    assert kinds.count(ServerLost) == 1
    assert kinds.count(ServerJoined) == 3
    assert [e.job_id for e in played.events if isinstance(e, GangBroken)] == ["a"]
    assert played.ends == {"b": 100.0, "a": 200.0}


def test_preemption_gives_a_queue_its_half_back(opener: Opener, tmp_path: Path) -> None:
    """`capacity-preempt`: jobs go to two queues by turns; what is taken restarts from its last checkpoint."""
    jobs = [
        planned(job("first", workers=(4,)), 2000.0),
        planned(job("other", workers=(1,)), 10.0, 1.0),
        planned(job("third", workers=(4,)), 2000.0, 2.0),
        planned(job("claims", workers=(4,)), 100.0, 100.0),
    ]
    played = play(opener, "capacity-preempt", jobs, small_cluster(), tmp_path)
    queues = {e.job.job_id: e.job.queue for e in played.events if isinstance(e, JobSubmitted)}
    assert queues == {
        "first": "root.even",
        "other": "root.odd",
        "third": "root.even",
        "claims": "root.odd",
    }
    broken = [(e.at_s, e.job_id) for e in played.events if isinstance(e, GangBroken)]
    assert [job_id for _, job_id in broken] == ["third"]
    assert 115.0 <= broken[0][0] <= 125.0
    assert played.ends["claims"] < 250.0
    assert played.report.unfinished == ()
    assert _first_after(played, "third", broken[0][0]) >= played.ends["claims"]


def _first_after(played: Played, job_id: str, after_s: float) -> float:
    return next(at_s for at_s, job, _ in played.starts if job == job_id and at_s > after_s)


def test_back_fill_has_no_resource_manager(tmp_path: Path, opener: Opener) -> None:
    arm = Arm("exclusive-backfill", "exclusive-backfill", {}, is_stock=True)
    with pytest.raises(InputError, match="--engine sim"):
        opener(RunSetup(arm, small_cluster(), 1, 1, str(tmp_path)))
