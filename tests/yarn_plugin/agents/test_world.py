"""The engine's orders as agents carry them out, and what becomes of them (G-11, G-12, G-13; DESIGN §4, §5)."""

from __future__ import annotations

import pytest

from gandiva_core.messages import agents as a
from gandiva_core.messages import events as e
from gandiva_core.model.units import JobId, ServerId
from tests.yarn_plugin.agents.scene import EPOCH, AgentScene
from yarn_plugin.agents.nodes import LOST_S

A, B = JobId("a"), JobId("b")


def switched(switch_id: int, **what: tuple[tuple[str, float], ...]) -> a.Switched:
    return a.Switched(1, switch_id, what.get("stopped", ()), what.get("started", ()))


@pytest.fixture
def scene() -> AgentScene:
    """Job a has a worker on each of two nodes, job b one on the first."""
    scene = AgentScene("n1", "n2")
    scene.gang("a", "n1", "n2", never=("migrate",))
    scene.gang("b", "n1")
    for node in ("n1", "n2"):
        scene.attend(node)
        scene.told(node)
    return scene


def start(scene: AgentScene) -> int:
    """Job a runs on both nodes."""
    switch_id = scene.switch(a=[("n1", 0), ("n2", 1)])
    scene.say("n1", switched(switch_id, started=(("a/0", 1.0),)))
    scene.say("n2", switched(switch_id, started=(("a/1", 2.0),)))
    for node in ("n1", "n2"):
        scene.told(node)
    return switch_id


def test_an_agent_is_told_whose_workers_it_has_before_anything_else(scene: AgentScene) -> None:
    """A13: who is expected nowhere gets no device."""
    scene.attend("n2", session="another")
    welcome, expect = scene.told("n2")
    assert isinstance(welcome, a.Welcome)
    assert (welcome.epoch, welcome.silent_s) == (EPOCH, 30.0)
    assert isinstance(expect, a.Expect)
    assert expect.workers == (a.Expected("a/1", "a", 1, 1, 2, "ann", "root.default", ("migrate",)),)


def test_a_gang_has_started_when_all_of_its_workers_have(scene: AgentScene) -> None:
    switch_id = scene.switch(a=[("n1", 0), ("n2", 1)])
    assert [s.run for s in scene.switches("n1")] == [(a.RunWorker("a/0", (0,)),)]
    assert [s.run for s in scene.switches("n2")] == [(a.RunWorker("a/1", (1,)),)]
    assert scene.say("n1", switched(switch_id, started=(("a/0", 1.0),))) == []
    events = scene.say("n2", switched(switch_id, started=(("a/1", 2.0),)))
    assert events == [e.ResidentsSwitched(scene.now_s, switch_id, (), ((A, scene.now_s),))]


def test_answers_that_come_twice_late_or_about_strangers_mean_nothing(scene: AgentScene) -> None:
    switch_id = start(scene)
    assert scene.say("n1", switched(switch_id, started=(("a/0", 1.0), ("x", 1.0)))) == []
    assert scene.say("n1", switched(switch_id + 5, stopped=(("a/0", 1.0),))) == []
    assert scene.say("n9", switched(switch_id, stopped=(("a/0", 1.0),))) == []
    assert scene.pass_time(60.0) == []


def test_who_does_not_stop_runs_on_whole_and_is_not_asked_again(scene: AgentScene) -> None:
    """FAULTS A8, E11: one worker had stopped already; it goes on, and nobody is killed."""
    start(scene)
    switch_id = scene.switch(["a"], b=[("n1", 0)])
    scene.told("n1")
    scene.say("n2", switched(switch_id, stopped=(("a/1", 3.0),)))
    scene.told("n2")
    failure = a.Failure("a/0", "NO_BOUNDARY", "30 s")
    events = scene.say("n1", a.Switched(1, switch_id, failed=(failure,)))
    reason = "NO_BOUNDARY: 30 s"
    assert events == [
        e.SwitchFailed(scene.now_s, switch_id, (A,), (), reason),
        e.JobLearned(scene.now_s, A, False, reason),
    ]
    assert [s.run for s in scene.switches("n2")] == [(a.RunWorker("a/1", (1,)),)]
    assert [s.suspend for s in scene.switches("n1")] == [("b/0",)], "b waits for others' devices"


def test_a_sibling_that_stops_after_the_failure_goes_on_too(scene: AgentScene) -> None:
    """FAULTS A8: it was told to stop before anybody knew; what it is told last counts."""
    start(scene)
    switch_id = scene.switch(["a"])
    scene.told("n2")
    scene.say("n1", a.Switched(1, switch_id, failed=(a.Failure("a/0", "NO_BOUNDARY"),)))
    assert [s.run for s in scene.switches("n2")] == [(a.RunWorker("a/1", (1,)),)]
    assert scene.switches("n1")[1:] == [], "who did not stop is not told to run"
    assert scene.say("n2", switched(switch_id, stopped=(("a/1", 3.0),))) == []


def test_devices_are_called_back_before_their_holder_goes_on(scene: AgentScene) -> None:
    """The agent carries out orders as they come, and refuses a device that nobody is leaving."""
    scene.gang("c", "n2")
    start(scene)
    switch_id = scene.switch(["a"], b=[("n1", 0)], c=[("n2", 1)])
    scene.told("n2")
    scene.say("n2", switched(switch_id, stopped=(("a/1", 3.0),)))
    assert scene.say("n2", switched(switch_id, started=(("c/0", 3.0),))) == []
    failed = a.Switched(1, switch_id, failed=(a.Failure("a/0", "NO_BOUNDARY"),))
    events = scene.say("n1", failed)
    assert isinstance(events[0], e.SwitchFailed)
    told = [(s.suspend, s.run) for s in scene.switches("n2")]
    assert told == [(("c/0",), ()), ((), (a.RunWorker("a/1", (1,)),))]


@pytest.mark.parametrize("how", ["stops", "has left"])
def test_a_start_is_told_once_the_gang_before_it_stopped_everywhere(
    scene: AgentScene, how: str
) -> None:
    """The engine takes a start for the word that the whole gang before it has stopped."""
    scene.gang("c", "n2")
    start(scene)
    switch_id = scene.switch(["a"], c=[("n2", 1)])
    scene.say("n2", switched(switch_id, stopped=(("a/1", 3.0),)))
    assert scene.say("n2", switched(switch_id, started=(("c/0", 3.0),))) == []
    if how == "stops":
        events = scene.say("n1", switched(switch_id, stopped=(("a/0", 4.0),)))
    else:
        scene.register.remove(*next(scene.register.gangs()))
        events = scene.pass_time(1.0)
    started = [each for event in events for each, _ in getattr(event, "started", ())]
    assert started == [JobId("c")]


def failed_stop(scene: AgentScene) -> None:
    """Job a's worker on n1 does not stop; the one on n2 has, and is told to go on."""
    start(scene)
    switch_id = scene.switch(["a"])
    scene.say("n2", switched(switch_id, stopped=(("a/1", 3.0),)))
    scene.say("n1", a.Switched(1, switch_id, failed=(a.Failure("a/0", "NO_BOUNDARY"),)))
    scene.told("n2")


def test_what_puts_a_failed_switch_right_is_not_lost_with_a_stream(scene: AgentScene) -> None:
    """The engine believes that the job runs, and would never say so again."""
    failed_stop(scene)
    scene.say("n2", None)
    scene.attend("n2")
    assert [s.run for s in scene.switches("n2")] == [(a.RunWorker("a/1", (1,)),)]
    assert scene.say("n2", switched(0, started=(("a/1", 5.0),))) == []
    scene.attend("n2", session="after a restart")
    assert scene.switches("n2") == [], "it went on"


def test_what_is_ordered_later_outranks_what_was_to_put_right(scene: AgentScene) -> None:
    failed_stop(scene)
    switch_id = scene.switch(["a"])
    scene.told("n2")
    scene.attend("n2")
    assert [(s.switch_id, s.suspend) for s in scene.switches("n2")] == [(switch_id, ("a/1",))]


@pytest.mark.parametrize(("code", "is_broken"), [("RANK_ERROR", True), ("ENDED", False)])
def test_a_gang_of_which_a_worker_does_not_go_on_starts_again(
    scene: AgentScene, code: str, is_broken: bool
) -> None:
    """Half of it would wait for the other half for ever."""
    failed_stop(scene)
    events = scene.say("n2", a.Switched(1, 0, failed=(a.Failure("a/1", code),)))
    told = f"a worker did not go on: {code}"
    assert events == ([e.GangBroken(scene.now_s, A, told)] if is_broken else [])


def test_a_start_that_failed_is_told_later_each_time(scene: AgentScene) -> None:
    """The engine orders it again at once: without a pause that would be many times a second."""
    pauses = []
    for _ in range(6):
        switch_id = scene.switch(a=[("n1", 0), ("n2", 1)])
        failure = a.Failure("a/0", "DEVICE_TAKEN", "device 0")
        assert scene.say("n1", a.Switched(1, switch_id, failed=(failure,))) == []
        due_s = scene.world.next_at_s()
        assert due_s is not None
        pauses.append(due_s - scene.now_s)
        events = scene.pass_time(pauses[-1])
        reason = "DEVICE_TAKEN: device 0"
        assert events == [e.SwitchFailed(scene.now_s, switch_id, (), (A,), reason)]
        assert scene.switches("n2")[-1].suspend == ("a/1",), "its sibling is called back"
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    start(scene)
    switch_id = scene.switch(["a"])
    assert scene.world.next_at_s() is None


def test_what_an_agent_missed_it_hears_when_it_is_back(scene: AgentScene) -> None:
    """Commands are idempotent: those not answered are sent again, in order, with new ids (I6)."""
    scene.say("n2", None)
    switch_id = scene.switch(a=[("n1", 0), ("n2", 1)])
    scene.told("n2")
    scene.attend("n2", session="after a restart")
    again = scene.switches("n2")
    assert [(s.switch_id, s.run) for s in again] == [(switch_id, (a.RunWorker("a/1", (1,)),))]
    ids = [again[0].message_id]
    scene.switch(["b"])
    assert ids == sorted(ids)


def test_a_node_whose_agent_is_gone_shares_no_more_after_a_while(scene: AgentScene) -> None:
    """Agents are restarted; nobody is stopped for it."""
    scene.world.attendance.changed()
    assert scene.world.attendance.can_suspend(ServerId("n1"))
    scene.say("n1", None)
    assert scene.world.attendance.can_suspend(ServerId("n1"))
    assert scene.world.attendance.changed() == []
    scene.pass_time(LOST_S + 1.0)
    assert not scene.world.attendance.can_suspend(ServerId("n1"))
    assert scene.world.attendance.changed() == ["n1"]
    scene.attend("n1")
    assert scene.world.attendance.can_suspend(ServerId("n1"))
    assert scene.world.attendance.changed() == ["n1"]


def test_a_node_without_an_agent_is_as_in_a_core_without_agents() -> None:
    scene = AgentScene("n1")
    scene.gang("a", "n1")
    switch_id = scene.switch(a=[("n1", 0)])
    events = scene.pass_time(0.1)
    assert events == [e.ResidentsSwitched(scene.now_s, switch_id, (), ((A, scene.now_s),))]
    assert not scene.world.attendance.can_suspend(ServerId("n1"))


def test_a_lost_device_breaks_its_job_and_goes_to_nobody(scene: AgentScene) -> None:
    """G-13; FAULTS E7: told twice, by the event and by the next report, it counts once."""
    start(scene)
    scene.world.attendance.changed()
    events = scene.say("n1", a.DeviceLost(1.0, 0, "XID 79"))
    assert events == [e.GangBroken(scene.now_s, A, "device 0 of n1 was lost: XID 79")]
    assert scene.say("n1", a.Measured(1.0, scene.devices(0), ())) == []
    assert scene.world.attendance.lost_gpus(ServerId("n1")) == 1
    assert scene.world.attendance.changed() == ["n1"]
    scene.switch(b=[("n1", 0)])
    assert scene.switches("n1")[0].run == (a.RunWorker("b/0", (1,)),), "the last fills the gap"
    scene.attend("n1", session="after a restart")
    assert scene.world.attendance.lost_gpus(ServerId("n1")) == 1


def test_a_job_that_has_ended_is_not_broken_by_what_it_left_on_its_device(
    scene: AgentScene,
) -> None:
    """E19: seen live: a slow end counted as a lost device, and a finished job was started again from its beginning."""
    scene.attend("n1")
    scene.switch(b=[("n1", 1)])
    scene.measure("n1", a.WorkerReport("b/0", a.WorkerState.ENDED, (1,)))
    scene.world.attendance.changed()
    assert scene.say("n1", a.DeviceLost(1.0, 1, "process 7 of b/0 stays on it")) == []
    assert scene.world.attendance.lost_gpus(ServerId("n1")) == 1
    assert scene.world.attendance.changed() == ["n1"]


def test_a_device_comes_back_when_its_agent_says_so_and_only_that_agent_can(
    scene: AgentScene,
) -> None:
    """E19: the process is gone. A device that an earlier agent called lost stays lost (G-13)."""
    scene.attend("n1")
    scene.say("n1", a.DeviceLost(1.0, 0, "process 7 stays on it"))
    scene.say("n1", a.Measured(1.0, scene.devices(0), ()))
    scene.world.attendance.changed()
    assert scene.measure("n1") == []
    assert scene.world.attendance.lost_gpus(ServerId("n1")) == 0
    assert scene.world.attendance.changed() == ["n1"]
    scene.say("n1", a.DeviceLost(1.0, 0, "XID 79"))
    scene.attend("n1", session="after a restart")
    scene.measure("n1")
    assert scene.world.attendance.lost_gpus(ServerId("n1")) == 1


def test_a_table_for_the_time_without_a_core_comes_with_every_switch(scene: AgentScene) -> None:
    """DESIGN §4: jobs that live on this node alone take turns on its healthy devices."""
    scene.gang("c", "n1")
    scene.attend("n1")
    scene.switch(b=[("n1", 1)])
    tables = [each for each in scene.told("n1") if isinstance(each, a.RotationTable)]
    named = {worker.container_id for quantum in tables[-1].quanta for worker in quantum}
    assert named == {"b/0", "c/0"}


def test_a_gang_that_grew_or_shrank_is_told_and_stopped_as_it_is_now() -> None:
    """G-80 … G-84: a job that joined another is stopped with it, on the devices that each worker has."""
    scene = AgentScene("n1")
    scene.gang("a", "n1")
    scene.gang("b", "n1")
    scene.attend("n1")
    switch_id = scene.switch(a=[("n1", 1)], b=[("n1", 0)])
    scene.say("n1", switched(switch_id, started=(("a/0", 1.0), ("b/0", 1.0))))
    scene.told("n1")
    register = scene.register
    gang, other = register.apps["a"].gangs[A], register.apps["b"].gangs[B]
    gang.members += other.members
    register.job_of["b/0"] = A
    del register.apps["b"].gangs[B], register.app_of[B]
    scene.world.reshaped(A, (B,))
    expect, table = scene.told("n1")
    assert isinstance(expect, a.Expect)
    assert [(w.job_id, w.rank, w.workers) for w in expect.workers] == [("a", 0, 2), ("a", 1, 2)]
    assert isinstance(table, a.RotationTable)
    assert table.quanta == ((a.RunWorker("a/0", (1,)), a.RunWorker("b/0", (0,))),)
    scene.switch(suspend=["a"])
    assert [s.suspend for s in scene.switches("n1")] == [("a/0", "b/0")]
    stopped = switched(scene.switch_id, stopped=(("a/0", 3.0), ("b/0", 3.0)))
    assert [type(event) for event in scene.say("n1", stopped)] == [e.ResidentsSwitched]
    switch_id = scene.switch(a=[("n1", 0), ("n1", 1)])
    scene.say("n1", switched(switch_id, started=(("a/0", 4.0), ("b/0", 4.0))))
    scene.told("n1")
    del gang.members[1], register.job_of["b/0"]
    scene.world.reshaped(A, ())
    expect, table = scene.told("n1")
    assert isinstance(expect, a.Expect)
    assert [(w.container_id, w.workers) for w in expect.workers] == [("a/0", 1)]
    assert isinstance(table, a.RotationTable)
    assert table.quanta == ((a.RunWorker("a/0", (0,)),),)
