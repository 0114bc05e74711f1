"""A workload as every part of the replay reads it (C-9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class TraceJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """One job of a trace (C-9), with what a site's own trace may add: queue, user, memory, vcores.

    Attributes:
        job_id: unique in its trace; the formats without an id get the number of their row.
        arrival_s: seconds from the start of the trace.
        gpus: GPUs of the whole gang, at least 1 (column ``g``).
        total_steps: mini-batches of the whole gang, at least 1.
        model: name in the model table, or any other name; empty where the trace has none.
        batch: mini-batch size where the trace has one.
        priority_class: strict classes, larger first (G-34).
        weight: share within the class (G-31).
        growshrink: declared elastic (G-80).
        multi_job_id: the search this job belongs to (G-85).
        entity: who the job belongs to in a hierarchy (V-20): organisation, virtual cluster.
        slo_factor: deadline = arrival + factor × reference duration (V-56).
        ref_duration_s: run time on the reference device at the best placement. With `total_steps` it gives the job's
            rate; without it the rate is the model table's (see `profile_of`).
        queue: YARN queue; None for the replay's default.
        user: YARN user; None for the replay's default.
        memory_mib: container memory per GPU; None for the replay's default.
        vcores: container vcores per GPU; None for the replay's default.
    """

    job_id: str
    arrival_s: float
    gpus: int
    total_steps: int
    model: str = ""
    batch: int | None = None
    priority_class: int = 0
    weight: float = 1.0
    growshrink: bool = False
    multi_job_id: str | None = None
    entity: str | None = None
    slo_factor: float | None = None
    ref_duration_s: float | None = None
    queue: str | None = None
    user: str | None = None
    memory_mib: int | None = None
    vcores: int | None = None


class ObservedRun(msgspec.Struct, frozen=True):
    """What a production trace recorded of a job on its own cluster. Times in seconds.

    Attributes:
        wait_s: submission to first start.
        run_s: running time of all attempts together.
        gpu_s: running time × GPUs, summed over attempts.
        jct_s: submission to last end.
        status: the end state, in lower case.
    """

    job_id: str
    wait_s: float
    run_s: float
    gpu_s: float
    jct_s: float
    status: str


class Trace(msgspec.Struct, frozen=True):
    """A workload, ready to replay. Make one with `trace_of`, which sorts.

    Attributes:
        jobs: in order of (arrival, place in the file).
        cluster_name: the built-in cluster this trace was made for; None where any will do.
        source: file, or generator with its seed and parameters.
        left_out: entries not among `jobs`, counted by kind.
        notes: what was assumed, adjusted or not used, one sentence each.
        observed: what the original cluster did, where the format tells; not kept by the own CSV.
        machine_gpus: GPUs of each machine, where the format tells; not kept by the own CSV.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    cluster_name: str | None = None
    source: str = ""
    left_out: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()
    observed: tuple[ObservedRun, ...] = ()
    machine_gpus: Mapping[str, int] = {}


def in_order(jobs: Iterable[TraceJob]) -> tuple[TraceJob, ...]:
    """Jobs by (arrival, order given): Python's sort is stable."""
    return tuple(sorted(jobs, key=lambda job: job.arrival_s))
