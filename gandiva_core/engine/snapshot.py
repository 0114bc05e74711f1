"""The engine's whole state as one frozen value: what a segment of a live journal starts with.

Sums, devices and domains are not in it: they follow from jobs and servers, and are computed again.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gandiva_core.engine import invariants
from gandiva_core.engine.ledger import Ledger, is_over_height
from gandiva_core.engine.state import JobState, Moving, State
from gandiva_core.messages.decisions import Wait
from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.errors import InputError, InvariantError
from gandiva_core.model.job import DEVICE_PHASES, JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId


class JobSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """One job; fields as in `JobView`, and what the engine alone keeps."""

    spec: JobSpec
    sequence: int
    phase: JobPhase
    submitted_at_s: float
    queued_since_s: float
    reason: Wait
    servers: tuple[ServerId, ...] = ()
    bindings: tuple[Binding, ...] = ()
    run_since_s: float | None = None
    last_stopped_at_s: float | None = None
    held_s: float = 0.0
    has_run: bool = False
    switch_id: int = 0
    answers_owed: int = 0
    unsuspendable: str = ""
    fixed: str = ""
    is_held: bool = False
    move: Moving | None = None


class ServerSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """One server; its affinity depends on history (G-5), so it is kept."""

    server: Server
    affinity: int = 0


class QueueSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """One queue in one partition, with the GPU seconds that it ran until `since_s`."""

    limit: QueueLimit
    gpu_s: float = 0.0
    since_s: float = 0.0


class EngineSnapshot(msgspec.Struct, frozen=True):
    """Everything between two events."""

    number: int
    now_s: float
    next_sequence: int
    next_switch_id: int
    next_move_id: int
    ignored: int
    servers: tuple[ServerSnapshot, ...]
    queues: tuple[QueueSnapshot, ...]
    jobs: tuple[JobSnapshot, ...]
    memory: Mapping[str, Mapping[str, float]]
    wakes: Mapping[str, float]
    ended: tuple[JobId, ...]


def take(state: State) -> EngineSnapshot:
    """Freeze a state."""
    return EngineSnapshot(
        number=state.number,
        now_s=state.now_s,
        next_sequence=state.next_sequence,
        next_switch_id=state.next_switch_id,
        next_move_id=state.next_move_id,
        ignored=state.ignored,
        servers=tuple(ServerSnapshot(s.server, s.affinity) for s in state.servers.values()),
        queues=tuple(
            QueueSnapshot(link.limit, link.gpu_s, link.since_s) for link in state.queues.values()
        ),
        jobs=tuple(_take_job(job) for job in state.jobs.values()),
        memory={key: dict(values) for key, values in state.memory.items()},
        wakes=dict(state.wakes),
        ended=tuple(state.ended),
    )


def _take_job(job: JobState) -> JobSnapshot:
    return JobSnapshot(
        spec=job.spec,
        sequence=job.sequence,
        phase=job.phase,
        submitted_at_s=job.submitted_at_s,
        queued_since_s=job.queued_since_s,
        reason=job.reason,
        servers=job.servers,
        bindings=job.bindings,
        run_since_s=job.run_since_s,
        last_stopped_at_s=job.last_stopped_at_s,
        held_s=job.held_s,
        has_run=job.has_run,
        switch_id=job.switch_id,
        answers_owed=job.answers_owed,
        unsuspendable=job.unsuspendable,
        fixed=job.fixed,
        is_held=job.is_held,
        move=job.move,
    )


def rebuild(taken: EngineSnapshot, height_max: int) -> State:
    """A state that behaves as the one `taken` was taken of.

    Raises:
        InputError: it contradicts itself.
    """
    state = State(height_max)
    state.number, state.now_s = taken.number, taken.now_s
    state.next_switch_id, state.next_move_id = taken.next_switch_id, taken.next_move_id
    state.ignored = taken.ignored
    state.memory = {key: dict(values) for key, values in taken.memory.items()}
    state.wakes = dict(taken.wakes)
    state.ended = dict.fromkeys(taken.ended)
    ledger = Ledger(state)
    try:
        _fill(ledger, taken)
        invariants.check_all(state)
    except (InvariantError, LookupError, ValueError) as error:
        raise InputError("snapshot", str(error), "a state without a contradiction") from error
    ledger.seal()
    state.next_sequence = taken.next_sequence
    return state


def _fill(ledger: Ledger, taken: EngineSnapshot) -> None:
    state = ledger.state
    for item in taken.servers:
        ledger.add_server(item.server)
    ledger.configure_queues(entry.limit for entry in taken.queues)
    for entry in taken.jobs:
        _fill_job(ledger, entry)
    for entry in taken.jobs:
        _fill_devices(ledger, state.jobs[entry.spec.job_id], entry)
    for item in taken.servers:
        server = state.servers[item.server.server_id]
        server.affinity = item.affinity
        server.is_overfull = is_over_height(server, state.height_max)
    ledger.recount_queues()
    for queue, link in zip(taken.queues, state.queues.values(), strict=True):
        link.gpu_s, link.since_s = queue.gpu_s, queue.since_s


def _fill_job(ledger: Ledger, entry: JobSnapshot) -> None:
    chain = ledger.state.chain(entry.spec.queue, entry.spec.partition)
    job = JobState(entry.spec, entry.sequence, entry.submitted_at_s, chain)
    ledger.add_job(job)
    job.phase = entry.phase
    job.queued_since_s = entry.queued_since_s
    job.reason = entry.reason
    job.bindings = entry.bindings
    job.run_since_s = entry.run_since_s
    job.last_stopped_at_s = entry.last_stopped_at_s
    job.held_s = entry.held_s
    job.has_run = entry.has_run
    job.switch_id = entry.switch_id
    job.answers_owed = entry.answers_owed
    job.unsuspendable = entry.unsuspendable
    job.fixed = entry.fixed
    job.is_held = entry.is_held
    if entry.servers:
        ledger.settle(job, entry.servers)
    if entry.phase is JobPhase.QUEUED:
        ledger.join_queue(job)


def _fill_devices(ledger: Ledger, job: JobState, taken: JobSnapshot) -> None:
    if job.phase not in DEVICE_PHASES:
        return
    move = taken.move
    for binding in (*job.bindings, *(() if move is None else move.bindings)):
        server = ledger.state.servers[binding.server_id]
        gone = [None] * (1 + max(binding.gpus) - len(server.holders))
        server.holders += gone
        server.claims += gone
    if job.phase is JobPhase.RESUMING:
        ledger.promise(job, job.bindings)
    else:
        ledger.seize(job)
    if move is not None:
        ledger.reserve(job, move)
