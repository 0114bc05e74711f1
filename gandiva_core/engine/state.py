"""What the engine knows, as plain mutable objects; policies see the same objects through `gandiva_core.model.view`.

Only `gandiva_core.engine.ledger` changes anything here, because only it can undo it. Attributes are plain and classes
are slotted: this is the hot path of every placement and every quantum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gandiva_core.engine.domains import Domains
from gandiva_core.messages.decisions import Wait
from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, QueueName, ServerId

UNDECIDED = Wait("undecided", "", "")
"""Why a job waits that its policy left undecided."""

_Kept = tuple[Any, ...]


class QueueState:
    """A queue's limit and use; implements `QueueView`."""

    __slots__ = ("is_overfull", "limit", "resident", "running")

    def __init__(self, limit: QueueLimit) -> None:
        self.limit = limit
        self.running = 0
        #: Devices with a holder or a claim of this queue or its children; a device handed over inside it counts once.
        self.resident = 0
        #: Σ g of resident jobs.
        self.is_overfull = False
        #: True while a fact (new limits, a moved job), never a decision, has left it above a limit.


Chain = tuple[QueueState, ...]
"""A queue and its parents, nearest first; empty without limits."""


class JobState:
    """One live job; implements `JobView`."""

    __slots__ = (
        "answers_owed",
        "bindings",
        "chain",
        "has_run",
        "held_s",
        "last_stopped_at_s",
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
        "vcores_free",
    )

    def __init__(self, server: Server) -> None:
        self.server = server
        self.residents: dict[JobId, int] = {}
        #: By sequence. Replaced, never changed in place, so that undo is one reference.
        self.allocated = 0
        #: M, always the sum over `residents` (G-1).
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
            self.affinity,
            self.memory_free_mib,
            self.vcores_free,
            self.is_overfull,
        ) = kept

    def height_max(self, limit: int) -> int:
        """H_max here: `limit`, or 1 where nothing can suspend a job (DESIGN §4)."""
        return limit if self.server.can_suspend else 1


class State:
    """Everything; implements `ClusterView`."""

    __slots__ = (
        "chains",
        "domains",
        "ended",
        "height_max",
        "ignored",
        "jobs",
        "memory",
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
        self.ignored = 0
        #: Events and parts of events that came too late or from nowhere.
        self.servers: dict[ServerId, ServerState] = {}
        #: By id. Replaced, never changed in place.
        self.jobs: dict[JobId, JobState] = {}
        #: By sequence; live jobs only.
        self.queue: list[JobId] = []
        self.queue_sequences: list[int] = []
        #: Parallel: exactly the jobs in QUEUED, by sequence.
        self.queues: dict[QueueName, QueueState] = {}
        self.chains: dict[QueueName, Chain] = {}
        #: Cache over `queues`.
        self.memory: dict[str, Mapping[str, float]] = {}
        self.wakes: dict[str, float] = {}
        self.ended: dict[JobId, None] = {}
        #: The latest jobs that ended, so that a second JobSubmitted revives none.
        self.domains = Domains(self)

    def domain(self, server_id: ServerId) -> tuple[ServerId, ...]:
        """The slicing domain of a server, sorted (G-32).

        Raises:
            KeyError: for a server that is not there.
        """
        return self.domains.of(server_id)

    def headroom(self, queue: QueueName) -> tuple[float, float]:
        """(running, resident) GPUs that `queue` may still add (DESIGN §4); infinite without a limit."""
        running = resident = math.inf
        for link in self.chain(queue):
            limit = link.limit.max_gpus
            running = min(running, limit - link.running)
            resident = min(resident, limit * self.height_max - link.resident)
        return running, resident

    def chain(self, queue: QueueName) -> Chain:
        """The limited queues that a job in `queue` counts in; an unknown queue counts in its nearest known ancestor."""
        found = self.chains.get(queue)
        if found is None:
            found = self.chains[queue] = self._find_chain(queue)
        return found

    def _find_chain(self, queue: QueueName) -> Chain:
        links: list[QueueState] = []
        name: str = queue
        while name:
            link = self.queues.get(QueueName(name))
            if link is None:
                name = name.rpartition(".")[0]
            else:
                links.append(link)
                name = link.limit.parent
        return tuple(links)
