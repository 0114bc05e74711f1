"""Cases from people who do this job (F01, F07, B01) and GE-2, each with the value stated for it, in whole runs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

import baselines.fifo
from gandiva_core.config.settings import Settings
from gandiva_core.messages.decisions import Enqueue, Place, Run, Switch, Wait, WakeAt
from gandiva_core.messages.effects import ContainerEffect
from gandiva_core.messages.events import Event, GangCommitted, ResidentsSwitched, TimerFired
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import AcceleratorType, JobId
from gandiva_core.model.view import ClusterView, JobView
from gandiva_core.model.workload import PlannedJob
from gandiva_core.sim.performance import suspend_resume_s
from gandiva_core.sim.plain import PlainSubstrate
from tests.sim.runs import Played, play_policy, play_stock
from tests.sim.worlds import PLAIN, planned, servers

CYCLES = 1000


class RandomCycles:
    """Places jobs two deep on their servers and, every second, stops a random one or starts a random one that can.

    The large job is placed when all others have gone.
    """

    name = "random-cycles"
    mechanisms = ()

    def __init__(self, seed: int, large: JobId) -> None:
        self._draw = random.Random(seed)
        self._large = large
        self.cycles = 0

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        if view.jobs and not view.wakes:
            yield WakeAt("tick", view.now_s + 1.0)
        for job_id, job in list(view.jobs.items()):
            if job.phase in (JobPhase.SUBMITTED, JobPhase.QUEUED):
                yield from self._place(job_id, view)
        if isinstance(event, (TimerFired, GangCommitted)):
            yield from self._cycle(view)

    def _place(self, job_id: JobId, view: ClusterView) -> Decisions:
        if job_id == self._large:
            if len(view.jobs) == 1:
                every = tuple(server_id for server_id in view.servers for _ in range(4))
                yield Place(job_id, every, "pristine")
            elif view.jobs[job_id].phase is JobPhase.SUBMITTED:
                yield Enqueue(job_id, Wait("busy", "all", "some"))
            return
        name = min(view.servers, key=lambda name: (view.servers[name].allocated, name))
        yield Place(job_id, (name,) * view.jobs[job_id].spec.gpus, "same-affinity")

    def _cycle(self, view: ClusterView) -> Decisions:
        jobs = list(view.jobs.values())
        self._draw.shuffle(jobs)
        for job in jobs:
            if job.phase is JobPhase.RUNNING and self.cycles < CYCLES and self._draw.random() < 0.3:
                self.cycles += 1
                yield Switch(suspend=(job.spec.job_id,))
            elif job.phase in (JobPhase.STARTING, JobPhase.SUSPENDED):
                yield from self._start(job, view)

    @staticmethod
    def _start(job: JobView, view: ClusterView) -> Decisions:
        bindings = []
        for server_id, count in job.shares.items():
            server = view.servers[server_id]
            free = [
                gpu
                for gpu, who in enumerate(zip(server.holders, server.claims, strict=True))
                if who == (None, None)
            ]
            if len(free) < count:
                return
            bindings.append(Binding(server_id, tuple(free[:count])))
        yield Switch(run=(Run(job.spec.job_id, tuple(bindings)),))


def test_F01_a_thousand_cycles_give_everything_back_and_a_job_of_the_whole_cluster_starts() -> None:
    """F01: 32 × 4 GPUs, 5 GB a GPU; the ledger equals its start, is never below 0, and 128 GPUs start then."""
    cluster = Cluster("f01", servers(32))
    draw = random.Random(1)
    jobs = [
        planned(f"j{n:03d}", float(draw.randrange(40, 90)), gpus=draw.choice((1, 1, 2, 4)))
        for n in range(90)
    ]
    jobs.append(planned("whole", 10.0, gpus=128))
    heavy = [msgspec.structs.replace(job, spec=with_memory(job.spec, 5120)) for job in jobs]
    substrate = Watched(cluster, Settings().height_max)
    start = substrate.free()
    policy = RandomCycles(1, JobId("whole"))
    played = play_policy(heavy, cluster, policy, substrate)
    stops = Counter(
        job_id
        for entry in played.entries
        if isinstance(entry.event, ResidentsSwitched)
        for job_id, _ in entry.event.stopped
    )
    assert policy.cycles == CYCLES
    assert CYCLES - len(jobs) <= stops.total() <= CYCLES
    assert substrate.lowest >= 0
    assert substrate.free() == start
    assert len(played.finished) == len(jobs)
    assert max(played.finished.values()) == played.finished[JobId("whole")]


def with_memory(spec: JobSpec, memory_mib: int) -> JobSpec:
    """So much memory a container."""
    workers = tuple(msgspec.structs.replace(w, memory_mib=memory_mib) for w in spec.workers)
    return msgspec.structs.replace(spec, workers=workers)


class Watched(PlainSubstrate):
    """Remembers the lowest figure its books ever had."""

    lowest = 0

    def apply(self, now_s: float, effects: Sequence[ContainerEffect]) -> Sequence[Event]:
        events = super().apply(now_s, effects)
        self.lowest = min(self.lowest, *(min(room) for room in self.free().values()))
        return events


@pytest.mark.parametrize("arm", ["capacity", "capacity-fair", "exclusive-backfill"])
def test_F07_a_run_does_not_end_when_the_queue_is_empty(arm: str) -> None:
    """F07: 1 GPU, jobs of 100 s and 1,000 s: JCTs 100 and 1,100, makespan 1,100, 2 of 2."""
    cluster = Cluster("f07", servers(1, gpus=1))
    played = play_stock([planned("a", 100), planned("b", 1000)], cluster, arm)
    assert played.jct_s == {"a": 100.0, "b": 1100.0}
    assert played.makespan_s == 1100.0


def test_F07_under_fifo_on_the_engine() -> None:
    """The same through the engine, with the policy that never shares."""
    cluster = Cluster("f07", servers(1, gpus=1))
    jobs = [planned("a", 100), planned("b", 1000)]
    policy = baselines.fifo.create(Settings(), {})
    played = play_policy(jobs, cluster, policy, PlainSubstrate(cluster, 1))
    assert played.jct_s == {"a": 100.0, "b": 1100.0}


def two_gangs() -> list[PlannedJob]:
    """B01: each 6 × 1 GPU, 100 s."""
    return [planned("J1", 100, gpus=6), planned("J2", 100, gpus=6)]


def test_B01_first_in_first_out_takes_200_s_and_the_second_gang_holds_two_gpus_meanwhile() -> None:
    """B01: never both partial; the stock scheduler's second gang does hold and wait, for as long as the first runs."""
    played = play_stock(two_gangs(), Cluster("b01", servers(2)))
    assert played.makespan_s == 200.0
    assert [(job_id, held) for _, job_id, held in played.held] == [("J2", 2)]


def test_B01_with_slicing_both_are_done_in_200_s_and_no_gang_ever_holds_a_part() -> None:
    """B01: 200 s and what the switches cost; 0 GPU-seconds of partial hold."""
    played = play_policy(two_gangs(), Cluster("b01", servers(2)))
    switches = sum(isinstance(entry.event, ResidentsSwitched) for entry in played.entries)
    boundary_s = 1.0
    assert len(played.finished) == 2
    assert played.makespan_s <= 200.0 + switches * (suspend_resume_s(PLAIN) + boundary_s)
    assert played.held == []
    assert {e.event.job_id for e in played.entries if isinstance(e.event, GangCommitted)} == {
        "J1",
        "J2",
    }


def test_B01_the_fair_order_deadlocks_two_gangs_and_the_run_says_who_holds_what() -> None:
    """DESIGN §7: the deadlocks of `capacity-fair` are reported as such. Four and three, as Hadoop 3.4.2 itself: the
    eighth GPU stays reserved for J1 on a full node, and J2, first in the fair order, has no room under the limit.
    """
    played = play_stock(two_gangs(), Cluster("b01", servers(2)), "capacity-fair")
    assert played.finished == {}
    assert played.report is not None
    assert [(job.job_id, job.held_gpus) for job in played.report.unfinished] == [
        ("J1", 4),
        ("J2", 3),
    ]


CIFAR = ModelProfile(
    name="ResNet-50/CIFAR-10",
    rate_per_s={AcceleratorType(""): 9.2},
    utilisation_ratio=0.85,
    memory_peak_mib=2048.0,
    memory_min_mib=77.0,
    checkpoint_mib=98.0,
)


def test_GE2_six_jobs_on_four_gpus_run_at_two_thirds_and_lose_less_than_two_percent() -> None:
    """GE-2: four long jobs at 0, two short at 25 min: 4/6 of solo ± 3 % each, net loss < 2 %, solo speed afterwards."""
    jobs = [planned(f"long{n}", 76_000, profile=CIFAR) for n in range(4)]
    jobs += [planned(f"short{n}", 39_000, arrival_s=1500.0, profile=CIFAR) for n in range(2)]
    played = play_policy(jobs, Cluster("ge2", servers(1)))
    work = Work(played)
    solo = 9.2 * 360.0
    shared = [(start_s, start_s + 360.0) for start_s in range(1860, 7000, 360)]
    for window in shared:
        done = {job.spec.job_id: work.within(job.spec.job_id, *window) for job in jobs}
        assert sum(done.values()) >= 0.98 * 4 * solo
    whole = (shared[0][0], shared[-1][1])
    for job in jobs:
        rate = work.within(job.spec.job_id, *whole) / (whole[1] - whole[0])
        assert rate == pytest.approx(9.2 * 4 / 6, rel=0.03)
    gone_s = max(played.finished[JobId(f"short{n}")] for n in range(2))
    assert gone_s / 60 == pytest.approx(133, rel=0.05)
    for n in range(4):
        assert work.within(JobId(f"long{n}"), gone_s + 60, gone_s + 420) == pytest.approx(solo)
        assert played.finished[JobId(f"long{n}")] / 60 == pytest.approx(175, rel=0.05)


class Work:
    """Mini-batches between two times, from the reports of a run and the rate alone."""

    def __init__(self, played: Played) -> None:
        half_s = 0.5 * suspend_resume_s(CIFAR)
        started: dict[JobId, float] = {}
        self._stints: list[tuple[JobId, float, float]] = []
        for entry in played.entries:
            if isinstance(entry.event, ResidentsSwitched):
                for job_id, at_s in entry.event.stopped:
                    self._stints.append((job_id, started.pop(job_id), at_s - half_s))
                started.update(entry.event.started)
        for job_id, at_s in started.items():
            self._stints.append((job_id, at_s, played.finished[job_id]))

    def within(self, job_id: JobId, start_s: float, end_s: float) -> float:
        return 9.2 * sum(
            max(0.0, min(stopped_s, end_s) - max(started_s, start_s))
            for who, started_s, stopped_s in self._stints
            if who == job_id
        )
