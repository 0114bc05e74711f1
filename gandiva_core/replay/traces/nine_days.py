"""The nine-day trace of GE-14, and its three-hour cut (GE-13), as a seeded generator.

Published: the law of run times, the ten models and their class shares, that 8-GPU jobs exist. Not published, and
ours [D]: job count, arrivals, mix of sizes. Jobs come in bursts; run times are stratified within each size, so that
every seed has the same work and differs in who comes when. Nothing here looks at how any arm of a comparison does,
except `NINE_DAYS`, whose count and burstiness were found on the capacity arm alone (docs/TRACES.md).
"""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Mapping

import msgspec

from gandiva_core.replay.traces.models import ANY_TYPE, builtin_models
from gandiva_core.replay.traces.records import Trace, TraceJob, in_order
from gandiva_core.replay.traces.sampling import LogLinearLaw, Rng, shares, shuffle, stratified

MINUTE_S = 60.0

RUN_MINUTES = (
    (0.5, 0.0), (1.0, 0.02), (2.0, 0.04), (3.0, 0.10), (4.0, 0.16), (5.0, 0.18), (6.0, 0.25),
    (8.0, 0.30), (10.0, 0.35), (14.0, 0.39), (20.0, 0.44), (28.0, 0.48), (40.0, 0.50),
    (55.0, 0.57), (80.0, 0.59), (100.0, 0.64), (150.0, 0.69), (200.0, 0.71), (300.0, 0.74),
    (500.0, 0.81), (700.0, 0.83), (900.0, 0.89), (1000.0, 0.93), (1150.0, 0.955), (2500.0, 0.965),
    (3500.0, 0.985), (10000.0, 1.0),
)  # fmt: skip
"""Run time in minutes and share of jobs at or below it (GE-14 [F]); the start at half a minute is ours [D]."""

MODEL_SHARES: Mapping[str, float] = {
    "InceptionV3": 0.10 / 4,
    "ResNet-50": 0.10 / 4,
    "AlexNet": 0.10 / 4,
    "VGG16": 0.10 / 4,
    "Bi-Att-Flow": 0.60 / 4,
    "LanguageModel": 0.60 / 4,
    "GNMT": 0.60 / 4,
    "Transformer": 0.60 / 4,
    "Wavenet": 0.30 / 2,
    "DeepSpeech": 0.30 / 2,
}
"""CV 10 %, NLP 60 %, speech 30 % (GE-14 [S]), equal inside a class [D]."""

SIZE_SHARES: Mapping[int, float] = {1: 0.60, 2: 0.20, 4: 0.15, 8: 0.05}
"""GPUs a job (GE-14 [D])."""


class BurstyLaw(msgspec.Struct, frozen=True):
    """Parameters of the generator.

    Attributes:
        jobs: how many.
        burst_jobs: jobs of one burst; one burst follows another's place in a row of `jobs / burst_jobs` places.
        burst_width_min: a burst's jobs come uniformly within this long.
        horizon_min: bursts begin uniformly within this long.
        last_end_min: no job that starts on arrival would end later: long jobs come early. None for no rule.
        run_max_min: run times are conditioned on this maximum. None for the whole law.
        long_run_min: from this run time on a job is long; 1,150 min is where the tail of the published law begins.
        long_window: long jobs come in this last share of the arrivals that are early enough for them; 1 for any.
        even_bursts: one burst in each of equal parts of the horizon, instead of anywhere.
    """

    jobs: int
    burst_jobs: int
    burst_width_min: float
    horizon_min: float
    last_end_min: float | None = None
    run_max_min: float | None = None
    even_bursts: bool = False
    long_run_min: float = 1150.0
    long_window: float = 1.0


NINE_DAYS = BurstyLaw(
    jobs=1230,
    burst_jobs=29,
    burst_width_min=30.0,
    horizon_min=9350.0,
    last_end_min=11300.0,
    even_bursts=True,
    long_window=0.3,
)
"""Found by `gandiva trace calibrate`. `last_end_min` is no free parameter: the published Gandiva run ended at
11,349 min, so every job's arrival + run time did."""

THREE_HOURS = BurstyLaw(
    jobs=240,
    burst_jobs=29,
    burst_width_min=3.0,
    horizon_min=177.0,
    run_max_min=180.0,
    even_bursts=True,
)
"""The same law cut to three hours: bursts as large, their width shorter as the mean run time is (31 to 353 min), and as
many jobs as give the load of the nine days."""


def make_bursty(name: str, law: BurstyLaw, seed: int) -> Trace:
    """A trace by `law`; the same bytes for the same arguments, whatever the Python."""
    rng = random.Random(seed)
    work = run_times(law, rng)
    slots = arrivals(law, rng)
    shuffle(rng, work)
    names = model_names(len(work), rng)
    placed = list(zip(work, names, strict=True))
    placed.sort(key=lambda item: -item[0][0])
    jobs: list[tuple[float, TraceJob]] = []
    for (run_min, gpus), model in placed:
        arrival_s = take_slot(slots, law, run_min, rng) * MINUTE_S
        jobs.append((arrival_s, job_of(model, gpus, run_min * MINUTE_S)))
    jobs.sort(key=lambda item: item[0])
    start_s = jobs[0][0]
    numbered = [
        msgspec.structs.replace(
            job, job_id=f"job-{number:05d}", arrival_s=round(arrival_s - start_s, 3)
        )
        for number, (arrival_s, job) in enumerate(jobs, 1)
    ]
    return Trace(
        name=name,
        jobs=in_order(numbered),
        cluster_name="gandiva-100",
        source=f"generator {name}, seed {seed}",
        notes=(
            "job count, arrivals and sizes are not published: ours [D], docs/TRACES.md",
            f"parameters: {msgspec.json.encode(law).decode()}",
        ),
    )


def run_times(law: BurstyLaw, rng: Rng) -> list[tuple[float, int]]:
    """(run time in minutes, GPUs) of all jobs, run times stratified within a size."""
    runs = LogLinearLaw(RUN_MINUTES, law.run_max_min)
    counts = shares(list(SIZE_SHARES.values()), law.jobs)
    return [
        (runs.quantile(share), gpus)
        for gpus, count in zip(SIZE_SHARES, counts, strict=True)
        for share in stratified(rng, count)
    ]


def arrivals(law: BurstyLaw, rng: Rng) -> list[float]:
    """Arrival times in minutes, rising; as many as jobs, from 0."""
    count = math.ceil(law.jobs / law.burst_jobs)
    drawn = stratified(rng, count) if law.even_bursts else [rng.random() for _ in range(count)]
    starts = sorted(law.horizon_min * share for share in drawn)
    slots = [
        starts[number % count] + law.burst_width_min * rng.random() for number in range(law.jobs)
    ]
    return sorted(slots)


def model_names(count: int, rng: Rng) -> list[str]:
    """Models in the published shares, in random order."""
    counts = shares(list(MODEL_SHARES.values()), count)
    names = [name for name, times in zip(MODEL_SHARES, counts, strict=True) for _ in range(times)]
    shuffle(rng, names)
    return names


def take_slot(slots: list[float], law: BurstyLaw, run_min: float, rng: Rng) -> float:
    """One of the arrivals left, early enough for this run time; the first where none is."""
    usable = len(slots)
    if law.last_end_min is not None:
        usable = max(1, bisect.bisect_right(slots, law.last_end_min - run_min))
    first = 0
    if run_min >= law.long_run_min:
        first = int(usable * (1.0 - law.long_window))
    return slots.pop(first + int(rng.random() * (usable - first)))


def job_of(model: str, gpus: int, run_s: float) -> TraceJob:
    """A job of about this run time: a whole number of mini-batches, and the time they take."""
    rate_per_s = builtin_models()[model].rate_per_s[ANY_TYPE]
    steps = max(1, round(run_s * rate_per_s))
    return TraceJob(
        job_id="",
        arrival_s=0.0,
        gpus=gpus,
        total_steps=steps,
        model=model,
        ref_duration_s=steps / rate_per_s,
    )
