"""An engine under a scripted policy, told in short sentences; every invariant is checked after every event."""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.decisions import Decision, Place, Run, Switch
from gandiva_core.messages.effects import SwitchResidents
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, QueueName, ServerId
from gandiva_core.model.view import JobView, ServerView
from tests.builders import ScriptedPolicy, Wish, job, joined


def limit(name: str, gpus: float, parent: str = "", off: tuple[str, ...] = ()) -> QueueLimit:
    return QueueLimit(QueueName(name), gpus, gpus, parent, mechanisms_off=off)


def run(name: str, *bindings: Binding) -> Run:
    return Run(JobId(name), bindings)


def place(name: str, *servers: str) -> Place:
    return Place(JobId(name), tuple(map(ServerId, servers)), "test")


class Scene:
    """One engine at one point of time, which the test moves on."""

    def __init__(self, *servers: Server, settings: Settings | None = None) -> None:
        self.policy = ScriptedPolicy()
        self.settings = settings or Settings()
        self.engine = Engine(self.policy, self.settings, check="full")
        self.now_s = 0.0
        for event in joined(*servers):
            self.engine.handle(event)

    def tell(self, event: e.Event, *wishes: Wish) -> Outcome:
        self.policy.wishes = list(wishes)
        return self.engine.handle(event)

    def wish(self, *wishes: Wish) -> Outcome:
        """Decide something on an event that changes nothing itself."""
        return self.tell(e.QueuesConfigured(self.now_s, self.limits()), *wishes)

    def limits(self) -> tuple[QueueLimit, ...]:
        return tuple(queue.limit for queue in self.engine.view.queues.values())

    def refusal(self, decision: Decision) -> str:
        """Why a decision is refused; fails where it is not."""
        before = self.engine.snapshot()
        outcome = self.wish(decision)
        assert not outcome.decisions
        assert not outcome.effects
        after = self.engine.snapshot()
        assert (before.jobs, before.wakes, before.memory) == (after.jobs, after.wakes, after.memory)
        return outcome.refusals[0].reason

    def refusal_of_run(self, name: str, *bindings: Binding) -> str:
        """Why a job may not run there."""
        return self.refusal(Switch(run=(run(name, *bindings),)))

    def submit(self, spec: JobSpec, *servers: str) -> Outcome:
        wishes = [place(spec.job_id, *servers)] if servers else []
        return self.tell(e.JobSubmitted(self.now_s, spec), *wishes)

    def settle(self, spec: JobSpec, *servers: str) -> None:
        """Submit, place and commit."""
        self.submit(spec, *servers)
        self.commit(spec.job_id)

    def commit(self, name: str) -> Outcome:
        return self.tell(e.GangCommitted(self.now_s, JobId(name), ("c",)))

    def start(self, name: str, *bindings: Binding) -> int:
        """Run a settled job at once; returns the switch."""
        switch_id = self.switch(run=[run(name, *bindings)])
        self.switched(switch_id, started=[name])
        return switch_id

    def switch(self, suspend: Sequence[str] = (), run: Sequence[Run] = ()) -> int:
        outcome = self.wish(Switch(tuple(map(JobId, suspend)), tuple(run)))
        assert not outcome.refusals, outcome.refusals
        effect = outcome.effects[-1]
        assert isinstance(effect, SwitchResidents)
        return effect.switch_id

    def switched(
        self,
        switch_id: int,
        stopped: Sequence[str] = (),
        started: Sequence[str] = (),
        at_s: float | None = None,
    ) -> Outcome:
        when = self.now_s if at_s is None else at_s
        return self.tell(
            e.ResidentsSwitched(
                self.now_s,
                switch_id,
                tuple((JobId(name), when) for name in stopped),
                tuple((JobId(name), when) for name in started),
            )
        )

    def running(self, name: str, *bindings: Binding, gpus: int = 0) -> None:
        """A job that runs on these devices."""
        servers = [binding.server_id for binding in bindings for _ in binding.gpus]
        self.settle(job(name, gpus or len(servers)), *servers)
        self.start(name, *bindings)

    def job(self, name: str) -> JobView:
        return self.engine.view.jobs[JobId(name)]

    def phase(self, name: str) -> JobPhase:
        return self.job(name).phase

    def server(self, name: str) -> ServerView:
        return self.engine.view.servers[ServerId(name)]
