"""Guarantees in GPU time (DESIGN §4): who is served first once a queue lacked what it is entitled to."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import SmallWorld, Work
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Switch
from gandiva_core.messages.effects import ReleaseGang
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, QueueName
from gandiva_core.policies.favour import FAVOURED, favoured_in
from gandiva_core.policies.gandiva import create
from gandiva_core.policies.guarantees import WINDOW_S
from tests.builders import job, server
from tests.policies.stage import FOR_EVER_S, Stage, arriving

Q = 60.0


def limits(gpus: int, partition: str = "", **guaranteed: float) -> e.QueuesConfigured:
    """Queues under a root of all GPUs, each of which may run all of them."""
    root = QueueName("root")
    rows = [QueueLimit(root, gpus, gpus, partition=partition)]
    rows += [
        QueueLimit(QueueName(f"root.{name}"), share, gpus, "root", partition)
        for name, share in guaranteed.items()
    ]
    return e.QueuesConfigured(0.0, tuple(rows))


def running(stage: Stage, *queues: str, partition: str = "") -> list[int]:
    found = stage.engine.view.queues
    return [found[QueueName(f"root.{name}"), partition].running for name in queues]


def ran_gpu_s(stage: Stage, name: str) -> float:
    queue = stage.engine.view.queues[QueueName(f"root.{name}"), ""]
    return queue.used_gpu_s(stage.world.now_s)


def favoured(stage: Stage, partition: str = "") -> list[str]:
    order = stage.engine.view.memory.get(FAVOURED + partition)
    return [] if order is None else list(favoured_in(order))


class TestA06:
    """A06: b fills 300 GPUs with 600 jobs, then a, which is guaranteed 100, comes with 100."""

    @staticmethod
    def works(draw: random.Random) -> list[Work]:
        jobs = [job(f"b{n:03d}", queue="root.b") for n in range(600)]
        works = [Work(draw.uniform(0.0, 5.0), spec, FOR_EVER_S) for spec in jobs]
        jobs = [job(f"a{n:03d}", queue="root.a") for n in range(100)]
        return works + [Work(100.0 + draw.uniform(0.0, 5.0), spec, FOR_EVER_S) for spec in jobs]

    @pytest.mark.parametrize(
        ("seed", "height_max"), [*((seed, 4) for seed in range(10)), (0, 2), (1, 2)]
    )
    def test_steady_state(self, seed: int, height_max: int) -> None:
        """RIGHT: a = 100, b = 200; b resident up to the height, pending beyond; nothing killed; 10 of 10 runs."""
        settings = Settings(height_max=height_max)
        engine = Engine(create(settings, {}), settings)
        seen: set[tuple[int, ...]] = set()

        def witness(event: e.Event, outcome: Outcome) -> None:
            assert not outcome.refusals
            assert not any(isinstance(effect, ReleaseGang) for effect in outcome.effects)
            if event.at_s > 1000.0:
                found = engine.view.queues
                seen.add(tuple(found[QueueName(f"root.{q}"), ""].running for q in "ab"))

        servers = [server(f"s{n:02d}") for n in range(75)]
        facts = [limits(300, a=100.0, b=0.0)]
        works = self.works(random.Random(seed))
        world = SmallWorld(engine, servers, works, facts=facts, witness=witness)
        world.run(1500.0)
        assert seen == {(100, 200)}
        assert len(world.unfinished) == 700
        resident = {str(key[0]): queue.resident for key, queue in engine.view.queues.items()}
        # At a height of two there are 600 places, and 100 of them are kept for a from the beginning.
        assert resident["root.b"] == (600 if height_max == 4 else 500)
        assert resident["root.a"] == 100
        assert len(engine.view.queue) == (0 if height_max == 4 else 100)


class TestWhenAQueueLacks:
    """Three jobs of a on one server with nine of b: by equal shares a has one GPU of its four."""

    def stage(self, facts: Sequence[e.Event] = ()) -> Stage:
        works = arriving(*[job(f"b{n}", queue="root.b") for n in range(9)])
        works += arriving(*[job(f"a{n}", queue="root.a") for n in range(3)], at_s=1.0)
        return Stage([server("s1")], works, facts=[limits(4, a=3.0, b=1.0), *facts])

    def test_nothing_happens_before_ten_minutes(self) -> None:
        stage = self.stage().run(WINDOW_S)
        assert favoured(stage) == []
        assert ran_gpu_s(stage, "a") == pytest.approx(WINDOW_S, rel=0.15)

    def test_afterwards_it_has_what_it_is_entitled_to(self) -> None:
        stage = self.stage().run(WINDOW_S + 4 * Q)
        assert favoured(stage) == ["root.a"]
        before = ran_gpu_s(stage, "a")
        stage.run(WINDOW_S + 24 * Q)
        assert ran_gpu_s(stage, "a") - before == pytest.approx(3 * 20 * Q)
        assert running(stage, "a", "b") == [3, 1]

    def test_the_others_take_turns_on_what_is_left(self) -> None:
        """Nobody is killed and nobody starves."""
        stage = self.stage().run(WINDOW_S + 60 * Q)
        assert all(stage.ran_s(f"b{n}") > 8 * Q for n in range(9))

    def test_the_preemption_monitor_is_answered_at_once(self) -> None:
        """`ReclaimAsked`: the same, without the ten minutes, and at a boundary that is now."""
        asked = e.ReclaimAsked(30.0, JobId("b0"), 1)
        stage = Stage(
            [server("s1")],
            self.stage_works(),
            facts=[limits(4, a=3.0, b=1.0)],
        ).run(29.0)
        stage.tell(asked)
        assert favoured(stage) == ["root.a"]
        boundaries = [at_s for at_s, switch in stage.switches() if switch.suspend]
        assert boundaries == [30.0]
        stage.run(30.0 + 3 * Q)
        before = ran_gpu_s(stage, "a")
        stage.run(30.0 + 13 * Q)
        assert ran_gpu_s(stage, "a") - before == pytest.approx(3 * 10 * Q)

    def stage_works(self) -> list[Work]:
        works = arriving(*[job(f"b{n}", queue="root.b") for n in range(9)])
        return works + arriving(*[job(f"a{n}", queue="root.a") for n in range(3)], at_s=1.0)

    def test_a_reclaim_changes_nothing_where_nobody_lacks(self) -> None:
        works = arriving(job("b0", queue="root.b"), job("a0", queue="root.a"))
        stage = Stage([server("s1")], works, facts=[limits(4, a=3.0, b=1.0)]).run(100.0)
        stage.tell(e.ReclaimAsked(100.0, JobId("b0"), 1))
        stage.tell(e.ReclaimAsked(100.0, JobId("gone"), 1))
        assert favoured(stage) == []
        assert running(stage, "a", "b") == [1, 1]

    def test_it_is_forgotten_once_nobody_competes(self) -> None:
        """And no timer is left over: the world comes to its end."""
        works = arriving(*[job(f"b{n}", queue="root.b") for n in range(9)], run_s=900.0)
        works += arriving(*[job(f"a{n}", queue="root.a") for n in range(3)], run_s=1500.0)
        stage = Stage([server("s1")], works, facts=[limits(4, a=3.0, b=1.0)]).run()
        assert not stage.world.unfinished
        assert not stage.engine.view.memory
        assert not stage.engine.view.wakes


def test_the_queue_furthest_above_yields_first() -> None:
    """C has just what it is entitled to and keeps it; what a lacks comes from b alone."""
    works = arriving(*[job(f"b{n}", queue="root.b") for n in range(9)])
    works += arriving(*[job(f"c{n}", queue="root.c") for n in range(4)])
    works += arriving(*[job(f"a{n}", queue="root.a") for n in range(3)])
    facts = [limits(8, a=3.0, b=1.0, c=4.0)]
    stage = Stage([server("s1"), server("s2")], works, facts=facts, settings=Settings())
    stage.run(3 * WINDOW_S)
    before = [ran_gpu_s(stage, name) for name in "abc"]
    stage.run(3 * WINDOW_S + 40 * Q)
    after = [ran_gpu_s(stage, name) for name in "abc"]
    gpus = [(late - early) / (40 * Q) for early, late in zip(before, after, strict=True)]
    assert gpus == pytest.approx([3.0, 1.0, 4.0], abs=0.25)


def test_jobs_that_wait_are_placed_beside_the_residents_of_others() -> None:
    """Two-GPU jobs of a, on servers that b made one-GPU servers: over-subscribed there once a lacks, not before."""
    works = arriving(*[job(f"b{n}", queue="root.b") for n in range(10)])
    works += arriving(*[job(f"a{n}", 2, queue="root.a") for n in range(2)], at_s=1.0)
    settings = Settings(starving_after_quanta=1000.0)
    facts = [limits(8, a=4.0, b=4.0)]
    stage = Stage([server("s1"), server("s2")], works, facts=facts, settings=settings)
    stage.run(WINDOW_S)
    assert [stage.engine.view.jobs[JobId(f"a{n}")].phase for n in range(2)] == ["queued"] * 2
    stage.run(WINDOW_S + 10 * Q)
    assert running(stage, "a", "b") == [4, 4]


def test_partitions_never_mix() -> None:
    """What a queue has in one partition makes up for nothing in another."""
    servers = [server("s1"), server("t1", partition="p")]
    both = [*limits(4, a=3.0, b=1.0).queues, *limits(4, "p", a=3.0, b=1.0).queues]
    works = arriving(*[job(f"x{n}", queue="root.a", partition="p") for n in range(4)])
    works += arriving(*[job(f"b{n}", queue="root.b") for n in range(9)])
    works += arriving(*[job(f"a{n}", queue="root.a") for n in range(3)])
    stage = Stage(servers, works, facts=[e.QueuesConfigured(0.0, tuple(both))])
    stage.run(WINDOW_S + 5 * Q)
    assert favoured(stage) == ["root.a"]
    assert favoured(stage, "p") == []
    assert running(stage, "a", "b") == [3, 1]
    assert running(stage, "a", "b", partition="p") == [4, 0]


class TestTurns:
    """A queue at its maximum with residents in several domains shares it over all of them (DESIGN §4)."""

    def stage(self, works: list[Work], servers: int = 2, most: float = 4.0) -> Stage:
        gpus = 4.0 * servers
        rows = (
            QueueLimit(QueueName("root"), gpus, gpus),
            QueueLimit(QueueName("root.q"), 1.0, most, "root"),
            QueueLimit(QueueName("root.o"), 1.0, gpus, "root"),
        )
        machines = [server(f"s{n}") for n in range(servers)]
        return Stage(machines, works, facts=[e.QueuesConfigured(0.0, rows)])

    def test_over_servers_that_are_not_over_subscribed(self) -> None:
        """Eight jobs of a queue with four GPUs on eight devices: half of the time each, never more than four."""
        jobs = [job(f"q{n}", queue="root.q") for n in range(8)]
        stage = self.stage(arriving(*jobs))
        for quantum in range(60):
            stage.run(quantum * Q + 1.0)
            assert len(stage.running()) == 4
        assert all(stage.ran_s(spec.job_id) == pytest.approx(30 * Q, rel=0.05) for spec in jobs)

    def test_on_one_server_too(self) -> None:
        jobs = [job(f"q{n}", queue="root.q") for n in range(4)]
        stage = self.stage(arriving(*jobs), servers=1, most=2.0).run(60 * Q)
        assert all(stage.ran_s(spec.job_id) == pytest.approx(30 * Q, rel=0.05) for spec in jobs)

    def test_a_gang_gets_its_turn_among_small_jobs(self) -> None:
        works = arriving(
            *[job(f"q{n}", queue="root.q") for n in range(4)], job("g", 4, queue="root.q")
        )
        stage = self.stage(works).run(60 * Q)
        assert stage.ran_s("g") > 20 * Q

    def test_with_others_on_the_same_devices(self) -> None:
        """Two servers shared with another queue: at most four run, and nobody of either is left out."""
        jobs = [job(f"q{n}", queue="root.q") for n in range(8)]
        others = [job(f"o{n}", queue="root.o") for n in range(8)]
        stage = self.stage(arriving(*jobs, *others))
        for quantum in range(80):
            stage.run(quantum * Q + 1.0)
            assert sum(name.startswith("q") for name in stage.running()) <= 4
            assert len(stage.running()) == 8
        assert all(stage.ran_s(spec.job_id) > 15 * Q for spec in [*jobs, *others])

    def test_they_end_with_the_need_for_them(self) -> None:
        works = arriving(*[job(f"q{n}", queue="root.q") for n in range(8)], run_s=300.0)
        stage = self.stage(works).run()
        assert not stage.world.unfinished
        assert not stage.engine.view.memory
        assert not stage.engine.view.wakes


class TestWithoutSlicing:
    """A queue with slicing off: its jobs always run, and share a device with nobody."""

    def stage(self, works: list[Work]) -> Stage:
        rows = (
            QueueLimit(QueueName("root"), 8.0, 8.0),
            QueueLimit(QueueName("root.off"), 3.0, 4.0, "root", mechanisms_off=("slicing",)),
            QueueLimit(QueueName("root.on"), 3.0, 8.0, "root"),
        )
        return Stage([server("s1"), server("s2")], works, facts=[e.QueuesConfigured(0.0, rows)])

    def test_they_run_from_beginning_to_end(self) -> None:
        """Two of them first; then as many others as share what is left, at four to a device."""
        off = [job(f"x{n}", 2, queue="root.off") for n in range(2)]
        on = [job(f"y{n}", queue="root.on") for n in range(40)]
        stage = self.stage(arriving(*off) + arriving(*on, at_s=1.0)).run(40 * Q)
        assert all(stage.ran_s(spec.job_id) == stage.world.now_s for spec in off)
        stopped = {name for _, switch in stage.switches() for name in switch.suspend}
        assert not stopped & {"x0", "x1"}
        view = stage.engine.view
        assert view.queues[QueueName("root.on"), ""].resident == 4 * 4
        assert all(
            server_view.allocated - server_view.unsliced <= 4 * (4 - server_view.unsliced)
            for server_view in view.servers.values()
        )

    def test_they_wait_for_devices_of_their_own(self) -> None:
        """Not beside residents who have them already, however long they wait."""
        on = [job(f"y{n}", queue="root.on") for n in range(16)]
        stage = self.stage(arriving(*on) + arriving(job("x", queue="root.off"), at_s=1.0))
        stage.run(40 * Q)
        assert stage.engine.view.jobs[JobId("x")].phase is JobPhase.QUEUED

    def test_their_queue_runs_no_more_than_its_maximum(self) -> None:
        off = [job(f"x{n}", queue="root.off") for n in range(6)]
        stage = self.stage(arriving(*off, run_s=300.0)).run(100.0)
        assert len(stage.running()) == 4
        stage.run()
        assert not stage.world.unfinished


def test_a_switch_names_nobody_twice_while_turns_and_boundaries_meet() -> None:
    """Both timers at one instant."""
    works = arriving(*[job(f"q{n}", queue="root.q") for n in range(12)])
    rows = (
        QueueLimit(QueueName("root"), 8.0, 8.0),
        QueueLimit(QueueName("root.q"), 1.0, 3.0, "root"),
    )
    stage = Stage([server("s1"), server("s2")], works, facts=[e.QueuesConfigured(0.0, rows)])
    stage.run(50 * Q)
    for _, switch in stage.switches():
        assert isinstance(switch, Switch)
        assert len(set(switch.suspend)) == len(switch.suspend)
    assert len(stage.running()) == 3
