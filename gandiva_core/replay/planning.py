"""From a trace to the jobs really submitted: each gang's shape and asks, and what cannot be submitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.profile import ModelProfile
from gandiva_core.model.units import JobId, QueueName
from gandiva_core.model.workload import PlannedJob
from gandiva_core.replay.traces.records import Trace, TraceJob

DEFAULT_QUEUE = QueueName("root.default")
DEFAULT_USER = "gandiva"
NAMED_MAX = 5
"""Job ids named in a note; the rest is counted."""


class Shape(StrEnum):
    """How a gang is cut into containers; declared, and the same in every arm (DESIGN §7)."""

    GPU = "gpu"
    """One container a GPU."""
    SERVER = "server"
    """One container a server, with up to all of its GPUs."""


class Plan(msgspec.Struct, frozen=True):
    """What one shape of a trace comes to.

    Attributes:
        jobs: to be submitted, in the trace's order.
        left_out: jobs not submitted, counted by the reason.
        notes: what was left out, with the first job ids, and what was assumed: one sentence each.
    """

    shape: Shape
    jobs: tuple[PlannedJob, ...]
    left_out: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()


class Portion(msgspec.Struct, frozen=True):
    """What a container asks for beside each GPU when the trace does not say."""

    memory_mib: int
    vcores: int


def portion_of(cluster: Cluster, height_max: int) -> Portion:
    """A GPU's portion of its server: memory and vcores ÷ (GPUs × maximum height), the smallest of all servers.

    With it, as many residents fit into host memory as the height allows; the same asks go to every arm.

    Raises:
        InputError: for a cluster without a GPU.
    """
    servers = [server for server in cluster.servers if server.gpus > 0]
    if not servers:
        raise InputError(f"cluster {cluster.name}", "no server with a GPU", "at least one GPU")
    return Portion(
        memory_mib=max(1, min(s.memory_mib // (s.gpus * height_max) for s in servers)),
        vcores=max(1, min(s.vcores // (s.gpus * height_max) for s in servers)),
    )


def widths(gpus: int, shape: Shape, server_gpus: int) -> tuple[int, ...]:
    """GPUs of each container of a gang, largest first: 6 on servers of 4 is 4+2 as `server`, six times 1 as `gpu`."""
    if shape is Shape.GPU:
        return (1,) * gpus
    whole, rest = divmod(gpus, server_gpus)
    return (server_gpus,) * whole + ((rest,) if rest else ())


def usual_server_gpus(cluster: Cluster) -> int:
    """GPUs of the commonest server, the larger where two are as common: what shape `server` calls a whole server."""
    counts = Counter(server.gpus for server in cluster.servers if server.gpus > 0)
    return max(counts, key=lambda gpus: (counts[gpus], gpus))


def plan(
    trace: Trace,
    cluster: Cluster,
    shape: Shape,
    height_max: int,
    profile_of: Callable[[TraceJob], ModelProfile],
) -> Plan:
    """The jobs of `trace` as they are submitted to `cluster`.

    A job that an empty cluster could not host is left out and counted, in every arm alike.

    Args:
        trace: the workload.
        cluster: where it is to run.
        shape: how gangs are cut into containers.
        height_max: H_max of the policy arms; it sizes the default asks of all arms.
        profile_of: how a job behaves (the model table).

    Raises:
        InputError: where no job at all is left, or the cluster has no GPU.
    """
    portion = portion_of(cluster, height_max)
    server_gpus = usual_server_gpus(cluster)
    planned: list[PlannedJob] = []
    left_out: dict[str, list[str]] = {}
    for job in trace.jobs:
        spec = spec_of(job, portion, widths(job.gpus, shape, server_gpus))
        obstacle = obstacle_of(spec, cluster.servers)
        if obstacle:
            left_out.setdefault(obstacle, []).append(job.job_id)
            continue
        planned.append(
            PlannedJob(
                arrival_s=job.arrival_s,
                spec=spec,
                minibatches=float(job.total_steps),
                profile=profile_of(job),
            )
        )
    if not planned:
        found = f"none of {len(trace.jobs)} jobs that fits cluster {cluster.name}"
        raise InputError(f"trace {trace.name}", found, "at least one job to replay")
    return Plan(
        shape=shape,
        jobs=tuple(planned),
        left_out={reason: len(jobs) for reason, jobs in left_out.items()},
        notes=tuple(note_of(reason, jobs) for reason, jobs in left_out.items()),
    )


def spec_of(job: TraceJob, portion: Portion, gpus_by_worker: Sequence[int]) -> JobSpec:
    """The application a trace's job becomes; a container asks for its GPUs times the memory and vcores per GPU."""
    memory_mib = portion.memory_mib if job.memory_mib is None else job.memory_mib
    vcores = portion.vcores if job.vcores is None else job.vcores
    return JobSpec(
        job_id=JobId(job.job_id),
        workers=tuple(Worker(g, g * memory_mib, g * vcores) for g in gpus_by_worker),
        name=job.job_id,
        queue=QueueName(job.queue) if job.queue else DEFAULT_QUEUE,
        user=job.user or DEFAULT_USER,
        weight=job.weight,
        priority_class=job.priority_class,
        priority=job.priority_class,
        model=job.model,
    )


def obstacle_of(spec: JobSpec, servers: Sequence[Server]) -> str:
    """Why an empty cluster could not host a gang; empty where it could.

    Containers go largest first to the first server that still fits one: exact where containers or servers are alike.
    """
    largest = max(spec.workers, key=lambda worker: worker.gpus)
    if all(server.gpus < largest.gpus for server in servers):
        return "a container has more GPUs than any server"
    fitting = [server for server in servers if server.gpus >= largest.gpus]
    if all(s.memory_mib < largest.memory_mib or s.vcores < largest.vcores for s in fitting):
        return "a container asks for more memory or vcores than any server has"
    if spec.gpus > sum(server.gpus for server in servers):
        return "more GPUs than the cluster"
    free = [[server.gpus, server.memory_mib, server.vcores] for server in servers]
    for worker in sorted(spec.workers, key=lambda worker: -worker.gpus):
        need = (worker.gpus, worker.memory_mib, worker.vcores)
        room = next((r for r in free if all(r[i] >= need[i] for i in range(3))), None)
        if room is None:
            return "larger than the empty cluster can hold at once"
        for i in range(3):
            room[i] -= need[i]
    return ""


def note_of(reason: str, job_ids: Sequence[str]) -> str:
    """One sentence a reason, for the report and the terminal."""
    named = ", ".join(job_ids[:NAMED_MAX])
    more = f" and {len(job_ids) - NAMED_MAX} more" if len(job_ids) > NAMED_MAX else ""
    return f"{len(job_ids)} job{'s' if len(job_ids) > 1 else ''} not submitted: {reason} ({named}{more})"
