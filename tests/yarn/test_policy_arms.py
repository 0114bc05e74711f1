"""A policy over GandivaScheduler in a real ResourceManager: through plug-in, bridge and translator."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gandiva_core.messages.events import (
    ContainersHeld,
    GangCommitted,
    GangRefused,
    JobFailed,
    JobFinished,
    JobSubmitted,
    QueuesConfigured,
    ResidentsSwitched,
    ServerLost,
)
from gandiva_core.model.cluster import Cluster, QueueLimit
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import QueueName, ServerId
from tests.builders import job
from tests.yarn.runs import Opener, planned, play, small_cluster
from yarn_plugin.replay.configuration import GANDIVA_CLASS
from yarn_plugin.replay.faults import ServerFault

pytestmark = pytest.mark.yarn


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (4,)])
def test_five_jobs_share_two_servers(
    opener: Opener, tmp_path: Path, shape: tuple[int, ...]
) -> None:
    """Both shapes: three jobs of a whole server share one, two the other; nobody waits for a start (G-21, G-31)."""
    jobs = [planned(job(f"j{n}", workers=shape), 300.0, float(n)) for n in range(1, 6)]
    played = play(opener, "gandiva", jobs, small_cluster(), tmp_path)
    assert played.opened_class == GANDIVA_CLASS
    assert [(at_s, name) for at_s, name, _ in played.starts] == [
        (float(n), f"j{n}") for n in range(1, 6)
    ]
    assert len(played.ends) == 5
    assert 899.0 < played.makespan_s < 915.0
    assert not [event for event in played.events if isinstance(event, GangRefused)]


def test_switched_off_slicing_runs_one_after_another(opener: Opener, tmp_path: Path) -> None:
    jobs = [planned(job(f"j{n}", workers=(4,)), 100.0, float(n)) for n in range(1, 4)]
    played = play(opener, "gandiva:-slicing", jobs, small_cluster(), tmp_path)
    assert played.ends == {"j1": 101.0, "j2": 102.0, "j3": 201.0}


def test_b01_gangs_are_whole_or_absent(opener: Opener, tmp_path: Path) -> None:
    """B01: two jobs of 6 one-GPU containers, 100 s each, on 8 GPUs: exclusive 200 s, sliced 200 s and the switches."""
    jobs = [planned(job(f"j{n}", 6), 100.0) for n in (1, 2)]
    cluster = small_cluster(servers=1, gpus=8)
    exclusive = play(opener, "fifo", jobs, cluster, tmp_path)
    sliced = play(opener, "gandiva", jobs, cluster, tmp_path)
    assert exclusive.makespan_s == 200.0
    assert sliced.makespan_s <= 200.0 + 10.0
    for played in (exclusive, sliced):
        assert len(played.ends) == 2
        assert not [event for event in played.events if isinstance(event, ContainersHeld)]
        assert {len(e.containers) for e in played.events if isinstance(e, GangCommitted)} == {6}


def test_two_runs_leave_the_same_bytes(opener: Opener, tmp_path: Path) -> None:
    jobs = [planned(job(f"j{n}", 1 + n % 5), 150.0 + n, n / 3) for n in range(1, 13)]
    digests = set()
    for _ in range(2):
        played = play(opener, "gandiva", jobs, small_cluster(), tmp_path)
        assert played.report.journal is not None
        digests.add(played.report.journal.sha256)
    assert len(digests) == 1


def test_an_unknown_queue_fails_its_job_only(opener: Opener, tmp_path: Path) -> None:
    jobs = [planned(job("lost", queue="root.nowhere"), 10.0), planned(job("fine"), 10.0)]
    played = play(opener, "gandiva", jobs, small_cluster(), tmp_path)
    [failed] = [event for event in played.events if isinstance(event, JobFailed)]
    assert failed.job_id == "lost"
    assert "root.nowhere" in failed.reason
    assert played.ends == {"fine": 10.0}


def test_a_lost_server_restarts_its_gang_on_the_other(opener: Opener, tmp_path: Path) -> None:
    """G-13, over the plug-in's own node event: the gang is ordered anew as soon as its AM asked again."""
    jobs = [planned(job("a", 4), 100.0), planned(job("b", 4), 100.0, 1.0)]
    faults = (ServerFault(ServerId("s01"), 50.0),)
    played = play(opener, "gandiva", jobs, small_cluster(), tmp_path, faults=faults)
    [lost] = [event for event in played.events if isinstance(event, ServerLost)]
    assert (lost.at_s, lost.server_id) == (50.0, "s01")
    commits = [e for e in played.events if isinstance(e, GangCommitted) and e.job_id == "a"]
    assert len(commits) == 2
    assert commits[1].at_s < 60.0
    assert len(played.ends) == 2
    assert 200.0 <= played.makespan_s < 215.0


def test_a_gang_over_two_servers_loses_one(opener: Opener, tmp_path: Path) -> None:
    """The containers on the server that stays are given back, or the gang could never be whole again."""
    jobs = [planned(job("wide", workers=(4, 2)), 100.0)]
    faults = (ServerFault(ServerId("s02"), 50.0, 60.0),)
    played = play(opener, "gandiva", jobs, small_cluster(), tmp_path, faults=faults)
    assert len(played.starts) == 2
    assert 150.0 <= played.ends["wide"] <= 175.0


def test_two_users_share_a_queue(opener: Opener, tmp_path: Path) -> None:
    """FACTS §2: with the asks in the scheduler's own tables both users count as active, and nothing idles."""
    jobs = [
        planned(with_user(job(f"{user}{n}", 1), user), 60.0)
        for user in ("ann", "bob")
        for n in range(4)
    ]
    played = play(opener, "gandiva", jobs, small_cluster(), tmp_path)
    users = {e.job.user for e in played.events if isinstance(e, JobSubmitted)}
    assert users == {"ann", "bob"}
    assert len({at_s for at_s, _, _ in played.starts}) == 1
    assert set(played.ends.values()) == {60.0}


def test_weight_and_model_travel_beside_yarn(opener: Opener, tmp_path: Path) -> None:
    spec = msgspec.structs.replace(job("heavy", 2, weight=3.0), model="VGG16", name="heavy")
    played = play(opener, "gandiva", [planned(spec, 10.0)], small_cluster(), tmp_path)
    [came] = [event.job for event in played.events if isinstance(event, JobSubmitted)]
    assert came == msgspec.structs.replace(spec, user="user")


def test_queues_of_the_cluster_file_bound_what_runs(opener: Opener, tmp_path: Path) -> None:
    """DESIGN §4: running devices of a queue never exceed M_q; its limits reach the core from the files."""
    queues = (
        QueueLimit(QueueName("root"), 8.0, 8.0),
        QueueLimit(QueueName("root.a"), 2.0, 4.0, "root"),
        QueueLimit(QueueName("root.b"), 6.0, 8.0, "root"),
    )
    cluster = Cluster("two queues", small_cluster().servers, queues)
    jobs = [planned(job(f"j{n}", 2, queue="root.a"), 100.0) for n in range(4)]
    played = play(opener, "gandiva", jobs, cluster, tmp_path)
    [told] = [event for event in played.events if isinstance(event, QueuesConfigured)]
    assert told.queues == queues
    assert len(played.ends) == 4
    assert played.makespan_s >= 200.0


def test_a_queue_of_half_the_gpus_never_runs_more_than_half(opener: Opener, tmp_path: Path) -> None:
    """DESIGN §4 at a height of four: its containers are many more, its running devices four of eight."""
    queues = (
        QueueLimit(QueueName("root"), 8.0, 8.0),
        QueueLimit(QueueName("root.half"), 4.0, 4.0, "root"),
        QueueLimit(QueueName("root.rest"), 4.0, 8.0, "root"),
    )
    cluster = Cluster("two queues", small_cluster().servers, queues)
    jobs = [planned(job(f"h{n}", 1 + n % 2, queue="root.half"), 400.0, float(n)) for n in range(9)]
    jobs += [planned(job(f"r{n}", 1, queue="root.rest"), 400.0, float(n)) for n in range(9)]
    played = play(opener, "gandiva", jobs, cluster, tmp_path)
    assert len(played.ends) == 18
    gpus = {str(each.spec.job_id): each.spec.gpus for each in jobs}
    resident: set[str] = set()
    running: set[str] = set()
    most = {"resident": 0, "running": 0}
    for event in played.events:
        if isinstance(event, GangCommitted):
            resident.add(event.job_id)
        elif isinstance(event, ResidentsSwitched):
            running.difference_update(job_id for job_id, _ in event.stopped)
            running.update(job_id for job_id, _ in event.started)
        elif isinstance(event, JobFinished):
            resident.discard(event.job_id)
            running.discard(event.job_id)
        for name, found in (("resident", resident), ("running", running)):
            half = sum(gpus[job_id] for job_id in found if job_id.startswith("h"))
            most[name] = max(most[name], half)
    assert most["running"] == 4
    assert most["resident"] > 8


def test_a_guaranteed_queue_gets_its_share_of_devices_that_another_has_taken(
    opener: Opener, tmp_path: Path
) -> None:
    """A06, small: b with next to no guarantee asks for 24 of 12 GPUs, then a, guaranteed 4, for 4; nobody is killed."""
    queues = (
        QueueLimit(QueueName("root"), 12.0, 12.0),
        QueueLimit(QueueName("root.a"), 4.0, 12.0, "root"),
        # Hadoop admits no application to a queue of no capacity at all.
        QueueLimit(QueueName("root.b"), 0.05, 12.0, "root"),
        QueueLimit(QueueName("root.idle"), 7.95, 12.0, "root"),
    )
    cluster = Cluster("A06", small_cluster(servers=3).servers, queues)
    # Of as many users: stock code gives one of them no more than the queue's guarantee.
    asked = [with_user(job(f"b{n}", queue="root.b"), f"u{n}") for n in range(24)]
    jobs = [planned(spec, 900.0) for spec in asked]
    jobs += [planned(job(f"a{n}", queue="root.a"), 1200.0, 60.0) for n in range(4)]
    played = play(opener, "gandiva", jobs, cluster, tmp_path)
    assert len(played.ends) == 28, "each ends well: nothing was killed for another"
    assert {type(event) for event in played.events}.isdisjoint({JobFailed, ContainersHeld})
    used_s = {"a": 0.0, "b": 0.0}
    since_s: dict[str, float] = {}
    switches = (event for event in played.events if isinstance(event, ResidentsSwitched))
    for event in switches:
        for stopped, at_s in event.stopped:
            used_s[stopped[0]] += within(since_s.pop(stopped), at_s)
        since_s.update(event.started)
    for last, at_s in since_s.items():
        used_s[last[0]] += within(at_s, played.ends[last])
    running = {queue: total_s / (WINDOW_S[1] - WINDOW_S[0]) for queue, total_s in used_s.items()}
    assert running == pytest.approx({"a": 4.0, "b": 8.0}, rel=0.02)


WINDOW_S = (900.0, 1500.0)
"""Steady state: ten minutes and more after a came, and both queues have more to do."""


def within(from_s: float, to_s: float) -> float:
    """So much of a span lies in the window."""
    return max(0.0, min(to_s, WINDOW_S[1]) - max(from_s, WINDOW_S[0]))


def with_user(spec: JobSpec, user: str) -> JobSpec:
    """The same job of another user."""
    return msgspec.structs.replace(spec, user=user)
