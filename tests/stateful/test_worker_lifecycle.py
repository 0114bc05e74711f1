"""One node under random histories: orders, late answers, lost lines and restarts (G-10; I2, I6)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gandiva_core.messages import agents as a
from gandiva_core.model.errors import InvariantError
from nodemanager_agent.lifecycle import TABLE, Stimulus, follow, is_allowed
from tests.nodemanager_agent.node_mind import Mind

NAMES = tuple(f"container_{n}" for n in range(4))
GPUS = 2
names = st.sampled_from(NAMES)
_HOLDING = {"starting", "running", "suspending", "resuming"}


def test_nothing_leaves_the_end_and_what_is_not_in_the_table_is_a_bug() -> None:
    assert not [state for state, _ in TABLE if state is a.WorkerState.ENDED]
    assert not is_allowed(a.WorkerState.WAITING, Stimulus.STOPPED)
    with pytest.raises(InvariantError, match="stopped"):
        follow(a.WorkerState.WAITING, Stimulus.STOPPED, "container_1")


def test_every_state_is_reached_from_the_beginning_and_can_end() -> None:
    reached = {a.WorkerState.EXPECTED}
    for _ in a.WorkerState:
        reached |= {after for (before, _), after in TABLE.items() if before in reached}
    assert reached == set(a.WorkerState)
    live = set(a.WorkerState) - {a.WorkerState.ENDED}
    assert all(is_allowed(state, Stimulus.ENDED) for state in live)


class Launcher:
    """What really is so in one container: it works through its orders, whoever listens."""

    def __init__(self) -> None:
        self.state = "waiting"
        self.gpus: tuple[int, ...] = ()
        self.is_up = False
        self.orders: list[tuple[str, dict[str, object]]] = []


class NodeMachine(RuleBasedStateMachine):
    """Launchers hold devices by what they were told; no two may ever hold one."""

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.mind = Mind(Path(self.folder.name), GPUS)
        self.launchers = {name: Launcher() for name in NAMES}
        self.taken = 0
        self.expect()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def expect(self) -> None:
        self.mind.expect(*(a.Expected(name, name, 1, user="ann") for name in NAMES))

    def deliver(self) -> None:
        """What the agent sent reaches launchers whose line is open."""
        for name, op, values in self.mind.sent[self.taken :]:
            self.launchers[name].orders.append((op, values))
        self.taken = len(self.mind.sent)

    @rule(name=names)
    def comes_up(self, name: str) -> None:
        launcher = self.launchers[name]
        if launcher.state != "ended" and not launcher.is_up:
            launcher.is_up = True
            self.mind.register(name, 1000 + NAMES.index(name), launcher.state, gpus=launcher.gpus)
            self.deliver()

    @rule(name=names)
    def line_is_lost(self, name: str) -> None:
        launcher = self.launchers[name]
        if launcher.is_up:
            launcher.is_up = False
            self.mind.controller.desk.gone(name)

    @rule(name=names, other=names, gpu=st.integers(0, GPUS - 1))
    def is_switched(self, name: str, other: str, gpu: int) -> None:
        suspend = () if name == other else (other,)
        self.mind.switch(suspend, (a.RunWorker(name, (gpu,)),))
        self.deliver()

    @rule(name=names)
    def is_stopped(self, name: str) -> None:
        self.mind.switch((name,))
        self.deliver()

    @rule(name=names, does=st.booleans())
    def carries_out(self, name: str, does: bool) -> None:
        """The next order, done or refused; the answer is lost where the line is."""
        launcher = self.launchers[name]
        if not launcher.orders or launcher.state == "ended":
            return
        op, values = launcher.orders.pop(0)
        is_running = launcher.state == "running"
        fits = is_running if op == "suspend" else launcher.state in ("waiting", "suspended")
        said = "done" if does and fits else "failed"
        if op == "suspend" and launcher.state == "suspended":
            said = "done"
        if op == "resume" and is_running:
            said = "done"
        if said == "done" and fits:
            launcher.state = "suspended" if op == "suspend" else "running"
            gpus = values.get("gpus")
            launcher.gpus = tuple(gpus) if isinstance(gpus, list) else ()
        if launcher.is_up:
            message = {"op": said, "id": values["id"], "code": "NO"}
            self.mind.controller.desk.launcher_said(name, message)
            self.deliver()

    @rule(passed_s=st.sampled_from([0.1, 5.0, 13.0, 200.0]))
    def time_passes(self, passed_s: float) -> None:
        self.mind.after(passed_s)
        self.mind.controller.beat()
        self.deliver()

    @rule(name=names)
    def job_ends(self, name: str) -> None:
        launcher = self.launchers[name]
        if launcher.is_up and launcher.state == "running":
            launcher.state, launcher.gpus, launcher.is_up = "ended", (), False
            self.mind.controller.desk.launcher_said(name, {"op": "ended", "exit_code": 0})
            self.mind.controller.desk.gone(name)
            self.deliver()

    @rule()
    def agent_is_killed_and_started(self) -> None:
        self.mind.after(
            0.0
        )  # what was decided is on disk before anybody hears of it, or soon after
        for launcher in self.launchers.values():
            launcher.is_up = False
            launcher.orders.clear()
        self.mind.start()
        self.expect()
        self.deliver()

    @invariant()
    def no_two_hold_one_device(self) -> None:
        """G-11 (i): by what launchers were told and did, not by the agent's books."""
        if not hasattr(self, "launchers"):
            return
        held = [
            gpu for each in self.launchers.values() if each.state == "running" for gpu in each.gpus
        ]
        assert len(held) == len(set(held)), held

    @invariant()
    def whoever_may_run_has_its_devices_in_the_books(self) -> None:
        if not hasattr(self, "launchers"):
            return
        for name, worker in self.mind.controller.roster.workers.items():
            if str(worker.state) in _HOLDING and self.launchers[name].state != "ended":
                assert self.mind.held(name), (name, worker.state)


TestNode = NodeMachine.TestCase
TestNode.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
