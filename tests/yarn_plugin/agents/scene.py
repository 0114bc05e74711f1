"""A world over scripted agents: what they were told is kept, what they say is the test's."""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.messages import agents as a
from gandiva_core.messages.decisions import Run
from gandiva_core.messages.effects import SwitchResidents
from gandiva_core.messages.events import Event
from gandiva_core.model.job import Worker
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from tests.builders import server
from yarn_plugin.agents.server import Heard
from yarn_plugin.agents.world import AgentWorld
from yarn_plugin.bridge.asks import AskKey
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase, GangRule, Member
from yarn_plugin.bridge.moves import MoveDesk
from yarn_plugin.bridge.register import Register

QUANTUM_S = 10.0
EPOCH = 7
RAM = "/dev/shm/gandiva"


class Scripted:
    """Implements `yarn_plugin.agents.server.Agents`."""

    def __init__(self) -> None:
        self.said: list[Heard] = []
        self.told: list[tuple[str, a.Command]] = []

    def heard(self) -> list[Heard]:
        said, self.said = self.said, []
        return said

    def send(self, node: str, command: a.Command) -> None:
        self.told.append((node, command))


class AgentScene:
    """One core's world, and the register that its bridge would keep."""

    def __init__(self, *nodes: str, gpus: int = 2) -> None:
        self.agents = Scripted()
        self.register = Register()
        self.moves = MoveDesk(self.register)
        self.world = AgentWorld(
            self.agents, self.register, self.moves, quantum_s=QUANTUM_S, epoch=EPOCH
        )
        self.now_s = 100.0
        self.gpus = gpus
        self.switch_id = 0
        self.ram_dirs: dict[str, str] = {}
        for node in nodes:
            self.register.put_server(node, server(node, gpus))

    # ------------------------------------------------------------------ jobs

    def gang(self, job: str, *nodes: str, never: tuple[str, ...] = ()) -> JobId:
        """A gang of one-GPU workers whose containers are there: ``JOB/RANK``."""
        worker = Worker(1, 256, 1)
        members = [
            Member(AskKey(1, 0), worker, f"{job}/{rank}", node) for rank, node in enumerate(nodes)
        ]
        gang = Gang(JobId(job), members, 0.0, GangPhase.HELD)
        app = Application(
            job, f"{job}/1", "root.default", "ann", job, 0, GangRule.DECLARED, len(nodes)
        )
        app.never = never
        app.gangs[gang.job_id] = gang
        self.register.apps[job] = app
        self.register.app_of[gang.job_id] = job
        for member in members:
            self.register.job_of[member.container] = gang.job_id
        return gang.job_id

    def switch(self, suspend: Sequence[str] = (), **run: Sequence[tuple[str, int]]) -> int:
        """An order of the engine: whom to stop, and job=[(node, device)…] to run."""
        self.switch_id += 1
        runs = tuple(
            Run(JobId(job), tuple(Binding(ServerId(node), (gpu,)) for node, gpu in devices))
            for job, devices in run.items()
        )
        servers = tuple(self.register.node_of)
        effect = SwitchResidents(1, self.switch_id, servers, tuple(map(JobId, suspend)), runs)
        self.world.apply(self.now_s, [effect])
        return self.switch_id

    # ------------------------------------------------------------------ what agents say

    def attend(self, node: str, *workers: a.WorkerReport, session: str = "s") -> list[Event]:
        hello = a.AgentHello(
            node, session, "1", self.devices(), True, workers, ram_dir=self.ram_dirs.get(node, RAM)
        )
        return self.say(node, hello)

    def devices(self, *lost: int) -> tuple[a.Device, ...]:
        return tuple(
            a.Device(index, f"gpu-{index}", "virtual", 1024, healthy=index not in lost)
            for index in range(self.gpus)
        )

    def say(self, node: str, report: a.Report | None) -> list[Event]:
        self.agents.said.append((node, report))
        return self.pass_time(0.0)

    def measure(self, node: str, *workers: a.WorkerReport) -> list[Event]:
        return self.say(node, a.Measured(self.now_s, self.devices(), workers))

    def pass_time(self, seconds: float) -> list[Event]:
        self.now_s += seconds
        return list(self.world.advance(self.now_s).events)

    # ------------------------------------------------------------------ what they were told

    def told(self, node: str) -> list[a.Command]:
        """Since the last question."""
        mine = [command for name, command in self.agents.told if name == node]
        self.agents.told = [each for each in self.agents.told if each[0] != node]
        return mine

    def switches(self, node: str) -> list[a.SwitchWorkers]:
        return [each for each in self.told(node) if isinstance(each, a.SwitchWorkers)]
