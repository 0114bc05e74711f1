"""What a stock arm does with a trace, in two figures: all that the calibration may look at."""

from __future__ import annotations

import msgspec

from gandiva_core.messages.events import JobFinished
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import JobId
from gandiva_core.replay.planning import Shape, plan
from gandiva_core.replay.traces.models import profile_of
from gandiva_core.replay.traces.records import Trace
from gandiva_core.runtime.driver import Driver
from gandiva_core.runtime.journal import Entry
from gandiva_core.runtime.observer import StockObserver
from gandiva_core.runtime.ports import Arm, RunSetup, SubstrateFactory
from gandiva_core.sim.world import JobWorld

HEIGHT_MAX = 4
"""The policies' default H_max: it sizes the asks of all arms alike."""


class Outcome(msgspec.Struct, frozen=True):
    """C-4 of one run, in s."""

    mean_jct_s: float
    makespan_s: float


def play_stock(
    trace: Trace, cluster: Cluster, shape: Shape, factory: SubstrateFactory, work_dir: str = ""
) -> Outcome:
    """Play `trace` under the stock scheduler that `factory` opens.

    Args:
        trace: the workload.
        cluster: where it runs.
        shape: how gangs are cut into containers.
        factory: an engine, asked for its arm ``capacity``.
        work_dir: where a real ResourceManager leaves its logs.

    Raises:
        InputError: jobs that never finish, as in a gang deadlock.
    """
    planned = plan(trace, cluster, shape, HEIGHT_MAX, profile_of)
    arm = Arm(name="capacity", base="capacity", switches={}, is_stock=True)
    opened = factory(RunSetup(arm=arm, cluster=cluster, seed=1, height_max=1, work_dir=work_dir))
    ends: dict[JobId, float] = {}

    def hear(entry: Entry) -> None:
        if isinstance(entry.event, JobFinished):
            ends[entry.event.job_id] = entry.event.at_s

    world = JobWorld(planned.jobs, cluster.servers, seed=1)
    Driver(world, opened.substrate, StockObserver(), observers=[hear]).run()
    if len(ends) < len(planned.jobs):
        found = f"{len(planned.jobs) - len(ends)} of {len(planned.jobs)} jobs that never finish"
        raise InputError(f"trace {trace.name}, shape {shape}", found, "every job to finish")
    jcts = [ends[job.spec.job_id] - job.arrival_s for job in planned.jobs]
    return Outcome(
        mean_jct_s=sum(jcts) / len(jcts),
        makespan_s=max(ends.values()) - min(job.arrival_s for job in planned.jobs),
    )
