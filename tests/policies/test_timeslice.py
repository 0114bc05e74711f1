"""Time-slicing: golden GC-25, fairness (G-36), weights, classes, gangs over servers, delays, limits (G-30 to G-36)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, pairwise

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import Delays
from gandiva_core.messages import events as e
from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.units import JobId, QueueName, ServerId
from tests.builders import job, server
from tests.policies.stage import NO_WAITING, Stage, arriving, jain

Q = 60.0
ONE = [server("S0", memory_mib=1 << 30, vcores=1 << 20)]


def residents(*gangs: int, weights: Sequence[float] = ()) -> list[JobSpec]:
    """Jobs `1`, `2`, … of these sizes."""
    return [
        job(str(at), gpus, weight=weights[at - 1] if weights else 1.0)
        for at, gpus in enumerate(gangs, start=1)
    ]


def shares(
    gangs: Sequence[int], *, quanta: int = 30, gpus: int = 4, weights: Sequence[float] = ()
) -> list[float]:
    """Seconds per weight that each of some residents of one server ran."""
    servers = [server("S0", gpus, memory_mib=1 << 30, vcores=1 << 20)]
    jobs = residents(*gangs, weights=weights)
    stage = Stage(servers, arriving(*jobs), settings=NO_WAITING).run(quanta * Q)
    assert len(stage.placements()) == len(jobs)
    return [stage.ran_s(each.job_id) / each.weight for each in jobs]


def test_GC25_six_equal_jobs_on_four_gpus() -> None:
    """GC-25: run sets {1,2,3,4}, {1,2,5,6}, {3,4,5,6}, period 3."""
    stage = Stage(ONE, arriving(*residents(1, 1, 1, 1, 1, 1)))
    period = [list("1234"), list("1256"), list("3456")]
    assert stage.run_sets([Q * k for k in range(12)]) == period * 4


class TestFairness:
    """G-36 over 30 quanta."""

    @pytest.mark.parametrize("count", range(5, 13))
    def test_equal_jobs_share_equally(self, count: int) -> None:
        """Five to twelve 1-GPU jobs on four slots: Jain at least 0.998, each within a quantum of its share."""
        ran_s = shares([1] * count)
        assert jain(ran_s) >= 0.998
        assert max(ran_s) - min(ran_s) <= Q
        assert sum(ran_s) == pytest.approx(30 * 4 * Q)

    @pytest.mark.parametrize("count", [5, 6, 7, 9, 11])
    def test_within_one_quantum_over_every_window(self, count: int) -> None:
        """Over ⌈M/N⌉·N quanta, wherever they begin, GPU time is within one quantum of the share."""
        window = -(-count // 4) * 4
        stage = Stage(ONE, arriving(*residents(*[1] * count)), settings=NO_WAITING)
        ran_s = []
        for quantum in range(3 * window + 1):
            stage.run(quantum * Q)
            ran_s.append([stage.ran_s(str(at)) for at in range(1, count + 1)])
        share_s = window * Q * 4 / count
        for start in range(2 * window):
            for before, after in zip(ran_s[start], ran_s[start + window], strict=True):
                assert abs(after - before - share_s) <= Q + 1e-6

    def test_one_two_and_three_gpus_on_four(self) -> None:
        """{1,2,3} on 4 GPUs gives 0.889: 3 and 2 never run together, and 1 fills both gaps."""
        assert jain(shares([1, 2, 3])) == pytest.approx(0.889, abs=0.001)

    @pytest.mark.parametrize("gpus", [4, 8])
    def test_mixed_powers_of_two(self, gpus: int) -> None:
        """Jain at least 0.99 for every mix of two to five gangs of 1, 2, 4 (and 8) GPUs."""
        sizes = [size for size in (1, 2, 4, 8) if size <= gpus]
        for count in range(2, 6 if gpus == 4 else 5):
            for gangs in combinations_with_replacement(sizes, count):
                if sum(gangs) > gpus:
                    assert jain(shares(gangs, gpus=gpus)) >= 0.99, gangs

    @pytest.mark.parametrize(
        ("gangs", "weights"),
        [
            ([1] * 6, [2, 2, 1, 1, 1, 1]),
            ([1] * 6, [2, 1, 1, 1, 1, 1]),
            ([4, 4], [2, 1]),
            ([4, 4, 4], [3, 2, 1]),
            ([2, 2, 2, 1], [2, 1, 1, 1]),
        ],
    )
    def test_unequal_weights(self, gangs: list[int], weights: list[float]) -> None:
        """Realised share over weight (G-31), where no weight asks for more than all the time."""
        assert jain(shares(gangs, quanta=60, weights=weights)) >= 0.99

    def test_a_weight_worth_more_than_all_the_time_gets_all_the_time(self) -> None:
        """s = min(1, λ·w): one job of weight 8 beside four of weight 1 on four GPUs always runs."""
        ran_s = shares([1] * 5, weights=[8, 1, 1, 1, 1], quanta=32)
        assert ran_s[0] * 8 == pytest.approx(32 * Q, abs=Q)
        assert max(ran_s[1:]) - min(ran_s[1:]) <= Q


class TestPriority:
    """G-34: strict classes, round robin inside one."""

    def test_a_higher_class_is_never_suspended_for_a_lower_one(self) -> None:
        """Four jobs of class 1 run for ever, one waits; a class-0 job gets nothing."""
        high = [job(f"high{i}", priority_class=1) for i in range(4)]
        stage = Stage(ONE, arriving(*high, job("low"))).run(20 * Q)
        assert [stage.ran_s(each.job_id) for each in high] == [20 * Q] * 4
        assert stage.ran_s("low") == 0.0

    def test_the_lower_class_shares_what_the_higher_leaves(self) -> None:
        """Two of class 1 always run; four of class 0 share the other two GPUs."""
        high = [job(f"high{i}", priority_class=1) for i in range(2)]
        low = [job(f"low{i}") for i in range(4)]
        stage = Stage(ONE, arriving(*high, *low)).run(24 * Q)
        assert [stage.ran_s(each.job_id) for each in high] == [24 * Q] * 2
        assert jain([stage.ran_s(each.job_id) for each in low]) >= 0.998

    def test_a_late_high_job_runs_from_the_next_boundary(self) -> None:
        """It comes 10 s into a quantum, and waits for the boundary at most."""
        works = [
            *arriving(*residents(1, 1, 1, 1, 1)),
            *arriving(job("high", priority_class=1), at_s=190.0),
        ]
        stage = Stage(ONE, works).run(20 * Q)
        assert stage.ran_s("high") == pytest.approx(20 * Q - 240.0)


class TestBoundaries:
    """When the next one comes (G-33)."""

    def test_is_a_quantum_after_the_latest_real_start(self) -> None:
        """Stopping takes 0.5 s and starting 0.25 s: boundaries are 60.75 s apart from the second on."""
        delays = Delays(lambda _: 0.5, lambda _: 0.25)
        stage = Stage(ONE, arriving(*residents(4, 4)), delays=delays).run(10 * Q)
        times = [at_s for at_s, switch in stage.switches() if switch.suspend]
        assert times[0] == pytest.approx(0.25 + Q)
        gaps = [late - early for early, late in pairwise(times)]
        assert gaps == [pytest.approx(60.75)] * len(gaps)

    def test_an_overrun_is_charged_to_the_job_that_overran(self) -> None:
        """Job 1 stops 20 s late each time; its successor gets its full quantum, and over time both run equally long."""
        delays = Delays(lambda job_id: 20.0 if job_id == "1" else 0.0)
        stage = Stage(ONE, arriving(*residents(4, 4)), delays=delays).run(400 * Q)
        assert jain([stage.ran_s("1"), stage.ran_s("2")]) >= 0.999
        starts = [at_s for at_s, switch in stage.switches() if switch.run]
        assert min(late - early for early, late in pairwise(starts)) >= Q

    def test_of_a_newly_sliced_server_is_at_once_if_its_jobs_ran_long_enough(self) -> None:
        """First boundary: the later of now and the latest real start + Q (G-33)."""
        works = [*arriving(job("a", 4)), *arriving(job("b", 4), at_s=90.0)]
        stage = Stage(ONE, works).run(100.0)
        assert [(at_s, s.suspend) for at_s, s in stage.switches() if s.suspend] == [(90.0, ("a",))]
        works = [*arriving(job("a", 4)), *arriving(job("b", 4), at_s=10.0)]
        stage = Stage(ONE, works).run(100.0)
        assert [at_s for at_s, s in stage.switches() if s.suspend] == [60.0]

    def test_there_is_none_without_over_subscription(self) -> None:
        """G-30: engaged only when height > 1; and it ends when the height is 1 again."""
        alone = Stage(ONE, arriving(*residents(1, 1, 2), run_s=500.0)).run()
        assert not [at_s for at_s, s in alone.switches() if s.suspend]
        assert not alone.engine.view.wakes
        works = [*arriving(job("a", 4), run_s=1000.0), *arriving(job("b", 4), run_s=100.0)]
        shared = Stage(ONE, works).run()
        gone_s = shared.world.finished_at_s[JobId("b")]
        assert not [at_s for at_s, s in shared.switches() if s.suspend and at_s > gone_s]
        assert not shared.engine.view.memory

    def test_a_job_that_never_stops_holds_its_devices_and_nobody_elses(self) -> None:
        """Late suspend: job 6 was promised its device and waits; the others rotate, one command each (G-11 iv)."""
        delays = Delays(lambda job_id: 1000.0 if job_id == "4" else 0.0, reports_each=True)
        stage = Stage(ONE, arriving(*residents(1, 1, 1, 1, 1, 1)), delays=delays).run(15 * Q)
        told = [at_s for at_s, switch in stage.switches() if "4" in switch.suspend]
        assert len(told) == 1
        assert stage.engine.view.jobs[JobId("4")].phase is JobPhase.SUSPENDING
        assert stage.engine.view.jobs[JobId("6")].phase is JobPhase.RESUMING
        others = [stage.ran_s(name) for name in "1235"]
        assert jain(others) > 0.99
        assert sum(others) == pytest.approx(15 * 3 * Q)
        stage.run(60 * Q)
        assert jain([stage.ran_s(name) for name in "123456"]) > 0.97, "overruns were charged"


class TestBetweenBoundaries:
    """Work conservation: free devices are used at once, nobody is suspended for it."""

    def test_a_finished_jobs_device_goes_to_the_next_at_once(self) -> None:
        """Job 1 ends 10 s into a quantum; 5 starts there and then, and the boundary stays."""
        works = [*arriving(job("1"), run_s=10.0), *arriving(*residents(1, 1, 1, 1, 1)[1:])]
        stage = Stage(ONE, works).run(11.0)
        assert stage.running() == list("2345")
        assert [at_s for at_s, switch in stage.switches() if switch.suspend] == []
        stage = Stage(ONE, [*works, *arriving(job("6"))]).run(61.0)
        assert [at_s for at_s, switch in stage.switches() if switch.suspend] == [60.0]

    def test_a_gang_waits_for_the_boundary_a_smaller_one_fills_the_gap(self) -> None:
        """4 + 1 on four GPUs: when the 1 ends, the gang starts at once."""
        works = [*arriving(job("1"), run_s=10.0), *arriving(job("4", 4))]
        stage = Stage(ONE, works, settings=NO_WAITING).run(11.0)
        assert stage.running() == ["4"]

    def test_new_jobs_start_at_credit_zero(self) -> None:
        """One that comes late to two old ones gets a third from then on, not more."""
        works = [*arriving(job("a", 4), job("b", 4)), *arriving(job("c", 4), at_s=100 * Q + 1)]
        stage = Stage(ONE, works).run(160 * Q)
        assert stage.ran_s("c") == pytest.approx(20 * Q, abs=2 * Q)


class TestDevices:
    """Which devices (G-32, G-35)."""

    def test_a_gang_gets_the_best_locality_level(self) -> None:
        """Two 2-GPU gangs and two 1-GPU jobs on 8 GPUs: each gang within one switch."""
        jobs = [job("one"), job("pair", 2), job("uno"), job("two", 2)]
        stage = Stage([server("S0", 8)], arriving(*jobs), settings=NO_WAITING).run(1.0)
        found = {n: stage.engine.view.jobs[JobId(n)].bindings[0].gpus for n in ("pair", "two")}
        assert found == {"pair": (2, 3), "two": (4, 5)}

    def test_comes_back_to_its_last_devices_where_they_are_as_good(self) -> None:
        """Two 4-GPU gangs and two of two: nobody moves without need."""
        stage = Stage(ONE, arriving(*residents(2, 2, 2, 2))).run(9 * Q)
        moves = [run for _, switch in stage.switches() for run in switch.prepare]
        assert not moves

    def test_a_move_is_announced_one_quantum_ahead(self) -> None:
        """G-35: what boundary k prepares is what boundary k+1 runs, when nothing happens in between."""
        stage = Stage(ONE, arriving(*residents(1, 1, 1, 1, 1, 1))).run(30 * Q)
        turns = [switch for at_s, switch in stage.switches() if at_s > 0.0]
        assert len(turns) == 30
        moved_to = {}
        for before, after in pairwise(turns):
            runs = {run.job_id: run for run in after.run}
            for run in before.prepare:
                moved_to[run.job_id] = runs.get(run.job_id)
                assert runs.get(run.job_id) == run
        assert len(moved_to) == 6


class TestDomains:
    """Servers joined by a gang have one boundary (G-32)."""

    PAIR = (server("A"), server("B"))

    def test_a_gang_over_two_servers_runs_on_both_or_neither(self) -> None:
        """Two 8-GPU gangs on 2×4: they alternate, at one boundary."""
        stage = Stage(self.PAIR, arriving(*residents(8, 8)))
        assert stage.run_sets([Q * k for k in range(6)]) == [["1"], ["2"]] * 3

    def test_servers_merge_and_part_again(self) -> None:
        """A spanning gang comes to two sliced servers and goes; credits and a boundary survive on both."""
        local = [job("a1", 4), job("b1", 4), job("a2", 4), job("b2", 4)]
        works = [*arriving(*local), *arriving(job("both", 8), at_s=200.0, run_s=300.0)]
        stage = Stage(self.PAIR, works, settings=NO_WAITING).run(230.0)
        assert stage.engine.view.domain(ServerId("B")) == ("A", "B")
        assert set(stage.engine.view.memory) == {"slice/A"}
        stage.run(3000.0)
        assert "both" in stage.world.finished_at_s
        assert stage.engine.view.domain(ServerId("B")) == ("B",)
        assert set(stage.engine.view.memory) == {"slice/A", "slice/B"}
        assert {"slice/A", "slice/B"} <= set(stage.engine.view.wakes)
        assert jain([stage.ran_s(each.job_id) for each in local]) >= 0.995

    def test_a_spanning_gang_gets_the_smaller_of_its_shares(self) -> None:
        """G-31 by server: beside two 4-GPU gangs on A and none on B it gets a third of the time."""
        works = [*arriving(job("a", 4), job("b", 4)), *arriving(job("both", 8), at_s=1.0)]
        servers = [server("A"), server("B"), server("C", 1)]
        settings = Settings(starving_after_quanta=0.0, height_max=4)
        stage = Stage(servers, [*arriving(job("c", 4)), *works], settings=settings).run(90 * Q)
        ran_s = {name: stage.ran_s(name) for name in ("a", "b", "c", "both")}
        assert ran_s["both"] > 20 * Q
        assert min(ran_s.values()) > 20 * Q

    def test_a_lost_server_breaks_only_the_gangs_on_it(self) -> None:
        """The others keep running, and the domain shrinks to what is left."""
        facts = [e.ServerLost(100.0, ServerId("B"))]
        works = arriving(job("both", 8), job("a", 4), run_s=500.0)
        stage = Stage(self.PAIR, works, settings=NO_WAITING, facts=facts).run(101.0)
        assert stage.running() == ["a"]
        assert stage.engine.view.jobs[JobId("both")].phase is JobPhase.QUEUED


class TestQueueLimits:
    """Running devices of a queue never exceed M_q (DESIGN §4); the engine refuses otherwise, and the stage fails."""

    @staticmethod
    def limits(**gpus: float) -> e.QueuesConfigured:
        """A root of all four GPUs, and queues with limits."""
        root = QueueName("root")
        rows = [QueueLimit(root, 4.0, 4.0)]
        rows += [QueueLimit(QueueName(f"root.{q}"), 1.0, most, root) for q, most in gpus.items()]
        return e.QueuesConfigured(0.0, tuple(rows))

    def servers(self) -> list[Server]:
        """One server whose memory is no matter."""
        return ONE

    def test_residents_of_a_queue_take_turns_on_its_devices(self) -> None:
        """Four jobs in a queue of two GPUs: two run at a time, all equally long."""
        jobs = [job(f"j{i}", queue="root.q") for i in range(4)]
        stage = Stage(self.servers(), arriving(*jobs), facts=[self.limits(q=2.0)]).run(0.5)
        assert len(stage.running()) == 2

    def test_queues_that_hand_devices_over_stay_below_their_limits(self) -> None:
        """Three of q (limit 2) and three of p (limit 2.5) on four GPUs, sliced, for an hour."""
        jobs = [job(f"{q}{i}", queue=f"root.{q}") for i in range(3) for q in ("p", "q")]
        facts = [self.limits(p=2.5, q=2.0)]
        stage = Stage(self.servers(), arriving(*jobs), facts=facts)
        for quantum in range(60):
            stage.run(quantum * Q)
            names = stage.running()
            assert sum(name.startswith("q") for name in names) <= 2
            assert sum(name.startswith("p") for name in names) <= 2
        assert jain([stage.ran_s(each.job_id) for each in jobs]) >= 0.99

    def test_a_full_root_does_not_stop_the_handing_over(self) -> None:
        """The whole cluster runs, and the limit of root is the whole cluster."""
        jobs = [job(f"j{i}", queue=f"root.{'pq'[i % 2]}") for i in range(6)]
        facts = [self.limits(p=4.0, q=4.0)]
        stage = Stage(self.servers(), arriving(*jobs), facts=facts).run(30 * Q)
        assert jain([stage.ran_s(each.job_id) for each in jobs]) >= 0.998
        assert sum(stage.ran_s(each.job_id) for each in jobs) == pytest.approx(120 * Q)
