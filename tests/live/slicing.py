"""Six real jobs on four virtual devices, what they computed, and how fairly they were given their turns (GE-2)."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from tests.live.shells import Live, Shell, brought_up, wait_until

ROOT = Path(__file__).resolve().parents[2]
JOBS = 6
GPUS = 4


@contextmanager
def sliced(path: Path, quantum_s: float, **settings: str) -> Iterator[Live]:
    """One node with an agent and four virtual devices.

    Args:
        path: of the cluster's folder.
        quantum_s: Q.
        settings: more of Gandiva's keys, with ``_`` for a dot and ``__`` for a dash.
    """
    keys = {
        "quantum-ms": f"{quantum_s * 1000:.0f}",
        "agent.virtual-step-ms": "50",
        "core.fallback": "wait",
        **{name.replace("__", "-").replace("_", "."): text for name, text in settings.items()},
    }
    options = ["--nodes", "1", "--gpus", str(GPUS), "--height-max", "2", "--agents"]
    for key, value in keys.items():
        options += ["--set", f"yarn.scheduler.gandiva.{key}={value}"]
    with brought_up(path, *options) as cluster:
        yield cluster


@contextmanager
def six_jobs(live: Live) -> Iterator[Shell]:
    """Six independent jobs of one GPU each, in containers of Hadoop's own example, once all have computed."""
    python = sys.executable
    train = f"{python} {ROOT / 'tests' / 'live' / 'training.py'} 1000000"
    launch = f"{python} -m nodemanager_agent.client.launch -- {train}"
    with live.shell(
        JOBS,
        "-application_tags",
        "gandiva.gang=1",
        name="six",
        resources="memory-mb=768,vcores=1,yarn.io/gpu=1",
        command=f"env PYTHONPATH={ROOT} OMP_NUM_THREADS=1 {launch}",
    ) as shell:
        wait_until(lambda: len(steps(live)) == JOBS, "every job has computed")
        yield shell


def steps(live: Live) -> dict[str, int]:
    """The last step that each container printed."""
    found = {}
    for file in live.folder.logs.glob("node-1-containers/*/*/stdout"):
        lines = [line for line in file.read_text().splitlines() if line.count(" ") == 2]
        if lines:
            found[file.parent.name] = int(lines[-1].split()[0])
    return found


def runs(live: Live) -> dict[str, list[tuple[float, float]]]:
    """When each job held its device, from the journal: (from, to), the last one open."""
    since: dict[str, float] = {}
    held: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event, _ in _entries(live):
        if event.get("kind") == "ResidentsSwitched":
            for job_id, at_s in event.get("stopped", ()):
                held[job_id].append((since.pop(job_id, at_s), at_s))
            since.update(event.get("started", ()))
    for job_id, at_s in since.items():
        held[job_id].append((at_s, float("inf")))
    return held


def wait_until_even(live: Live, quantum_s: float) -> None:
    """Until nobody has more than a quantum to make up for: who came up last has the others' turns first."""

    def is_even() -> bool:
        now_s = time.time()
        held = [sum(min(to, now_s) - since for since, to in spans) for spans in runs(live).values()]
        return len(held) == JOBS and max(held) - min(held) <= quantum_s

    wait_until(is_even, "all have held devices for as long")


class Slices(msgspec.Struct, frozen=True):
    """How time was shared within a window.

    Attributes:
        jain: of the device time that each job held.
        used_ratio: of the devices' time, by what the core believes.
        switches: in which one job stopped and another went on.
        idle_s: mean time of such a switch in which the device had nobody: stopped to started.
        switch_s: mean time from the order until the next one computes, the wait for the mini-batch boundary included.
    """

    jain: float
    used_ratio: float
    shares_s: tuple[float, ...]
    switches: int
    idle_s: float
    switch_s: float


def slices(live: Live, begins_s: float, ends_s: float) -> Slices:
    """What the journal says of a window."""
    held = runs(live)
    assert len(held) == JOBS
    shares = tuple(
        sum(max(0.0, min(to, ends_s) - max(since, begins_s)) for since, to in spans)
        for spans in held.values()
    )
    idle, whole = _costs(live, begins_s, ends_s)
    return Slices(
        jain=sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares)),
        used_ratio=sum(shares) / (GPUS * (ends_s - begins_s)),
        shares_s=shares,
        switches=len(whole),
        idle_s=mean(idle),
        switch_s=mean(whole),
    )


def _costs(live: Live, begins_s: float, ends_s: float) -> tuple[list[float], list[float]]:
    """Of each resume whose device somebody left for it in the same switch: from that stop, and from the order."""
    ordered: dict[int, tuple[float, dict[str, tuple[str, int]]]] = {}
    stopped: dict[tuple[int, str], float] = {}
    holder: dict[tuple[str, int], str] = {}
    idle, whole = [], []
    for event, effects in _entries(live):
        for effect in effects:
            if effect["kind"] == "SwitchResidents":
                device = {job: (at[0][0], at[0][1][0]) for job, at, *_ in effect.get("run", ())}
                ordered[effect["switch_id"]] = event["at_s"], device
        if event.get("kind") != "ResidentsSwitched":
            continue
        number = event["switch_id"]
        order_s, device = ordered[number]
        stopped.update({(number, job): at_s for job, at_s in event.get("stopped", ())})
        for job, at_s in event.get("started", ()):
            left_s = stopped.get((number, holder.get(device[job], "")))
            if left_s is not None and begins_s <= order_s <= ends_s:
                idle.append(at_s - left_s)
                whole.append(at_s - order_s)
            holder[device[job]] = job
    return idle, whole


def _entries(live: Live) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    for line in live.journal().splitlines():
        entry = json.loads(line)
        yield entry.get("event") or {}, entry.get("effects") or []
