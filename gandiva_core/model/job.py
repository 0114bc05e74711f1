"""A job as the scheduler knows it (C-2): what was asked for, never how long it will run."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gandiva_core.model.units import JobId, QueueName, ServerId


class JobPhase(StrEnum):
    """Where a job is in its life (G-10). The transition table is in ``gandiva_core.engine``."""

    SUBMITTED = "submitted"
    """Known, not yet decided upon; left within the event that brought the job."""
    QUEUED = "queued"
    """Waiting without any server; holds nothing."""
    COMMITTING = "committing"
    """A placement was decided and its containers were ordered; the ledger reserves them."""
    STARTING = "starting"
    """The gang's containers are there; no GPU has been given to it yet."""
    RUNNING = "running"
    SUSPENDING = "suspending"
    """Told to stop, still computing until the mini-batch boundary; holds its devices."""
    SUSPENDED = "suspended"
    """Resident without a device; its state lies in host memory."""
    RESUMING = "resuming"
    """Given devices, not yet computing; also the very first start."""
    MIGRATING = "migrating"
    """Computes where it is until its state is saved, and has been promised devices elsewhere (G-69)."""
    FINISHED = "finished"
    KILLED = "killed"
    FAILED = "failed"


RESIDENT_PHASES = frozenset(
    {
        JobPhase.COMMITTING,
        JobPhase.STARTING,
        JobPhase.RUNNING,
        JobPhase.SUSPENDING,
        JobPhase.SUSPENDED,
        JobPhase.RESUMING,
        JobPhase.MIGRATING,
    }
)
"""Phases that count in a server's M (G-1)."""

DEVICE_PHASES = frozenset(
    {JobPhase.RUNNING, JobPhase.SUSPENDING, JobPhase.RESUMING, JobPhase.MIGRATING}
)
"""Phases in which a job holds, or has been promised, devices."""

TERMINAL_PHASES = frozenset({JobPhase.FINISHED, JobPhase.KILLED, JobPhase.FAILED})


class Worker(msgspec.Struct, frozen=True):
    """One container of a gang: what a single container asks for."""

    gpus: int
    memory_mib: int
    vcores: int


class JobSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job asks for (C-2); frozen for its whole life.

    Attributes:
        job_id: identity in the core; ties end in the order of submission before they end in it.
        name: the submitter's name for it.
        workers: one entry a container, in rank order; one container a GPU, or one a server (DESIGN §7).
        weight: share within its class when residents share a server (G-31).
        priority_class: strict; a higher class is never suspended for a lower one (G-34).
        priority: YARN's priority of the application; orders who is admitted first in its queue, and nothing else.
        model: the model's name where known; only a key for remembered measurements.
        partition: YARN node label; only servers of the same partition can host the job.
        only_on: servers that its asks insist on (relaxLocality=false); empty for any.
        never: what its owner forbids: ``suspend``, ``pack``, ``migrate``, ``resize``.
    """

    job_id: JobId
    workers: tuple[Worker, ...]
    name: str = ""
    queue: QueueName = QueueName("root.default")
    user: str = ""
    weight: float = 1.0
    priority_class: int = 0
    model: str = ""
    partition: str = ""
    priority: int = 0
    only_on: tuple[ServerId, ...] = ()
    never: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang: g in SPEC."""
        return sum(worker.gpus for worker in self.workers)

    @property
    def affinity_class(self) -> int:
        """The next power of two at or above g (C-2): the class a server is reserved for (G-5)."""
        return 1 << (self.gpus - 1).bit_length()
