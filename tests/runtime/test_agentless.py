"""A world that keeps time and answers switches at once."""

from __future__ import annotations

import pytest

from gandiva_core.messages.decisions import Run
from gandiva_core.messages.effects import ReleaseGang, StartTimer, SwitchResidents
from gandiva_core.messages.events import ResidentsSwitched, TimerFired
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.runtime.agentless import AgentlessWorld
from gandiva_core.runtime.clock import live_clock

SERVER = ServerId("a")


def switch(
    number: int, *, stop: tuple[str, ...] = (), start: tuple[str, ...] = ()
) -> SwitchResidents:
    runs = tuple(Run(JobId(name), (Binding(SERVER, (0,)),)) for name in start)
    return SwitchResidents(1, number, (SERVER,), tuple(map(JobId, stop)), runs)


def test_nothing_is_due_in_an_empty_world() -> None:
    world = AgentlessWorld()
    assert world.next_at_s() is None
    assert world.advance(1.0).events == ()


def test_a_switch_is_answered_at_once_and_once() -> None:
    world = AgentlessWorld()
    world.apply(5.0, [switch(7, stop=("J1",), start=("J2",))])
    assert world.next_at_s() == 5.0
    answer = ResidentsSwitched(6.0, 7, ((JobId("J1"), 6.0),), ((JobId("J2"), 6.0),))
    assert world.advance(6.0).events == (answer,)
    assert world.next_at_s() is None


def test_advice_alone_needs_no_answer() -> None:
    world = AgentlessWorld()
    runs = (Run(JobId("J1"), (Binding(SERVER, (0,)),)),)
    world.apply(
        5.0, [SwitchResidents(1, 7, (SERVER,), prepare=runs), ReleaseGang(1, JobId("J"), "")]
    )
    assert world.next_at_s() is None


def test_timers_fire_when_due_by_time_then_key() -> None:
    world = AgentlessWorld()
    world.apply(
        0.0, [StartTimer(1, key, at_s) for key, at_s in [("b", 3.0), ("a", 3.0), ("c", 9.0)]]
    )
    assert world.next_at_s() == 3.0
    assert world.advance(2.9).events == ()
    assert world.advance(3.5).events == (TimerFired(3.5, "a"), TimerFired(3.5, "b"))
    assert world.next_at_s() == 9.0


def test_a_second_timer_of_a_key_replaces_the_first_even_an_earlier_one() -> None:
    world = AgentlessWorld()
    world.apply(0.0, [StartTimer(1, "a", 3.0), StartTimer(2, "a", 8.0)])
    assert world.next_at_s() == 8.0
    assert world.advance(5.0).events == ()
    world.apply(5.0, [StartTimer(3, "a", 6.0)])
    assert world.advance(9.0).events == (TimerFired(9.0, "a"),)
    assert world.next_at_s() is None


def test_the_live_clock_does_not_follow_a_clock_that_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A12 of the faults: the time of day jumps by an hour, timers do not."""
    monkeypatch.setattr("gandiva_core.runtime.clock.time.time", lambda: 1000.0)
    monkeypatch.setattr("gandiva_core.runtime.clock.time.monotonic", lambda: 50.0)
    clock = live_clock()
    monkeypatch.setattr("gandiva_core.runtime.clock.time.time", lambda: 1000.0 - 3600.0)
    monkeypatch.setattr("gandiva_core.runtime.clock.time.monotonic", lambda: 52.0)
    assert clock() == 1002.0
