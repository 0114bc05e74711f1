"""A gang with other workers: who stays, who joins, and which device is whose (G-80 … G-84)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gandiva_core.engine.lifecycle import Lifecycle
from gandiva_core.engine.state import JobState
from gandiva_core.engine.transitions import Stimulus
from gandiva_core.model.job import JobPhase, Worker
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import ServerId


class Seat(msgspec.Struct, frozen=True):
    """A worker, its server and its devices there."""

    worker: Worker
    server_id: ServerId
    gpus: tuple[int, ...]


def may_resize(job: JobState, joined: Sequence[JobState]) -> bool:
    """Whether it means anything now: of a gang that waits only workers that it asks for no more can leave."""
    if job.phase is JobPhase.QUEUED:
        return not joined
    return all(each.phase is JobPhase.RUNNING for each in (job, *joined))


def resize(
    lifecycle: Lifecycle, job: JobState, kept: Sequence[int], joined: Sequence[JobState]
) -> None:
    """Give a gang the workers that stay, and those of jobs that join it, which end."""
    if job.phase is JobPhase.QUEUED:
        workers = tuple(job.spec.workers[at] for at in kept)
        lifecycle.redefine(job, msgspec.structs.replace(job.spec, workers=workers))
        return
    seats = list(_seats(job))
    after = [seats[at] for at in kept] + [seat for other in joined for seat in _seats(other)]
    for other in joined:
        lifecycle.end(other, Stimulus.FINISHED)
    spec = msgspec.structs.replace(job.spec, workers=tuple(seat.worker for seat in after))
    servers = tuple(seat.server_id for seat in after)
    lifecycle.reshape(job, spec, servers, _bindings(after))


def _seats(job: JobState) -> Iterator[Seat]:
    """Workers of a server have its devices in rank order."""
    free = {binding.server_id: list(binding.gpus) for binding in job.bindings}
    for worker, server_id in zip(job.spec.workers, job.servers, strict=True):
        gpus = free[server_id]
        yield Seat(worker, server_id, tuple(gpus[: worker.gpus]))
        free[server_id] = gpus[worker.gpus :]


def _bindings(seats: Iterable[Seat]) -> tuple[Binding, ...]:
    gpus: dict[ServerId, tuple[int, ...]] = {}
    for seat in seats:
        gpus[seat.server_id] = gpus.get(seat.server_id, ()) + seat.gpus
    return tuple(Binding(server_id, mine) for server_id, mine in gpus.items())
