"""What the engine knows, as plain mutable objects; policies see the same objects through `gandiva_core.model.view`.

Only `gandiva_core.engine.ledger` changes anything here, because only it can undo it. Attributes are plain and classes
are slotted: this is the hot path of every placement and every quantum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gandiva_core.engine.alike import Alike
from gandiva_core.engine.domains import Domains
from gandiva_core.messages.decisions import Wait
from gandiva_core.model.cluster import MIGRATION, SLICING, QueueLimit, Server
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, QueueKey, QueueName, ServerId
from gandiva_core.model.view import ServerView

UNDECIDED = Wait("undecided", "", "")
"""Why a job waits that its policy left undecided."""

_Kept = tuple[Any, ...]


class Moving(msgspec.Struct, frozen=True):
    """A gang's way to other servers (G-69).

    Attributes:
        servers: one a worker, in rank order.
        bindings: devices promised there.
        is_committed: its new containers exist.
    """

    move_id: int
    servers: tuple[ServerId, ...]
    bindings: tuple[Binding, ...]
    is_committed: bool = False

    @property
    def shares(self) -> dict[ServerId, int]:
        """GPUs on each of its servers."""
        shares: dict[ServerId, int] = {}
        for binding in self.bindings:
            shares[binding.server_id] = shares.get(binding.server_id, 0) + len(binding.gpus)
        return shares


QueueKept = tuple[int, int, int, int, float, float, bool]


class QueueState:
    """A queue's limit and use in one partition; implements `QueueView`."""

    __slots__ = (
        "demand",
        "gpu_s",
        "is_overfull",
        "limit",
        "resident",
        "running",
        "since_s",
        "unsliced",
    )

    def __init__(self, limit: QueueLimit, since_s: float = 0.0, gpu_s: float = 0.0) -> None:
        self.limit = limit
        self.demand = 0
        #: Σ g of live jobs.
        self.gpu_s = gpu_s
        self.since_s = since_s
        #: GPU seconds run until `since_s`; `running` GPUs are added since.
        self.running = 0
        #: Devices with a holder or a claim of this queue or its children; a device handed over inside it counts once.
        self.resident = 0
        #: Σ g of resident jobs.
        self.unsliced = 0
        #: Of that, of jobs that may not be suspended.
        self.is_overfull = False
        #: True while a fact (new limits, a moved job), never a decision, has left it above a limit.

    @property
    def key(self) -> QueueKey:
        """Under which the state keeps it."""
        return self.limit.name, self.limit.partition

    def used_gpu_s(self, now_s: float) -> float:
        """GPU seconds run by `now_s`."""
        return self.gpu_s + self.running * (now_s - self.since_s)

    def keep(self) -> QueueKept:
        """All that changes, for `put_back`."""
        return (
            self.running,
            self.resident,
            self.unsliced,
            self.demand,
            self.gpu_s,
            self.since_s,
            self.is_overfull,
        )

    def put_back(self, kept: QueueKept) -> None:
        """Undo everything since `keep`."""
        (
            self.running,
            self.resident,
            self.unsliced,
            self.demand,
            self.gpu_s,
            self.since_s,
            self.is_overfull,
        ) = kept


Chain = tuple[QueueState, ...]
"""A queue and its parents, nearest first; empty without limits."""


class JobState:
    """One live job; implements `JobView`."""

    __slots__ = (
        "answers_owed",
        "bindings",
        "chain",
        "fixed",
        "has_run",
        "held_s",
        "is_held",
        "last_stopped_at_s",
        "move",
        "phase",
        "queued_since_s",
        "reason",
        "run_since_s",
        "sequence",
        "servers",
        "shares",
        "spec",
        "submitted_at_s",
        "switch_id",
        "unsuspendable",
    )

    def __init__(self, spec: JobSpec, sequence: int, submitted_at_s: float, chain: Chain) -> None:
        self.spec = spec
        self.sequence = sequence
        self.submitted_at_s = submitted_at_s
        self.chain = chain
        self.phase = JobPhase.SUBMITTED
        self.queued_since_s = submitted_at_s
        self.servers: tuple[ServerId, ...] = ()
        self.shares: Mapping[ServerId, int] = {}
        self.bindings: tuple[Binding, ...] = ()
        self.run_since_s: float | None = None
        self.last_stopped_at_s: float | None = None
        self.held_s = 0.0
        self.has_run = False
        self.switch_id = 0
        #: The switch awaited in SUSPENDING and RESUMING; 0 otherwise: stale answers match nothing.
        self.answers_owed = 0
        #: Answers to a CommitGang that no longer matter: the job was broken while COMMITTING.
        self.reason: Wait = UNDECIDED
        self.unsuspendable = ""
        #: Why nothing can stop it, where that is known.
        self.fixed = ""
        #: Why it cannot move, where that is known.
        self.is_held = False
        #: Its owner does not want it to run now.
        self.move: Moving | None = None
        #: Exactly in MIGRATING.

    @property
    def is_sliced(self) -> bool:
        """Whether it may be suspended for others."""
        if self.unsuspendable or "suspend" in self.spec.never:
            return False
        chain = self.chain
        return not chain or SLICING not in chain[0].limit.mechanisms_off

    def keep(self) -> _Kept:
        """Everything that changes in its life, for `put_back`."""
        return (
            self.phase,
            self.queued_since_s,
            self.servers,
            self.shares,
            self.bindings,
            self.run_since_s,
            self.last_stopped_at_s,
            self.held_s,
            self.has_run,
            self.switch_id,
            self.answers_owed,
            self.reason,
            self.unsuspendable,
            self.fixed,
            self.is_held,
            self.move,
        )

    def put_back(self, kept: _Kept) -> None:
        """Undo everything since `keep`."""
        (
            self.phase,
            self.queued_since_s,
            self.servers,
            self.shares,
            self.bindings,
            self.run_since_s,
            self.last_stopped_at_s,
            self.held_s,
            self.has_run,
            self.switch_id,
            self.answers_owed,
            self.reason,
            self.unsuspendable,
            self.fixed,
            self.is_held,
            self.move,
        ) = kept


class ServerState:
    """One server; implements `ServerView`."""

    __slots__ = (
        "affinity",
        "allocated",
        "claims",
        "holders",
        "is_overfull",
        "memory_free_mib",
        "residents",
        "server",
        "unsliced",
        "vcores_free",
    )

    def __init__(self, server: Server) -> None:
        self.server = server
        self.residents: dict[JobId, int] = {}
        #: By sequence. Replaced, never changed in place, so that undo is one reference.
        self.allocated = 0
        #: M, always the sum over `residents` (G-1).
        self.unsliced = 0
        #: Of that, what may not be suspended.
        self.affinity = 0
        self.memory_free_mib = server.memory_mib
        self.vcores_free = server.vcores
        self.holders: list[JobId | None] = [None] * server.gpus
        self.claims: list[JobId | None] = [None] * server.gpus
        #: A claimed device has no holder, or one that is SUSPENDING.
        self.is_overfull = False
        #: True while a fact (the server came back smaller), never a decision, has left it above a limit.

    def keep(self) -> _Kept:
        """Its accounts, for `put_back`; devices are undone one by one."""
        return (
            self.server,
            self.residents,
            self.allocated,
            self.unsliced,
            self.affinity,
            self.memory_free_mib,
            self.vcores_free,
            self.is_overfull,
        )

    def put_back(self, kept: _Kept) -> None:
        """Undo everything since `keep`."""
        (
            self.server,
            self.residents,
            self.allocated,
            self.unsliced,
            self.affinity,
            self.memory_free_mib,
            self.vcores_free,
            self.is_overfull,
        ) = kept

    @property
    def devices_listed(self) -> int:
        """Length of `holders` and `claims`: all devices it has, and up to the last in use of those that are gone."""
        for gpu in range(len(self.holders) - 1, self.server.gpus - 1, -1):
            if self.holders[gpu] is not None or self.claims[gpu] is not None:
                return gpu + 1
        return self.server.gpus

    def room(self, height_max: int) -> int:
        """Most GPUs that residents may ask for: H_max times the devices that may be shared, the others once.

        1 is the height where nothing can suspend a job (DESIGN §4).
        """
        gpus = self.server.gpus
        if not self.server.can_suspend:
            return gpus
        unshared = min(gpus, self.unsliced)
        return unshared + (gpus - unshared) * height_max


class State:
    """Everything; implements `ClusterView`."""

    __slots__ = (
        "alike",
        "chains",
        "domains",
        "ended",
        "height_max",
        "ignored",
        "jobs",
        "memory",
        "next_move_id",
        "next_sequence",
        "next_switch_id",
        "now_s",
        "number",
        "queue",
        "queue_sequences",
        "queues",
        "servers",
        "wakes",
    )

    def __init__(self, height_max: int) -> None:
        self.height_max = height_max
        self.now_s = 0.0
        self.number = 0
        #: Of the last event; the first is 1.
        self.next_sequence = 0
        self.next_switch_id = 1
        self.next_move_id = 1
        self.ignored = 0
        #: Events and parts of events that came too late or from nowhere.
        self.servers: dict[ServerId, ServerState] = {}
        #: By id. Replaced, never changed in place.
        self.jobs: dict[JobId, JobState] = {}
        #: By sequence; live jobs only.
        self.queue: list[JobId] = []
        self.queue_sequences: list[int] = []
        #: Parallel: exactly the jobs in QUEUED, by sequence.
        self.queues: dict[QueueKey, QueueState] = {}
        self.chains: dict[QueueKey, Chain] = {}
        #: Cache over `queues`.
        self.memory: dict[str, Mapping[str, float]] = {}
        self.wakes: dict[str, float] = {}
        self.ended: dict[JobId, None] = {}
        #: The latest jobs that ended, so that a second JobSubmitted revives none.
        self.domains = Domains(self)
        self.alike = Alike(self)

    @property
    def kinds(self) -> Sequence[Sequence[ServerView]]:
        """Servers that placement cannot tell apart but by id, together; members by id, groups by their first."""
        return self.alike.groups()

    def domain(self, server_id: ServerId) -> tuple[ServerId, ...]:
        """The slicing domain of a server, sorted (G-32).

        Raises:
            KeyError: for a server that is not there.
        """
        return self.domains.of(server_id)

    def can_suspend(self, job_id: JobId) -> bool:
        """Whether a job may be told to stop. Raises KeyError for one that is not there."""
        return self.why_kept(job_id) is None

    def why_kept(self, job_id: JobId) -> str | None:
        """Why a job may not be told to stop, or None. Raises KeyError for one that is not there."""
        job = self.jobs[job_id]
        for server_id, share in job.shares.items():
            server = self.servers[server_id].server
            if not server.can_suspend:
                return f"server {server_id} cannot suspend"
            if share > server.gpus:
                return f"it could not run again on server {server_id} with {server.gpus} GPUs"
        if job.unsuspendable:
            return job.unsuspendable
        if "suspend" in job.spec.never:
            return "its owner forbids it"
        return None if job.is_sliced else f"queue {job.chain[0].limit.name} has slicing off"

    def why_fixed(self, job_id: JobId) -> str | None:
        """Why a job may not be moved, or None. Raises KeyError for one that is not there."""
        job = self.jobs[job_id]
        if "migrate" in job.spec.never:
            return "its owner forbids it"
        if job.chain and MIGRATION in job.chain[0].limit.mechanisms_off:
            return f"queue {job.chain[0].limit.name} has migration off"
        if job.fixed:
            return job.fixed
        for server_id in job.shares:
            if not self.servers[server_id].server.can_suspend:
                return f"nothing on server {server_id} can move it"
        return None

    def headroom(self, queue: QueueName, partition: str) -> tuple[float, float]:
        """(running, resident) GPUs that `queue` may still add (DESIGN §4); infinite without a limit."""
        running = resident = math.inf
        for link in self.chain(queue, partition):
            limit = link.limit.max_gpus
            running = min(running, limit - link.running)
            resident = min(resident, limit * self.height_max - link.resident)
        return running, resident

    def chain(self, queue: QueueName, partition: str) -> Chain:
        """The limited queues that a job counts in; an unknown queue counts in its nearest known ancestor."""
        found = self.chains.get((queue, partition))
        if found is None:
            found = self.chains[queue, partition] = self._find_chain(queue, partition)
        return found

    def _find_chain(self, queue: QueueName, partition: str) -> Chain:
        if not any(named for _, named in self.queues):
            partition = ""  # limits without a word of partitions are about all of them
        links: list[QueueState] = []
        name: str = queue
        while name:
            link = self.queues.get((QueueName(name), partition))
            if link is None:
                name = name.rpartition(".")[0]
            else:
                links.append(link)
                name = link.limit.parent
        return tuple(links)
