"""The life of a job as one table: (phase, stimulus) to phase (G-10).

The law of this file:

1. Every change of a job's phase is a row of `TABLE`; nothing else in the project sets a phase.
2. A stimulus without a row is impossible from inside (`InvariantError`: a bug of ours) and stale from outside (the
   engine asks `is_allowed` first, and ignores and counts what does not fit).
3. The picture in docs/LIFECYCLE.md is drawn from the table, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import RESIDENT_PHASES, TERMINAL_PHASES, JobPhase


class Stimulus(StrEnum):
    """What can happen to a job. Ordered ones are decisions, the others are facts."""

    ENQUEUE_ORDERED = "enqueue ordered"
    PLACE_ORDERED = "place ordered"
    COMMITTED = "committed"
    REFUSED = "refused"
    ADOPTED = "adopted"
    RUN_ORDERED = "run ordered"
    STARTED = "started"
    SUSPEND_ORDERED = "suspend ordered"
    STOPPED = "stopped"
    KEPT = "not stopped"
    NOT_RESUMED = "not resumed"
    NOT_STARTED = "not started"
    MOVE_ORDERED = "move ordered"
    MOVED = "moved"
    NOT_MOVED = "not moved"
    BROKEN = "broken"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"


_P = JobPhase
_S = Stimulus

_ORDERLY: Mapping[tuple[JobPhase, Stimulus], JobPhase] = {
    (_P.SUBMITTED, _S.ENQUEUE_ORDERED): _P.QUEUED,
    (_P.SUBMITTED, _S.PLACE_ORDERED): _P.COMMITTING,
    (_P.QUEUED, _S.ENQUEUE_ORDERED): _P.QUEUED,
    (_P.QUEUED, _S.PLACE_ORDERED): _P.COMMITTING,
    (_P.COMMITTING, _S.COMMITTED): _P.STARTING,
    (_P.COMMITTING, _S.REFUSED): _P.QUEUED,
    (_P.SUBMITTED, _S.ADOPTED): _P.STARTING,
    (_P.QUEUED, _S.ADOPTED): _P.STARTING,
    (_P.COMMITTING, _S.ADOPTED): _P.STARTING,
    (_P.STARTING, _S.RUN_ORDERED): _P.RESUMING,
    (_P.RESUMING, _S.STARTED): _P.RUNNING,
    (_P.RUNNING, _S.SUSPEND_ORDERED): _P.SUSPENDING,
    (_P.SUSPENDING, _S.STOPPED): _P.SUSPENDED,
    (_P.SUSPENDED, _S.RUN_ORDERED): _P.RESUMING,
    (_P.SUSPENDING, _S.KEPT): _P.RUNNING,
    (_P.RESUMING, _S.NOT_RESUMED): _P.SUSPENDED,
    (_P.RESUMING, _S.NOT_STARTED): _P.STARTING,
    (_P.RUNNING, _S.MOVE_ORDERED): _P.MIGRATING,
    (_P.MIGRATING, _S.MOVED): _P.RUNNING,
    (_P.MIGRATING, _S.NOT_MOVED): _P.RUNNING,
}
_FAILURE: Mapping[tuple[JobPhase, Stimulus], JobPhase] = {
    (phase, _S.BROKEN): _P.QUEUED for phase in JobPhase if phase in RESIDENT_PHASES
}
_ENDING: Mapping[tuple[JobPhase, Stimulus], JobPhase] = {
    (phase, stimulus): end
    for phase in JobPhase
    if phase not in TERMINAL_PHASES
    for stimulus, end in (
        (_S.FINISHED, _P.FINISHED),
        (_S.FAILED, _P.FAILED),
        (_S.KILLED, _P.KILLED),
    )
}

TABLE: Final[Mapping[tuple[JobPhase, Stimulus], JobPhase]] = {**_ORDERLY, **_FAILURE, **_ENDING}
"""Every allowed change; what is not here cannot happen."""


def is_allowed(phase: JobPhase, stimulus: Stimulus) -> bool:
    """Whether `stimulus` means anything to a job in `phase`."""
    return (phase, stimulus) in TABLE


def follow(phase: JobPhase, stimulus: Stimulus, who: str) -> JobPhase:
    """The phase after `stimulus`.

    Raises:
        InvariantError: where the table has no row; the caller had to ask `is_allowed` first.
    """
    after = TABLE.get((phase, stimulus))
    if after is None:
        raise InvariantError(f"job {who}: {stimulus} cannot happen in phase {phase}")
    return after


def mermaid() -> str:
    """The table as a mermaid state diagram; endings and failures are drawn once for all phases they leave."""
    lines = ["stateDiagram-v2", "    [*] --> submitted: JobSubmitted"]
    lines += [f"    {start} --> {end}: {why}" for (start, why), end in _ORDERLY.items()]
    lines.append("    state resident <<choice>>")
    lines += [f"    {start} --> resident: {why}" for (start, why) in _FAILURE]
    lines.append("    resident --> queued")
    ends = dict.fromkeys((why, end) for (_, why), end in _ENDING.items())
    lines.append("    state live <<choice>>")
    lines += [f"    live --> {end}: {why}" for why, end in ends]
    lines += [f"    {start} --> live" for start in dict.fromkeys(start for start, _ in _ENDING)]
    lines += [f"    {end} --> [*]" for _, end in ends]
    return "\n".join(lines) + "\n"
