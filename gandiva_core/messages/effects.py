"""Commands to the outside, in the imperative, each with the event that caused it."""

from __future__ import annotations

import msgspec

from gandiva_core.messages.decisions import Run
from gandiva_core.model.job import Worker
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


class StartTimer(_Effect, frozen=True, tag=True):
    """Answered by `TimerFired(key)` at `at_s`; a second one with the same key replaces the first."""

    key: str
    at_s: float


Effect = CommitGang | ReleaseGang | SwitchResidents | StartTimer
ContainerEffect = CommitGang | ReleaseGang
WorldEffect = SwitchResidents | StartTimer | ReleaseGang
