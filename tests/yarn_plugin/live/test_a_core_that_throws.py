"""A bug in the core's handler ends the core, and nothing else (case A08; DESIGN §8)."""

from __future__ import annotations

import json

import pytest

from gandiva_core.config.settings import Settings
from gandiva_core.engine.errors import PolicyError
from gandiva_core.messages.events import Event
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.view import ClusterView
from gandiva_core.policies.gandiva import create
from gandiva_core.site.logs import logger
from tests.yarn_plugin.live.core_scene import CoreScene
from tests.yarn_plugin.live.scripted_rm import Container, ScriptedRm
from yarn_plugin.live.connection import SupersededError
from yarn_plugin.live.process import traced


class Throwing:
    """The policy until it is armed; then it throws at the next event."""

    name = "gandiva"
    is_armed = False

    def __init__(self) -> None:
        self._policy = create(Settings(), {})
        self.mechanisms = self._policy.mechanisms

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        if self.is_armed:
            raise ValueError("no such node")
        return self._policy.decide(event, view)


def late(rm: ScriptedRm, lost: Container, *, is_expiry_first: bool) -> None:
    """What comes of a node that has gone, and of a container there."""
    updated = rm._node(lost.node)
    told = {"app": lost.app, "container": lost.name, "node": lost.node, "exit_status": -100}
    events = [("container_completed", told), ("node_updated", updated)]
    for kind, fields in events if is_expiry_first else reversed(events):
        rm.tell(kind, **fields)


@pytest.mark.parametrize("is_expiry_first", [True, False])
def test_late_events_of_a_lost_node_are_handled_by_the_next_core(is_expiry_first: bool) -> None:
    """Nothing was ordered by the one that threw; of n1 nothing is used, and the next ask is served at once."""
    rm = ScriptedRm(nodes=2)
    policy = Throwing()
    core = CoreScene(rm, policy=policy)
    app = rm.submit("root.a", "gandiva.gang=1")
    rm.ask(app, 8)
    core.settle()
    lost = next(c for c in rm.containers.values() if c.node == "n1:1")
    survivors = {name for name, c in rm.containers.items() if c.node != "n1:1"}
    policy.is_armed = True
    rm.lose_node("n1:1")
    late(rm, lost, is_expiry_first=is_expiry_first)
    commits = rm.commits
    with pytest.raises(PolicyError, match="ValueError: no such node"):
        core.turn()
    assert (rm.commits, rm.released) == (commits, [])

    following = CoreScene(rm, now_s=core.now_s)
    waiting = rm.submit("root.b", "gandiva.gang=1")
    rm.ask(waiting, 1)
    following.settle()
    following.assert_same_books()
    assert set(following.engine.view.servers) == {"n2:1"}
    assert survivors <= rm.containers.keys()
    assert any(c.app == waiting.name for c in rm.containers.values())


def test_where_it_happened_is_logged_once(capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON with the stack; the command's own line comes after it."""

    def throw() -> None:
        raise ValueError("no such node")

    with pytest.raises(ValueError, match="no such node"), traced(logger()):
        throw()
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["level"], told["problem"]) == ("error", "no such node")
    assert "in throw" in told["exception"]


def test_what_is_no_bug_has_no_stack(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SupersededError), traced(logger()):
        raise SupersededError("another core decides")
    assert capsys.readouterr().err == ""
