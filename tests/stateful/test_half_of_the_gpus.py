"""A queue of at most half of the cluster, in random histories (DESIGN §4: running devices ≤ M_q)."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gandiva_core.config.settings import Settings
from gandiva_core.conformance.scenario import Scenario, scenarios
from gandiva_core.engine.engine import Engine
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import ReleaseGang
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, QueueName
from gandiva_core.policies.gandiva import create

HALF = QueueName("root.half")


class Account:
    """Which jobs compute, by what the outside reports; a report that came too late for the engine is none."""

    def __init__(self, engine: Engine, gpus: dict[JobId, int]) -> None:
        self._jobs = engine.view.jobs
        self._gpus = gpus
        self._running: set[JobId] = set()
        self.most = 0

    def note(self, event: e.Event, outcome: Outcome) -> None:
        if isinstance(event, e.ResidentsSwitched):
            self._running.difference_update(job_id for job_id, _ in event.stopped)
            self._running.update(job_id for job_id, _ in event.started)
        elif isinstance(event, e.JobFinished | e.JobKilled | e.JobFailed):
            self._running.discard(event.job_id)
        for effect in outcome.effects:
            if isinstance(effect, ReleaseGang):
                self._running.discard(effect.job_id)
        self._running = {job_id for job_id in self._running if self._computes(job_id)}
        self.most = max(self.most, sum(self._gpus.get(job_id, 0) for job_id in self._running))

    def _computes(self, job_id: JobId) -> bool:
        job = self._jobs.get(job_id)
        return job is not None and job.phase in {JobPhase.RUNNING, JobPhase.SUSPENDING}


def halved(scenario: Scenario) -> Scenario:
    """The same story, jobs by turns in a queue of half of each partition, in the rest, and in one never sliced."""
    totals: dict[str, int] = {}
    for each in scenario.servers:
        totals[each.partition] = totals.get(each.partition, 0) + each.gpus
    limits: list[QueueLimit] = []
    for name, total in totals.items():
        limits += [
            QueueLimit(QueueName("root"), total, total, partition=name),
            QueueLimit(HALF, total / 4, total / 2, "root", name),
            QueueLimit(QueueName("root.rest"), total / 2, total, "root", name),
            QueueLimit(
                QueueName("root.off"), 0.0, total, "root", name, mechanisms_off=("slicing",)
            ),
        ]
    queues = (HALF, HALF, QueueName("root.rest"), QueueName("root.off"))
    works = tuple(
        msgspec.structs.replace(
            work, spec=msgspec.structs.replace(work.spec, queue=queues[number % len(queues)])
        )
        for number, work in enumerate(scenario.works)
        if not work.servers  # found ones may run before limits are known, and are excused
    )
    facts = [
        fact for fact in scenario.facts if not isinstance(fact, e.QueuesConfigured | e.JobMoved)
    ]
    reclaims = [e.ReclaimAsked(work.arrival_s + 90.0, work.spec.job_id, 1) for work in works[::3]]
    return msgspec.structs.replace(
        scenario, works=works, facts=(e.QueuesConfigured(0.0, tuple(limits)), *facts, *reclaims)
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=scenarios(), draw=st.data())
def test_it_never_runs_more(scenario: Scenario, draw: st.DataObject) -> None:
    """Whatever is asked, lost, killed and reclaimed; a policy that wishes at random has `test_engine_machine`."""
    partition = draw.draw(st.sampled_from(sorted({each.partition for each in scenario.servers})))
    scenario = halved(scenario)
    engine = Engine(create(Settings(), {}), Settings(), check="full")
    account = Account(
        engine,
        {
            work.spec.job_id: work.spec.gpus
            for work in scenario.works
            if work.spec.queue == HALF and work.spec.partition == partition
        },
    )
    scenario.world(engine, account.note).run(5_000.0, events_max=20_000)
    total = sum(each.gpus for each in scenario.servers if each.partition == partition)
    assert account.most <= total / 2
