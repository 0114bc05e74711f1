"""Short replays for tests: jobs of so many seconds on a small cluster, an arm, a journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import CheckLevel, Engine
from gandiva_core.messages.events import Event, GangCommitted, JobFinished, JobSubmitted
from gandiva_core.messages.policy import Scheduler
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.job import JobSpec
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import AcceleratorType
from gandiva_core.model.workload import PlannedJob
from gandiva_core.replay.arms import create_policy, parse_arm
from gandiva_core.runtime.driver import Driver, DriverReport
from gandiva_core.runtime.journal import FORMAT_VERSION, Entry, Header, ReplayJournal
from gandiva_core.runtime.observer import StockObserver
from gandiva_core.runtime.ports import OpenedSubstrate, RunSetup, SubstrateFactory
from gandiva_core.sim.world import JobWorld
from tests.builders import server

Opener = Callable[..., OpenedSubstrate]

PLAIN = ModelProfile(
    name="plain",
    rate_per_s={AcceleratorType(""): 1.0},
    utilisation_ratio=1.0,
    memory_peak_mib=1000.0,
    memory_min_mib=100.0,
    checkpoint_mib=100.0,
)
"""One mini-batch a second wherever it runs."""


class Played(msgspec.Struct, frozen=True):
    """A run that ended."""

    opened_class: str
    entries: tuple[Entry, ...]
    report: DriverReport

    @property
    def events(self) -> list[Event]:
        """Every event, in order."""
        return [entry.event for entry in self.entries]

    @property
    def starts(self) -> list[tuple[float, str, tuple[str, ...]]]:
        """Whole gangs in the order they came to be."""
        return [
            (e.at_s, e.job_id, tuple(e.servers))
            for e in self.events
            if isinstance(e, GangCommitted)
        ]

    @property
    def ends(self) -> dict[str, float]:
        """When each job finished."""
        return {str(e.job_id): e.at_s for e in self.events if isinstance(e, JobFinished)}

    @property
    def mean_jct_s(self) -> float:
        """Over the jobs that finished."""
        came = {str(e.job.job_id): e.at_s for e in self.events if isinstance(e, JobSubmitted)}
        waits_s = [end_s - came[job_id] for job_id, end_s in self.ends.items()]
        return sum(waits_s) / len(waits_s)

    @property
    def makespan_s(self) -> float:
        """From the first arrival to the last end."""
        first = min(e.at_s for e in self.events if isinstance(e, JobSubmitted))
        return max(self.ends.values()) - first


def planned(spec: JobSpec, work_s: float, arrival_s: float = 0.0) -> PlannedJob:
    """A job that computes for `work_s` when alone."""
    return PlannedJob(arrival_s, spec, work_s, PLAIN)


def small_cluster(servers: int = 2, gpus: int = 4) -> Cluster:
    """Servers with room for four residents a GPU, each of 1 GiB and one core a GPU."""
    return Cluster(
        "small",
        tuple(
            server(f"s{i:02d}", gpus, memory_mib=4096 * gpus, vcores=4 * gpus)
            for i in range(1, servers + 1)
        ),
    )


def play(
    opener: Opener | SubstrateFactory,
    arm_name: str,
    jobs: Sequence[PlannedJob],
    cluster: Cluster,
    work_dir: Path,
    check: CheckLevel = "full",
    **opener_args: object,
) -> Played:
    """Run one arm to its end, with a journal at ``work_dir/run.jsonl.zst``."""
    arm = parse_arm(arm_name)
    settings = Settings() if not arm.is_stock else Settings(height_max=1)
    opened = opener(RunSetup(arm, cluster, 1, settings.height_max, str(work_dir)), **opener_args)
    scheduler: Scheduler = (
        StockObserver()
        if arm.is_stock
        else Engine(create_policy(arm, settings), settings, check=check)
    )
    entries: list[Entry] = []
    header = Header(format_version=FORMAT_VERSION, arm=arm.name, policy=arm.base, cluster=cluster)
    try:
        report = Driver(
            JobWorld(jobs, cluster.servers),
            opened.substrate,
            scheduler,
            journal=ReplayJournal(work_dir / "run.jsonl.zst", header),
            observers=[entries.append],
        ).run()
    finally:
        opened.substrate.close()
    return Played(opened.scheduler_class, tuple(entries), report)
