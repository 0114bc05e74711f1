"""From a trace to jobs that a small cluster can really run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.records import Trace, TraceJob

KINDS = ("cnn", "lstm", "transformer", "io")


class LiveJob(msgspec.Struct, frozen=True):
    """One job as it is submitted.

    Attributes:
        arrival_s: after the first one.
        gpus: of its one worker.
        minibatches: that it trains for; `step_s` each at least.
        kind: of model, one of `KINDS`.
    """

    job_id: str
    arrival_s: float
    gpus: int
    minibatches: int
    step_s: float
    kind: str

    @property
    def solo_s(self) -> float:
        """Its training by itself, without the start of anything."""
        return self.minibatches * self.step_s


def scaled(
    trace: Trace, *, scale: float, step_s: float, server_gpus: int, jobs_max: int | None = None
) -> tuple[tuple[LiveJob, ...], tuple[str, ...]]:
    """Times divided by `scale`, in order of arrival; and what was left out, a sentence each.

    Args:
        trace: each job with `ref_duration_s`, from which its mini-batches are computed anew.
        scale: how much faster everything comes and goes.
        step_s: a mini-batch, the same for all.
        server_gpus: a job of more does not fit in one container, and is left out.
        jobs_max: the first so many of those that fit.

    Raises:
        InputError: nothing is left, or a job does not say how long it runs.
    """
    fitting = [job for job in trace.jobs if job.gpus <= server_gpus]
    chosen = fitting[:jobs_max]
    if not chosen:
        raise InputError(f"trace {trace.name}", "no job that fits", f"jobs of ≤ {server_gpus} GPUs")
    notes = tuple(_notes(trace.jobs, fitting, chosen, server_gpus))
    first_s = chosen[0].arrival_s
    jobs = tuple(
        LiveJob(
            job_id=job.job_id,
            arrival_s=(job.arrival_s - first_s) / scale,
            gpus=job.gpus,
            minibatches=max(1, round(_duration_s(trace, job) / scale / step_s)),
            step_s=step_s,
            kind=KINDS[number % len(KINDS)],
        )
        for number, job in enumerate(chosen)
    )
    return jobs, notes


def _duration_s(trace: Trace, job: TraceJob) -> float:
    if job.ref_duration_s is None:
        place = f"trace {trace.name}: job {job.job_id}"
        raise InputError(place, "no ref_duration_s", "how long it runs on the reference device")
    return job.ref_duration_s


def _notes(
    everything: Sequence[TraceJob],
    fitting: Sequence[TraceJob],
    chosen: Sequence[TraceJob],
    server_gpus: int,
) -> Iterator[str]:
    if len(fitting) < len(everything):
        left = len(everything) - len(fitting)
        yield f"{left} jobs of more than {server_gpus} GPUs were left out: none fits in one container"
    if len(chosen) < len(fitting):
        yield f"only the first {len(chosen)} of {len(fitting)} jobs were submitted"
