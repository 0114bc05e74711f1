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

from gandiva_core.engine.state import JobState, QueueState, ServerState, State
from gandiva_core.engine.undo import UndoLog
from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, QueueKey, QueueName, ServerId

ENDED_KEPT = 65_536
"""How many ended jobs are remembered, so that a late second JobSubmitted revives none of them."""


def shares_of(workers: Iterable[Worker], servers: Iterable[ServerId]) -> dict[ServerId, int]:
    """GPUs on each server of a gang, in order of the first rank there (G-1)."""
    shares: dict[ServerId, int] = {}
    for worker, server_id in zip(workers, servers, strict=True):
        shares[server_id] = shares.get(server_id, 0) + worker.gpus
    return shares


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

    def add_job(self, job: JobState) -> None:
        """Make a submitted job known."""
        self.undo.write_entry(self.state.jobs, job.spec.job_id, job)
        self.undo.write(self.state, "next_sequence", job.sequence + 1)
        self.touched_jobs[job.spec.job_id] = None
        self._count(job.chain, demand=job.spec.gpus)

    def remove_job(self, job: JobState) -> None:
        """Forget a job that ended, but that it has."""
        state = self.state
        self._count(job.chain, demand=-job.spec.gpus)
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
        for server_id, share in job.shares.items():
            server = self._open(server_id)
            residents = server.residents
            if residents and self.state.jobs[next(reversed(residents))].sequence > job.sequence:
                server.residents = self._by_sequence({**residents, job.spec.job_id: share})
            else:
                server.residents = {**residents, job.spec.job_id: share}
            server.allocated += share
            server.is_overfull = False  # whoever adds to an excess has to `excuse` it
            server.unsliced += 0 if job.is_sliced else share
            if server.affinity == 0:
                server.affinity = job.spec.affinity_class
        self._charge(job, -1)
        self._count_resident(job, 1)
        self._forget_domains(job)

    def vacate(self, job: JobState) -> None:
        """End a gang's residency on all its servers; its devices were let go before."""
        self._forget_domains(job)
        self._count_resident(job, -1)
        for server_id, share in job.shares.items():
            server = self._open(server_id)
            server.residents = {k: v for k, v in server.residents.items() if k != job.spec.job_id}
            server.allocated -= share
            server.unsliced -= 0 if job.is_sliced else share
            self._review_affinity(server)
        self._charge(job, 1)
        for server_id in job.shares:
            server = self.state.servers[server_id]
            if server.is_overfull:
                server.is_overfull = is_over_height(server, self.state.height_max)
        job.servers = ()
        job.shares = {}

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

    def _charge(self, job: JobState, sign: int) -> None:
        for worker, server_id in zip(job.spec.workers, job.servers, strict=True):
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
                self._count_device(job, server.holders[gpu], 1)
                self.undo.write_item(claims, gpu, job_id)

    def seize(self, job: JobState) -> None:
        """Give a job the devices of its bindings at once; only a state that is built anew does so."""
        job_id = job.spec.job_id
        for binding in job.bindings:
            server = self._touch(binding)
            for gpu in binding.gpus:
                if server.holders[gpu] is not None:
                    raise InvariantError(f"{binding.server_id}/{gpu} is held already")
                self._count_device(job, server.claims[gpu], 1)
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
                    self._count_device(job, claims[gpu], -1)
                elif claims[gpu] == job_id:
                    self.undo.write_item(claims, gpu, None)
                    self._count_device(job, holders[gpu], -1)
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

    def _count_device(self, job: JobState, other: JobId | None, sign: int) -> None:
        """A job begins or ceases to use a device that `other` has as well, one holding it, one claiming it.

        A queue uses such a device once, however many of its jobs do.
        """
        if other is None:
            self._count(job.chain, running=sign)
            return
        chain = self.state.jobs[other].chain
        if chain is not job.chain:
            self._count([link for link in job.chain if link not in chain], running=sign)

    def _count_resident(self, job: JobState, sign: int) -> None:
        gpus = sign * job.spec.gpus
        self._count(job.chain, resident=gpus, unsliced=0 if job.is_sliced else gpus)

    def _count(
        self,
        links: Iterable[QueueState],
        *,
        running: int = 0,
        resident: int = 0,
        unsliced: int = 0,
        demand: int = 0,
    ) -> None:
        """Add to a queue's use; what it ran until now is booked first."""
        now_s = self.state.now_s
        for link in links:
            self.undo.note(link.put_back, link.keep())
            self.touched_queues[link] = None
            if running:
                link.gpu_s = link.used_gpu_s(now_s)
                link.since_s = now_s
                link.running += running
            link.resident += resident
            link.unsliced += unsliced
            link.demand += demand
            if link.is_overfull:
                over = over_limit(link, self.state.height_max)
                has_grown = (running > 0 and over[0]) or (resident > 0 and over[1])
                link.is_overfull = any(over) and not has_grown  # as in `settle`

    def configure_queues(self, limits: Iterable[QueueLimit]) -> None:
        """Replace the queue tree and count every job anew; what a queue ran before is not forgotten."""
        state = self.state
        known, now_s = state.queues, state.now_s
        queues: dict[QueueKey, QueueState] = {}
        for limit in limits:
            key = limit.name, limit.partition
            ran_gpu_s = known[key].used_gpu_s(now_s) if key in known else 0.0
            queues[key] = QueueState(limit, now_s, ran_gpu_s)
        self.undo.write(state, "queues", queues)
        self.undo.write(state, "chains", {})
        for job in state.jobs.values():
            self.undo.write(job, "chain", state.chain(job.spec.queue, job.spec.partition))
        self.recount_queues()

    def redefine(self, job: JobState, spec: JobSpec) -> None:
        """A job turns out to ask for something else, or to count elsewhere; what it holds is counted by the caller."""
        self._count(job.chain, demand=-job.spec.gpus)
        self.undo.write(job, "spec", spec)
        self.undo.write(job, "chain", self.state.chain(spec.queue, spec.partition))
        self._count(job.chain, demand=spec.gpus)

    def move_queue(self, job: JobState, queue: QueueName) -> None:
        """A job counts in another queue from now on."""
        self.redefine(job, msgspec.structs.replace(job.spec, queue=queue))
        self.recount_queues()

    def learn(self, job: JobState, unsuspendable: str) -> None:
        """A job turns out to be one that cannot be suspended, or can after all."""
        self.undo.note(job.put_back, job.keep())
        self.touched_jobs[job.spec.job_id] = None
        job.unsuspendable = unsuspendable
        self.recount_queues()

    def hold(self, job: JobState, *, is_held: bool) -> None:
        """Its owner takes it out of the running, or lets it back in."""
        self.undo.note(job.put_back, job.keep())
        self.touched_jobs[job.spec.job_id] = None
        job.is_held = is_held

    def recount_queues(self) -> None:
        """Queue use from scratch, after a fact changed what counts where."""
        running: defaultdict[QueueState, int] = defaultdict(int)
        resident: defaultdict[QueueState, int] = defaultdict(int)
        for server in self.state.servers.values():
            for users in zip(server.holders, server.claims, strict=True):
                chains = [self.state.jobs[user].chain for user in users if user is not None]
                for link in dict.fromkeys(link for chain in chains for link in chain):
                    running[link] += 1
        unsliced: defaultdict[QueueState, int] = defaultdict(int)
        demand: defaultdict[QueueState, int] = defaultdict(int)
        for job in self.state.jobs.values():
            gpus = sum(job.shares.values())
            for link in job.chain:
                resident[link] += gpus
                unsliced[link] += 0 if job.is_sliced else gpus
                demand[link] += job.spec.gpus
        now_s = self.state.now_s
        for link in self.state.queues.values():
            self.undo.note(link.put_back, link.keep())
            link.gpu_s, link.since_s = link.used_gpu_s(now_s), now_s
            link.running, link.resident = running[link], resident[link]
            link.unsliced, link.demand = unsliced[link], demand[link]
            link.is_overfull = is_over_limit(link, self.state.height_max)
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


def is_over_limit(link: QueueState, height_max: int) -> bool:
    """Whether a queue uses more than DESIGN §4 allows it."""
    return any(over_limit(link, height_max))


def over_limit(link: QueueState, height_max: int) -> tuple[bool, bool]:
    """Whether a queue runs more, and whether it has more residents, than DESIGN §4 allows it."""
    limit = link.limit.max_gpus + 1e-9
    return link.running > limit, link.resident > limit * height_max


def is_over_height(server: ServerState, height_max: int) -> bool:
    """Whether residents exceed H_max, memory or vcores."""
    return (
        server.allocated > server.room(height_max)
        or server.memory_free_mib < 0
        or server.vcores_free < 0
    )
