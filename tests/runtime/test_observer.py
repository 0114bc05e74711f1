"""Stock arms: a whole gang starts on the lowest free devices at the best locality; nothing is decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.messages import events as e
from gandiva_core.messages.effects import ReleaseGang, SwitchResidents
from gandiva_core.model.cluster import default_topology
from gandiva_core.model.job import JobSpec
from gandiva_core.model.placement import Binding, level_within
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.runtime.observer import StockObserver, lowest_free
from tests.builders import job, on, server

A, B, C = JobId("a"), JobId("b"), JobId("c")


class Stage:
    """An observer over servers s1 (4 GPUs) and s2 (8 GPUs)."""

    def __init__(self) -> None:
        self.observer = StockObserver()
        for each in (server("s1"), server("s2", 8)):
            self.tell(e.ServerJoined(0.0, each))

    def tell(self, event: e.Event) -> tuple[SwitchResidents | ReleaseGang, ...]:
        outcome = self.observer.handle(event)
        assert (outcome.decisions, outcome.refusals) == ((), ())
        return outcome.effects  # type: ignore[return-value]

    def commit(self, spec: JobSpec, *servers: str) -> tuple[SwitchResidents | ReleaseGang, ...]:
        self.tell(e.JobSubmitted(0.0, spec))
        return self.recommit(spec, *servers)

    def recommit(self, spec: JobSpec, *servers: str) -> tuple[SwitchResidents | ReleaseGang, ...]:
        ids = tuple(f"c{i}" for i in range(len(servers)))
        return self.tell(e.GangCommitted(0.0, spec.job_id, ids, tuple(map(ServerId, servers))))


def bindings(effects: tuple[SwitchResidents | ReleaseGang, ...]) -> dict[str, tuple[Binding, ...]]:
    return {
        run.job_id: run.bindings
        for effect in effects
        if isinstance(effect, SwitchResidents)
        for run in effect.run
    }


def test_gang_starts_where_its_containers_are() -> None:
    stage = Stage()
    effects = stage.commit(job("a", 3), "s2", "s1", "s2")
    assert bindings(effects) == {"a": (on("s2", 0, 1), on("s1", 0))}
    (effect,) = effects
    assert isinstance(effect, SwitchResidents)
    assert (effect.switch_id, effect.servers, effect.suspend) == (1, ("s1", "s2"), ())
    assert effect.cause == 4


def test_locality_before_lowest_index() -> None:
    stage = Stage()
    assert bindings(stage.commit(job("a"), "s1")) == {"a": (on("s1", 0),)}
    assert bindings(stage.commit(job("b", 2), "s1", "s1")) == {"b": (on("s1", 2, 3),)}
    assert bindings(stage.commit(job("c"), "s1")) == {"c": (on("s1", 1),)}


def test_gang_waits_for_devices_of_one_that_is_still_leaving() -> None:
    """First in, first out; a gang that fits is not held up by one that does not."""
    stage = Stage()
    stage.commit(job("a", workers=(4,)), "s1")
    assert stage.commit(job("b", workers=(4,)), "s1") == ()
    assert bindings(stage.commit(job("c"), "s2")) == {"c": (on("s2", 0),)}
    assert bindings(stage.tell(e.JobFinished(1.0, A))) == {"b": (on("s1", 0, 1, 2, 3),)}


@pytest.mark.parametrize("kind", [e.JobFinished, e.JobFailed, e.JobKilled])
def test_ends_free_devices(kind: type[e.JobFinished | e.JobFailed | e.JobKilled]) -> None:
    stage = Stage()
    stage.commit(job("a", workers=(4,)), "s1")
    stage.tell(kind(1.0, A))
    assert bindings(stage.commit(job("b"), "s1")) == {"b": (on("s1", 0),)}


def test_broken_gang_gives_back_and_starts_again_when_it_is_whole_again() -> None:
    stage = Stage()
    spec = job("a", 2)
    stage.commit(spec, "s1", "s1")
    assert stage.tell(e.GangBroken(1.0, A, "preempted")) == (ReleaseGang(5, A, "preempted"),)
    assert stage.tell(e.GangBroken(1.0, A, "preempted")) == ()
    assert bindings(stage.recommit(spec, "s2", "s2")) == {"a": (on("s2", 0, 1),)}


def test_lost_server_takes_its_gangs_along() -> None:
    stage = Stage()
    stage.commit(job("a", 2), "s1", "s2")
    stage.commit(job("b", workers=(8,)), "s2")
    effects = stage.tell(e.ServerLost(1.0, ServerId("s1")))
    assert effects[0] == ReleaseGang(7, A, "server s1 was lost")
    assert bindings(effects) == {"b": (on("s2", *range(8)),)}
    stage.tell(e.ServerJoined(2.0, server("s1")))
    assert bindings(stage.commit(job("c"), "s1")) == {"c": (on("s1", 0),)}


@pytest.mark.parametrize(
    "event",
    [
        e.GangCommitted(0.0, JobId("x"), ("c",), (ServerId("s1"),)),
        e.JobFinished(0.0, JobId("x")),
        e.GangBroken(0.0, JobId("x")),
        e.ServerLost(0.0, ServerId("s9")),
        e.ServerJoined(0.0, server("s1")),
        e.ContainersHeld(0.0, A, 1, 2),
        e.ResidentsSwitched(0.0, 1, (), ((A, 0.0),)),
    ],
)
def test_unknown_or_uninteresting_is_only_counted(event: e.Event) -> None:
    assert Stage().tell(event) == ()


def test_second_commit_of_a_running_gang_is_ignored() -> None:
    stage = Stage()
    spec = job("a")
    stage.commit(spec, "s1")
    assert stage.recommit(spec, "s1") == ()


@given(
    gpus=st.integers(1, 16),
    free=st.sets(st.integers(0, 15)),
    count=st.integers(1, 16),
)
def test_no_choice_of_devices_has_a_better_level(gpus: int, free: set[int], count: int) -> None:
    """Against all windows of one switch, one socket, one server."""
    topology = default_topology(gpus)
    usable = sorted(gpu for gpu in free if gpu < gpus)
    chosen = lowest_free(topology, usable, count)
    if len(usable) < count:
        assert chosen is None
        return
    assert chosen is not None
    assert len(set(chosen)) == count
    assert set(chosen) <= set(usable)
    groups = [
        *(switch for socket in topology for switch in socket),
        *(tuple(gpu for switch in socket for gpu in switch) for socket in topology),
    ]
    rooms = [sorted(set(group) & set(usable))[:count] for group in groups]
    best = min(
        (level_within(topology, room) for room in rooms if len(room) == count),
        default=level_within(topology, chosen),
    )
    assert level_within(topology, chosen) <= best
