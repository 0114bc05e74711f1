"""G-0's acceptance: a plug-in that uses the primitives alone reproduces FIFO-exclusive and round robin.

Neither policy below touches any code of `gandiva_core.policies`; both yield Place, Enqueue, Switch and WakeAt only.
"""

from __future__ import annotations

import pytest

from baselines import fifo
from gandiva_core.config.settings import Settings
from gandiva_core.conformance.world import Work
from gandiva_core.messages.decisions import Enqueue, Place, Run, Switch, Wait, WakeAt
from gandiva_core.messages.events import (
    Event,
    GangCommitted,
    JobFinished,
    JobSubmitted,
    TimerFired,
)
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.job import JobPhase
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView, JobView
from tests.builders import job, server
from tests.policies.stage import Stage, arriving

Q = 60.0


def devices(view: ClusterView, waiting: JobView, given_up: list[int]) -> Run | None:
    """Devices of its one server: free ones, then those given up in their order; None where there are too few."""
    (server_id, count), *_ = waiting.shares.items()
    state = view.servers[server_id]
    free = [
        gpu
        for gpu, holder in enumerate(state.holders)
        if holder is None and state.claims[gpu] is None
    ]
    found = [*free, *given_up][:count]
    if len(found) < count:
        return None
    return Run(waiting.spec.job_id, (Binding(server_id, tuple(found)),))


class NullFifo:
    """First in, first out, exclusive."""

    name = "null-fifo"
    mechanisms: tuple[str, ...] = ()

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        if isinstance(event, JobSubmitted):
            yield Enqueue(event.job.job_id, Wait("turn", "", ""))
        while view.queue:
            head = view.jobs[view.queue[0]]
            fits = [
                (s.server.gpus - s.allocated, s.allocated / s.server.gpus, key)
                for key, s in view.servers.items()
                if s.allocated + head.spec.gpus <= s.server.gpus
            ]
            if not fits:
                break
            yield Place(head.spec.job_id, (min(fits)[2],) * len(head.spec.workers), "null")
        if isinstance(event, GangCommitted):
            run = devices(view, view.jobs[event.job_id], [])
            assert run is not None
            yield Switch(run=(run,))


class NullRoundRobin:
    """Everybody on the one server, whoever fits; every quantum the longest rested run."""

    name = "null-round-robin"
    mechanisms: tuple[str, ...] = ()

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        if isinstance(event, JobSubmitted):
            first = next(iter(view.servers))
            yield Place(event.job.job_id, (first,) * len(event.job.workers), "null")
            if "turn" not in view.wakes:
                yield WakeAt("turn", view.now_s + Q)
        elif isinstance(event, TimerFired) and view.jobs:
            yield from self.turn(view, stop=True)
            yield WakeAt("turn", view.now_s + Q)
        elif isinstance(event, GangCommitted | JobFinished):
            yield from self.turn(view, stop=False)

    def turn(self, view: ClusterView, *, stop: bool) -> Decisions:
        running = [j for j in view.jobs.values() if j.phase is JobPhase.RUNNING and stop]
        running.sort(key=lambda j: (j.run_since_s or 0.0, j.sequence))
        given_up = [gpu for j in running for gpu in j.bindings[0].gpus]
        waiting = [
            j for j in view.jobs.values() if j.phase in {JobPhase.STARTING, JobPhase.SUSPENDED}
        ]
        waiting.sort(key=lambda j: (j.last_stopped_at_s or -1.0, j.sequence))
        runs: list[Run] = []
        for each in waiting:
            run = devices(view, each, given_up)
            if run is None:
                continue
            given_up = [gpu for gpu in given_up if gpu not in run.bindings[0].gpus]
            runs.append(run)
            if not stop:
                yield Switch(run=(run,))
        if stop and runs:
            used = {gpu for run in runs for gpu in run.bindings[0].gpus}
            leaving = [j.spec.job_id for j in running if used & set(j.bindings[0].gpus)]
            yield Switch(suspend=tuple(leaving), run=tuple(runs))


def test_fifo_exclusive_from_primitives_alone() -> None:
    """The same placements and ends as `baselines.fifo` on gangs that servers hold whole."""
    servers = [server("A"), server("B"), server("C", 8)]
    works = [
        Work(7.0 * n, job(f"j{n}", workers=(1 + n * 5 % 4,)), 40.0 + 31.0 * (n % 5))
        for n in range(40)
    ]
    ours = Stage(servers, works, policy=NullFifo()).run()
    theirs = Stage(servers, works, policy=fifo.create(Settings(), {})).run()
    assert ours.world.finished_at_s == theirs.world.finished_at_s
    assert [p[::2] for p in ours.placements()] == [p[::2] for p in theirs.placements()]


@pytest.mark.parametrize("count", [4, 5, 6, 8])
def test_round_robin_from_primitives_alone(count: int) -> None:
    """Equal jobs on four GPUs get equal time, within a quantum."""
    jobs = [job(f"j{n}") for n in range(count)]
    stage = Stage([server("A")], arriving(*jobs), policy=NullRoundRobin()).run(20 * Q)
    ran_s = [stage.ran_s(each.job_id) for each in jobs]
    assert sum(ran_s) == pytest.approx(20 * 4 * Q)
    assert max(ran_s) - min(ran_s) <= Q
    assert stage.engine.view.servers[ServerId("A")].residents.keys() == {
        JobId(each.job_id) for each in jobs
    }
