"""Whose agent is there: looked at in every turn, so a turn costs what changed (DESIGN §4)."""

from __future__ import annotations

from gandiva_core.messages.agents import AgentHello
from gandiva_core.model.units import ServerId
from tests.builders import server
from yarn_plugin.agents.attendance import Attendance
from yarn_plugin.agents.nodes import LOST_S, NodeSide
from yarn_plugin.bridge.register import Register


class CountedNodes(dict[str, NodeSide]):
    """Counts how often somebody goes through all of them."""

    walks = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        self.walks += 1
        return super().__iter__()

    def items(self):  # type: ignore[no-untyped-def]
        self.walks += 1
        return super().items()

    def values(self):  # type: ignore[no-untyped-def]
        self.walks += 1
        return super().values()


def attendance(*nodes: str) -> Attendance:
    register = Register()
    found = Attendance(register)
    found.nodes = CountedNodes()
    found.pass_time(100.0)
    for node in nodes:
        register.put_server(node, server(node, 2))
        found.came(node, AgentHello(node, "s", "1", (), True))
    return found


def test_a_turn_in_which_nothing_happens_goes_through_no_nodes() -> None:
    """C-2: 50 turns a second with thousands of nodes."""
    found = attendance("n1", "n2")
    assert isinstance(found.nodes, CountedNodes)
    found.changed()
    found.went("n1", found.nodes["n1"])
    for second in range(101, 200):
        found.pass_time(float(second))
        found.changed()
    assert found.nodes.walks == 0


def test_an_agent_that_is_lost_is_news_once() -> None:
    found = attendance("n1", "n2")
    assert found.changed() == ["n1", "n2"]
    found.went("n1", found.nodes["n1"])
    found.pass_time(100.0 + LOST_S - 0.1)
    assert found.changed() == []
    assert found.can_suspend(ServerId("n1"))
    assert not found.is_there("n1")
    found.pass_time(100.0 + LOST_S)
    assert found.changed() == ["n1"]
    assert not found.can_suspend(ServerId("n1"))
    found.pass_time(1000.0)
    assert found.changed() == []


def test_an_agent_that_is_back_in_time_was_never_lost() -> None:
    found = attendance("n1")
    found.went("n1", found.nodes["n1"])
    found.pass_time(110.0)
    found.came("n1", AgentHello("n1", "t", "1", (), True))
    assert found.changed() == ["n1"]
    found.pass_time(1000.0)
    assert found.changed() == []
    assert found.is_there("n1")


def test_a_lost_device_outlives_its_agent() -> None:
    """G-13."""
    found = attendance("n1")
    found.changed()
    assert found.lose("n1", found.nodes["n1"], 1)
    assert not found.lose("n1", found.nodes["n1"], 1)
    assert found.changed() == ["n1"]
    found.came("n1", AgentHello("n1", "t", "1", (), True))
    assert found.lost_gpus(ServerId("n1")) == 1
