"""A core with the real engine and policy on a clock of its own, and how its books compare with a ResourceManager's."""

from __future__ import annotations

from collections import Counter

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.policy import Policy
from gandiva_core.model.job import RESIDENT_PHASES, JobPhase
from gandiva_core.policies.gandiva import create
from gandiva_core.runtime.agentless import AgentlessWorld
from tests.yarn_plugin.live.scripted_rm import ScriptedRm
from yarn_plugin.bridge.gangs import GangPhase
from yarn_plugin.bridge.gateway import GatewayError
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.translate import Translator
from yarn_plugin.live.loop import CoreLoop
from yarn_plugin.live.servers import ServerRules


class CoreScene:
    """One core process; a new one knows nothing of an older."""

    def __init__(
        self,
        rm: ScriptedRm,
        *,
        can_suspend: bool = True,
        now_s: float = 1000.0,
        policy: Policy | None = None,
    ) -> None:
        self.rm = rm
        self.now_s = now_s
        settings = Settings()
        self.engine = Engine(policy or create(settings, {}), settings, check="full")
        self.register = Register()
        self.loop = CoreLoop(
            self.engine,
            Translator(self.register),
            OrderDesk(self.register),
            AgentlessWorld(),
            ServerRules(can_suspend=lambda _: can_suspend),
            clock=lambda: self.now_s,
        )
        rm.overflow()

    def turn(self, step_s: float = 0.1) -> None:
        """One turn; a lost connection begins a new session."""
        try:
            self.loop.turn(self.rm)
        except GatewayError:
            self.rm.overflow()
        self.now_s += step_s

    def settle(self) -> None:
        """Turns until there is nothing more to tell."""
        self.turn()
        for _ in range(50):
            if self.rm.is_quiet:
                break
            self.turn()

    def jobs(self, *phases: JobPhase) -> list[str]:
        jobs = self.engine.view.jobs.values()
        return sorted(job.spec.job_id for job in jobs if job.phase in phases)

    def assert_same_books(self) -> None:
        """Every container that the ResourceManager has on a node it knows is in a resident job, on that node."""
        seen = {c.name: c.node for c in self.rm.containers.values() if self.rm.nodes[c.node]}
        booked: dict[str, str] = {}
        held: Counter[str] = Counter()
        jobs = self.engine.view.jobs
        for _, gang in self.register.gangs():
            is_resident = jobs[gang.job_id].phase in RESIDENT_PHASES
            assert is_resident == (gang.phase is GangPhase.HELD), gang
            for member in gang.members:
                if member.container and member.exit_status is None:
                    booked[member.container] = member.node
                if member.container and is_resident:
                    held[member.node] += member.worker.gpus
        assert booked == seen
        assert set(self.register.job_of) >= set(seen)
        for server_id, server in self.engine.view.servers.items():
            assert server.allocated == held[server_id]
        assert set(self.engine.view.servers) == {n for n, there in self.rm.nodes.items() if there}
        assert set(jobs) == set(self.register.app_of)
        asked = {name: +app.asks for name, app in self.rm.apps.items()}
        known = {
            name: Counter({key.priority: ask.count for key, ask in app.asks.items()})
            for name, app in self.register.apps.items()
        }
        assert known == asked
