"""Devices of a node that lost some: no gap, none twice (G-13)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.yarn_plugin.agents.scene import AgentScene
from yarn_plugin.agents.nodes import NodeSide


@given(gpus=st.integers(1, 8), lost=st.lists(st.integers(0, 7), unique=True, max_size=8))
def test_the_engines_indices_stand_for_devices_that_are_there(gpus: int, lost: list[int]) -> None:
    scene = AgentScene("n1", gpus=gpus)
    scene.attend("n1")
    side: NodeSide = scene.world.attendance.nodes["n1"]
    gone = [gpu for gpu in lost if gpu < gpus]
    for gpu in gone:
        assert side.lose(gpu)
        assert not side.lose(gpu)
    left = [side.device(index) for index in range(gpus - len(gone))]
    assert sorted(left) == sorted(set(range(gpus)) - set(gone))


def test_who_runs_elsewhere_keeps_the_name_of_its_device() -> None:
    """Only the last device is called differently: an index below the gap means what it meant."""
    scene = AgentScene("n1", gpus=4)
    scene.attend("n1")
    side = scene.world.attendance.nodes["n1"]
    side.lose(1)
    assert [side.device(index) for index in range(3)] == [0, 3, 2]


def test_a_device_that_comes_back_takes_no_others_name() -> None:
    scene = AgentScene("n1", gpus=4)
    scene.attend("n1")
    side = scene.world.attendance.nodes["n1"]
    assert not side.find(1)
    side.lose(1)
    assert side.find(1)
    assert not side.find(1)
    assert [side.device(index) for index in range(4)] == [0, 3, 2, 1]
