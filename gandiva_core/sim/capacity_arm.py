"""A stock arm's two figures, quickly: what calibration asks for a thousand times (GE-14)."""

from __future__ import annotations

from collections.abc import Sequence

from gandiva_core.messages.events import JobFinished, JobSubmitted
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.model.workload import PlannedJob
from gandiva_core.runtime.driver import Driver
from gandiva_core.runtime.journal import Entry
from gandiva_core.runtime.observer import StockObserver
from gandiva_core.runtime.ports import Arm, RunSetup
from gandiva_core.sim.engine import baseline
from gandiva_core.sim.faults import WorldOptions
from gandiva_core.sim.world import JobWorld

NO_MILESTONE = 2**62
"""Nobody looks at early feedback here."""


class _Clock:
    """Arrivals and completions, as the driver sees them go by."""

    def __init__(self) -> None:
        self.waited_s = 0.0
        self.finished = 0
        self.first_s = float("inf")
        self.last_s = 0.0

    def observe(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, JobSubmitted):
            self.waited_s -= event.at_s
            self.first_s = min(self.first_s, event.at_s)
        elif isinstance(event, JobFinished):
            self.waited_s += event.at_s
            self.finished += 1
            self.last_s = event.at_s


def capacity_arm(
    planned: Sequence[PlannedJob], cluster: Cluster, arm: str = "capacity"
) -> tuple[float, float]:
    """Mean JCT and makespan of a stock arm, without a journal; the same driver, world and model as a replay.

    Args:
        planned: the jobs.
        cluster: where they run.
        arm: a baseline with a model.

    Returns:
        (mean JCT in s, makespan in s) (C-4).

    Raises:
        InputError: no job, an unknown baseline, or a job that never ends there.
    """
    if not planned:
        raise InputError(f"arm {arm}", "no job", "at least one job to run")
    setup = RunSetup(Arm(arm, arm, {}, is_stock=True), cluster, 0, 1, "")
    world = JobWorld(
        planned, cluster.servers, options=WorldOptions(milestone_minibatches=NO_MILESTONE)
    )
    clock = _Clock()
    substrate = baseline(arm)(setup).substrate
    report = Driver(world, substrate, StockObserver(), observers=[clock.observe]).run()
    if clock.finished < len(planned):
        stuck = ", ".join(job.job_id for job in report.unfinished[:5])
        found = f"{len(planned) - clock.finished} jobs that never finish ({stuck} …)"
        raise InputError(f"arm {arm}", found, "jobs that all finish")
    return clock.waited_s / clock.finished, clock.last_s - clock.first_s
