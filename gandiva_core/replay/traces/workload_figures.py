"""A trace in figures: how many jobs, how long, how large, and how much of a cluster they ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from gandiva_core.replay.figures import quantile
from gandiva_core.replay.traces.models import ANY_TYPE, profile_of
from gandiva_core.replay.traces.records import Trace, TraceJob

MODELS_SHOWN = 20
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


class WorkloadFigures(msgspec.Struct, frozen=True):
    """Times in s.

    Attributes:
        span_s: first arrival to last.
        gpu_s: running time × GPUs over all jobs, at the reference rate.
        demand_gpus: `gpu_s` / span: GPUs that the trace keeps busy while jobs arrive; None for a span of 0.
        load: `demand_gpus` / GPUs of the cluster; None without a cluster or a span.
        earliest_end_s: latest of arrival + run time, from the first arrival: no makespan is shorter.
        sizes: jobs by GPUs.
        models: jobs by model, largest first; the empty name where the trace has none.
    """

    name: str
    jobs: int
    span_s: float
    gpu_s: float
    demand_gpus: float | None
    load: float | None
    mean_run_s: float
    run_quantiles_s: Mapping[str, float]
    earliest_end_s: float
    sizes: Mapping[int, int]
    models: Mapping[str, int]
    left_out: Mapping[str, int]

    def table(self, cluster_name: str | None) -> list[tuple[str, str]]:
        """(figure, value) for people; times in hours or minutes."""
        rows = [
            ("trace", self.name),
            ("jobs", str(self.jobs)),
            ("arrivals over", f"{self.span_s / 3600:.1f} h"),
            ("GPU time", f"{self.gpu_s / 3600:.0f} GPU-hours"),
            ("demand", "-" if self.demand_gpus is None else f"{self.demand_gpus:.1f} GPUs"),
        ]
        if self.load is not None:
            rows.append((f"load of {cluster_name}", f"{self.load:.2f}"))
        rows.append(("mean run time", f"{self.mean_run_s / 60:.1f} min"))
        rows += [
            (f"run time {name}", f"{value / 60:.1f} min")
            for name, value in self.run_quantiles_s.items()
        ]
        rows.append(("no makespan below", f"{self.earliest_end_s / 60:.0f} min"))
        rows += [(f"jobs on {gpus} GPUs", str(count)) for gpus, count in self.sizes.items()]
        rows += [
            (f"model {name or '(none)'}", str(count))
            for name, count in list(self.models.items())[:MODELS_SHOWN]
        ]
        if len(self.models) > MODELS_SHOWN:
            rows.append(("other models", str(len(self.models) - MODELS_SHOWN)))
        rows += [(f"left out: {kind}", str(count)) for kind, count in self.left_out.items()]
        return rows


def run_time_s(job: TraceJob) -> float:
    """How long a job runs alone at the best placement on the reference type."""
    if job.ref_duration_s is not None:
        return job.ref_duration_s
    return job.total_steps / profile_of(job).rate_per_s[ANY_TYPE]


def figures_of(trace: Trace, cluster_gpus: int | None = None) -> WorkloadFigures:
    """The figures of a trace, against a cluster of so many GPUs."""
    runs = [run_time_s(job) for job in trace.jobs]
    arrivals = [job.arrival_s for job in trace.jobs]
    span_s = arrivals[-1] - arrivals[0]
    gpu_s = sum(run * job.gpus for run, job in zip(runs, trace.jobs, strict=True))
    demand = gpu_s / span_s if span_s > 0 else None
    models = Counter(job.model for job in trace.jobs)
    return WorkloadFigures(
        name=trace.name,
        jobs=len(trace.jobs),
        span_s=span_s,
        gpu_s=gpu_s,
        demand_gpus=demand,
        load=demand / cluster_gpus if demand is not None and cluster_gpus else None,
        mean_run_s=sum(runs) / len(runs),
        run_quantiles_s={
            f"p{share:.0%}".rstrip("%"): quantile(runs, share) or 0.0 for share in QUANTILES
        },
        earliest_end_s=max(map(sum, zip(arrivals, runs, strict=True))) - arrivals[0],
        sizes=dict(sorted(Counter(job.gpus for job in trace.jobs).items())),
        models=dict(models.most_common()),
        left_out=trace.left_out,
    )
