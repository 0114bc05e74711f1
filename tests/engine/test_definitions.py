"""Height, load, affinity and locality as the engine's view shows them: acceptance of G-1 to G-6."""

from __future__ import annotations

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.decisions import Place
from gandiva_core.messages.events import JobFinished, JobSubmitted, ServerLost
from gandiva_core.model.cluster import default_topology, height
from gandiva_core.model.job import JobSpec
from gandiva_core.model.placement import LocalityLevel, level_of, level_within
from gandiva_core.model.units import JobId, ServerId
from tests.builders import ScriptedPolicy, job, joined, on, server


class Bench:
    """An engine whose jobs are placed where the test says."""

    def __init__(self, *gpus: int) -> None:
        self.policy = ScriptedPolicy()
        self.engine = Engine(self.policy, Settings(), check="full")
        for event in joined(*(server(f"s{i}", n) for i, n in enumerate(gpus, start=1))):
            self.engine.handle(event)

    def place(self, spec: JobSpec, *servers: str) -> None:
        self.policy.wishes = [Place(spec.job_id, tuple(ServerId(name) for name in servers), "test")]
        outcome = self.engine.handle(JobSubmitted(0.0, spec))
        assert not outcome.refusals

    def end(self, name: str) -> None:
        self.engine.handle(JobFinished(0.0, JobId(name)))

    def affinity(self, name: str = "s1") -> int:
        return self.engine.view.servers[ServerId(name)].affinity

    def allocated(self, name: str = "s1") -> int:
        return self.engine.view.servers[ServerId(name)].allocated


@pytest.mark.parametrize(
    ("allocated", "expected"), [(0, 0), (1, 1), (4, 1), (5, 2), (6, 2), (8, 2), (9, 3)]
)
def test_height_of_four_gpus(allocated: int, expected: int) -> None:
    """G-2's acceptance list, N = 4."""
    assert height(allocated, 4) == expected


def test_residents_count_from_the_commit_order_on_and_spread_jobs_by_share() -> None:
    """G-1."""
    bench = Bench(4, 4)
    bench.place(job("wide", 3), "s1", "s1", "s2")
    bench.place(job("small", 1), "s2")
    assert (bench.allocated("s1"), bench.allocated("s2")) == (2, 2)
    assert dict(bench.engine.view.servers[ServerId("s2")].residents) == {"wide": 1, "small": 1}
    bench.end("wide")
    assert (bench.allocated("s1"), bench.allocated("s2")) == (0, 1)


def test_residents_iterate_by_sequence_whenever_they_came() -> None:
    bench = Bench(4)
    bench.engine.handle(JobSubmitted(0.0, job("early")))
    bench.place(job("late"), "s1")
    bench.policy.wishes = [Place(JobId("early"), (ServerId("s1"),), "test")]
    bench.engine.handle(JobSubmitted(0.0, job("other")))
    assert list(bench.engine.view.servers[ServerId("s1")].residents) == ["early", "late"]


class TestAffinity:
    """G-5 with its edge rules."""

    def test_first_job_sets_it_to_its_class(self) -> None:
        bench = Bench(4)
        assert bench.affinity() == 0
        bench.place(job("a", 3), "s1", "s1", "s1")
        assert bench.affinity() == 4

    def test_a_another_size_does_not_change_it(self) -> None:
        bench = Bench(4)
        bench.place(job("a", 2), "s1", "s1")
        bench.place(job("b", 1), "s1")
        assert bench.affinity() == 2

    def test_b_the_class_with_most_gpus_follows(self) -> None:
        bench = Bench(4)
        bench.place(job("a", 4), *["s1"] * 4)
        bench.place(job("b", 1), "s1")
        bench.place(job("c", 1), "s1")
        bench.place(job("d", 1), "s1")
        bench.place(job("e", 2), "s1", "s1")
        bench.end("a")
        assert bench.affinity() == 1

    def test_b_ties_go_to_the_smaller_class(self) -> None:
        bench = Bench(4)
        bench.place(job("a", 4), *["s1"] * 4)
        bench.place(job("b", 2), "s1", "s1")
        bench.place(job("c", 1), "s1")
        bench.place(job("d", 1), "s1")
        bench.end("a")
        assert bench.affinity() == 1

    def test_b_it_stays_while_one_of_the_class_is_left(self) -> None:
        bench = Bench(4)
        bench.place(job("a", 1), "s1")
        bench.place(job("b", 1), "s1")
        bench.place(job("c", 2), "s1", "s1")
        bench.end("a")
        assert bench.affinity() == 1

    def test_c_an_empty_server_has_none(self) -> None:
        bench = Bench(4)
        bench.place(job("a", 1), "s1")
        bench.end("a")
        assert bench.affinity() == 0

    def test_d_a_gang_larger_than_a_server_marks_its_whole_set(self) -> None:
        """The set is one unit: same class, one slicing domain."""
        bench = Bench(4, 4, 4)
        bench.place(job("wide", 8), *["s1"] * 4, *["s2"] * 4)
        assert [bench.affinity(name) for name in ("s1", "s2", "s3")] == [8, 8, 0]
        assert bench.engine.view.domain(ServerId("s2")) == ("s1", "s2")
        bench.place(job("small", 1), "s1")
        assert bench.affinity("s1") == 8
        bench.end("wide")
        assert [bench.affinity(name) for name in ("s1", "s2")] == [1, 0]
        assert bench.engine.view.domain(ServerId("s2")) == ("s2",)

    def test_lost_server_leaves_no_class_behind_on_the_others(self) -> None:
        bench = Bench(4, 4)
        bench.place(job("wide", 8), *["s1"] * 4, *["s2"] * 4)
        bench.engine.handle(ServerLost(1.0, ServerId("s1")))
        assert bench.affinity("s2") == 0


@pytest.mark.parametrize(
    ("gpus", "devices", "level"),
    [
        (4, (0, 1), LocalityLevel.SAME_SWITCH),
        (4, (1, 2), LocalityLevel.DIFF_SOCKET),
        (8, (0, 1), LocalityLevel.SAME_SWITCH),
        (8, (1, 2), LocalityLevel.SAME_SOCKET),
        (8, (0, 1, 2, 3), LocalityLevel.SAME_SOCKET),
        (8, (3, 4), LocalityLevel.DIFF_SOCKET),
        (8, (5,), LocalityLevel.SAME_SWITCH),
    ],
)
def test_level_inside_a_server(gpus: int, devices: tuple[int, ...], level: LocalityLevel) -> None:
    """G-6 over the default topologies of E-4."""
    assert level_within(default_topology(gpus), devices) is level


def test_level_across_servers_is_the_worst_pair() -> None:
    """G-6: rack against other rack."""
    servers = {
        s.server_id: s
        for s in (server("a", rack="/r1"), server("b", rack="/r1"), server("c", rack="/r2"))
    }
    assert level_of([on("a", 0, 1)], servers) is LocalityLevel.SAME_SWITCH
    assert level_of([on("a", 0), on("a", 3)], servers) is LocalityLevel.DIFF_SOCKET
    assert level_of([on("a", 0), on("b", 0)], servers) is LocalityLevel.SAME_RACK
    assert level_of([on("a", 0), on("b", 0), on("c", 0)], servers) is LocalityLevel.DIFF_RACK
