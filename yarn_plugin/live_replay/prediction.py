"""What the simulator foresees for an arm from what was measured in it: a check of both, the engine the same (C-3).

The simulated jobs arrive when their containers are asked for, come up, compute, and hold their devices until their end
is seen; policy, quantum and height are the live ones. The rest of a job's time, its master's, is added as measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import Engine
from gandiva_core.messages.events import JobFinished
from gandiva_core.messages.policy import Scheduler
from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import AcceleratorType, JobId, ServerId
from gandiva_core.model.workload import PlannedJob
from gandiva_core.replay.arms import create_policy, parse_arm
from gandiva_core.replay.live import JobRun
from gandiva_core.runtime.driver import Driver
from gandiva_core.runtime.journal import Entry
from gandiva_core.runtime.observer import StockObserver
from gandiva_core.runtime.ports import RunSetup
from gandiva_core.sim.engine import open_engine
from gandiva_core.sim.faults import WorldOptions
from gandiva_core.sim.world import JobWorld
from yarn_plugin.cluster.configuration import NODE_MEMORY_MIB, NODE_VCORES
from yarn_plugin.live_replay.arm import WORKER_MEMORY_MIB
from yarn_plugin.live_replay.measured import Measured, measured
from yarn_plugin.live_replay.plan import LiveJob
from yarn_plugin.live_replay.switches import orders_of, switches_of


class Played(msgspec.Struct, frozen=True):
    """An arm that was played, as far as a prediction needs it.

    Attributes:
        first_s: seconds since 1970 of what times of `runs` are counted from.
        settings: of Gandiva; empty under stock code, which has no core and no journal either.
    """

    arm: str
    jobs: tuple[LiveJob, ...]
    runs: tuple[JobRun, ...]
    nodes: int
    server_gpus: int
    first_s: float
    settings: Mapping[str, float] = {}

    @property
    def height_max(self) -> int:
        """How many containers find room on a device."""
        return int(self.settings.get("height_max", 1))


def prediction(played: Played, journal: Path) -> dict[str, Any]:
    """What was measured, the mean JCT that follows from it, and how far that is from the live one.

    Args:
        played: the arm.
        journal: folder of its core's; none there for a stock arm.

    Raises:
        NotMeasuredError: too little was seen.
    """
    switches = None
    if played.settings:
        switches = switches_of(orders_of(entries_of(journal)), played.runs, played.first_s)
    room_gpus = played.nodes * played.server_gpus * played.height_max
    costs = measured(played.jobs, played.runs, room_gpus, switches, played.first_s)
    foreseen_s = foreseen_mean_jct_s(played, costs)
    live_s = mean(run.jct_s for run in played.runs)
    return {
        "predicted_mean_jct_s": foreseen_s,
        "live_mean_jct_s": live_s,
        "error_ratio": abs(foreseen_s - live_s) / live_s,
        "measured": msgspec.to_builtins(costs),
    }


def foreseen_mean_jct_s(played: Played, costs: Measured) -> float:
    """The simulated mean JCT, masters' times included."""
    ended: dict[str, float] = {}

    def observe(entry: Entry) -> None:
        if isinstance(entry.event, JobFinished):
            ended[entry.event.job_id] = entry.event.at_s

    cluster = Cluster("live", tuple(_servers(played)))
    world = JobWorld(
        [_planned(job, run, costs, not played.settings) for job, run in _pairs(played)],
        cluster.servers,
        options=WorldOptions(suspend_resume_s=costs.suspend_resume_s),
    )
    arm = parse_arm(played.arm)
    with TemporaryDirectory() as folder:
        setup = RunSetup(arm, cluster, 0, played.height_max, folder)
        Driver(world, open_engine(setup).substrate, _scheduler(played), observers=[observe]).run()
    rest_s = costs.master_end_s - costs.handover_s
    return mean(ended[job.job_id] + rest_s - run.submitted_s for job, run in _pairs(played))


def _planned(job: LiveJob, run: JobRun, costs: Measured, is_stock: bool) -> PlannedJob:
    """A job as the world has it.

    Under stock code the devices are a container's from the moment it is given; under Gandiva a container comes up first
    and then waits for them.
    """
    minibatch_s = costs.minibatch_s[job.kind]
    before_s, within_s = (0.0, costs.container_s) if is_stock else (costs.container_s, 0.0)
    held_s = costs.end_s + costs.handover_s
    return PlannedJob(
        arrival_s=run.submitted_s + costs.master_s + before_s,
        spec=JobSpec(JobId(job.job_id), (Worker(job.gpus, WORKER_MEMORY_MIB, 1),)),
        minibatches=job.minibatches + held_s / minibatch_s,
        profile=ModelProfile(
            name=job.kind,
            rate_per_s={AcceleratorType(""): 1.0 / minibatch_s},
            utilisation_ratio=1.0,
            memory_peak_mib=0.0,
            memory_min_mib=0.0,
            checkpoint_mib=0.0,
            source="measured",
        ),
        start_s=within_s + costs.framework_s,
    )


def _pairs(played: Played) -> Iterator[tuple[LiveJob, JobRun]]:
    return zip(played.jobs, played.runs, strict=True)


def _servers(played: Played) -> Iterator[Server]:
    for number in range(played.nodes):
        name = ServerId(f"node-{number + 1}")
        yield Server(name, played.server_gpus, NODE_MEMORY_MIB, NODE_VCORES)


def _scheduler(played: Played) -> Scheduler:
    if not played.settings:
        return StockObserver()
    settings = Settings(
        quantum_s=played.settings["quantum_s"], height_max=int(played.settings["height_max"])
    )
    return Engine(create_policy(parse_arm(played.arm), settings), settings)


def entries_of(journal: Path) -> Iterator[Mapping[str, Any]]:
    """The lines of a core's journal, decoded; none where there is no such folder."""
    for file in sorted(journal.glob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            yield msgspec.json.decode(line)
