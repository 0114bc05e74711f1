"""What a policy may see: read-only protocols over the engine's live state.

A view is live: after a decision was accepted, the very same objects already show it. Nobody but the engine changes it;
mypy refuses an assignment through these protocols. Mappings iterate in a fixed order: servers by id, jobs by sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from gandiva_core.model.cluster import QueueLimit, Server
from gandiva_core.model.job import JobPhase, JobSpec
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, QueueKey, QueueName, ServerId

Memory = Mapping[str, float]
"""What a policy remembered under one key: a flat map of numbers."""


class WaitReason(Protocol):
    """Why a job waits: a code for machines, need and have for people (USERS B7)."""

    @property
    def code(self) -> str:
        """For machines, as in ``no-free-gpus``."""

    @property
    def need(self) -> str:
        """What the job needs, for people."""

    @property
    def have(self) -> str:
        """What there is."""


class JobView(Protocol):
    """One job."""

    @property
    def spec(self) -> JobSpec:
        """What was asked for."""

    @property
    def sequence(self) -> int:
        """Order of submission, from 0; the first tie-break everywhere."""

    @property
    def phase(self) -> JobPhase:
        """Where it is in its life."""

    @property
    def submitted_at_s(self) -> float:
        """When its asks were complete."""

    @property
    def queued_since_s(self) -> float:
        """When it last entered the queue; meaningful while QUEUED."""

    @property
    def servers(self) -> tuple[ServerId, ...]:
        """Server of each worker, in rank order; empty while queued."""

    @property
    def shares(self) -> Mapping[ServerId, int]:
        """GPUs counted on each server (G-1); empty while queued."""

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """Devices held or promised; of a suspended job the last ones; empty before the first run."""

    @property
    def run_since_s(self) -> float | None:
        """Real start of the current run, or None; SUSPENDING still runs, RESUMING does not yet."""

    @property
    def last_stopped_at_s(self) -> float | None:
        """When it last really stopped; None if it never ran."""

    @property
    def held_s(self) -> float:
        """Wall time of all finished runs; add now - run_since_s for the current one."""

    @property
    def has_run(self) -> bool:
        """Whether it ever held a device."""

    @property
    def is_held(self) -> bool:
        """Whether its owner suspended it: it may not run until released."""

    @property
    def is_sliced(self) -> bool:
        """Whether it may be suspended for others: its queue and its owner allow it, and it can be."""


class ServerView(Protocol):
    """One server."""

    @property
    def server(self) -> Server:
        """The machine itself."""

    @property
    def residents(self) -> Mapping[JobId, int]:
        """Resident jobs with their GPUs here, COMMITTING ones and those MIGRATING to here included (G-1)."""

    @property
    def allocated(self) -> int:
        """M (G-1)."""

    @property
    def unsliced(self) -> int:
        """GPUs of residents that may not be suspended: nobody shares as many devices here."""

    @property
    def affinity(self) -> int:
        """G-5; 0 for none."""

    @property
    def memory_free_mib(self) -> int:
        """Memory not asked for by any resident."""

    @property
    def vcores_free(self) -> int:
        """Vcores not asked for by any resident."""

    @property
    def holders(self) -> Sequence[JobId | None]:
        """For each device the job in RUNNING, SUSPENDING or MIGRATING on it.

        Behind the server's own devices come those that it has no more, as long as a job uses one; nobody gets them.
        """

    @property
    def claims(self) -> Sequence[JobId | None]:
        """For each device the job in RESUMING, or MIGRATING to here, that it was promised to.

        It may wait for the holder to stop.
        """


class QueueView(Protocol):
    """A queue's limit and use in one partition, in GPUs; parents include their children."""

    @property
    def limit(self) -> QueueLimit:
        """What was configured."""

    @property
    def running(self) -> int:
        """Devices held or promised."""

    @property
    def resident(self) -> int:
        """GPUs of all residents."""

    @property
    def unsliced(self) -> int:
        """Of that, GPUs of residents that may not be suspended."""

    @property
    def demand(self) -> int:
        """GPUs of all live jobs, waiting ones included."""

    def used_gpu_s(self, now_s: float) -> float:
        """GPU seconds run by `now_s`, since the queue was first configured."""


class ClusterView(Protocol):
    """Everything a policy may see, at one instant."""

    @property
    def now_s(self) -> float:
        """The time of the event being answered."""

    @property
    def servers(self) -> Mapping[ServerId, ServerView]:
        """All servers, by id."""

    @property
    def kinds(self) -> Sequence[Sequence[ServerView]]:
        """All servers, those together that differ in nothing but id, rack, topology and who exactly is on them.

        Equal within a kind are partition, can_suspend, is_draining, sizes, M, `unsliced`, affinity, free memory and
        vcores, the number of residents, and how many devices nobody holds or claims. Members are ordered by id, kinds
        by their first member.
        A large cluster has few, so a rule that looks at kinds costs no pass over all servers.
        """

    @property
    def jobs(self) -> Mapping[JobId, JobView]:
        """Live jobs only; a terminal job has left."""

    @property
    def queue(self) -> Sequence[JobId]:
        """Jobs that are QUEUED, by sequence: a job put back keeps its old place."""

    @property
    def queues(self) -> Mapping[QueueKey, QueueView]:
        """All queues with limits, by name and partition."""

    @property
    def memory(self) -> Mapping[str, Memory]:
        """What the policy remembered, by key."""

    @property
    def wakes(self) -> Mapping[str, float]:
        """Pending timers: key to due time."""

    def domain(self, server_id: ServerId) -> tuple[ServerId, ...]:
        """The slicing domain of a server: servers joined by residents that span them, sorted (G-32)."""

    def can_suspend(self, job_id: JobId) -> bool:
        """Whether a job may be told to stop once it runs.

        Each of its servers can suspend and still has as many devices as it needs, and its queue lets slicing at it.

        Raises:
            KeyError: for a job that is not there.
        """

    def why_kept(self, job_id: JobId) -> str | None:
        """Why a job may not be told to stop, for people; None where it may.

        Raises:
            KeyError: for a job that is not there.
        """

    def why_fixed(self, job_id: JobId) -> str | None:
        """Why a job may not be moved while it runs, for people; None where nothing known is in its way.

        Raises:
            KeyError: for a job that is not there.
        """

    def chain(self, queue: QueueName, partition: str) -> Sequence[QueueView]:
        """The limited queues that a job counts in, nearest first: of its own partition, and no other.

        An unknown queue counts in its nearest known ancestor. Limits of which none names a partition are one account
        over all of them.
        """

    def headroom(self, queue: QueueName, partition: str) -> tuple[float, float]:
        """(running, resident) GPUs that `queue` may still add there; infinite without a limit.

        Its parents' limits are included.
        """
