"""Moves that somebody asked for, and servers that are emptied (G-34, G-69)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import Delays
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Migrate
from gandiva_core.model.cluster import Server
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.policies.gandiva import create
from tests.builders import job, server
from tests.policies.stage import Stage, arriving

Q = 60.0
S1, S2 = ServerId("s1"), ServerId("s2")
PAIR = (server("s1", 1), server("s2", 1))


def stage(
    servers: Iterable[Server],
    *names: str,
    move_s: float = 2.0,
    at_most: int = 16,
) -> Stage:
    """Jobs of one GPU; a move takes two seconds."""
    settings = Settings(starving_after_quanta=0.0, height_max=at_most)
    delays = Delays(move_s=lambda _: move_s)
    jobs = [job(name) for name in names]
    return Stage(tuple(servers), arriving(*jobs), settings=settings, delays=delays).run(1.0)


def moves(stage: Stage) -> list[Migrate]:
    return [
        decision
        for _, outcome in stage.world.journal
        for decision in outcome.decisions
        if isinstance(decision, Migrate)
    ]


def places(stage: Stage) -> dict[str, tuple[str, ...]]:
    return {name: each.servers for name, each in stage.engine.view.jobs.items()}


def test_a_job_goes_where_it_was_asked_to() -> None:
    at = stage(PAIR, "a")
    assert places(at) == {"a": ("s1",)}
    at.tell(e.MoveAsked(1.0, JobId("a"), (S2,), "its owner")).run(3.5)
    assert [(m.servers, m.purpose) for m in moves(at)] == [((S2,), "asked")]
    assert places(at) == {"a": ("s2",)}
    assert not [key for key in at.engine.view.memory if key.startswith("move")]


def test_it_goes_anywhere_else_where_nothing_was_said() -> None:
    at = stage((*PAIR, server("s3", 1, can_suspend=False)), "a")
    at.tell(e.MoveAsked(1.0, JobId("a"))).run(3.5)
    assert places(at) == {"a": ("s2",)}


def test_it_goes_once_there_is_room() -> None:
    """Slicing off: the destination is full until the other ends."""
    settings = Settings()
    works = [*arriving(job("a")), *arriving(job("b"), run_s=100.0)]
    policy = create(settings, {"slicing": False})
    at = Stage(PAIR, works, settings=settings, policy=policy).run(1.0)
    at.tell(e.MoveAsked(1.0, JobId("a"))).run(99.0)
    assert not moves(at)
    at.run(101.0)
    assert places(at) == {"a": ("s2",)}


def test_a_server_that_is_emptied_loses_all_its_jobs() -> None:
    """Those that wait for their turn move in their turn, and share what there is with who was there."""
    at = stage((server("s1", 2), server("s2", 2)), "a", "b", "c", "d", "f", "g")
    assert sorted(places(at).values()) == [("s1",)] * 3 + [("s2",)] * 3
    at.tell(e.ServerJoined(1.0, msgspec.structs.replace(server("s1", 2), is_draining=True)))
    at.run(12 * Q)
    assert set(places(at).values()) == {("s2",)}
    assert {m.purpose for m in moves(at)} == {"drain"}
    assert len(moves(at)) == 3
    ran_s = [at.world.running_s(JobId(name)) for name in "abcdfg"]
    at.run(24 * Q)
    more_s = [at.world.running_s(JobId(n)) - s for n, s in zip("abcdfg", ran_s, strict=True)]
    assert more_s == pytest.approx([4 * Q] * 6)  # each a third of two devices


def test_nobody_of_a_higher_class_is_stopped_for_it() -> None:
    """G-34: with one on the other server the job stays."""
    settings = Settings(starving_after_quanta=0.0)
    jobs = [job("a"), job("b", priority_class=1)]
    at = Stage(PAIR, arriving(*jobs), settings=settings).run(1.0)
    at.tell(e.ServerJoined(1.0, msgspec.structs.replace(server("s1", 1), is_draining=True)))
    at.run(10 * Q)
    assert places(at)["a"] == ("s1",)
    assert not moves(at)


def test_an_emptied_server_that_is_opened_again_keeps_who_is_left() -> None:
    at = stage(PAIR, "a", move_s=5.0)
    at.tell(e.ServerJoined(1.0, msgspec.structs.replace(server("s1", 1), is_draining=True)))
    at.tell(e.ServerJoined(2.0, server("s1", 1)))
    at.run(10.0)
    assert places(at) == {"a": ("s2",)}  # it was on its way
    assert "emptied" not in at.engine.view.memory


def test_what_fails_is_tried_later_and_at_last_given_up() -> None:
    at = stage(PAIR, "a", move_s=1e6)
    at.tell(e.MoveAsked(1.0, JobId("a")))
    tried: list[float] = []
    while at.engine.view.jobs[JobId("a")].phase is JobPhase.MIGRATING:
        now_s = at.world.now_s
        tried.append(now_s)
        at.tell(e.MoveFailed(now_s, len(tried), JobId("a"), "NO_ANSWER"))
        at.run(now_s + 10 * Q)
    assert len(tried) == 3
    assert "moves" not in at.engine.view.memory
    assert places(at) == {"a": ("s1",)}


def test_a_job_that_left_is_forgotten() -> None:
    at = stage(PAIR, "a", "b")
    at.tell(e.JobLearned(1.0, JobId("a"), can_suspend=True, fixed="no loop"))
    at.tell(e.MoveAsked(1.0, JobId("a")))
    assert "a" in at.engine.view.memory["moves"]
    at.tell(e.JobKilled(2.0, JobId("a")))
    assert "moves" not in at.engine.view.memory


def test_switched_off_nobody_moves() -> None:
    settings = Settings()
    policy = create(settings, {"migration": False})
    at = Stage(PAIR, arriving(job("a")), settings=settings, policy=policy).run(1.0)
    at.tell(e.MoveAsked(1.0, JobId("a"))).run(Q)
    assert not moves(at)
