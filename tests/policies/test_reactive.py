"""Arrivals, departures, refusals and starvation (G-20, G-21, G-26)."""

from __future__ import annotations

from gandiva_core.config.settings import Settings
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import CommitGang
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, ServerId
from tests.builders import job, server
from tests.policies.stage import Stage, arriving

Q = 60.0


def test_a_departure_admits_in_order_whoever_can_be_placed() -> None:
    """G-26 (1): FIFO, the first that the cascade can place without over-subscription, and on until none can."""
    works = [
        *arriving(job("four", 4), run_s=100.0),
        *arriving(job("three", 3), job("two", 2), job("one"), at_s=1.0, run_s=50.0),
    ]
    stage = Stage([server("S0")], works, settings=Settings(height_max=1)).run()
    assert stage.placements() == [
        ("four", "pristine", "S0"),
        ("three", "pristine", "S0"),
        ("one", "relaxed", "S0"),
        ("two", "relaxed", "S0"),
    ]
    assert not stage.world.unfinished


def test_what_was_queued_for_its_class_is_over_subscribed_when_there_is_room() -> None:
    """G-28: as soon as a resident leaves, any job of the class under H_max is in, not the head alone."""
    works = [
        *arriving(job("a", 4), job("b", 4), run_s=100.0),
        *arriving(job("one"), at_s=1.0),
        *arriving(job("three", 3), at_s=2.0, run_s=50.0),
    ]
    stage = Stage([server("S0")], works, settings=Settings(height_max=2)).run(240.0)
    assert ("three", "over-subscribe", "S0") in stage.placements()


def test_an_emptied_server_is_pristine_for_another_class() -> None:
    """Affinity goes back to 0 (G-5 c), and the queue is tried at that moment (SPEC §9)."""
    works = [*arriving(job("four", 4), run_s=100.0), *arriving(job("two", 2), at_s=1.0)]
    stage = Stage([server("S0")], works).run(101.0)
    assert stage.placements()[-1] == ("two", "pristine", "S0")
    assert stage.affinity("S0") == 2


def test_a_joined_server_is_used_at_once() -> None:
    """SPEC §9: the queue is tried again on node joined."""
    facts = [e.ServerJoined(30.0, server("S1"))]
    works = arriving(job("a", 4), job("c", 2))
    stage = Stage([server("S0")], works, facts=facts).run(31.0)
    assert stage.placements()[-1] == ("c", "pristine", "S1")


def test_a_lost_servers_jobs_restart_through_the_cascade() -> None:
    """G-13: at their old place in the queue, saying why they wait."""
    facts = [e.ServerLost(30.0, ServerId("S1"), "power")]
    works = arriving(job("a", 4), job("b", 4), run_s=200.0)
    stage = Stage([server("S0"), server("S1")], works, facts=facts).run(31.0)
    assert stage.placements()[-1] == ("b", "over-subscribe", "S0")
    assert not stage.run().world.unfinished


def test_a_lost_servers_job_that_finds_no_other_says_what_it_waits_for() -> None:
    """Its old reason was the loss; from then on it waits for GPUs."""
    facts = [e.ServerLost(30.0, ServerId("S1"), "power")]
    works = arriving(job("a"), job("b", 4), run_s=200.0)
    stage = Stage([server("S0"), server("S1")], works, facts=facts).run(31.0)
    name, reason = stage.reasons()[-1]
    assert (name, reason.code, reason.have[:6]) == ("b", "gpus", "3 free")


def test_the_last_of_the_queue_takes_the_memory_of_starvation_with_it() -> None:
    """A starving head is killed: nothing is kept for it any more."""
    facts = [e.JobKilled(700.0, JobId("c"))]
    works = arriving(job("a", 4), job("c", 2))
    settings = Settings(height_max=1)
    stage = Stage([server("S0")], works, settings=settings, facts=facts).run(650.0)
    assert stage.engine.view.memory["starving"] == {"c": 0.0}
    assert "starving" not in stage.run(701.0).engine.view.memory


class TestRefusals:
    """A substrate may refuse; the same thing is not tried again at the same instant."""

    def test_are_left_alone_for_a_while_that_doubles(self) -> None:
        """Tries at 0, then after Q/16, Q/8, …; no try at one instant is repeated."""
        tries: list[float] = []

        def refuse(_commit: CommitGang, now_s: float) -> str | None:
            tries.append(now_s)
            return "NO_ROOM" if len(tries) < 4 else None

        stage = Stage([server("S0")], arriving(job("a"), run_s=10.0), refuse=refuse).run()
        assert tries == [0.0, Q / 16, Q / 16 + Q / 8, Q / 16 + Q / 8 + Q / 4]
        assert stage.reasons()[0][1].code == "refused"
        assert stage.reasons()[0][1].need == "NO_ROOM"
        assert not stage.world.unfinished
        assert not stage.engine.view.memory, "nothing is remembered of a job that left"

    def test_are_tried_elsewhere_next(self) -> None:
        """A server that refuses everything does not hold up a job that others could take."""
        servers: list[str] = []

        def refuse(commit: CommitGang, _now_s: float) -> str | None:
            servers.append(commit.servers[0])
            return "NODE_STATE" if commit.servers[0] == "S0" else None

        Stage([server("S0"), server("S1")], arriving(job("a"), run_s=10.0), refuse=refuse).run()
        assert servers == ["S0", "S0", "S1"], "the first refusal does not say where"

    def test_let_others_pass(self) -> None:
        """The job behind a refused one is placed meanwhile."""

        def refuse(commit: CommitGang, now_s: float) -> str | None:
            return "LABEL" if commit.job_id == "a" and now_s < 5.0 else None

        stage = Stage([server("S0")], arriving(job("a"), job("b")), refuse=refuse).run(1.0)
        assert stage.running() == ["b"]
        assert stage.engine.view.jobs[JobId("a")].phase is JobPhase.QUEUED


class TestStarvation:
    """G-21: a head that waited longer than 10 Q is over-subscribed on the least loaded server with N ≥ g."""

    def test_a_head_is_relieved_after_ten_quanta(self) -> None:
        """A 2-GPU job at a server of class 4 (GC-22's third job)."""
        works = arriving(job("a", 4), job("b", 4), job("c", 2))
        stage = Stage([server("S0")], works).run(10 * Q - 1.0)
        assert list(stage.engine.view.queue) == ["c"]
        stage.run(10 * Q)
        assert stage.placements()[-1] == ("c", "starving", "S0")
        stage.run(15 * Q)
        assert stage.ran_s("c") > 0.0

    def test_the_least_loaded_server_takes_it(self) -> None:
        """Whatever its affinity."""
        ones = [job(f"j{i}") for i in range(8)]
        works = arriving(job("a", 4), job("b", 4), *ones, job("c", 2))
        stage = Stage([server("S0"), server("S1")], works).run(10 * Q)
        assert stage.placements()[-1] == ("c", "starving", "S0")
        assert [s.allocated for s in stage.engine.view.servers.values()] == [10, 8]

    def test_jobs_behind_a_starving_head_are_relieved_with_it(self) -> None:
        """The second becomes head at the same instant and has waited as long."""
        works = arriving(job("a", 4), job("b", 4), job("c", 2), job("d", 2))
        stage = Stage([server("S0")], works).run(10 * Q)
        assert [p[:2] for p in stage.placements()[-2:]] == [("c", "starving"), ("d", "starving")]

    def test_its_server_is_kept_for_it(self) -> None:
        """At H_max nobody else gets in, so that the server empties until the head fits."""
        settings = Settings(height_max=1, starving_after_quanta=1.0)
        works = [
            *arriving(job("a"), job("b"), run_s=100.0),
            *arriving(job("all", 4), at_s=1.0, run_s=50.0),
            *[w for n in range(60) for w in arriving(job(f"s{n}"), at_s=5.0 * n, run_s=40.0)],
        ]
        stage = Stage([server("S0")], works, settings=settings).run()
        assert stage.world.finished_at_s[JobId("all")] < 200.0
        assert not stage.world.unfinished

    def test_what_never_fits_starves_nobody(self) -> None:
        """A gang that the empty cluster cannot hold is no head."""
        works = arriving(job("never", 9), job("a", 4), job("b", 4), job("c", 2), run_s=5000.0)
        stage = Stage([server("S0"), server("S1")], works).run()
        assert stage.world.unfinished == ("never",)


def test_a_killed_job_leaves_no_trace() -> None:
    """Its refusals are forgotten, its place in the queue is free."""
    facts = [e.JobKilled(2.0, JobId("a"))]
    stage = Stage(
        [server("S0")], arriving(job("a")), refuse=lambda *_: "NO_ROOM", facts=facts
    ).run()
    assert not stage.engine.view.memory
    assert not stage.engine.view.jobs
