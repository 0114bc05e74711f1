"""The 1,000 jobs of GE-12, whose models differ in how well they pack, as a seeded generator."""

from __future__ import annotations

import random

import msgspec

from gandiva_core.replay.traces.models import ANY_TYPE, builtin_models
from gandiva_core.replay.traces.records import Trace, TraceJob, in_order
from gandiva_core.replay.traces.sampling import Rng, pick, uniform

MINUTE_S = 60.0


class PackingMix(msgspec.Struct, frozen=True):
    """Parameters of GE-12.

    Attributes:
        jobs: how many [S].
        horizon_min: arrivals are uniform over it [S].
        gpu_minutes: bounds of a job's P40 time in isolation over all its GPUs together, uniform (E-8).
        classes: (probability, models, GPU counts of equal odds) [S; odds inside a class D].
    """

    jobs: int = 1000
    horizon_min: float = 120.0
    gpu_minutes: tuple[float, float] = (30.0, 45.0)
    classes: tuple[tuple[float, tuple[str, ...]], ...] = (
        (0.30, ("VAE", "SuperResolution")),
        (0.25, ("RHN", "SCRNN", "MI-LSTM")),
        (0.45, ("LSTM", "ResNet-50-PyTorch", "ResNext-50")),
    )
    large_models: tuple[str, ...] = ("ResNet-50-PyTorch", "ResNext-50")
    large_gpus: tuple[int, ...] = (2, 4)


def make_packing_mix(name: str, mix: PackingMix, seed: int) -> Trace:
    """A trace by `mix`; the same bytes for the same arguments, whatever the Python."""
    rng = random.Random(seed)
    arrivals = sorted(mix.horizon_min * MINUTE_S * rng.random() for _ in range(mix.jobs))
    jobs = [
        job_of(mix, f"job-{number:05d}", round(arrival_s - arrivals[0], 3), rng)
        for number, arrival_s in enumerate(arrivals, 1)
    ]
    return Trace(
        name=name,
        jobs=in_order(jobs),
        cluster_name="gandiva-180",
        source=f"generator {name}, seed {seed}",
        notes=(
            "GE-12: run times are GPU time over all GPUs of a job (E-8); P100 as fast as P40 [D]",
            f"parameters: {msgspec.json.encode(mix).decode()}",
        ),
    )


def job_of(mix: PackingMix, job_id: str, arrival_s: float, rng: Rng) -> TraceJob:
    """One job."""
    model = draw_model(mix, rng)
    gpus = pick(rng, mix.large_gpus) if model in mix.large_models else 1
    run_s = uniform(rng, *mix.gpu_minutes) * MINUTE_S / gpus
    rate_per_s = builtin_models()[model].rate_per_s[ANY_TYPE]
    steps = max(1, round(run_s * rate_per_s))
    return TraceJob(
        job_id=job_id,
        arrival_s=arrival_s,
        gpus=gpus,
        total_steps=steps,
        model=model,
        ref_duration_s=steps / rate_per_s,
    )


def draw_model(mix: PackingMix, rng: Rng) -> str:
    """A class by its probability, then one of its models."""
    drawn = rng.random()
    for probability, models in mix.classes:
        if drawn < probability:
            return pick(rng, models)
        drawn -= probability
    return pick(rng, mix.classes[-1][1])
