"""The real engine and policy over agents that obey late, fail, vanish and come back (I6; FAULTS A8, E11)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import agents as a
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import CommitGang, StartTimer, SwitchResidents
from gandiva_core.model.job import JobPhase
from gandiva_core.policies.gandiva import create
from tests.builders import job, server
from tests.yarn_plugin.agents.scene import QUANTUM_S, AgentScene

NODES = ("n1", "n2")
GPUS = 2


class Obedient:
    """A node's agent: what runs where, each id carried out once, devices given once they are free."""

    def __init__(self) -> None:
        self.running: dict[str, tuple[int, ...]] = {}
        self.pending: list[a.SwitchWorkers] = []
        self.last_id = 0

    def take(self, command: a.Command) -> None:
        if isinstance(command, a.SwitchWorkers) and command.message_id > self.last_id:
            self.last_id = command.message_id
            self.pending.append(command)

    def answer(self, fails: bool, now_s: float) -> a.Switched:
        """Carry out the oldest order, or fail at the first of its workers."""
        command = self.pending.pop(0)
        failed: list[a.Failure] = []
        stopped, started = [], []
        for container in command.suspend:
            if fails and container in self.running and not failed:
                failed.append(a.Failure(container, "NO_BOUNDARY"))
            else:
                self.running.pop(container, None)
                stopped.append((container, now_s))
        for run in command.run:
            if self.running.get(run.container_id) == run.gpus:
                started.append((run.container_id, now_s))
            elif run.container_id in self.running or not self.are_free(run.gpus):
                failed.append(a.Failure(run.container_id, "DEVICE_TAKEN"))
            else:
                self.running[run.container_id] = run.gpus
                started.append((run.container_id, now_s))
        return a.Switched(
            command.message_id, command.switch_id, tuple(stopped), tuple(started), tuple(failed)
        )

    def are_free(self, gpus: tuple[int, ...]) -> bool:
        taken = {gpu for held in self.running.values() for gpu in held}
        return taken.isdisjoint(gpus)


class WorldMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        settings_ = Settings(quantum_s=QUANTUM_S)
        self.scene = AgentScene(*NODES, gpus=GPUS)
        self.engine = Engine(create(settings_, {}), settings_, check="full")
        self.sides = {node: Obedient() for node in NODES}
        self.submitted = 0
        for node in NODES:
            self.take([e.ServerJoined(self.scene.now_s, server(node, GPUS))])
            self.take(self.scene.attend(node))
            self.deliver(node)

    # ------------------------------------------------------------------ the loop

    def take(self, events: list[e.Event]) -> None:
        inbox = list(events)
        while inbox:
            outcome = self.engine.handle(inbox.pop(0))
            assert not outcome.refusals
            for effect in outcome.effects:
                if isinstance(effect, CommitGang):
                    self.scene.gang(effect.job_id, *effect.servers)
                    ids = tuple(f"{effect.job_id}/{rank}" for rank in range(len(effect.servers)))
                    inbox.append(e.GangCommitted(self.scene.now_s, effect.job_id, ids))
                else:
                    assert isinstance(effect, SwitchResidents | StartTimer)
                    self.scene.world.apply(self.scene.now_s, [effect])

    def deliver(self, node: str) -> None:
        for command in self.scene.told(node):
            self.sides[node].take(command)

    def turn(self, seconds: float) -> None:
        self.take(self.scene.pass_time(seconds))
        for node in NODES:
            if self.scene.world.attendance.nodes[node].is_there:
                self.deliver(node)
            else:
                self.scene.told(node)  # nobody hears it

    # ------------------------------------------------------------------ what happens

    @rule(workers=st.integers(1, 3))
    def submit(self, workers: int) -> None:
        self.submitted += 1
        spec = job(f"j{self.submitted}", workers=[1] * workers)
        self.take([e.JobSubmitted(self.scene.now_s, spec)])
        self.turn(0.0)

    @rule(seconds=st.sampled_from([0.1, 1.0, QUANTUM_S]))
    def wait(self, seconds: float) -> None:
        self.turn(seconds)

    @rule(node=st.sampled_from(NODES), fails=st.sampled_from([False, False, False, True]))
    def answer(self, node: str, fails: bool) -> None:
        side = self.sides[node]
        if side.pending and self.scene.world.attendance.nodes[node].is_there:
            self.take(self.scene.say(node, side.answer(fails, self.scene.now_s)))
            self.turn(0.0)

    @rule(node=st.sampled_from(NODES))
    def vanish(self, node: str) -> None:
        """The stream is lost; what the agent was told and had not done is not done."""
        if self.scene.world.attendance.nodes[node].is_there:
            self.sides[node].pending.clear()
            self.take(self.scene.say(node, None))

    @rule(node=st.sampled_from(NODES))
    def come_back(self, node: str) -> None:
        if not self.scene.world.attendance.nodes[node].is_there:
            self.take(self.scene.attend(node))
            self.deliver(node)

    def teardown(self) -> None:
        """Once everybody obeys, what the engine believes is what runs."""
        if not hasattr(self, "engine"):
            return
        for node in NODES:
            self.come_back(node)
        for _ in range(200):
            self.turn(0.5)
            busy = [node for node in NODES if self.sides[node].pending]
            for node in busy:
                self.answer(node, False)
            if not busy and not self.on_the_way():
                break
        assert not self.on_the_way()
        believed = {
            f"{name}/{rank}"
            for name, each in self.engine.view.jobs.items()
            if each.phase is JobPhase.RUNNING
            for rank in range(len(each.spec.workers))
        }
        really = {container for side in self.sides.values() for container in side.running}
        assert believed == really

    def on_the_way(self) -> list[str]:
        phases = (JobPhase.SUSPENDING, JobPhase.RESUMING)
        return [name for name, each in self.engine.view.jobs.items() if each.phase in phases]


TestWorld = WorldMachine.TestCase
TestWorld.settings = settings(
    max_examples=80, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
