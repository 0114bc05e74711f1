"""Whatever gets lost between core and ResourceManager: in the end both have the same books.

Random histories of applications, stock allocations, losses of answers, events, nodes, cores and ResourceManagers, with
the real engine and policy between.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.yarn_plugin.live.core_scene import CoreScene
from tests.yarn_plugin.live.scripted_rm import App, ScriptedRm

_NODES = st.integers(1, 3).map(lambda number: f"n{number}:1")
_PICK = st.integers(0, 1000)
_TAGS = st.sampled_from([(), ("gandiva.gang=1",), ("gandiva.gang=2",), ("gandiva.gang=3",)])


class Books(RuleBasedStateMachine):
    """Steps of both sides in any order; a turn of the core is a step like any other."""

    @initialize(mode=st.sampled_from(["observe", "place", "full"]), can_suspend=st.booleans())
    def begin(self, mode: str, *, can_suspend: bool) -> None:
        self.rm = ScriptedRm()
        self.rm.configure(mode)
        self.can_suspend = can_suspend
        self.core = CoreScene(self.rm, can_suspend=can_suspend)

    # ------------------------------------------------------------------ users and masters

    @precondition(lambda self: len(self.rm.apps) < 4)
    @rule(
        queue=st.sampled_from(["root.a", "root.b"]),
        tags=_TAGS,
        kind=st.sampled_from(["YARN", "TONY", "SPARK"]),
        count=st.integers(1, 6),
    )
    def submit(self, queue: str, tags: tuple[str, ...], kind: str, count: int) -> None:
        app = self.rm.submit(queue, *tags, kind=kind)
        self.rm.ask(app, count)
        self.rm.rest(app)

    @precondition(lambda self: self.rm.apps)
    @rule(pick=_PICK, count=st.integers(0, 6), priority=st.integers(1, 2))
    def ask(self, pick: int, count: int, priority: int) -> None:
        self.rm.ask(self._app(pick), count, priority)

    @precondition(lambda self: self.rm.apps)
    @rule(pick=_PICK)
    def rest(self, pick: int) -> None:
        self.rm.rest(self._app(pick))

    @precondition(lambda self: self.rm.apps)
    @rule(pick=_PICK, state=st.sampled_from(["FINISHED", "KILLED", "FAILED"]))
    def end(self, pick: int, state: str) -> None:
        self.rm.end(self._app(pick), state)

    # ------------------------------------------------------------------ stock code and containers

    @precondition(lambda self: self.rm.apps)
    @rule(pick=_PICK, node=_NODES, times=st.integers(1, 3))
    def allocate(self, pick: int, node: str, times: int) -> None:
        for _ in range(times):
            self.rm.allocate(self._app(pick), node)

    @precondition(lambda self: self.rm.containers)
    @rule(pick=_PICK, exit_status=st.sampled_from([0, 1, 137, -100, -102]))
    def complete(self, pick: int, exit_status: int) -> None:
        names = sorted(self.rm.containers)
        self.rm.complete(names[pick % len(names)], exit_status)

    # ------------------------------------------------------------------ what goes wrong

    @rule(node=_NODES)
    def lose_node(self, node: str) -> None:
        self.rm.lose_node(node)

    @rule(node=_NODES)
    def register_node(self, node: str) -> None:
        self.rm.register_node(node)

    @rule(parts=st.integers(1, 2))
    def overflow(self, parts: int) -> None:
        self.rm.overflow(parts)

    @rule()
    def restart_rm(self) -> None:
        self.rm.restart()

    @rule()
    def restart_core(self) -> None:
        self.core = CoreScene(self.rm, can_suspend=self.can_suspend, now_s=self.core.now_s)

    @rule(
        mode=st.sampled_from(["observe", "place", "full"]),
        queues=st.sampled_from([("root.a", "root.b"), ("root.a",), ()]),
    )
    def configure(self, mode: str, queues: tuple[str, ...]) -> None:
        self.rm.configure(mode, queues)

    # ------------------------------------------------------------------ the core

    @rule(step_s=st.sampled_from([0.1, 5.0, 61.0, 400.0]))
    def turn(self, step_s: float) -> None:
        self.core.turn(step_s)

    @rule()
    def turn_at_once(self) -> None:
        self.core.turn()

    @rule()
    def turn_again(self) -> None:
        self.core.turn()

    @rule()
    def turn_with_a_lost_answer(self) -> None:
        self.rm.loses_answers = True
        self.core.turn()
        self.rm.loses_answers = False

    def teardown(self) -> None:
        """Quiet comes: all that was told is read."""
        if not hasattr(self, "core"):
            return
        for node in self.rm.nodes:
            self.rm.register_node(node)
        self.core.settle()
        self.core.assert_same_books()
        known = set(self.rm.containers)
        self.rm.overflow()
        self.core.settle()
        self.core.assert_same_books()
        assert known <= {*self.rm.containers}, "a snapshot of what is known ends nothing"

    def _app(self, pick: int) -> App:
        names = sorted(self.rm.apps)
        return self.rm.apps[names[pick % len(names)]]


TestBooks = Books.TestCase
TestBooks.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
