"""Simulated gangs that go on elsewhere: frozen for as long as G-74 says, and nothing is lost (G-69)."""

from __future__ import annotations

import pytest

from gandiva_core.messages.effects import CarryOver, CloseMove, ReleaseGang
from gandiva_core.messages.events import GangMoved
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.sim.faults import WorldOptions
from gandiva_core.sim.moves import move_s
from gandiva_core.sim.world import JobWorld
from tests.sim.worlds import PLAIN, Told, planned, run, servers, switch

A = JobId("a")
FROZEN_S = move_s(PLAIN, is_inside=False)


def begun(minibatches: float = 100, warm_s: float = 0.0) -> JobWorld:
    """One job that runs on s1 from time 0."""
    world = JobWorld([planned("a", minibatches)], servers(2), options=WorldOptions(warm_s=warm_s))
    Told().drain(world, 0.0)
    world.apply(0.0, [switch(1, runs=[run("a", ("s1", (0,)))])])
    Told().drain(world, 0.0)
    return world


def carry(*places: tuple[str, tuple[int, ...]], move_id: int = 1) -> CarryOver:
    bindings = tuple(Binding(ServerId(name), gpus) for name, gpus in places)
    return CarryOver(0, move_id, A, tuple(b.server_id for b in bindings), bindings)


def test_figures_of_the_paper() -> None:
    """G-73: ResNet-50's 98 MB took 0.44 s within a server and 0.56 s between two; the fit is within 0.1 s."""
    assert move_s(PLAIN, is_inside=True) == pytest.approx(0.44, abs=0.1)
    assert move_s(PLAIN, is_inside=False) == pytest.approx(0.56, abs=0.1)


def test_it_stops_at_a_boundary_and_goes_on_after_the_move() -> None:
    world = begun(warm_s=4.0)
    Told().drain(world, 10.3)
    world.apply(10.3, [carry(("s2", (3,)))])
    told = Told().drain(world)
    stopped_s = 15.0  # warm at 14.3, the next boundary of a mini-batch a second
    moved = told.events[0]
    assert isinstance(moved, GangMoved)
    assert moved.at_s == pytest.approx(stopped_s + FROZEN_S)
    assert moved.frozen_s == pytest.approx(FROZEN_S)
    ((_, ended_s),) = told.completed
    assert ended_s == pytest.approx(100 + FROZEN_S)


def test_called_off_while_it_warms_up_it_never_stops() -> None:
    world = begun(warm_s=4.0)
    Told().drain(world, 10.0)
    world.apply(10.0, [carry(("s2", (0,)))])
    world.apply(11.0, [CloseMove(0, 1, A, False)])
    told = Told().drain(world)
    assert (told.completed, [e for e in told.events if isinstance(e, GangMoved)]) == (
        [("a", 100.0)],
        [],
    )


def test_called_off_while_it_is_frozen_it_goes_on_where_it_was() -> None:
    world = begun()
    Told().drain(world, 10.0)
    world.apply(10.0, [carry(("s2", (0,)))])
    Told().drain(world, 10.0)
    world.apply(10.1, [CloseMove(0, 1, A, False)])
    told = Told().drain(world)
    ((_, ended_s),) = told.completed
    assert ended_s == pytest.approx(100 + FROZEN_S)
    assert not [e for e in told.events if isinstance(e, GangMoved)]


def test_a_crash_ends_the_move_too() -> None:
    world = begun()
    Told().drain(world, 10.0)
    world.apply(10.0, [carry(("s2", (0,)))])
    world.apply(10.0, [CloseMove(0, 1, A, False), ReleaseGang(0, A, "lost")])
    assert not [e for e in Told().drain(world).events if isinstance(e, GangMoved)]
    world.apply(60.0, [switch(2, runs=[run("a", ("s2", (0,)))])])
    assert Told().drain(world).completed == [("a", 160.0)]


def test_one_that_ends_within_its_last_minibatch_ends_where_it_is() -> None:
    world = begun(minibatches=11)
    Told().drain(world, 10.5)
    world.apply(10.5, [carry(("s2", (0,)))])
    told = Told().drain(world)
    assert (told.completed, told.events) == ([("a", 11.0)], [])
