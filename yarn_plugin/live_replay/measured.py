"""What a live arm showed of its jobs' costs: all that the simulator is told to foresee that arm. Pure.

Nothing here is chosen: each figure is a mean over the arm's own jobs or switches, and none of them is a waiting time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean

import msgspec

from gandiva_core.replay.live import JobRun
from yarn_plugin.live_replay.plan import LiveJob
from yarn_plugin.live_replay.switches import Switches

AT_ONCE_S = 0.5
"""A first order to run so soon after the container was given had not waited for a device."""


class NotMeasuredError(Exception):
    """Too little was seen to foresee anything."""


class Measured(msgspec.Struct, frozen=True):
    """Of one arm, in seconds.

    Attributes:
        master_s: from submission until the worker's container is given where there is room.
        container_s: from there until its training process begins, where a device is free.
        framework_s: from there until it computes, where it is not stopped meanwhile.
        minibatch_s: by kind of model.
        end_s: from its last mini-batch until the ResourceManager sees its end.
        handover_s: from there until a container that waits for its device is given.
        master_end_s: from a worker's end to the application's.
        suspend_resume_s: one suspend and the resume after it.
    """

    master_s: float
    container_s: float
    framework_s: float
    minibatch_s: Mapping[str, float]
    end_s: float
    handover_s: float
    master_end_s: float
    suspend_resume_s: float


class _Course(msgspec.Struct, frozen=True):
    """A `JobRun` of which everything is known."""

    submitted_s: float
    registered_s: float
    allocated_s: float
    begun_s: float
    first_s: float
    last_s: float
    released_s: float
    finished_s: float
    minibatch_s: float
    gpus: int
    kind: str
    app_id: str


def measured(
    jobs: Sequence[LiveJob],
    runs: Sequence[JobRun],
    room_gpus: int,
    switches: Switches | None,
    first_s: float,
) -> Measured:
    """Sum an arm up.

    Args:
        jobs: as planned, in the order of `runs`.
        runs: what became of them.
        room_gpus: containers with so many GPUs in all find room at once.
        switches: of the arm's core; None where it has none.
        first_s: seconds since 1970 of what times of `runs` are counted from.

    Raises:
        NotMeasuredError: a job's course is not known, or none found room at once.
    """
    found = [_course(job, run) for job, run in zip(jobs, runs, strict=True)]
    seen = switches or Switches(None, {}, {})
    at_room = [each for each in found if _had_room(each, found, room_gpus)]
    waited = [each for each in found if each not in at_room]
    handovers = [each.allocated_s - last for each in waited for last in _last_end(each, found)]
    prompt = [
        each
        for each in found
        if seen.ordered_s.get(each.app_id, 0.0) - first_s - each.allocated_s < AT_ONCE_S
    ]
    unstopped = [
        each
        for each in found
        if all(stop_s - first_s > each.first_s for stop_s in seen.stops_s.get(each.app_id, ()))
    ]
    for some, told in (
        (at_room, "no job found room at once"),
        (prompt, "no job was given a device at once"),
        (unstopped, "every job was stopped while it came up"),
    ):
        if not some:
            raise NotMeasuredError(told)
    return Measured(
        master_s=_mean(each.allocated_s - each.submitted_s for each in at_room),
        container_s=_mean(each.begun_s - each.allocated_s for each in prompt),
        framework_s=_mean(each.first_s - each.minibatch_s - each.begun_s for each in unstopped),
        minibatch_s=_by_kind(found),
        end_s=_mean(each.released_s - each.last_s for each in found),
        handover_s=_mean(handovers) if handovers and switches is None else 0.0,
        master_end_s=_mean(each.finished_s - each.released_s for each in found),
        suspend_resume_s=seen.suspend_resume_s or 0.0,
    )


def _course(job: LiveJob, run: JobRun) -> _Course:
    known = msgspec.structs.asdict(run)
    names = [each for each in _Course.__struct_fields__ if each in known]
    missing = [name for name in names if known[name] is None]
    if missing:
        raise NotMeasuredError(f"job {run.job_id}: no {missing[0]}")
    return _Course(**{name: known[name] for name in names}, gpus=job.gpus, kind=job.kind)


def _had_room(one: _Course, everyone: Sequence[_Course], room_gpus: int) -> bool:
    """Whether those before it left room when it was submitted: it waited for nobody's end, nor behind one who did."""
    others = (each for each in everyone if each is not one)
    held = sum(
        each.gpus for each in others if each.submitted_s <= one.submitted_s < each.released_s
    )
    return held + one.gpus <= room_gpus


def _last_end(one: _Course, everyone: Sequence[_Course]) -> list[float]:
    """The last end before its container was given; nothing where nobody had ended."""
    ends = [each.released_s for each in everyone if each.released_s <= one.allocated_s]
    return [max(ends)] if ends else []


def _by_kind(found: Iterable[_Course]) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for each in found:
        times.setdefault(each.kind, []).append(each.minibatch_s)
    return {kind: mean(values) for kind, values in times.items()}


def _mean(values: Iterable[float]) -> float:
    return max(0.0, mean(values))
