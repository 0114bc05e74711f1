"""Whole runs in the simulator: trace, arm, driver; and what a test asks of them."""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.config.settings import Settings
from gandiva_core.engine.engine import CheckLevel, Engine
from gandiva_core.messages.events import ContainersHeld, GangCommitted, JobFinished, JobSubmitted
from gandiva_core.messages.policy import Policy
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.workload import PlannedJob
from gandiva_core.policies.gandiva import create
from gandiva_core.runtime.driver import Driver, DriverReport
from gandiva_core.runtime.journal import Entry
from gandiva_core.runtime.observer import StockObserver
from gandiva_core.runtime.ports import Arm, RunSetup, Substrate, World
from gandiva_core.sim.engine import open_engine
from gandiva_core.sim.plain import PlainSubstrate
from gandiva_core.sim.world import JobWorld


class Played:
    """A run's entries and the figures taken from them.

    Attributes:
        starts: (time, job, servers) of every gang that got its containers, in order.
        held: (time, job, GPUs) of every partial gang.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.arrived: dict[JobId, float] = {}
        self.finished: dict[JobId, float] = {}
        self.starts: list[tuple[float, JobId, tuple[ServerId, ...]]] = []
        self.held: list[tuple[float, JobId, int]] = []
        self.report: DriverReport | None = None

    def observe(self, entry: Entry) -> None:
        self.entries.append(entry)
        event = entry.event
        if isinstance(event, JobSubmitted):
            self.arrived[event.job.job_id] = event.at_s
        elif isinstance(event, JobFinished):
            self.finished[event.job_id] = event.at_s
        elif isinstance(event, GangCommitted):
            self.starts.append((event.at_s, event.job_id, event.servers))
        elif isinstance(event, ContainersHeld):
            self.held.append((event.at_s, event.job_id, event.held))

    @property
    def jct_s(self) -> dict[str, float]:
        return {job_id: at_s - self.arrived[job_id] for job_id, at_s in self.finished.items()}

    @property
    def mean_jct_s(self) -> float:
        return sum(self.jct_s.values()) / len(self.finished)

    @property
    def makespan_s(self) -> float:
        return max(self.finished.values()) - min(self.arrived.values())


def setup(cluster: Cluster, arm: str, height_max: int = 1, conf_dir: str | None = None) -> RunSetup:
    """A run of a stock arm, or of a policy where `height_max` is more than 1."""
    is_stock = height_max == 1
    return RunSetup(Arm(arm, arm, {}, is_stock), cluster, 1, height_max, "", conf_dir)


def play_stock(
    planned: Sequence[PlannedJob],
    cluster: Cluster,
    arm: str | Substrate = "capacity",
    world: World | None = None,
) -> Played:
    """A stock arm to the end: by its name, or a substrate that is at hand."""
    played = Played()
    substrate = open_engine(setup(cluster, arm)).substrate if isinstance(arm, str) else arm
    driver = Driver(
        world or JobWorld(planned, cluster.servers),
        substrate,
        StockObserver(),
        observers=[played.observe],
    )
    played.report = driver.run()
    return played


def play_policy(
    planned: Sequence[PlannedJob],
    cluster: Cluster,
    policy: Policy | None = None,
    substrate: PlainSubstrate | None = None,
    check: CheckLevel = "full",
    world: World | None = None,
) -> Played:
    """A policy arm to the end; by default every invariant of everything is checked after every event."""
    settings = Settings()
    played = Played()
    driver = Driver(
        world or JobWorld(planned, cluster.servers),
        substrate or PlainSubstrate(cluster, settings.height_max),
        Engine(policy or create(settings, {}), settings, check=check),
        observers=[played.observe],
    )
    played.report = driver.run()
    return played
