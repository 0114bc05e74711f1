"""From a trace to asks: shapes, default portions, and what cannot be submitted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import Worker
from gandiva_core.model.units import ServerId
from gandiva_core.replay.planning import Plan, Shape, plan, portion_of, widths
from gandiva_core.replay.traces.models import profile_of
from gandiva_core.replay.traces.records import Trace, TraceJob


def servers(*gpus: int, memory_mib: int = 6400, vcores: int = 64) -> Cluster:
    return Cluster(
        "c",
        tuple(
            Server(ServerId(f"s{index}"), count, memory_mib, vcores)
            for index, count in enumerate(gpus)
        ),
    )


def planned(
    *jobs: TraceJob, cluster: Cluster, shape: Shape = Shape.SERVER, height_max: int = 4
) -> Plan:
    return plan(Trace("t", jobs), cluster, shape, height_max, profile_of)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [(1, (1,)), (3, (3,)), (4, (4,)), (5, (4, 1)), (6, (4, 2)), (8, (4, 4)), (16, (4,) * 4)],
)
def test_shape_server_fills_servers(gpus: int, expected: tuple[int, ...]) -> None:
    assert widths(gpus, Shape.SERVER, 4) == expected
    assert widths(gpus, Shape.GPU, 4) == (1,) * gpus


@given(st.integers(1, 300), st.integers(1, 16), st.sampled_from(list(Shape)))
def test_no_gpu_is_lost_in_any_shape(gpus: int, server_gpus: int, shape: Shape) -> None:
    cut = widths(gpus, shape, server_gpus)
    assert sum(cut) == gpus
    assert max(cut) <= server_gpus
    assert min(cut) >= 1


def test_the_default_portion_lets_every_level_of_height_fit() -> None:
    """DESIGN, issue item 5: memory and vcores of the server ÷ (GPUs × maximum height)."""
    portion = portion_of(servers(4, 4), 4)
    assert (portion.memory_mib, portion.vcores) == (400, 4)
    (job,) = planned(TraceJob("j", 0.0, 6, 10), cluster=servers(4, 4)).jobs
    assert job.spec.workers == (Worker(4, 1600, 16), Worker(2, 800, 8))


def test_the_smallest_server_sets_the_portion_and_the_usual_one_the_width() -> None:
    cluster = Cluster(
        "c",
        (
            Server(ServerId("a"), 8, 6400, 64),
            Server(ServerId("b"), 4, 6400, 64),
            Server(ServerId("c"), 4, 6400, 64),
            Server(ServerId("d"), 0, 1, 1),
        ),
    )
    (job,) = planned(TraceJob("j", 0.0, 8, 10), cluster=cluster).jobs
    assert [worker.gpus for worker in job.spec.workers] == [4, 4]
    assert job.spec.workers[0].memory_mib == 4 * 200


def test_a_trace_s_own_asks_win() -> None:
    mine = TraceJob(
        "j",
        0.0,
        2,
        10,
        queue="root.a",
        user="eve",
        memory_mib=77,
        vcores=3,
        weight=2.0,
        priority_class=1,
    )
    (job,) = planned(mine, cluster=servers(4)).jobs
    assert job.spec.workers == (Worker(2, 154, 6),)
    assert (job.spec.queue, job.spec.user, job.spec.weight) == ("root.a", "eve", 2.0)
    assert job.spec.priority_class == 1


def test_jobs_that_an_empty_cluster_cannot_hold_are_counted_and_named() -> None:
    jobs = [
        TraceJob("fits", 0.0, 8, 10),
        TraceJob("wide", 0.0, 9, 10),
        TraceJob("wider", 1.0, 100, 10),
        TraceJob("fat", 2.0, 1, 10, memory_mib=10_000),
    ]
    plan = planned(*jobs, cluster=servers(4, 4))
    assert [job.spec.job_id for job in plan.jobs] == ["fits"]
    assert dict(plan.left_out) == {
        "more GPUs than the cluster": 2,
        "a container asks for more memory or vcores than any server has": 1,
    }
    assert plan.notes[0] == "2 jobs not submitted: more GPUs than the cluster (wide, wider)"


def test_fragments_count_as_too_large() -> None:
    """Three servers of two GPUs hold no gang of two times three."""
    cluster = servers(3, 3, 3, 2)
    job = TraceJob("j", 0.0, 10, 10)
    assert len(planned(job, cluster=cluster).jobs) == 1
    full = TraceJob("k", 0.0, 11, 10)
    assert len(planned(full, cluster=cluster).jobs) == 1
    with pytest.raises(InputError, match="none of 1 jobs"):
        planned(TraceJob("l", 0.0, 12, 10), cluster=cluster)


def test_nothing_to_run_is_an_error() -> None:
    with pytest.raises(InputError, match="none of 1 jobs that fits cluster c"):
        planned(TraceJob("wide", 0.0, 9, 10), cluster=servers(4, 4))
    with pytest.raises(InputError, match="no server with a GPU"):
        planned(TraceJob("j", 0.0, 1, 10), cluster=servers(0))
