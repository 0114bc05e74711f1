"""The loop between a ResourceManager that changes its mind and an engine: modes, heights, reasons, snapshots."""

from __future__ import annotations

import pytest

from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import ServerId
from tests.yarn_plugin.live.core_scene import CoreScene
from tests.yarn_plugin.live.scripted_rm import ScriptedRm

NODE = ServerId("n1:1")


def scene(mode: str = "full", *, nodes: int = 1, can_suspend: bool = True) -> CoreScene:
    rm = ScriptedRm(nodes)
    rm.configure(mode)
    core = CoreScene(rm, can_suspend=can_suspend)
    core.settle()
    return core


# ---------------------------------------------------------------------- losses


@pytest.mark.parametrize("how", ["a worker fails", "a node is lost", "events are lost"])
@pytest.mark.parametrize("by_us", [True, False])
def test_of_an_application_that_said_nothing_the_rest_is_never_given_back(
    how: str, *, by_us: bool
) -> None:
    """DESIGN §6, soft gangs: that the workers need each other is a guess, and no reason to end what runs."""
    core = scene("full" if by_us else "observe", nodes=2)
    app = core.rm.submit("root.a")
    core.rm.ask(app, 5)
    core.settle()
    core.rm.rest(app)
    core.settle()
    if not by_us:  # as a shop finds its jobs when it adopts them
        for node in ("n1:1", "n1:1", "n1:1", "n1:1", "n2:1"):
            core.rm.allocate(app, node)
        core.settle()
        core.rm.configure("full")
        core.settle()
    assert len(core.rm.containers) == 5
    first = next(c.name for c in core.rm.containers.values() if c.node == "n2:1")
    if how == "a node is lost":
        core.rm.lose_node("n2:1")
    else:
        core.rm.complete(first, 1)
        if how == "events are lost":
            core.rm.overflow()
    left = set(core.rm.containers)
    for _ in range(3):
        core.settle()
        core.turn(61.0)
    assert core.rm.released == []
    assert set(core.rm.containers) == left
    assert len(core.jobs(JobPhase.RUNNING)) == 1, "they go on together"
    core.assert_same_books()


def test_of_a_declared_gang_the_rest_is_given_back() -> None:
    """G-13: its user said that they need each other."""
    core = scene(nodes=2)
    app = core.rm.submit("root.a", "gandiva.gang=5")
    core.rm.ask(app, 5)
    core.settle()
    core.rm.complete(min(core.rm.containers), 1)
    core.settle()
    assert len(core.rm.released) == 4
    assert not core.rm.containers


# ---------------------------------------------------------------------- modes


def test_in_observe_the_core_decides_and_orders_nothing() -> None:
    core = scene("observe")
    app = core.rm.submit("root.a", "gandiva.gang=1")
    core.rm.ask(app, 2)
    core.turn()
    assert core.rm.commits == 0
    view = core.engine.view
    assert len(view.queue) == 2
    assert all(f"refused/{job_id}" in view.memory for job_id in view.queue), "code MODE"
    core.rm.allocate(app, "n1:1")
    core.settle()
    assert core.jobs(JobPhase.RUNNING) == [app.name]
    core.assert_same_books()


def test_a_queue_that_is_not_adopted_has_no_job_that_waits() -> None:
    core = scene()
    core.rm.configure("full", queues=("root.a",))
    app = core.rm.submit("root.b", "gandiva.gang=1")
    core.rm.ask(app, 2)
    core.settle()
    assert not core.engine.view.jobs
    core.rm.allocate(app, "n1:1")
    core.settle()
    assert core.engine.view.servers[NODE].allocated == 1
    core.assert_same_books()


@pytest.mark.parametrize("steps", [("place", "full", "observe"), ("observe", "full", "place")])
def test_modes_change_under_way_and_nobody_is_stopped_or_lost(steps: tuple[str, ...]) -> None:
    """Eight containers on four devices survive every step there and back."""
    core = scene("full")
    app = core.rm.submit("root.a", "gandiva.gang=1")
    core.rm.ask(app, 9)
    core.settle()
    core.turn(61.0)
    resident = set(core.rm.containers)
    assert len(resident) >= 8
    for mode in steps:
        core.rm.configure(mode)
        for _ in range(4):
            core.turn(61.0)
        core.assert_same_books()
        assert resident <= set(core.rm.containers)
    assert core.rm.released == []


def test_a_node_is_shared_in_full_only_and_its_height_is_set_before_anything_is_placed() -> None:
    core = scene("place")
    app = core.rm.submit("root.a", "gandiva.gang=1")
    core.rm.ask(app, 8)
    core.settle()
    assert (core.rm.commits, core.rm.heights) == (4, {})
    core.rm.configure("full")
    core.turn()
    assert core.rm.heights == {"n1:1": 4}
    core.turn(61.0)
    assert core.rm.commits == 8
    core.rm.configure("place")
    core.settle()
    assert core.rm.heights == {"n1:1": 1}


def test_a_height_is_told_to_a_node_that_comes_back_and_to_a_resource_manager_that_restarted() -> (
    None
):
    core = scene("full")
    core.rm.heights.clear()
    core.rm.lose_node("n1:1")
    core.rm.register_node("n1:1")
    core.settle()
    assert core.rm.heights == {"n1:1": 4}
    core.rm.restart()
    core.rm.register_node("n1:1")
    core.settle()
    assert core.rm.heights == {"n1:1": 4}


# ---------------------------------------------------------------------- reasons


def test_a_gang_that_no_set_of_servers_can_hold_says_so_within_a_turn() -> None:
    core = scene()
    app = core.rm.submit("root.a", "gandiva.gang=8")
    core.rm.ask(app, 8)
    core.settle()
    assert core.rm.texts[app.name] == (
        "gang of 8 waits: needs 8 GPUs at once, 4 are there in the default partition "
        "(no server set is large enough)"
    )


def test_a_cluster_without_any_gpu_says_so_within_a_turn() -> None:
    """A12 i."""
    core = scene(nodes=0)
    app = core.rm.submit("root.a", "gandiva.gang=1")
    core.rm.ask(app, 1)
    core.settle()
    assert core.rm.texts[app.name] == (
        "container waits: needs 1 GPUs, 0 are there in the default partition (no node with GPUs)"
    )


def test_an_incomplete_gang_says_what_is_missing() -> None:
    core = scene()
    app = core.rm.submit("root.a", "gandiva.gang=8")
    core.rm.ask(app, 3)
    core.settle()
    assert core.rm.texts[app.name].startswith("3 of 8 containers of a gang are asked for")


def test_a_reason_is_cleared_on_placement() -> None:
    core = scene(can_suspend=False)
    app = core.rm.submit("root.a", "gandiva.gang=1")
    core.rm.ask(app, 5)
    core.settle()
    core.turn(2.0)
    core.turn()
    assert "0 are free" in core.rm.texts[app.name]
    core.rm.complete(min(core.rm.containers), 0)
    core.turn(2.0)
    core.turn()
    assert len(core.rm.containers) == 4
    assert core.rm.texts[app.name] == ""


def test_an_application_is_told_at_most_once_a_second_and_the_same_thing_once() -> None:
    core = scene(can_suspend=False)
    told: list[str] = []
    texts = core.rm.texts

    class Counted(dict[str, str]):
        def __setitem__(self, app: str, text: str) -> None:
            told.append(text)
            super().__setitem__(app, text)

    core.rm.texts = Counted(texts)
    app = core.rm.submit("root.a", "gandiva.gang=1")
    core.rm.ask(app, 6)
    core.turn()
    for count in (7, 8, 9):
        core.rm.ask(app, app.asks[1] + count - 6)
        core.turn(0.1)
    assert len(told) == 1
    core.turn(1.0)
    core.turn(1.0)
    core.turn(1.0)
    assert len(told) == 2, told


def test_a_refusal_of_the_resource_manager_has_words() -> None:
    core = scene()

    app = core.rm.submit("root.a", "gandiva.gang=1")
    core.rm.ask(app, 1)
    real = core.rm._commit

    def refuse(effect: dict[str, object], answer: dict[str, object]) -> None:
        answer["code"], answer["detail"] = "QUEUE_LIMIT", "root.a uses 8 of at most 8"

    core.rm._commit = refuse  # type: ignore[method-assign]
    core.settle()
    assert core.rm.texts[app.name] == (
        "container waits: its queue is at its maximum (root.a uses 8 of at most 8)"
    )
    core.rm._commit = real  # type: ignore[method-assign]
    core.turn(61.0)
    core.turn(2.0)
    core.turn()
    assert core.rm.texts[app.name] == ""


def test_in_observe_nothing_is_written_into_diagnostics() -> None:
    core = scene("observe")
    app = core.rm.submit("root.a", "gandiva.gang=8")
    core.rm.ask(app, 8)
    core.settle()
    assert not core.rm.texts.get(app.name)


def test_a_restarted_core_takes_back_what_the_older_one_said() -> None:
    core = scene(can_suspend=False)
    app = core.rm.submit("root.a", "gandiva.gang=8")
    core.rm.ask(app, 8)
    core.settle()
    assert core.rm.texts[app.name]
    app.asks.clear()
    again = CoreScene(core.rm, can_suspend=False, now_s=core.now_s)
    again.settle()
    assert core.rm.texts[app.name] == ""


# ---------------------------------------------------------------------- snapshots


def test_events_lost_in_the_middle_of_pending_commits_end_with_the_same_books() -> None:
    core = scene("full", nodes=2)
    app = core.rm.submit("root.a", "gandiva.gang=2")
    core.rm.ask(app, 8)
    core.rm.loses_answers = True
    core.turn()
    core.rm.loses_answers = False
    made = set(core.rm.containers)
    assert made, "orders were carried out whose answers were lost"
    core.rm.complete(min(made), 137)
    core.rm.overflow()
    core.settle()
    core.turn(400.0)
    core.settle()
    core.assert_same_books()
    assert len(core.rm.containers) >= 6


def test_while_parts_of_a_snapshot_come_nothing_is_ordered_behind_its_back() -> None:
    """C05: a container made between two parts would look as if it had ended."""
    core = scene("full")
    app = core.rm.submit("root.a")
    core.rm.ask(app, 2)
    core.settle()
    core.rm.overflow(parts=2)
    core.turn(10.0)
    assert core.loop._wait_ms() == 0
    assert core.rm.commits == 0, "the asks rest by now, but the snapshot is not whole"
    core.turn()
    core.turn(10.0)
    core.settle()
    core.assert_same_books()


def test_eight_on_four_devices_survive_core_and_resource_manager() -> None:
    """C12 and the issue's restart: the same residents, heights and waiting asks before and after."""
    core = scene("full")
    app = core.rm.submit("root.a", "gandiva.gang=1")
    core.rm.ask(app, 20)
    core.settle()
    core.turn(61.0)
    core.settle()
    before = (core.engine.view.servers[NODE].allocated, set(core.rm.containers))
    waiting = len(core.engine.view.queue)
    core.rm.restart()
    again = CoreScene(core.rm, now_s=core.now_s)
    again.turn()
    again.rm.register_node("n1:1")
    again.settle()
    assert (again.engine.view.servers[NODE].allocated, set(core.rm.containers)) == before
    assert len(again.engine.view.queue) == waiting
    assert again.rm.heights == {"n1:1": 4}
    again.turn()
    assert len(again.jobs(JobPhase.RUNNING)) == 4
    assert again.rm.released == []
