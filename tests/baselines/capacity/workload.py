"""A workload small enough to look at and crowded enough to need every rule of the model."""

from __future__ import annotations

import random

from gandiva_core.model.cluster import Cluster
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId
from gandiva_core.model.workload import PlannedJob
from tests.sim.worlds import PLAIN, servers

SERVERS = 5


def crowd(shape: str, seed: int = 7, jobs: int = 60) -> tuple[list[PlannedJob], Cluster]:
    """Jobs of 1 to 8 GPUs in an hour on five 4-GPU servers, in containers of one GPU or of up to a server."""
    draw = random.Random(seed)
    planned = []
    for number in range(jobs):
        gpus = draw.choice((1, 1, 1, 1, 2, 2, 3, 4, 4, 6, 8))
        whole, rest = divmod(gpus, 4)
        widths = (4,) * whole + ((rest,) if rest else ()) if shape == "server" else (1,) * gpus
        workers = tuple(Worker(width, 28_672 * width, 4 * width) for width in widths)
        spec = JobSpec(JobId(f"j{number:02d}"), workers, user="u")
        arrival_s, length = float(draw.randrange(3600)), float(draw.randrange(60, 3600))
        planned.append(PlannedJob(arrival_s, spec, length, PLAIN))
    planned.sort(key=lambda job: job.arrival_s)
    return planned, Cluster("crowd", servers(SERVERS))
