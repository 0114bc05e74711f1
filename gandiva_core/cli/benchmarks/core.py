"""How long the engine and Gandiva's policy take to decide, by the size of the cluster."""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import entry_points

import msgspec

from gandiva_core.cli.benchmarks.results import Row, Say, percentile
from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.events import Event, JobFinished, JobSubmitted, TimerFired
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import AcceleratorType, JobId, ServerId
from gandiva_core.model.workload import PlannedJob
from gandiva_core.policies.gandiva import create
from gandiva_core.runtime.driver import Driver
from gandiva_core.runtime.ports import Arm, RunSetup, SubstrateFactory
from gandiva_core.sim.world import JobWorld


class Plan(msgspec.Struct, frozen=True):
    """What is measured.

    Attributes:
        servers: sizes of the cluster.
        measured: arrivals that count, after the cluster is full.
        fill_ratio: GPUs asked for before that, in GPUs of the cluster: above 1, so that every step of the
            cascade is taken and devices are shared.
    """

    servers: tuple[int, ...] = (25, 250, 2500)
    measured: int = 1000
    fill_ratio: float = 1.25
    fill_s: float = 600.0
    duration_mean_s: float = 3600.0
    gpus_per_server: int = 4
    seed: int = 1


QUICK = Plan(servers=(5,), measured=20)
_SIZES = ((0.60, 1), (0.80, 2), (0.95, 4), (1.0, 8))
"""Cumulative shares of gang sizes: the mix of GE-14."""

_MEAN_GPUS = 2.0
_PROFILE = ModelProfile("any", {AcceleratorType(""): 1.0}, 0.9, 8000.0, 500.0, 500.0)


class _Enough(Exception):  # noqa: N818 - not an error: what was to be measured is measured
    """Ends the run."""


class _Timed:
    """An engine with a stop-watch at its door."""

    def __init__(self, engine: Engine, arrivals_before: int, arrivals: int) -> None:
        self._engine = engine
        self._skip = arrivals_before
        self._left = arrivals
        self.elapsed_s: dict[type[Event], list[float]] = defaultdict(list)
        self.decisions = 0

    def handle(self, event: Event) -> Outcome:
        """Handle, and note how long it took once the cluster is full."""
        started_ns = time.perf_counter_ns()
        outcome = self._engine.handle(event)
        took_s = (time.perf_counter_ns() - started_ns) / 1e9
        is_arrival = type(event) is JobSubmitted
        if is_arrival and self._skip:
            self._skip -= 1
        elif not self._skip:
            self.elapsed_s[type(event)].append(took_s)
            self.decisions += len(outcome.decisions)
            self._left -= is_arrival
            if not self._left:
                raise _Enough
        return outcome


def run(*, is_quick: bool, say: Say) -> Sequence[Row]:
    """Time of `Engine.handle` in a full cluster of four-GPU servers, half of its GPUs shared by two jobs or more.

    `placement` is the answer to an arrival, `departure` to a job's end (which places those who waited),
    `boundary` to a quantum's end in one slicing domain. Times in ms; `decisions_per_s` counts every
    decision over all time spent in the engine.
    """
    plan = QUICK if is_quick else Plan()
    return [_row(servers, plan, say) for servers in plan.servers]


def _row(servers: int, plan: Plan, say: Say) -> Row:
    say(f"core: {servers} servers")
    cluster = _cluster(servers, plan)
    jobs = list(_jobs(cluster, plan))
    timed = _Timed(
        Engine(create(Settings(), {}), Settings()), len(jobs) - plan.measured, plan.measured
    )
    with tempfile.TemporaryDirectory() as folder:
        arm = Arm("gandiva", "gandiva", {}, is_stock=False)
        setup = RunSetup(arm, cluster, plan.seed, Settings().height_max, folder)
        opened = _engine("sim")(setup)
        with suppress(_Enough):
            Driver(JobWorld(jobs, cluster.servers), opened.substrate, timed).run()
    return _figures(servers, cluster.gpus, timed)


def _figures(servers: int, gpus: int, timed: _Timed) -> Row:
    spent_s = sum(map(sum, timed.elapsed_s.values()))
    row: dict[str, float | int | str] = {"servers": servers, "gpus": gpus}
    row["decisions_per_s"] = timed.decisions / spent_s
    for name, kind in (
        ("placement", JobSubmitted),
        ("departure", JobFinished),
        ("boundary", TimerFired),
    ):
        values_ms = [value * 1000 for value in timed.elapsed_s[kind]]
        row[f"{name}_p50_ms"] = percentile(values_ms, 0.50)
        row[f"{name}_p99_ms"] = percentile(values_ms, 0.99)
    return row


def _cluster(servers: int, plan: Plan) -> Cluster:
    return Cluster(
        f"bench-{servers}",
        tuple(
            Server(ServerId(f"server-{number:05}"), plan.gpus_per_server, 458752, 64)
            for number in range(servers)
        ),
    )


def _jobs(cluster: Cluster, plan: Plan) -> Iterator[PlannedJob]:
    """First enough to fill the cluster, then as many an hour as end."""
    draw = random.Random(plan.seed)
    filling = round(plan.fill_ratio * cluster.gpus / _MEAN_GPUS)
    rate_per_s = cluster.gpus / (_MEAN_GPUS * plan.duration_mean_s)
    arrival_s = 0.0
    for number in range(filling + plan.measured):
        is_filling = number < filling
        arrival_s += (
            plan.fill_s / filling if is_filling else -math.log(1 - draw.random()) / rate_per_s
        )
        share = draw.random()
        gpus = next(size for bound, size in _SIZES if share < bound)
        duration_s = -math.log(1 - draw.random()) * plan.duration_mean_s
        yield PlannedJob(arrival_s, _spec(number, gpus, plan), max(1.0, duration_s), _PROFILE)


def _spec(number: int, gpus: int, plan: Plan) -> JobSpec:
    """One container a server, with memory that lets four levels fit."""
    whole = plan.gpus_per_server
    parts = [min(whole, gpus - done) for done in range(0, gpus, whole)]
    workers = tuple(Worker(part, part * 28672, part * 4) for part in parts)
    return JobSpec(JobId(f"job-{number:06}"), workers)


def _engine(name: str) -> SubstrateFactory:
    (entry,) = entry_points(group="gandiva.engines", name=name)
    factory: SubstrateFactory = entry.load()
    return factory
