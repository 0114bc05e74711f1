"""The job log of the Philly traces as published: JSON entries with attempts, and a machine list beside it.

A job's running time is that of all its attempts together, its GPUs the largest attempt's. Left out: entries without
an attempt (`never_ran`), without a submission or start (`missing_time`), still running when the log was taken
(`censored`), attempts on no GPU (`zero_gpu`), ends before starts (`negative`), an id seen before (`duplicate`).
Where an attempt used more GPUs of a machine than the list gives it, the reader stops unless told which to believe.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gandiva_core.model.errors import InputError
from gandiva_core.replay.traces.findings import Kind, RowFaultError
from gandiva_core.replay.traces.readers.philly_csv import CLOCK_NOTE, shifted
from gandiva_core.replay.traces.reading import Found, GpusFrom, Source, TraceFormat
from gandiva_core.replay.traces.records import ObservedRun, TraceJob
from gandiva_core.replay.traces.text import (
    Line,
    clock_time,
    decimal,
    lines_of,
    name_text,
    read_bytes,
    steps_at_one_per_s,
)

NOTES = (
    "no model in the file: 1 mini-batch per second on every GPU type, factors 1 (C-3)",
    CLOCK_NOTE,
)


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a job: seconds since 1970, GPUs by machine."""

    start_s: float
    end_s: float
    gpus: Mapping[str, int]


def read(source: Source) -> Found:
    """Read the log, and the machine list if there is one.

    Raises:
        InputError: not JSON, not a list of entries, or a machine with more GPUs than listed and no rule given.
    """
    entries = entries_of(source)
    listed = machine_list(source)
    parsed: list[tuple[int, TraceJob, ObservedRun, Mapping[str, int]]] = []
    seen: set[str] = set()
    for number, entry in enumerate(entries, 1):
        try:
            parsed.append((number, *job_of(entry, seen)))
        except RowFaultError as fault:
            source.tally.add(fault.kind, number, fault.found)
    machines = {**listed}
    kept = [item for item in parsed if fits_machines(source, item[0], item[3], listed, machines)]
    vary = [number for number, job, run, _ in kept if abs(run.gpu_s - run.run_s * job.gpus) > 0.5]
    for number in vary:
        source.tally.add(Kind.GPUS_VARY, number, "attempts with different GPU counts: the largest")
    start_s = min((job.arrival_s for _, job, _, _ in kept), default=0.0)
    return Found(
        jobs=[shifted(job, start_s) for _, job, _, _ in kept],
        rows=len(entries),
        notes=NOTES,
        observed=tuple(run for _, _, run, _ in kept),
        machine_gpus=machines,
    )


def entries_of(source: Source) -> list[dict[str, Any]]:
    """The JSON list."""
    expected = "a JSON list of job entries"
    try:
        content = msgspec.json.decode(source.content)
    except (msgspec.DecodeError, RecursionError) as error:
        found = f"broken JSON ({error})"
        raise InputError(f"{source.place}:{source.lines[-1].number}", found, expected) from error
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise InputError(source.place, f"JSON {type(content).__name__}", expected)
    return content


def job_of(
    entry: Mapping[str, Any], seen: set[str]
) -> tuple[TraceJob, ObservedRun, Mapping[str, int]]:
    """(job, what was observed, most GPUs used at once by machine).

    Raises:
        RowFaultError: the entry is no usable job.
    """
    job_id = entry.get("jobid")
    if not isinstance(job_id, str) or not job_id:
        raise RowFaultError(Kind.MISSING_VALUE, "no jobid")
    name_text(job_id, "jobid")
    if job_id in seen:
        raise RowFaultError(Kind.DUPLICATE, f"a second {job_id}")
    seen.add(job_id)
    attempts = [attempt_of(item) for item in list_of(entry, "attempts")]
    if not attempts:
        raise RowFaultError(Kind.NEVER_RAN, f"{job_id} without an attempt")
    submitted_s = clock_time(entry.get("submitted_time"), "submitted_time")
    wait_s = attempts[0].start_s - submitted_s
    if wait_s < 0:
        raise RowFaultError(
            Kind.NEGATIVE, f"{job_id} started {-wait_s:g} s before it was submitted"
        )
    run_s = sum(attempt.end_s - attempt.start_s for attempt in attempts)
    if run_s == 0:
        raise RowFaultError(Kind.ZERO_DURATION, f"{job_id} ran 0 s")
    sizes = [sum(attempt.gpus.values()) for attempt in attempts]
    gpu_s = sum((a.end_s - a.start_s) * size for a, size in zip(attempts, sizes, strict=True))
    by_machine: dict[str, int] = {}
    for attempt in attempts:
        for machine, gpus in attempt.gpus.items():
            by_machine[machine] = max(gpus, by_machine.get(machine, 0))
    job = TraceJob(
        job_id=job_id,
        arrival_s=submitted_s,
        gpus=max(sizes),
        total_steps=steps_at_one_per_s(run_s),
        entity=text_of(entry, "vc"),
        ref_duration_s=run_s,
        user=text_of(entry, "user"),
    )
    jct_s = max(attempt.end_s for attempt in attempts) - submitted_s
    status = (text_of(entry, "status") or "unknown").lower()
    return job, ObservedRun(job_id, wait_s, run_s, gpu_s, jct_s, status), by_machine


def attempt_of(item: object) -> Attempt:
    """One attempt.

    Raises:
        RowFaultError: times missing or the wrong way round, or no GPU.
    """
    if not isinstance(item, dict):
        raise RowFaultError(Kind.BAD_TEXT, "an attempt that is no object")
    start_s = clock_time(item.get("start_time"), "start_time")
    if item.get("end_time") in (None, "None", ""):
        raise RowFaultError(Kind.CENSORED, "an attempt without an end")
    end_s = clock_time(item["end_time"], "end_time")
    if end_s < start_s:
        raise RowFaultError(
            Kind.NEGATIVE, f"an attempt that ends {start_s - end_s:g} s before it starts"
        )
    gpus: dict[str, int] = {}
    for place in list_of(item, "detail"):
        if not isinstance(place, dict):
            raise RowFaultError(Kind.BAD_TEXT, "a detail that is no object")
        machine = str(place.get("ip", ""))
        gpus[machine] = gpus.get(machine, 0) + len(list_of(place, "gpus"))
    if not sum(gpus.values()):
        raise RowFaultError(Kind.ZERO_GPU, "an attempt on no GPU")
    return Attempt(start_s, end_s, gpus)


def list_of(entry: Mapping[str, Any], key: str) -> list[Any]:
    """A list, empty where the key is absent or null."""
    value = entry.get(key) or []
    if not isinstance(value, list):
        raise RowFaultError(Kind.BAD_TEXT, f"{key} is no list")
    return value


def text_of(entry: Mapping[str, Any], key: str) -> str | None:
    """A name, None where absent."""
    value = entry.get(key)
    return name_text(str(value), key) if value is not None else None


def fits_machines(
    source: Source,
    number: int,
    used: Mapping[str, int],
    listed: Mapping[str, int],
    machines: dict[str, int],
) -> bool:
    """Whether the job stays; `machines` learns what was observed where that is the rule.

    Raises:
        InputError: a machine with more GPUs in use than listed, and no rule.
    """
    rule = source.options.gpus_from
    fits = True
    for machine, gpus in sorted(used.items()):
        if machine not in listed:
            machines[machine] = max(gpus, machines.get(machine, 0))
            continue
        if gpus <= listed[machine]:
            continue
        found = f"machine {machine} used with {gpus} GPUs, listed with {listed[machine]}"
        if rule is None:
            place = f"{source.place}:{number}: {Kind.MACHINE_GPU_MISMATCH}"
            raise InputError(place, found, "--gpus-from list or --gpus-from observed")
        if rule is GpusFrom.OBSERVED:
            machines[machine] = max(gpus, machines[machine])
            continue
        source.tally.add(Kind.MACHINE_GPU_MISMATCH, number, found)
        fits = False
    return fits


def machine_list(source: Source) -> dict[str, int]:
    """GPUs by machine, from the option or from the file beside the log; empty where there is none."""
    path = source.options.machines or beside(source.path)
    return read_machines(path) if path else {}


def beside(log: Path) -> Path | None:
    """The machine list beside a log: ``cluster_machine_list`` for ``cluster_job_log``, with or without ``.csv``."""
    for part in ("job_log", "philly_job_log", "cluster_job_log"):
        stem = log.stem.replace(part, "machine_list")
        if stem == log.stem:
            continue
        for name in (stem, f"{stem}.csv"):
            path = log.with_name(name)
            if path.is_file():
                return path
    return None


def read_machines(path: Path) -> dict[str, int]:
    """A machine list: ``machineId,number of GPUs, single GPU mem``, blanks around fields allowed.

    Raises:
        InputError: naming the line.
    """
    lines = [line.text or "" for line in lines_of(read_bytes(path))]
    machines: dict[str, int] = {}
    for number, fields in enumerate(csv.reader(lines, skipinitialspace=True), 1):
        if number == 1:
            continue
        try:
            machines[fields[0].strip()] = int(decimal(fields[1].strip(), "number of GPUs"))
        except (RowFaultError, IndexError) as error:
            expected = "machineId,number of GPUs,single GPU mem"
            raise InputError(f"{path}:{number}", ",".join(fields), expected) from error
    return machines


def matches(lines: Sequence[Line]) -> bool:
    """Whether it is JSON."""
    return lines[0].text is not None and lines[0].text.lstrip()[:1] in ("[", "{")


FORMAT = TraceFormat(
    name="philly-json",
    summary="Philly job log (JSON) with attempts and machine list",
    matches=matches,
    read=read,
)
