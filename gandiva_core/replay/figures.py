"""What one run comes to: a record a job, the run's figures, and its course over time. docs/REPLAY.md defines each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gandiva_core.replay.series import Series

FINISHED, FAILED, KILLED, UNFINISHED = "finished", "failed", "killed", "unfinished"


class Moment(msgspec.Struct, frozen=True, array_like=True):
    """One line of a job's story."""

    at_s: float
    text: str


class JobRecord(msgspec.Struct, frozen=True):
    """What became of one job. Times are virtual, in seconds from the start of the trace.

    Attributes:
        first_run_s: when it first computed; None if never.
        first_100_s: when its 100th mini-batch was done (C-4); None if never.
        ended_s: when it left; None if it never did.
        outcome: finished, failed, killed or unfinished.
        computed_s: wall time during which it held devices and computed.
        suspends: how often it was really stopped.
        restarts: how often it lost its gang and began anew from a checkpoint.
        servers: where its gang was last, without repeats.
        held_gpus: what it still held when the run ended, in GPUs.
        story: its life in lines, bounded; turns of time-slicing are counted, not listed.
    """

    job_id: str
    name: str
    model: str
    gpus: int
    queue: str
    user: str
    arrival_s: float
    first_run_s: float | None
    first_100_s: float | None
    ended_s: float | None
    outcome: str
    computed_s: float
    suspends: int
    restarts: int
    servers: tuple[str, ...]
    held_gpus: int
    story: tuple[Moment, ...]

    @property
    def jct_s(self) -> float | None:
        """Completion − arrival (C-4); None unless it finished."""
        if self.outcome != FINISHED or self.ended_s is None:
            return None
        return self.ended_s - self.arrival_s

    @property
    def queueing_s(self) -> float | None:
        """First run − arrival (C-4)."""
        return None if self.first_run_s is None else self.first_run_s - self.arrival_s

    @property
    def delay_s(self) -> float | None:
        """The part of its JCT in which it did not compute: queued, waiting for a gang, suspended."""
        return None if self.jct_s is None else max(0.0, self.jct_s - self.computed_s)


class RunFigures(msgspec.Struct, frozen=True):
    """The figures of one run, all computed from its journal. None where no job gives a value.

    Attributes:
        makespan_s: last completion − first arrival (C-4).
        gpu_utilization: busy fraction of all GPUs, mean over the makespan, 0 to 1.
        gpu_allocated: fraction of all GPUs given to somebody, busy or not, mean over the makespan.
        am_limit_waits: jobs whose application master had to wait for the queue's AM limit.
        max_height: the largest ⌈M/N⌉ of any server at any time (G-2).
        suspends: jobs really stopped, summed over all turns.
        host_memory_waits: jobs that waited because the host memory of a server bounds over-subscription (G-46).
        partial_hold_gpu_s: GPU-seconds held by gangs that were not whole yet (hold and wait).
        gangs_refused: placements that the substrate refused, by its code.
    """

    jobs: int
    finished: int
    failed: int
    killed: int
    unfinished: int
    mean_jct_s: float | None
    median_jct_s: float | None
    p95_jct_s: float | None
    p99_jct_s: float | None
    makespan_s: float | None
    mean_queueing_s: float | None
    mean_first_100_minibatches_s: float | None
    gpu_utilization: float
    gpu_allocated: float
    am_limit_waits: int
    max_height: int
    suspends: int
    restarts: int
    migrations: int
    packings_tried: int
    packings_kept: int
    host_memory_waits: int
    partial_holds: int
    partial_hold_gpu_s: float
    gangs_refused: Mapping[str, int]
    events: int


class Course(msgspec.Struct, frozen=True):
    """A run over virtual time.

    Attributes:
        utilization: busy fraction of all GPUs.
        allocated: fraction of all GPUs given out.
        load: ΣM/ΣN over all servers (G-4), mean.
        height: the highest server's height (G-2), peak.
    """

    utilization: Series
    allocated: Series
    load: Series
    height: Series


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None of nothing."""
    return sum(values) / len(values) if values else None


def quantile(values: Sequence[float], fraction: float) -> float | None:
    """Quantile by linear interpolation between order statistics; None of nothing.

    Args:
        values: in any order.
        fraction: 0 to 1.
    """
    if not values:
        return None
    ordered = sorted(values)
    position = fraction * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def makespan(records: Sequence[JobRecord]) -> float | None:
    """Last completion − first arrival (C-4), over jobs that finished; None where none did."""
    ends = [record.ended_s for record in records if record.jct_s is not None and record.ended_s]
    if not ends:
        return None
    return max(ends) - min(record.arrival_s for record in records)
