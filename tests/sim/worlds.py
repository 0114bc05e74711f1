"""Builders for a small world, and a scheduler of forty lines that rotates everything: more switches than any policy."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from gandiva_core.messages.decisions import Run
from gandiva_core.messages.effects import StartTimer, SwitchResidents
from gandiva_core.messages.events import Event, ResidentsSwitched
from gandiva_core.model.cluster import Server
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.placement import Binding, LocalityLevel
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import AcceleratorType, JobId, ServerId
from gandiva_core.model.workload import PlannedJob
from gandiva_core.runtime.ports import World

PLAIN = ModelProfile(
    name="plain",
    rate_per_s={AcceleratorType(""): 1.0},
    utilisation_ratio=1.0,
    memory_peak_mib=1000.0,
    memory_min_mib=0.0,
    checkpoint_mib=100.0,
)
"""One mini-batch a second anywhere; a suspend and its resume cost 30 ms."""

SPLIT = ModelProfile(
    name="split",
    rate_per_s={AcceleratorType(""): 2.0, AcceleratorType("K80"): 0.5},
    utilisation_ratio=0.8,
    memory_peak_mib=4000.0,
    memory_min_mib=1300.0,
    checkpoint_mib=100.0,
    locality_factor={LocalityLevel.SAME_SOCKET: 0.81, LocalityLevel.DIFF_SOCKET: 0.6},
    spread_factor={1: 1.0, 2: 0.72, 4: 0.42},
    nic_factor=(1.0, 0.77, 0.65, 0.53),
)
"""Suffers from everything (VGG16 inside a server, ResNet-50 on the network)."""


def servers(count: int, gpus: int = 4, kind: str = "P100") -> tuple[Server, ...]:
    """`count` alike, named ``s1`` …"""
    return tuple(
        Server(ServerId(f"s{n}"), gpus, 458_752, 64, AcceleratorType(kind))
        for n in range(1, count + 1)
    )


def planned(
    name: str,
    minibatches: float,
    *,
    gpus: int = 1,
    arrival_s: float = 0.0,
    profile: ModelProfile = PLAIN,
    checkpoint_every_s: float = 1800.0,
    start_s: float = 0.0,
) -> PlannedJob:
    """A job of one container a GPU."""
    spec = JobSpec(JobId(name), (Worker(1, 1024, 1),) * gpus, name=name)
    return PlannedJob(arrival_s, spec, minibatches, profile, checkpoint_every_s, start_s)


def run(name: str, *places: tuple[str, tuple[int, ...]]) -> Run:
    """Devices for a job: (server, GPUs) pairs."""
    return Run(JobId(name), tuple(Binding(ServerId(server), gpus) for server, gpus in places))


def switch(number: int, suspend: Sequence[str] = (), runs: Sequence[Run] = ()) -> SwitchResidents:
    """An order to the world."""
    stop = tuple(JobId(name) for name in suspend)
    return SwitchResidents(0, number, (), stop, tuple(runs))


class Told:
    """Everything a world said, by time."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.completed: list[tuple[str, float]] = []

    def drain(self, world: World, until_s: float = float("inf")) -> Told:
        """Let a world go on until it waits for orders, or until a time."""
        while (at_s := world.next_at_s()) is not None and at_s <= until_s:
            step = world.advance(at_s)
            self.events += step.events
            self.completed += [(job_id, at_s) for job_id in step.completed]
        return self


def random_trace(seed: int, jobs: int, profile: ModelProfile = PLAIN) -> list[PlannedJob]:
    """Jobs of 1 to 8 GPUs and 1 to 40 minutes within an hour."""
    draw = random.Random(seed)
    return [
        planned(
            f"j{n}",
            float(draw.randrange(60, 2400)),
            gpus=draw.choice((1, 1, 1, 2, 4, 8)),
            arrival_s=round(draw.uniform(0, 3600), 3),
            profile=profile,
        )
        for n in range(jobs)
    ]


class Rotation:
    """Drives a world: every quantum those who held GPUs least run, on the lowest devices that are free.

    Attributes:
        finished: completion time by job.
        arrived: arrival time by job.
        stints: (job, devices, started, stopped) of every run, in order of its end.
        switched: every report.
    """

    def __init__(
        self, world: World, cluster: Sequence[Server], gpus: Mapping[str, int], quantum_s: float
    ) -> None:
        self.world = world
        self.quantum_s = quantum_s
        self.devices = [(s.server_id, gpu) for s in cluster for gpu in range(s.gpus)]
        self.gpus = gpus
        self.arrived: dict[JobId, float] = {}
        self.finished: dict[JobId, float] = {}
        self.held: dict[JobId, float] = {}
        self.running: dict[JobId, tuple[float, tuple[Binding, ...]]] = {}
        self.moving: dict[JobId, tuple[Binding, ...]] = {}
        self.stints: list[tuple[JobId, tuple[Binding, ...], float, float]] = []
        self.switched: list[ResidentsSwitched] = []
        self.number = 0

    def play(self) -> Rotation:
        """To the end."""
        while (now_s := self.world.next_at_s()) is not None:
            step = self.world.advance(now_s)
            for job_id in step.completed:
                self._end(job_id, now_s)
            for event in step.events:
                if isinstance(event, ResidentsSwitched):
                    self._book(event)
            for spec in step.arrivals:
                self.arrived[spec.job_id] = now_s
                self.held[spec.job_id] = 0.0
            if not self.moving and self.held and (step.events or step.arrivals or step.completed):
                self._turn(now_s)
        return self

    def _end(self, job_id: JobId, now_s: float) -> None:
        self.finished[job_id] = now_s
        del self.held[job_id]
        self.moving.pop(job_id, None)
        started_s, bindings = self.running.pop(job_id, (now_s, ()))
        self.stints.append((job_id, bindings, started_s, now_s))

    def _book(self, event: ResidentsSwitched) -> None:
        self.switched.append(event)
        for job_id, at_s in event.stopped:
            started_s, bindings = self.running.pop(job_id)
            self.held[job_id] += at_s - started_s
            self.stints.append((job_id, bindings, started_s, at_s))
        for job_id, at_s in event.started:
            self.running[job_id] = at_s, self.moving.pop(job_id)
        self.moving.clear()

    def _turn(self, now_s: float) -> None:
        """Choose who runs now; ask to be woken a quantum later."""
        room = len(self.devices)
        chosen = []
        for job_id in sorted(self.held, key=lambda job_id: (self._held(job_id, now_s), job_id)):
            if self.gpus[job_id] <= room:
                chosen.append(job_id)
                room -= self.gpus[job_id]
        stop = tuple(job_id for job_id in self.running if job_id not in chosen)
        kept = {job_id: self.running[job_id][1] for job_id in chosen if job_id in self.running}
        taken = {
            (b.server_id, gpu) for bindings in kept.values() for b in bindings for gpu in b.gpus
        }
        free = iter([device for device in self.devices if device not in taken])
        orders = []
        for job_id in chosen:
            if job_id not in kept:
                bindings = _bind([next(free) for _ in range(self.gpus[job_id])])
                self.moving[job_id] = bindings
                orders.append(Run(job_id, bindings))
        if stop or orders:
            self.number += 1
            order = SwitchResidents(0, self.number, (), stop, tuple(orders))
            self.world.apply(now_s, [order])
        self.world.apply(now_s, [StartTimer(0, "turn", now_s + self.quantum_s)])

    def _held(self, job_id: JobId, now_s: float) -> float:
        started_s = self.running.get(job_id, (now_s, ()))[0]
        return self.held[job_id] + now_s - started_s

    @property
    def mean_jct_s(self) -> float:
        times = [at_s - self.arrived[job_id] for job_id, at_s in self.finished.items()]
        return sum(times) / len(times)

    @property
    def makespan_s(self) -> float:
        return max(self.finished.values()) - min(self.arrived.values())


def _bind(devices: Sequence[tuple[ServerId, int]]) -> tuple[Binding, ...]:
    by_server: dict[ServerId, list[int]] = {}
    for server_id, gpu in devices:
        by_server.setdefault(server_id, []).append(gpu)
    return tuple(Binding(server_id, tuple(gpus)) for server_id, gpus in by_server.items())


def rotation(
    world: World, jobs: Sequence[PlannedJob], cluster: Sequence[Server], quantum_s: float = 60.0
) -> Rotation:
    """A rotation ready to play."""
    return Rotation(world, cluster, {j.spec.job_id: j.spec.gpus for j in jobs}, quantum_s)
