"""What a job went through, from what a cluster of this machine left in its logs: the same sources in every arm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec

from gandiva_core.replay.live import JobRun

WORKER = 2
"""Number of the only worker's container; the master's is 1."""

_LINE = re.compile(
    r"(?P<at>\S+ [\d:]+,\d+) \S+ \S+ .*?(?:"
    r"OPERATION=Register App Master\b.*?APPID=(?P<app>application_\d+_\d+)"
    r"|container_(?:e\d+_)?(?P<number>\d+_\d+)_\d+_(?P<container>\d+) Container "
    r"Transitioned from \w+ to (?P<state>ALLOCATED|COMPLETED))"
)


class Trained(msgspec.Struct, frozen=True):
    """What a training printed; seconds since 1970."""

    begun_s: float | None = None
    marks: tuple[tuple[int, float], ...] = ()

    def minibatch_s(self, stops_s: Sequence[float] = ()) -> float | None:
        """Median of the spans between two lines in which the job was not stopped; None where there is none."""
        spans = [
            (at - was) / (step - before)
            for (before, was), (step, at) in pairwise(self.marks)
            if not any(was <= stop_s <= at for stop_s in stops_s)
        ]
        return median(spans) if spans else None


def trained(lines: Iterable[str]) -> Trained:
    """From the lines of `workloads/training.py`: ``begin TIME`` and ``STEP TIME LOSS``; others are passed over."""
    begun_s = None
    marks: list[tuple[int, float]] = []
    for line in lines:
        words = line.split()
        if len(words) == 2 and words[0] == "begin":
            begun_s = float(words[1])
        elif len(words) == 3 and words[0].isdecimal():
            marks.append((int(words[0]), float(words[1])))
    return Trained(begun_s, tuple(marks))


class Milestones(msgspec.Struct):
    """What a ResourceManager wrote of an application; seconds since 1970, 0 for nothing."""

    registered_s: float = 0.0
    allocated_s: float = 0.0
    released_s: float = 0.0


def milestones(log: Iterable[str]) -> dict[str, Milestones]:
    """Of every application, by its id; from the log of a ResourceManager, in this machine's own time zone."""
    found: dict[str, Milestones] = {}
    for match in _matches(log):
        at_s = datetime.fromisoformat(match["at"].replace(",", ".")).astimezone().timestamp()
        app_id = match["app"] or f"application_{match['number']}"
        of = found.setdefault(app_id, Milestones())
        if match["app"]:
            of.registered_s = of.registered_s or at_s
        elif int(match["container"]) != WORKER:
            continue
        elif match["state"] == "ALLOCATED":
            of.allocated_s = at_s
        else:
            of.released_s = at_s
    return found


def _matches(log: Iterable[str]) -> Iterator[re.Match[str]]:
    for line in log:
        if "Transitioned" in line or "Register App Master" in line:
            match = _LINE.match(line)
            if match is not None:
                yield match


def observed(
    runs: Sequence[JobRun],
    logs: Path,
    first_s: float,
    stops_s: Mapping[str, Sequence[float]],
) -> tuple[JobRun, ...]:
    """Runs with what the logs of their cluster tell of each.

    Args:
        runs: as the ResourceManager told them.
        logs: folder of the cluster's.
        first_s: what times are counted from.
        stops_s: when each application was stopped, as its core heard; seconds since 1970.
    """
    with (logs / "resourcemanager.log").open(errors="replace") as log:
        of_rm = milestones(log)
    return tuple(
        msgspec.structs.replace(
            _with(run, of_rm.get(run.app_id, Milestones()), by_itself, first_s),
            minibatch_s=by_itself.minibatch_s(stops_s.get(run.app_id, ())),
        )
        for run in runs
        for by_itself in [_trained(logs, run.app_id)]
    )


def _trained(logs: Path, app_id: str) -> Trained:
    files = sorted(logs.glob(f"node-*-containers/{app_id}/*_{WORKER:06d}/stdout"))
    return trained(files[-1].read_text(errors="replace").splitlines()) if files else Trained()


def _with(run: JobRun, of_rm: Milestones, by_itself: Trained, first_s: float) -> JobRun:
    def since(at_s: float | None) -> float | None:
        return at_s - first_s if at_s else None

    marks = by_itself.marks
    return msgspec.structs.replace(
        run,
        registered_s=since(of_rm.registered_s),
        allocated_s=since(of_rm.allocated_s),
        begun_s=since(by_itself.begun_s),
        first_s=since(marks[0][1]) if marks else None,
        last_s=since(marks[-1][1]) if marks else None,
        released_s=since(of_rm.released_s),
    )
