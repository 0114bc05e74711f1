"""A move between agents, stage by stage; whatever fails leaves the source running (G-13, G-69; E13, E14)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gandiva_core.messages import agents as a
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import CarryOver, CloseMove
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from tests.yarn_plugin.agents.scene import RAM, AgentScene
from yarn_plugin.bridge.asks import AskKey
from yarn_plugin.bridge.gangs import Member
from yarn_plugin.bridge.moves import Leg, Move

A = JobId("a")
N1, N2, N3 = "n1", "n2", "n3"


class Moving:
    """Gang a, on n1 and n2, has second containers on n3 and n2 and is told to go there."""

    def __init__(self, *nodes_without_agent: str) -> None:
        self.scene = scene = AgentScene(N1, N2, N3)
        scene.gang("a", N1, N2)
        for node in (N1, N2, N3):
            if node not in nodes_without_agent:
                scene.attend(node)
        switch_id = scene.switch(a=[(N1, 0), (N2, 0)])
        for node, worker in ((N1, "a/0"), (N2, "a/1")):
            scene.say(node, a.Switched(1, switch_id, (), ((worker, 1.0),)))
        self.tell_all()
        found = scene.register.find(A)
        assert found is not None
        self.members: list[Member] = found[1].members
        legs = [
            Leg(member, node, AskKey(1, 1_000_000 + n), container)
            for n, (member, node, container) in enumerate(
                zip(self.members, (N3, N2), ("a/2", "a/3"), strict=True)
            )
        ]
        scene.moves._moves[5] = Move(A, legs, 0.0, is_ordered=True)

    def tell_all(self) -> dict[str, list[a.Command]]:
        """What each node was told since the last question, greetings and tables apart."""
        told = {node: self.scene.told(node) for node in (N1, N2, N3)}
        plain = a.Welcome | a.RotationTable
        return {n: [c for c in all_ if not isinstance(c, plain)] for n, all_ in told.items()}

    def begin(self) -> list[e.Event]:
        bindings = (Binding(ServerId(N2), (1,)), Binding(ServerId(N3), (1,)))
        effect = CarryOver(1, 5, A, (ServerId(N3), ServerId(N2)), bindings)
        self.scene.world.apply(self.scene.now_s, [effect])
        return self.scene.pass_time(0.0)

    def close(self, *, is_done: bool) -> None:
        self.scene.world.apply(self.scene.now_s, [CloseMove(1, 5, A, is_done)])
        self.scene.moves.end(5, is_done=is_done)  # as the bridge does, after the effect
        self.scene.pass_time(0.0)

    def answer(
        self,
        commands: Sequence[a.Command],
        node: str,
        code: str = "OK",
        **figures: float,
    ) -> list[e.Event]:
        """The last command of a node, answered."""
        command = commands[-1]
        assert not isinstance(command, a.Welcome)
        return self.scene.say(node, a.Answered(command.message_id, code, "said so", figures))

    def warm(self) -> dict[str, list[a.Command]]:
        """Both warmed up; what nodes were told of it."""
        told = self.tell_all()
        assert self.answer(told[N3], N3) == []
        assert self.answer(told[N2], N2, warm_s=3.0) == []
        return self.tell_all()

    def saved(self) -> dict[str, list[a.Command]]:
        """Both saved."""
        told = self.warm()
        self.answer(told[N1], N1, save_s=0.25)
        self.answer(told[N2], N2, save_s=0.5)
        return self.tell_all()


@pytest.fixture
def moving() -> Moving:
    moving = Moving()
    assert moving.begin() == []
    return moving


def test_destinations_warm_up_while_the_source_computes(moving: Moving) -> None:
    told = moving.tell_all()
    assert told[N1] == []
    expect, prepare = told[N3]
    assert isinstance(expect, a.Expect)
    assert [worker.container_id for worker in expect.workers] == ["a/2"]
    assert isinstance(prepare, a.PrepareMove)
    assert (prepare.worker.rank, prepare.worker.workers) == (0, 2)
    assert (prepare.gpus, prepare.from_container_id) == ((1,), "a/0")
    expect, prepare = told[N2]
    assert isinstance(expect, a.Expect)
    assert [worker.container_id for worker in expect.workers] == ["a/1", "a/3"]


def test_stages_follow_once_all_workers_have_done_them(moving: Moving) -> None:
    told = moving.warm()
    (save,), (other,) = told[N1], told[N2]
    assert isinstance(save, a.SaveState)
    assert isinstance(other, a.SaveState)
    assert (save.container_id, other.container_id) == ("a/0", "a/1")
    assert save.folder == other.folder
    assert save.folder.startswith(f"{RAM}/a-")
    assert moving.answer(told[N1], N1, save_s=0.25) == []
    assert moving.tell_all()[N3] == [], "one has not saved"
    assert moving.answer(told[N2], N2, save_s=0.5) == []
    told = moving.tell_all()
    (restore,) = told[N3]
    assert isinstance(restore, a.RestoreState)
    assert (restore.container_id, restore.folder) == ("a/2", save.folder)
    assert moving.answer(told[N3], N3, frozen_s=0.7) == []
    assert moving.answer(told[N2], N2, frozen_s=0.8, restore_s=0.1) == [
        e.GangMoved(
            moving.scene.now_s,
            5,
            A,
            0.8,
            (("frozen_s", 0.8), ("restore_s", 0.1), ("save_s", 0.5), ("warm_s", 3.0)),
        )
    ]


def test_in_the_end_both_sides_are_told_and_the_table_is_of_the_new_place(moving: Moving) -> None:
    told = moving.saved()
    moving.answer(told[N3], N3)
    moving.answer(told[N2], N2)
    moving.close(is_done=True)
    told = moving.tell_all()
    ends = [c for c in told[N2] if isinstance(c, a.EndMove)]
    assert [(end.container_id, end.is_done) for end in ends] == [("a/1", True), ("a/3", True)]
    expects = [c for c in told[N1] if isinstance(c, a.Expect)]
    assert [expect.workers for expect in expects] == [()]
    switch_id = moving.scene.switch(["a"])
    stops = {node: moving.scene.switches(node)[0].suspend for node in (N2, N3)}
    assert stops == {N2: ("a/3",), N3: ("a/2",)}
    assert switch_id


@pytest.mark.parametrize("stage", ["warm", "save", "restore"])
def test_what_fails_leaves_the_source_running(stage: str) -> None:
    moving = Moving()
    moving.begin()
    told = {
        "warm": moving.tell_all,
        "save": moving.warm,
        "restore": moving.saved,
    }[stage]()
    node = N1 if stage == "save" else N3
    (failed,) = moving.answer(told[node], node, "NO_SPACE")
    assert isinstance(failed, e.MoveFailed)
    assert (failed.move_id, failed.code) == (5, "NO_SPACE")
    assert f"on {node}: said so" in failed.detail
    moving.close(is_done=False)
    told = moving.tell_all()
    (end,) = [c for c in told[N1] if isinstance(c, a.EndMove)]
    assert (end.container_id, end.is_done) == ("a/0", False)
    assert moving.answer([end], N1) == []


def test_a_source_that_does_not_go_on_has_lost_its_gang(moving: Moving) -> None:
    told = moving.saved()
    moving.answer(told[N3], N3, "CONTINUITY")
    moving.close(is_done=False)
    (end,) = [c for c in moving.tell_all()[N1] if isinstance(c, a.EndMove)]
    (broken,) = moving.answer([end], N1, "OTHER_DEVICE")
    assert isinstance(broken, e.GangBroken)
    assert "a/0 does not go on after a move: OTHER_DEVICE" in broken.reason


def test_nobody_answers(moving: Moving) -> None:
    moving.tell_all()
    assert moving.scene.pass_time(200.0) == []
    (failed,) = moving.scene.pass_time(100.0)
    assert isinstance(failed, e.MoveFailed)
    assert failed.code == "NO_ANSWER"
    assert "a/2, a/3" in failed.detail
    assert moving.scene.pass_time(1000.0) == [], "told once"


def test_an_agent_was_away_and_is_told_again_how_it_ended(moving: Moving) -> None:
    """A source that saved stands still until it hears so."""
    moving.saved()
    moving.scene.say(N1, None)
    (failed,) = moving.scene.attend(N1, session="later")
    assert isinstance(failed, e.MoveFailed)
    assert failed.code == "AGENT_AWAY"
    moving.scene.say(N1, None)
    moving.tell_all()
    moving.close(is_done=False)
    assert [c for c in moving.tell_all()[N1] if isinstance(c, a.EndMove)] == []
    moving.scene.attend(N1, session="later")
    (end,) = [c for c in moving.tell_all()[N1] if isinstance(c, a.EndMove)]
    assert (end.container_id, end.is_done) == ("a/0", False)


def test_without_an_agent_at_either_end_nothing_begins() -> None:
    moving = Moving(N3)
    (failed,) = moving.begin()
    assert isinstance(failed, e.MoveFailed)
    assert (failed.code, failed.detail) == ("NO_AGENT", "no agent is there on n3")


def test_agents_that_keep_states_in_different_folders() -> None:
    moving = Moving(N3)
    moving.scene.ram_dirs[N3] = "/mnt/other"
    moving.scene.attend(N3)
    (failed,) = moving.begin()
    assert isinstance(failed, e.MoveFailed)
    assert "/dev/shm/gandiva, /mnt/other: one folder is expected" in failed.detail
