"""Another number of workers, from the wish to the books (SPEC G-80 … G-84)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gandiva_core.messages.effects import ReleaseGang
from gandiva_core.messages.events import (
    Event,
    GangBroken,
    GangResized,
    JobFinished,
    JobKilled,
    JobSubmitted,
)
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId
from tests.yarn_plugin.bridge.applications import APP, GPU, Cluster, ask, submitted
from yarn_plugin.bridge.asks import FIRST_RESIZE_ID
from yarn_plugin.bridge.resizes import ASK_S, LIMIT_S, ResizeDesk, ResizeRefusedError
from yarn_plugin.bridge.wire import Answer, AppAdded, Ask, NodeRemoved, ReleaseOrder, ResizeOrder

JOB, ADDED = JobId(APP), JobId(f"{APP}#2")
RELEASED = -105


class Scene:
    """A job of one worker, c1 on n1, that runs."""

    def __init__(self, tag: str = "gandiva.gang=1", workers: int = 1) -> None:
        self.cluster = Cluster()
        self.cluster.add_app(tag)
        self.cluster.asks(ask(workers))
        self.cluster.commit(APP, ["n1:1"] * workers, [GPU] * workers)
        self.phases: dict[str, JobPhase] = {APP: JobPhase.RUNNING}
        self.reshaped: list[Any] = []
        view: Any = self
        self.desk = ResizeDesk(
            self.cluster.register,
            view,
            reshaped=lambda job, joined: self.reshaped.append((job, *joined)),
        )

    @property
    def jobs(self) -> dict[str, Any]:
        """As the engine's view."""
        return {name: SimpleNamespace(phase=phase) for name, phase in self.phases.items()}

    def ask_for(self, count: int) -> list[Event]:
        """The master asks for added workers; they form a job once the asks rest."""
        asks = [added(count, name, self.id) for name in ("n1", "/r", "*")]
        assert self.cluster.asks(*asks) == [], "not before they rest"
        return self.cluster.rest()

    def grow(self, workers: int) -> list[Event]:
        """To the end."""
        count = workers - len(self.containers())
        self.desk.begin(JOB, workers, 0.0)
        (order,) = self.desk.orders()
        assert (order.workers, order.node) == (workers, "n1:1")
        self.id = order.allocation_request_id
        (event,) = self.ask_for(count)
        assert isinstance(event, JobSubmitted)
        self.cluster.commit(event.job.job_id, ["n1:1"] * count, [GPU] * count)
        self.cluster.asks()
        assert list(self.desk.due(1.0)) == [], "they do not run yet"
        self.phases[event.job.job_id] = JobPhase.RUNNING
        return list(self.desk.due(1.0))

    def containers(self) -> list[str]:
        return [member.container for member in self.cluster.register.apps[APP].gangs[JOB].members]

    id = FIRST_RESIZE_ID


def added(count: int, name: str, request_id: int = FIRST_RESIZE_ID) -> Ask:
    return Ask(
        priority=1,
        count=count,
        memory_mib=1024,
        vcores=1,
        gpus=1,
        allocation_request_id=request_id,
        resource_name=name,
        relax_locality=False,
    )


@pytest.mark.parametrize(("tag", "size"), [("gandiva.gang=1", 1), ("gandiva.gang=2", 2)])
def test_added_workers_are_a_job_of_their_own_until_the_gang_goes_on(tag: str, size: int) -> None:
    scene = Scene(tag, size)
    more = size + 2
    assert scene.grow(more) == [GangResized(1.0, JOB, tuple(range(size)), (ADDED,))]
    assert scene.containers() == [f"c{n}" for n in range(1, more + 1)]
    assert scene.reshaped == [(JOB, ADDED)]
    assert scene.desk.standing(JOB) == ""
    assert not scene.desk.is_under_way(JOB)
    register = scene.cluster.register
    assert ADDED not in register.app_of
    assert {register.job_of[container] for container in scene.containers()} == {JOB}


def test_where_they_may_go_is_the_gangs_server_and_all_or_none() -> None:
    scene = Scene()
    scene.desk.begin(JOB, 4, 0.0)
    assert [type(order) for order in scene.desk.orders()] == [ResizeOrder]
    assert scene.desk.orders() == [], "told once"
    (event,) = scene.ask_for(3)
    assert submitted([event]) == [(ADDED, 3)]
    assert isinstance(event, JobSubmitted)
    assert event.job.only_on == ("n1:1",)


def test_the_surplus_ends_and_the_gang_is_what_is_left() -> None:
    scene = Scene()
    scene.grow(4)
    scene.desk.begin(JOB, 2, 2.0)
    assert list(scene.desk.due(2.0)) == []
    assert scene.cluster.ends("c4", RELEASED) == []
    assert list(scene.desk.due(2.0)) == [], "not before all have left"
    assert scene.cluster.ends("c2") == []
    scene.phases[APP] = JobPhase.SUSPENDED
    assert list(scene.desk.due(2.0)) == [], "not while it stands still"
    scene.phases[APP] = JobPhase.RUNNING
    assert list(scene.desk.due(2.0)) == [GangResized(2.0, JOB, (0, 2))]
    assert scene.containers() == ["c1", "c3"]
    assert scene.cluster.ends("c1") == []
    assert scene.cluster.ends("c3") == [JobFinished(2.0, JOB)]


def test_what_a_shrink_gave_up_the_next_growth_uses() -> None:
    """Case G03: where a worker left in good order another may come, and the gang is at its full size again."""
    scene = Scene()
    scene.grow(2)
    scene.desk.begin(JOB, 1, 2.0)
    assert scene.cluster.ends("c2", RELEASED) == []
    assert list(scene.desk.due(2.0)) == [GangResized(2.0, JOB, (0,))]
    assert scene.grow(2) == [GangResized(1.0, JOB, (0,), (JobId(f"{APP}#3"),))]
    assert scene.containers() == ["c1", "c3"]


def test_what_its_master_calls_off_leaves_the_gang_as_it_was() -> None:
    scene = Scene()
    scene.desk.begin(JOB, 2, 0.0)
    scene.desk.orders()
    scene.ask_for(1)
    scene.cluster.commit(ADDED, ["n1:1"], [GPU])
    assert list(scene.desk.due(1.0)) == []
    assert scene.cluster.ends("c2", RELEASED) == [JobFinished(2.0, ADDED)]
    assert list(scene.desk.due(2.0)) == []
    assert "called it off" in scene.desk.standing(JOB)
    assert scene.containers() == ["c1"]
    scene.desk.begin(JOB, 2, 3.0)
    assert scene.desk.standing(JOB) == "to 2 workers"


def test_an_ask_that_is_taken_back_and_a_master_that_does_nothing_end_it() -> None:
    scene = Scene()
    scene.desk.begin(JOB, 2, 0.0)
    scene.desk.orders()
    scene.ask_for(1)
    assert scene.cluster.asks() == [JobKilled(0.0, ADDED)]
    assert list(scene.desk.due(ASK_S)) == []
    assert "does not ask for more" in scene.desk.standing(JOB)
    scene.grow(2)
    scene.desk.begin(JOB, 1, 0.0)
    assert list(scene.desk.due(LIMIT_S)) == []
    assert "did not do it in time" in scene.desk.standing(JOB)
    scene.desk.begin(JOB, 3, 0.0)
    (order,) = scene.desk.orders()
    scene.desk.book([Answer("move/3", "OK"), Answer(order.id, "ASK_GONE", "it left")])
    assert scene.desk.standing(JOB) == "not resized: ASK_GONE it left"


def test_a_grown_gang_that_loses_a_worker_starts_again_at_its_own_size() -> None:
    scene = Scene("gandiva.gang=2", 2)
    scene.grow(3)
    (event,) = scene.cluster.ends("c3", 1)
    assert isinstance(event, GangBroken)
    written = scene.cluster.desk.write([ReleaseGang(9, JOB, "")], 4.0)
    (order,) = written.orders
    assert isinstance(order, ReleaseOrder)
    assert order.containers == ("c1", "c2")
    assert written.refused == (GangResized(4.0, JOB, (0, 1)),)
    assert scene.cluster.asks(ask(2)) == [], "it waits anew, as the job that it was"
    assert scene.containers() == ["", ""]


def test_added_workers_that_are_lost_are_not_waited_for() -> None:
    """Nobody asks for them again: neither after a lost node, nor by the next master."""
    scene = Scene()
    scene.desk.begin(JOB, 3, 0.0)
    scene.desk.orders()
    scene.ask_for(2)
    scene.cluster.commit(ADDED, ["n1:1"] * 2, [GPU] * 2)
    scene.cluster.tell(NodeRemoved(node="n1:1"))
    written = scene.cluster.desk.write([ReleaseGang(9, ADDED, "")], 4.0)
    assert written.refused == (JobKilled(4.0, ADDED),)
    other = Scene()
    other.desk.begin(JOB, 2, 0.0)
    other.ask_for(1)
    again = AppAdded(app=APP, attempt="appattempt_1_0001_000002", queue="root.a")
    assert other.cluster.tell(again) == [JobKilled(0.0, ADDED)]


def test_what_cannot_begin_says_why() -> None:
    scene = Scene("gandiva.gang=2", 2)
    with pytest.raises(ResizeRefusedError, match=r"asked for 2 workers \(G-82\)"):
        scene.desk.begin(JOB, 1, 0.0)
    scene.desk.begin(JOB, 4, 0.0)
    with pytest.raises(ResizeRefusedError, match="is being resized"):
        scene.desk.begin(JOB, 3, 0.0)
    with pytest.raises(ResizeRefusedError, match="has left"):
        scene.desk.begin(JobId("x"), 3, 0.0)
    apart = Cluster()
    apart.add_app("gandiva.gang=2")
    apart.asks(ask(2))
    desk = ResizeDesk(apart.register, scene)  # type: ignore[arg-type]
    with pytest.raises(ResizeRefusedError, match="not all of its containers"):
        desk.begin(JOB, 4, 0.0)
    apart.commit(APP, ["n1:1", "n2:1"], [GPU, GPU])
    with pytest.raises(ResizeRefusedError, match="several servers"):
        desk.begin(JOB, 4, 0.0)
