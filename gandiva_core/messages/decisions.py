"""A policy's wishes, in the imperative. The engine checks each and applies it whole, or refuses it with a reason."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId


class _Decision(msgspec.Struct, frozen=True, tag=True, tag_field="kind", omit_defaults=True):
    pass


class Place(_Decision, frozen=True, tag=True):
    """Make a queued or just submitted job resident (G-21).

    Attributes:
        servers: one server a worker, in rank order.
        step: which step of the cascade chose it (``same-affinity``, ``pristine``, ``relaxed``,
            ``over-subscribe``, ``starving``); another policy uses its own word.
    """

    job_id: JobId
    servers: tuple[ServerId, ...]
    step: str


class Wait(msgspec.Struct, frozen=True, array_like=True):
    """Why a job waits, with numbers: a code, what it needs, what is there."""

    code: str
    need: str
    have: str


class Enqueue(_Decision, frozen=True, tag=True):
    """Leave a job in the queue, saying why; for a job that waits already it renews the reason."""

    job_id: JobId
    reason: Wait


class Run(msgspec.Struct, frozen=True, array_like=True):
    """A job and the devices it shall run on; counts by server equal the job's shares."""

    job_id: JobId
    bindings: tuple[Binding, ...]


class Switch(_Decision, frozen=True, tag=True):
    """Change who runs in one slicing domain: some stop, some start (G-32).

    A started job's devices may be held by jobs in `suspend` of the same decision, or by jobs that
    are SUSPENDING already; it starts once all are free.

    Attributes:
        suspend: running jobs to stop at their mini-batch boundary.
        run: jobs in STARTING or SUSPENDED to start, with devices.
        prepare: devices foreseen at the next boundary for jobs that will change device (G-35); advice to the agent.
    """

    suspend: tuple[JobId, ...] = ()
    run: tuple[Run, ...] = ()
    prepare: tuple[Run, ...] = ()


class Migrate(_Decision, frozen=True, tag=True):
    """Let a running gang go on elsewhere, each worker in a new container (G-69); it computes meanwhile.

    Until the move has ended the gang counts on both sides: memory, vcores, M and devices.

    Attributes:
        servers: one a worker, in rank order; not all as they are now.
        bindings: devices there; who holds one is SUSPENDING, or in `suspend`.
        purpose: why, for people and for the journal (``asked``, ``drain``).
        suspend: running jobs to stop for it.
    """

    job_id: JobId
    servers: tuple[ServerId, ...]
    bindings: tuple[Binding, ...]
    purpose: str
    suspend: tuple[JobId, ...] = ()


class Remember(_Decision, frozen=True, tag=True):
    """Keep numbers under a key until replaced; an empty map forgets. Shown in `ClusterView.memory`."""

    key: str
    values: Mapping[str, float]


class WakeAt(_Decision, frozen=True, tag=True):
    """Send `TimerFired(key)` at a time not before now; replaces an earlier one of the same key."""

    key: str
    at_s: float


Decision = Place | Enqueue | Switch | Migrate | Remember | WakeAt


class Verdict(msgspec.Struct, frozen=True):
    """What the engine did with a decision."""

    accepted: bool
    reason: str = ""


ACCEPTED = Verdict(accepted=True)
