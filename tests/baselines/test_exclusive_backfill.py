"""Gang-aware, exclusive, with plain back-fill: whole gangs only, nobody holds and waits (DESIGN §7)."""

from __future__ import annotations

import random

import msgspec
import pytest

from baselines.exclusive_backfill import PASSES_MAX, ExclusiveBackfill
from gandiva_core.messages.effects import CommitGang, ReleaseGang
from gandiva_core.messages.events import GangCommitted, JobFailed
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId
from tests.baselines.capacity.workload import crowd
from tests.sim.runs import play_stock
from tests.sim.worlds import planned, servers


def job(name: str, *widths: int) -> JobSpec:
    """A gang with a container of each width."""
    return JobSpec(JobId(name), tuple(Worker(width, 1024, 1) for width in widths))


def starts(events: object) -> list[str]:
    assert isinstance(events, list)
    return [
        f"{event.job_id}@{','.join(event.servers)}"
        for event in events
        if isinstance(event, GangCommitted)
    ]


def backfill(count: int) -> ExclusiveBackfill:
    return ExclusiveBackfill(Cluster("c", servers(count)))


def test_a_gang_waits_without_holding_anything_and_smaller_jobs_pass_it() -> None:
    model = backfill(2)
    assert starts(model.submit(1.0, [job("a", 3), job("wide", *(1,) * 8), job("b", 4)])) == [
        "a@s1",
        "b@s2",
    ]
    assert starts(model.finish(2.0, [JobId("a")])) == []
    assert starts(model.finish(3.0, [JobId("b")])) == [f"wide@{','.join(['s1'] * 4 + ['s2'] * 4)}"]


def test_a_gang_goes_to_the_tightest_server_that_holds_all_of_it() -> None:
    model = backfill(3)
    assert starts(model.submit(1.0, [job("a", 3)])) == ["a@s1"]
    assert starts(model.submit(2.0, [job("b", 1, 1)])) == ["b@s2,s2"]
    assert starts(model.submit(3.0, [job("c", 1)])) == ["c@s1"]
    assert starts(model.submit(4.0, [job("d", 1, 1, 1, 1, 1)])) == ["d@s3,s3,s3,s3,s2"]


def test_a_head_that_was_passed_too_often_blocks_until_it_fits() -> None:
    """No starvation: after so many passes the queue drains for it."""
    model = backfill(1)
    model.submit(0.0, [job("small-0", 1)])
    assert starts(model.submit(1.0, [job("wide", 4)])) == []
    for n in range(1, PASSES_MAX + 2):
        assert starts(model.submit(float(n), [job(f"small-{n}", 1)])) == [f"small-{n}@s1"]
        model.finish(float(n), [JobId(f"small-{n - 1}")])
    assert starts(model.submit(500.0, [job("late", 1)])) == []
    assert starts(model.finish(501.0, [JobId(f"small-{PASSES_MAX + 1}")])) == ["wide@s1"]
    assert starts(model.finish(502.0, [JobId("wide")])) == ["late@s1"]


def test_what_no_empty_cluster_holds_fails_at_once() -> None:
    events = backfill(1).submit(1.0, [job("a", 5), job("b", 1)])
    assert isinstance(events[0], JobFailed)
    assert "5 GPUs" in events[0].reason


def test_memory_and_partition_bind() -> None:
    first, second = servers(2)
    model = ExclusiveBackfill(Cluster("c", (first, msgspec.structs.replace(second, partition="x"))))
    greedy = JobSpec(JobId("a"), (Worker(1, 458_752, 1),))
    other = msgspec.structs.replace(job("c", 1), partition="x")
    assert starts(model.submit(1.0, [greedy, job("b", 1), other])) == ["a@s1", "c@s2"]


def test_a_broken_gang_waits_again_and_an_order_is_refused() -> None:
    model = backfill(1)
    model.submit(1.0, [job("a", 4), job("b", 4)])
    assert starts(model.apply(2.0, [ReleaseGang(0, JobId("a"), "x")])) == ["b@s1"]
    assert starts(model.finish(3.0, [JobId("b")])) == ["a@s1"]
    with pytest.raises(InputError, match="order to commit"):
        model.apply(4.0, [CommitGang(0, JobId("z"), (), ())])
    assert model.next_at_s() is None
    assert model.advance(5.0) == ()
    model.close()


@pytest.mark.parametrize("shape", ["server", "gpu"])
def test_a_crowded_hour_drains_without_a_partial_gang_and_not_later_than_hadoop(shape: str) -> None:
    jobs, cluster = crowd(shape)
    played = play_stock(jobs, cluster, "exclusive-backfill")
    assert len(played.finished) == len(jobs)
    assert played.held == []
    assert played.mean_jct_s < play_stock(jobs, cluster, "capacity").mean_jct_s


def test_devices_are_exclusive() -> None:
    """Sum of running GPUs never above the cluster's, over a random run."""
    draw = random.Random(3)
    jobs = [
        planned(
            f"j{n}",
            float(draw.randrange(10, 100)),
            gpus=draw.choice((1, 2, 5)),
            arrival_s=draw.random() * 200,
        )
        for n in range(60)
    ]
    played = play_stock(jobs, Cluster("c", servers(2)), "exclusive-backfill")
    gpus = {job.spec.job_id: job.spec.gpus for job in jobs}
    moments = sorted(
        [(at_s, 1, gpus[name]) for at_s, name, _ in played.starts]
        + [(at_s, 0, -gpus[name]) for name, at_s in played.finished.items()]
    )
    running = 0
    for _, _, change in moments:
        running += change
        assert 0 <= running <= 8
    assert len(played.finished) == 60
