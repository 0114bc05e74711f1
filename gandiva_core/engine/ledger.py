"""Who is where and who holds what: residents, memory, vcores, affinity, devices, queue use; all can be taken back.

The ledger keeps accounts and knows no lifecycle; `gandiva_core.engine.lifecycle` moves jobs through it. Its own
contradictions (a device given twice, a gang settled twice) are `InvariantError`: the checks before it should
have refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from gandiva_core.engine.queue_books import QueueBooks, claimant, is_over_limit
from gandiva_core.engine.state import JobState, Moving, QueueState, ServerState, State
from gandiva_core.engine.undo import UndoLog
from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import JobSpec
from gandiva_core.model.placement import Binding, shares_of
from gandiva_core.model.units import JobId, QueueName, ServerId

ENDED_KEPT = 65_536
"""How many ended jobs are remembered, so that a late second JobSubmitted revives none of them."""


class Ledger:
    """The accounts over a `State`, with checkpoint and rollback."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.undo = UndoLog()
        self.touched_jobs: dict[JobId, None] = {}
        self.touched_servers: dict[ServerId, None] = {}
        #: Devices changed.
        self.moved_servers: dict[ServerId, None] = {}
        #: Residents changed.
        self.touched_queues: dict[QueueState, None] = {}
        self._queues = QueueBooks(state, self.undo, self.touched_queues)

    # ------------------------------------------------------------------ taking back

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        return len(self.undo)

    def rollback(self, mark: int) -> None:
        """Everything as it was at `mark`."""
        self.undo.rollback(mark)

    @contextmanager
    def what_if(self) -> Iterator[State]:
        """Try changes and look at the state; all of them are taken back at the end, also after an exception."""
        mark = self.checkpoint()
        try:
            yield self.state
        finally:
            self.rollback(mark)

    def seal(self) -> None:
        """The event is done: nothing before this will be taken back."""
        self.undo.clear()
        self.touched_jobs.clear()
        self.touched_servers.clear()
        self.moved_servers.clear()
        self.touched_queues.clear()

    # ------------------------------------------------------------------ jobs known and jobs waiting

    def keep(self, job: JobState) -> None:
        """A job is about to change: as it is now can be had back, and it is looked at after the event."""
        self.undo.note(job.put_back, job.keep())
        self.touched_jobs[job.spec.job_id] = None

    def add_job(self, job: JobState) -> None:
        """Make a submitted job known."""
        self.undo.write_entry(self.state.jobs, job.spec.job_id, job)
        self.undo.write(self.state, "next_sequence", job.sequence + 1)
        self.touched_jobs[job.spec.job_id] = None
        self._queues.count(job.chain, demand=job.spec.gpus)

    def remove_job(self, job: JobState) -> None:
        """Forget a job that ended, but that it has."""
        state = self.state
        self._queues.count(job.chain, demand=-job.spec.gpus)
        del state.jobs[job.spec.job_id]
        self.undo.note(self._bring_back, job)
        self.undo.write_entry(state.ended, job.spec.job_id, None)
        if len(state.ended) > ENDED_KEPT:
            self.undo.drop_entry(state.ended, next(iter(state.ended)))

    def _bring_back(self, job: JobState) -> None:
        jobs = self.state.jobs
        jobs[job.spec.job_id] = job
        ordered = sorted(jobs.items(), key=lambda item: item[1].sequence)
        jobs.clear()
        jobs.update(ordered)

    def join_queue(self, job: JobState) -> None:
        """Put a job among the waiting ones, at the place its sequence gives it."""
        self._insert_waiting(job)
        self.undo.note(self._delete_waiting, job)

    def leave_queue(self, job: JobState) -> None:
        """Take a job from among the waiting ones."""
        self._delete_waiting(job)
        self.undo.note(self._insert_waiting, job)

    def _insert_waiting(self, job: JobState) -> None:
        at = bisect_left(self.state.queue_sequences, job.sequence)
        self.state.queue_sequences.insert(at, job.sequence)
        self.state.queue.insert(at, job.spec.job_id)

    def _delete_waiting(self, job: JobState) -> None:
        at = bisect_left(self.state.queue_sequences, job.sequence)
        if at == len(self.state.queue) or self.state.queue[at] != job.spec.job_id:
            raise InvariantError(f"job {job.spec.job_id} is not in the queue")
        del self.state.queue_sequences[at]
        del self.state.queue[at]

    # ------------------------------------------------------------------ residency

    def settle(self, job: JobState, servers: tuple[ServerId, ...]) -> None:
        """Make a gang resident: one server a worker. Sets affinity where there was none (G-5)."""
        if job.shares:
            raise InvariantError(f"job {job.spec.job_id} is resident already")
        job.servers = servers
        job.shares = shares_of(job.spec.workers, servers)
        self._enter(job, servers, job.shares)
        self._queues.count_resident(job, 1)
        self._forget_domains(job)

    def vacate(self, job: JobState) -> None:
        """End a gang's residency on all its servers; its devices were let go before."""
        self._forget_domains(job)
        self._queues.count_resident(job, -1)
        self._leave(job, job.servers, job.shares)
        job.servers = ()
        job.shares = {}

    def _enter(
        self, job: JobState, servers: tuple[ServerId, ...], shares: Mapping[ServerId, int]
    ) -> None:
        """Count a gang on servers: where it lives, or, at the end of a move, will."""
        job_id = job.spec.job_id
        for server_id, share in shares.items():
            server = self._open(server_id)
            residents = server.residents
            counted = {**residents, job_id: residents.get(job_id, 0) + share}
            if residents and self.state.jobs[next(reversed(residents))].sequence > job.sequence:
                counted = self._by_sequence(counted)
            server.residents = counted
            server.allocated += share
            server.is_overfull = False  # whoever adds to an excess has to `excuse` it
            server.unsliced += 0 if job.is_sliced else share
            if server.affinity == 0:
                server.affinity = job.spec.affinity_class
        self._charge(job, servers, -1)

    def _leave(
        self, job: JobState, servers: tuple[ServerId, ...], shares: Mapping[ServerId, int]
    ) -> None:
        job_id = job.spec.job_id
        for server_id, share in shares.items():
            server = self._open(server_id)
            left = server.residents[job_id] - share
            rest = {k: v for k, v in server.residents.items() if k != job_id or left}
            server.residents = {**rest, job_id: left} if left else rest
            server.allocated -= share
            server.unsliced -= 0 if job.is_sliced else share
            self._review_affinity(server)
        self._charge(job, servers, 1)
        for server_id in shares:
            server = self.state.servers[server_id]
            if server.is_overfull:
                server.is_overfull = is_over_height(server, self.state.height_max)

    # ------------------------------------------------------------------ moves

    def reserve(self, job: JobState, move: Moving) -> None:
        """Count a running gang where it is going as well, and promise it devices there (G-69).

        Its queue runs it once, wherever it computes, so a queue's use does not change.
        """
        self.keep(job)
        job.move = move
        self._enter(job, move.servers, move.shares)
        for binding in move.bindings:
            self._set_claims(binding, None, job.spec.job_id)

    def release(self, job: JobState) -> None:
        """The gang does not go there."""
        move = _of_move(job)
        self.keep(job)
        job.move = None
        for binding in move.bindings:
            self._set_claims(binding, job.spec.job_id, None)
        self._leave(job, move.servers, move.shares)

    def arrive(self, job: JobState) -> None:
        """The gang lives where it was going, and holds the devices that it was promised there."""
        move = _of_move(job)
        self.release(job)
        self.let_go(job)
        self.vacate(job)
        self.settle(job, move.servers)
        self.excuse(job)
        job.bindings = move.bindings
        self.seize(job)

    def commit_move(self, job: JobState) -> None:
        """The containers of a move exist."""
        move = _of_move(job)
        self.keep(job)
        job.move = msgspec.structs.replace(move, is_committed=True)

    def _set_claims(self, binding: Binding, before: JobId | None, after: JobId | None) -> None:
        claims = self._touch(binding).claims
        for gpu in binding.gpus:
            if claims[gpu] != before:
                raise InvariantError(f"{binding.server_id}/{gpu} is promised to {claims[gpu]}")
            self.undo.write_item(claims, gpu, after)

    def excuse(self, job: JobState) -> None:
        """A fact, not a decision, made this gang resident: limits that it passes are passed rightly."""
        for server_id in job.shares:
            server = self.state.servers[server_id]
            server.is_overfull = is_over_height(server, self.state.height_max)
        for link in job.chain:
            link.is_overfull = is_over_limit(link, self.state.height_max)

    def _open(self, server_id: ServerId) -> ServerState:
        server = self.state.servers[server_id]
        self.undo.note(server.put_back, server.keep())
        self.moved_servers[server_id] = None
        self._regroup(server_id)
        return server

    def _regroup(self, server_id: ServerId) -> None:
        self.state.alike.touch(server_id)
        self.undo.note(self.state.alike.touch, server_id)

    def _by_sequence(self, residents: Mapping[JobId, int]) -> dict[JobId, int]:
        jobs = self.state.jobs
        return dict(sorted(residents.items(), key=lambda item: jobs[item[0]].sequence))

    def _charge(self, job: JobState, servers: tuple[ServerId, ...], sign: int) -> None:
        for worker, server_id in zip(job.spec.workers, servers, strict=True):
            server = self.state.servers[server_id]
            server.memory_free_mib += sign * worker.memory_mib
            server.vcores_free += sign * worker.vcores

    def _forget_domains(self, job: JobState) -> None:
        if len(job.shares) > 1:
            self.state.domains.forget(job.shares)
            self.undo.note(self.state.domains.forget, tuple(job.shares))

    def _review_affinity(self, server: ServerState) -> None:
        """G-5 (b), (c): once the last of the class left, the one with most GPUs here; ties to the smaller."""
        allocated: defaultdict[int, int] = defaultdict(int)
        for job_id, share in server.residents.items():
            allocated[self.state.jobs[job_id].spec.affinity_class] += share
        if server.affinity not in allocated:
            server.affinity = min(allocated, key=lambda size: (-allocated[size], size), default=0)

    # ------------------------------------------------------------------ devices

    def promise(self, job: JobState, bindings: Iterable[Binding]) -> None:
        """Give devices to a job that will run once they are free."""
        job_id = job.spec.job_id
        for binding in bindings:
            server = self._touch(binding)
            claims = server.claims
            for gpu in binding.gpus:
                if claims[gpu] is not None:
                    raise InvariantError(f"{binding.server_id}/{gpu} is promised already")
                self._queues.count_device(job, server.holders[gpu], 1)
                self.undo.write_item(claims, gpu, job_id)

    def seize(self, job: JobState) -> None:
        """Give a job the devices of its bindings at once: it runs there already."""
        job_id = job.spec.job_id
        for binding in job.bindings:
            server = self._touch(binding)
            for gpu in binding.gpus:
                if server.holders[gpu] is not None:
                    raise InvariantError(f"{binding.server_id}/{gpu} is held already")
                self._queues.count_device(job, claimant(self.state, server, gpu), 1)
                self.undo.write_item(server.holders, gpu, job_id)

    def take(self, job: JobState) -> None:
        """Turn a job's promised devices into held ones; its queue used them before."""
        job_id = job.spec.job_id
        for binding in job.bindings:
            server = self._touch(binding)
            holders, claims = server.holders, server.claims
            for gpu in binding.gpus:
                if claims[gpu] != job_id or holders[gpu] is not None:
                    raise InvariantError(f"{binding.server_id}/{gpu} is not free for {job_id}")
                self.undo.write_item(holders, gpu, job_id)
                self.undo.write_item(claims, gpu, None)

    def let_go(self, job: JobState) -> None:
        """Free whatever devices a job holds or was promised."""
        job_id = job.spec.job_id
        for binding in job.bindings:
            server = self._touch(binding)
            holders, claims = server.holders, server.claims
            for gpu in binding.gpus:
                if gpu >= len(holders):
                    continue  # where it last ran; the device has gone since
                if holders[gpu] == job_id:
                    self.undo.write_item(holders, gpu, None)
                    self._queues.count_device(job, claimant(self.state, server, gpu), -1)
                elif claims[gpu] == job_id:
                    self.undo.write_item(claims, gpu, None)
                    self._queues.count_device(job, holders[gpu], -1)
            if len(holders) > server.server.gpus:
                self._fit_devices(server)

    def _fit_devices(self, server: ServerState) -> None:
        """List the server's devices, and those that it has no more while somebody uses them."""
        listed = server.devices_listed
        for row in ("holders", "claims"):
            users = getattr(server, row)[:listed]
            self.undo.write(server, row, users + [None] * (listed - len(users)))

    def _touch(self, binding: Binding) -> ServerState:
        self.touched_servers[binding.server_id] = None
        self._regroup(binding.server_id)
        return self.state.servers[binding.server_id]

    # ------------------------------------------------------------------ queues

    def configure_queues(self, limits: Iterable[QueueLimit]) -> None:
        """Replace the queue tree and count every job anew; what a queue ran before is not forgotten."""
        self._queues.configure(limits)
        self._recount_unsliced()

    def redefine(self, job: JobState, spec: JobSpec) -> None:
        """A job turns out to ask for something else, or to count elsewhere; what it holds is counted by the caller."""
        self._queues.count(job.chain, demand=-job.spec.gpus)
        self.undo.write(job, "spec", spec)
        self.undo.write(job, "chain", self.state.chain(spec.queue, spec.partition))
        self._queues.count(job.chain, demand=spec.gpus)

    def move_queue(self, job: JobState, queue: QueueName) -> None:
        """A job counts in another queue from now on."""
        self.redefine(job, msgspec.structs.replace(job.spec, queue=queue))
        self.recount_queues()

    def learn(self, job: JobState, unsuspendable: str, fixed: str) -> None:
        """A job turns out to be one that cannot be suspended, or moved, or can after all."""
        self.keep(job)
        job.unsuspendable, job.fixed = unsuspendable, fixed
        self.recount_queues()

    def hold(self, job: JobState, *, is_held: bool) -> None:
        """Its owner takes it out of the running, or lets it back in."""
        self.keep(job)
        job.is_held = is_held

    def recount_queues(self) -> None:
        """Queue use from scratch, after a fact changed what counts where."""
        self._queues.recount()
        self._recount_unsliced()

    def _recount_unsliced(self) -> None:
        """Another queue, or other rules of one, may have changed who can be suspended."""
        jobs = self.state.jobs
        for server in self.state.servers.values():
            unsliced = sum(
                share for job_id, share in server.residents.items() if not jobs[job_id].is_sliced
            )
            if unsliced != server.unsliced:
                self._open(server.server.server_id)
                server.unsliced = unsliced
                server.is_overfull = is_over_height(server, self.state.height_max)

    # ------------------------------------------------------------------ servers

    def add_server(self, server: Server) -> None:
        """A server can host from now on."""
        servers = self.state.servers
        joined = ServerState(server)
        if servers and server.server_id < next(reversed(servers)):
            ordered = dict(sorted([*servers.items(), (server.server_id, joined)]))
        else:
            ordered = {**servers, server.server_id: joined}
        self.undo.write(self.state, "servers", ordered)
        self.moved_servers[server.server_id] = None
        self._regroup(server.server_id)

    def remove_server(self, server_id: ServerId) -> None:
        """A server is gone; its residents were vacated before."""
        rest = {k: v for k, v in self.state.servers.items() if k != server_id}
        self.undo.write(self.state, "servers", rest)
        self._regroup(server_id)
        self.state.domains.forget((server_id,))
        self.undo.note(self.state.domains.forget, (server_id,))

    def revise_server(self, server: Server) -> None:
        """A known server came back with other attributes; who is there stays, also on a device that is gone."""
        known = self._open(server.server_id)
        known.memory_free_mib += server.memory_mib - known.server.memory_mib
        known.vcores_free += server.vcores - known.server.vcores
        known.server = server
        self.touched_servers[server.server_id] = None
        self._fit_devices(known)
        known.is_overfull = is_over_height(known, self.state.height_max)


def is_over_height(server: ServerState, height_max: int) -> bool:
    """Whether residents exceed H_max, memory or vcores."""
    return (
        server.allocated > server.room(height_max)
        or server.memory_free_mib < 0
        or server.vcores_free < 0
    )


def _of_move(job: JobState) -> Moving:
    if job.move is None:
        raise InvariantError(f"job {job.spec.job_id} does not move")
    return job.move
