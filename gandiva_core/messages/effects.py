"""Commands to the outside, in the imperative, each with the event that caused it."""

from __future__ import annotations

from typing import get_args

import msgspec

from gandiva_core.messages.decisions import Run
from gandiva_core.model.job import Worker
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId


class _Effect(msgspec.Struct, frozen=True, tag=True, tag_field="kind", omit_defaults=True):
    cause: int


class CommitGang(_Effect, frozen=True, tag=True):
    """Create all containers of a gang on these servers, or none. Answered by `GangCommitted` or `GangRefused`."""

    job_id: JobId
    servers: tuple[ServerId, ...]
    workers: tuple[Worker, ...]


class ReleaseGang(_Effect, frozen=True, tag=True):
    """Give back all containers that the gang still has; the job goes back to the queue. Not answered."""

    job_id: JobId
    reason: str


class SwitchResidents(_Effect, frozen=True, tag=True):
    """Stop and start residents on these servers. Answered by one or more `ResidentsSwitched`.

    A job starts once every device of its bindings is free; one that never ran starts its training process.
    """

    switch_id: int
    servers: tuple[ServerId, ...]
    suspend: tuple[JobId, ...] = ()
    run: tuple[Run, ...] = ()
    prepare: tuple[Run, ...] = ()


class OpenMove(_Effect, frozen=True, tag=True):
    """Create a second container for each worker of a gang, one on each of these servers, all or none (G-69).

    Answered by `MoveCommitted` or `MoveFailed`.
    """

    move_id: int
    job_id: JobId
    servers: tuple[ServerId, ...]
    workers: tuple[Worker, ...]


class CarryOver(_Effect, frozen=True, tag=True):
    """Warm up in the new containers, save one replica's state at a mini-batch boundary, restore it there, confirm.

    Answered by `GangMoved` once the first mini-batch was done there, or by `MoveFailed`: then the source goes on.
    """

    move_id: int
    job_id: JobId
    servers: tuple[ServerId, ...]
    bindings: tuple[Binding, ...]


class CloseMove(_Effect, frozen=True, tag=True):
    """The gang lives in its new containers and the old ones go; or it does not, and the new ones go. Not answered."""

    move_id: int
    job_id: JobId
    is_done: bool


class StartTimer(_Effect, frozen=True, tag=True):
    """Answered by `TimerFired(key)` at `at_s`; a second one with the same key replaces the first."""

    key: str
    at_s: float


Effect = CommitGang | ReleaseGang | SwitchResidents | OpenMove | CarryOver | CloseMove | StartTimer
ContainerEffect = CommitGang | ReleaseGang | OpenMove | CloseMove
WorldEffect = SwitchResidents | StartTimer | ReleaseGang | CarryOver | CloseMove

FOR_CONTAINERS: frozenset[type] = frozenset(get_args(ContainerEffect))
FOR_WORLD: frozenset[type] = frozenset(get_args(WorldEffect))
"""Who hears what: a release, and the end of a move, concern both sides."""
