"""Made-up runs for the tests of summary, report and comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from gandiva_core.replay.details import FORMAT, RunDetails, Surroundings
from gandiva_core.replay.figures import (
    FINISHED,
    UNFINISHED,
    Course,
    JobRecord,
    Moment,
    RunFigures,
    makespan,
    mean,
    quantile,
)
from gandiva_core.replay.series import Series

RunMaker = Callable[..., RunDetails]


def record(
    name: str,
    jct_s: float | None,
    arrival_s: float = 0.0,
    gpus: int = 1,
    computed_s: float = 0.0,
    held_gpus: int = 0,
) -> JobRecord:
    return JobRecord(
        job_id=name,
        name=name,
        model="ResNet-50",
        gpus=gpus,
        queue="root.default",
        user="u",
        arrival_s=arrival_s,
        first_run_s=arrival_s + 1.0,
        first_100_s=None if jct_s is None else arrival_s + jct_s / 2,
        ended_s=None if jct_s is None else arrival_s + jct_s,
        outcome=UNFINISHED if jct_s is None else FINISHED,
        computed_s=computed_s,
        suspends=0,
        restarts=0,
        servers=("server-01",) if held_gpus else (),
        held_gpus=held_gpus,
        story=(Moment(arrival_s, "arrived"),),
    )


def figures(jobs: Sequence[JobRecord]) -> RunFigures:
    jcts = [job.jct_s for job in jobs if job.jct_s is not None]
    return RunFigures(
        jobs=len(jobs),
        finished=len(jcts),
        failed=0,
        killed=0,
        unfinished=len(jobs) - len(jcts),
        mean_jct_s=mean(jcts),
        median_jct_s=quantile(jcts, 0.5),
        p95_jct_s=quantile(jcts, 0.95),
        p99_jct_s=quantile(jcts, 0.99),
        makespan_s=makespan(jobs),
        mean_queueing_s=1.0,
        mean_first_100_minibatches_s=2.0,
        gpu_utilization=0.5,
        gpu_allocated=0.75,
        am_limit_waits=0,
        max_height=1,
        suspends=3,
        restarts=0,
        migrations=0,
        packings_tried=0,
        packings_kept=0,
        host_memory_waits=0,
        partial_holds=0,
        partial_hold_gpu_s=0.0,
        gangs_refused={},
        events=10,
    )


def records_of(
    jobs: Mapping[str, float | None] | Sequence[JobRecord],
) -> tuple[JobRecord, ...]:
    if isinstance(jobs, Mapping):
        return tuple(record(name, jct_s) for name, jct_s in jobs.items())
    return tuple(jobs)


def made_run(
    arm: str,
    jobs: Mapping[str, float | None] | Sequence[JobRecord],
    *,
    shape: str = "server",
    seed: int = 1,
    complete: bool = True,
    queues: str = "built-in",
    nodes: str = "n" * 64,
    trace: str = "t" * 64,
    engine: str = "sim",
    position: int = 0,
) -> RunDetails:
    records = records_of(jobs)
    flat = Series(1.0, (0.5, 1.0, 0.25))
    return RunDetails(
        format=FORMAT,
        arm=arm,
        position=position,
        is_stock=arm.startswith("capacity"),
        mechanisms=() if arm.startswith("capacity") else ("slicing",),
        scheduler_class=f"class.of.{arm}",
        shape=shape,
        seed=seed,
        surroundings=Surroundings(
            trace="tiny",
            trace_source="made up",
            trace_digest=trace,
            cluster="two",
            cluster_digest=nodes,
            servers=2,
            gpus=8,
            gpus_by_type={"P100": 8},
            queues_digest=queues,
            engine=engine,
            height_max=4,
        ),
        settings={"quantum_s": 60.0, "height_max": 4.0},
        commit="abc",
        versions={"gandiva": "0.1.0"},
        is_complete=complete,
        wall_s=1.5,
        journal=f"journals/{arm}_{shape}_{seed}.jsonl.zst",
        journal_sha256=f"{seed}" * 64,
        figures=figures(records),
        course=Course(flat, flat, flat, flat),
        refused=(),
        left_out={},
        notes=(),
        jobs=records,
    )


@pytest.fixture
def make_run() -> RunMaker:
    """A run of an arm from its jobs' JCTs in s; None for one that never finished."""
    return made_run


@pytest.fixture
def make_record() -> Callable[..., JobRecord]:
    """One job's record."""
    return record
