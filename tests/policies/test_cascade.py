"""The placement cascade: goldens GC-21 (GE-1) and GC-22, tie-breaks, sets, limits, reasons (G-21 to G-25, G-46)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.config.settings import Settings
from gandiva_core.messages import events as e
from gandiva_core.model.cluster import QueueLimit, height
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId, QueueName, ServerId
from gandiva_core.model.view import ClusterView
from gandiva_core.policies.cascade import Step, choose
from gandiva_core.policies.gandiva import create
from tests.builders import job, server
from tests.policies.stage import Stage, arriving

FOUR = [server(f"S{i}") for i in range(4)]


def test_GC21_layout_of_the_papers_example() -> None:
    """GC-21, GE-1: every placement's step and server as in golden_mech.out; all heights 2, cluster height 2."""
    sizes = [1] * 8 + [2, 2, 4] + [1] * 4 + [2, 4]
    names = [f"J{i}" for i in (*range(1, 9), 13, 14, 16, 9, 10, 11, 12, 15, 17)]
    jobs = [job(name, gpus) for name, gpus in zip(names, sizes, strict=True)]
    stage = Stage(FOUR, arriving(*jobs)).run(1.0)
    pristine, same, over = "pristine", "same-affinity", "over-subscribe"
    assert stage.placements() == [
        ("J1", pristine, "S0"),
        ("J2", same, "S0"),
        ("J3", same, "S0"),
        ("J4", same, "S0"),
        ("J5", pristine, "S1"),
        ("J6", same, "S1"),
        ("J7", same, "S1"),
        ("J8", same, "S1"),
        ("J13", pristine, "S2"),
        ("J14", same, "S2"),
        ("J16", pristine, "S3"),
        ("J9", over, "S0"),
        ("J10", over, "S1"),
        ("J11", over, "S0"),
        ("J12", over, "S1"),
        ("J15", over, "S2"),
        ("J17", over, "S3"),
    ]
    assert stage.layout() == {
        "S0": sorted(["J1", "J2", "J3", "J4", "J9", "J11"]),
        "S1": sorted(["J5", "J6", "J7", "J8", "J10", "J12"]),
        "S2": ["J13", "J14", "J15"],
        "S3": ["J16", "J17"],
    }
    servers = stage.engine.view.servers.values()
    assert [height(s.allocated, s.server.gpus) for s in servers] == [2, 2, 2, 2]
    assert [s.affinity for s in servers] == [1, 1, 2, 4]


def test_GC22_queueing_is_the_last_resort() -> None:
    """GC-22: on one 4-GPU server a 4-, a 4- and a 2-GPU job: pristine, over-subscribe, queue."""
    jobs = [job("a", 4), job("b", 4), job("c", 2)]
    stage = Stage([server("S0")], arriving(*jobs)).run(1.0)
    assert stage.placements() == [("a", "pristine", "S0"), ("b", "over-subscribe", "S0")]
    assert list(stage.engine.view.queue) == ["c"]
    (name, reason), *_ = stage.reasons()
    assert (name, reason.code, reason.need) == ("c", "gpus", "2 GPUs")


def test_a_class_with_room_under_the_height_is_never_queued() -> None:
    """G-28: 1-GPU jobs on one 4-GPU server are placed until H_max, the seventeenth waits."""
    jobs = [job(f"j{i:02d}") for i in range(17)]
    stage = Stage([server("S0")], arriving(*jobs)).run(1.0)
    assert len(stage.placements()) == 16
    assert list(stage.engine.view.queue) == ["j16"]


def test_step_3_takes_the_tightest_server_and_leaves_its_affinity() -> None:
    """G-23 step 3: fewest free GPUs that suffice; G-5 (a): another size does not change the affinity."""
    servers = [server("A", 8), server("B", 4)]
    jobs = [job("seven", 7), job("two", 2), job("late", 1)]
    stage = Stage(servers, arriving(*jobs)).run(1.0)
    assert stage.placements() == [
        ("seven", "pristine", "A"),
        ("two", "pristine", "B"),
        ("late", "relaxed", "A"),
    ]
    assert (stage.affinity("A"), stage.affinity("B")) == (8, 2)


def test_equal_loads_go_to_the_server_with_fewer_jobs() -> None:
    """G-23: lowest load, then fewest jobs, then lowest id."""
    servers = [server("A", 4), server("B", 4)]
    jobs = [job("a1"), job("a2"), job("a3"), job("a4"), job("b1"), job("b2"), job("b3"), job("b4")]
    stage = Stage(servers, arriving(*jobs)).run(1.0)
    stage = Stage(servers, [*arriving(*jobs), *arriving(job("c1"), job("c2"), at_s=5.0)]).run(6.0)
    assert stage.placements()[-2:] == [("c1", "over-subscribe", "A"), ("c2", "over-subscribe", "B")]


class TestGangsLargerThanAServer:
    """G-5 (d), G-25: whole servers first; the set is the unit from then on."""

    def test_take_whole_servers_that_all_get_its_class(self) -> None:
        """Six GPUs on 4-GPU servers: two servers, both of class 8; a worker a GPU fills the first."""
        stage = Stage(FOUR, arriving(job("six", 6))).run(1.0)
        assert stage.placements() == [("six", "pristine", "S0 S1")]
        assert [s.allocated for s in stage.engine.view.servers.values()] == [4, 2, 0, 0]
        assert [stage.affinity(f"S{i}") for i in range(4)] == [8, 8, 0, 0]

    def test_over_subscribe_their_set_evenly(self) -> None:
        """The second six goes to the same set, the emptier server first, so that M is 6 and 6."""
        fill = [job("x", 4), job("y", 4)]
        stage = Stage(FOUR, arriving(job("six", 6), *fill, job("again", 6))).run(1.0)
        assert stage.placements()[-1] == ("again", "over-subscribe", "S1 S0")
        assert [s.allocated for s in stage.engine.view.servers.values()] == [6, 6, 4, 4]

    def test_never_split_a_worker(self) -> None:
        """One container a server (DESIGN §7): 4 + 2, each part on one server."""
        stage = Stage(FOUR, arriving(job("six", workers=(4, 2)))).run(1.0)
        shares = stage.engine.view.jobs[JobId("six")].shares
        assert shares == {"S0": 4, "S1": 2}

    def test_prefer_one_rack(self) -> None:
        """G-23: fewest servers, then best locality level, then ids."""
        racked = [server(f"S{i}", rack=f"/r{i % 2}") for i in range(4)]
        stage = Stage(racked, arriving(job("eight", 8))).run(1.0)
        assert stage.placements() == [("eight", "pristine", "S0 S2")]


def test_a_worker_needs_its_gpus_on_one_server() -> None:
    """Two free GPUs on each of two servers hold a gang of 1+1+1+1, but not a container of 4."""
    servers = [server("A"), server("B")]
    half = [job("a", 2), job("b", 2), job("c", 1), job("d", 1)]
    free = Stage(servers, arriving(*half, job("gpu", workers=(1, 1)))).run(1.0)
    assert free.placements()[-1][0] == "gpu"
    bound = Stage(servers, arriving(job("a", 3), job("b", 3), job("server", workers=(2,)))).run(1.0)
    assert list(bound.engine.view.queue) == ["server"]


class TestHostMemory:
    """G-46: a suspended job lies in host memory, and its container's ask is how much."""

    def test_bounds_over_subscription(self) -> None:
        """Room for eight residents by height, for six by memory: the seventh waits for memory, and says so."""
        small = server("S0", memory_mib=6 * 1024)
        jobs = [job(f"j{i}", memory_mib=1024) for i in range(7)]
        stage = Stage([small], arriving(*jobs)).run(1.0)
        assert len(stage.placements()) == 6
        name, reason = stage.reasons()[0]
        assert (name, reason.code) == ("j6", "host-memory")
        assert (reason.need, reason.have) == ("1024 MiB", "0 MiB on S0")

    def test_vcores_bound_it_too(self) -> None:
        """Vcores are never inflated either (DESIGN §4)."""
        jobs = [job(f"j{i}", vcores=2) for i in range(5)]
        stage = Stage([server("S0", vcores=8)], arriving(*jobs)).run(1.0)
        assert [reason.code for _, reason in stage.reasons()] == ["vcores"]


def test_a_server_that_cannot_suspend_is_not_over_subscribed() -> None:
    """DESIGN §4: only where an agent reports that it can suspend."""
    stage = Stage([server("S0", can_suspend=False)], arriving(job("a", 4), job("b", 4))).run(1.0)
    assert [name for name, _, _ in stage.placements()] == ["a"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (job("x", 9), "too-large"),
        (job("x", workers=(3, 3, 2)), "too-large"),
        (job("x", partition="gpu"), "partition"),
        (job("x", memory_mib=1 << 30), "too-large"),
    ],
)
def test_what_the_empty_cluster_cannot_hold_is_said_so(asked: JobSpec, code: str) -> None:
    """USERS B7: a reason with what it needs and what is there; 3+3+2 never fits two 4-GPU servers."""
    servers = [server("A"), server("B")]
    stage = Stage(servers, arriving(asked)).run(1.0)
    assert next(reason.code for _, reason in stage.reasons()) == code


def test_a_queues_residents_are_bounded_by_its_limit() -> None:
    """DESIGN §4: residents of q at most M_q × H_max."""
    limits = e.QueuesConfigured(0.0, (QueueLimit(QueueName("root.q"), 1.0, 1.0),))
    jobs = [job(f"j{i}", queue="root.q") for i in range(5)]
    stage = Stage([server("S0")], arriving(*jobs), facts=[limits]).run(1.0)
    assert len(stage.placements()) == 4
    assert [(name, reason.code) for name, reason in stage.reasons()] == [("j4", "queue-limit")]
    assert stage.running() == ["j0"], "M_q is one device"


def test_a_gang_larger_than_its_queues_limit_is_never_resident() -> None:
    """It could never run, whatever the height; the jobs behind it are not held up, and it is nobody's head."""
    limits = e.QueuesConfigured(0.0, (QueueLimit(QueueName("root.q"), 1.0, 1.5),))
    jobs = [job("two", 2, queue="root.q"), job("one", queue="root.q")]
    stage = Stage([server("S0")], arriving(*jobs, run_s=50.0), facts=[limits]).run()
    assert stage.world.unfinished == ("two",)
    assert [(name, reason.code) for name, reason in stage.reasons()] == [("two", "queue-limit")]
    assert stage.reasons()[0][1].have == "0 of 1.5 GPUs × 4 in root.q"


def test_without_slicing_nothing_is_over_subscribed() -> None:
    """H_max is 1 with the mechanism off: four jobs run, two wait, and nobody is ever suspended."""
    stage = Stage(
        [server("S0")],
        arriving(*[job(f"j{i}") for i in range(6)], run_s=100.0),
        policy=create(Settings(), {"slicing": False}),
    ).run(1.0)
    assert stage.running() == ["j0", "j1", "j2", "j3"]
    assert not [s for _, s in stage.run().switches() if s.suspend]


class OneByOne:
    """A view in which every server is a kind of its own: what a pass over all servers would see."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.kinds = tuple((server,) for server in view.servers.values())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


@given(
    sizes=st.lists(st.sampled_from((2, 4, 8)), min_size=1, max_size=8),
    filling=st.lists(st.integers(1, 10), max_size=25),
    gpus=st.integers(1, 12),
    memory_mib=st.sampled_from((1024, 100_000, 300_000)),
    closed=st.sets(st.integers(0, 7)),
    steps=st.sets(st.sampled_from(Step)),
)
def test_a_choice_by_kinds_is_the_choice_by_all_servers(
    sizes: list[int],
    filling: list[int],
    gpus: int,
    memory_mib: int,
    closed: set[int],
    steps: set[Step],
) -> None:
    """G-23's ties end in the lowest id also where servers stand together; so do the numbers in the reason."""
    servers = [server(f"S{i}", size) for i, size in enumerate(sizes)]
    jobs = [job(f"J{i}", size, memory_mib=28_672) for i, size in enumerate(filling)]
    view = Stage(servers, arriving(*jobs)).run(1.0).engine.view
    kept = frozenset(ServerId(f"S{i}") for i in closed)
    wanted = job("new", gpus, memory_mib=memory_mib)
    found, expected = (
        choose(seen, wanted, 4, steps=frozenset(steps), closed=kept)
        for seen in (view, OneByOne(view))
    )
    assert found == expected
