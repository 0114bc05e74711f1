"""The life of one worker on its node as one table (DESIGN §5; G-10): pure, no I/O, no clock.

The law of this file:

1. Every change of a worker's state is a row of `TABLE`; nothing else in the agent sets a state.
2. What a launcher says of its job is the truth (``found …``), whatever was believed: the agent may have been away.
3. An order's answer has a row only where that order is under way; a stale one is refused by `is_allowed`.
4. Nothing leaves `WorkerState.ENDED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from gandiva_core.messages.agents import WorkerState
from gandiva_core.model.errors import InvariantError


class Stimulus(StrEnum):
    """What can happen to a worker."""

    REGISTERED = "registered"
    NOT_REGISTERED = "did not register"
    START_ORDERED = "start ordered"
    STARTED = "started"
    NOT_STARTED = "not started"
    SUSPEND_ORDERED = "suspend ordered"
    STOPPED = "stopped"
    KEPT = "not stopped"
    RESUME_ORDERED = "resume ordered"
    RESUMED = "resumed"
    NOT_RESUMED = "not resumed"
    FOUND_WAITING = "found waiting"
    FOUND_STARTING = "found starting"
    FOUND_RUNNING = "found running"
    FOUND_SUSPENDING = "found suspending"
    FOUND_SUSPENDED = "found suspended"
    FOUND_RESUMING = "found resuming"
    ENDED = "ended"


_W = WorkerState
_S = Stimulus

_ORDERLY: Mapping[tuple[WorkerState, Stimulus], WorkerState] = {
    (_W.EXPECTED, _S.REGISTERED): _W.WAITING,
    (_W.UNHOOKED, _S.REGISTERED): _W.WAITING,
    (_W.EXPECTED, _S.NOT_REGISTERED): _W.UNHOOKED,
    (_W.WAITING, _S.START_ORDERED): _W.STARTING,
    (_W.STARTING, _S.STARTED): _W.RUNNING,
    (_W.STARTING, _S.NOT_STARTED): _W.WAITING,
    (_W.RUNNING, _S.SUSPEND_ORDERED): _W.SUSPENDING,
    (_W.SUSPENDING, _S.STOPPED): _W.SUSPENDED,
    (_W.SUSPENDING, _S.KEPT): _W.RUNNING,
    (_W.SUSPENDED, _S.RESUME_ORDERED): _W.RESUMING,
    (_W.RESUMING, _S.RESUMED): _W.RUNNING,
    (_W.RESUMING, _S.NOT_RESUMED): _W.SUSPENDED,
}
FOUND: Final[Mapping[WorkerState, Stimulus]] = {
    _W.WAITING: _S.FOUND_WAITING,
    _W.STARTING: _S.FOUND_STARTING,
    _W.RUNNING: _S.FOUND_RUNNING,
    _W.SUSPENDING: _S.FOUND_SUSPENDING,
    _W.SUSPENDED: _S.FOUND_SUSPENDED,
    _W.RESUMING: _S.FOUND_RESUMING,
}
"""The stimulus by which a launcher's word for its own state counts."""

_LIVE = tuple(state for state in WorkerState if state is not _W.ENDED)
_TRUTH: Mapping[tuple[WorkerState, Stimulus], WorkerState] = {
    (before, stimulus): state for before in _LIVE for state, stimulus in FOUND.items()
}
_ENDING: Mapping[tuple[WorkerState, Stimulus], WorkerState] = {
    (before, _S.ENDED): _W.ENDED for before in _LIVE
}

TABLE: Final[Mapping[tuple[WorkerState, Stimulus], WorkerState]] = {
    **_ORDERLY,
    **_TRUTH,
    **_ENDING,
}
"""Every allowed change; what is not here cannot happen."""


def is_allowed(state: WorkerState, stimulus: Stimulus) -> bool:
    """Whether `stimulus` means anything to a worker in `state`."""
    return (state, stimulus) in TABLE


def follow(state: WorkerState, stimulus: Stimulus, who: str) -> WorkerState:
    """The state after `stimulus`.

    Raises:
        InvariantError: where the table has no row; the caller had to ask `is_allowed` first.
    """
    after = TABLE.get((state, stimulus))
    if after is None:
        raise InvariantError(f"worker {who}: {stimulus} cannot happen in state {state}")
    return after
