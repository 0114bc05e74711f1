"""What the driver talks to: who owns containers (the substrate), who runs jobs (the world).

One driver serves the simulator, the replay in a real ResourceManager and the stock arms; only what
is plugged in here differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from gandiva_core.messages.effects import ContainerEffect, WorldEffect
from gandiva_core.messages.events import Event
from gandiva_core.model.cluster import Cluster
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import JobId


class WorldStep(msgspec.Struct, frozen=True):
    """What the world does at one instant.

    Attributes:
        events: reports for the scheduler (switches, milestones, timers, faults), in order.
        completed: jobs whose last mini-batch was done; the substrate ends them.
        arrivals: jobs to submit, in order.
    """

    events: tuple[Event, ...] = ()
    completed: tuple[JobId, ...] = ()
    arrivals: tuple[JobSpec, ...] = ()


class World(Protocol):
    """Agents and running jobs: answers `SwitchResidents` and `StartTimer`, brings arrivals and completions.

    At equal times a step has completions first, then events, then arrivals; the driver keeps that order.
    """

    def next_at_s(self) -> float | None:
        """When something happens next; None when nothing ever will without a new effect."""

    def advance(self, now_s: float) -> WorldStep:
        """Everything due at `now_s`; never goes back in time."""

    def apply(self, now_s: float, effects: Sequence[WorldEffect]) -> None:
        """Take orders; their answers come from a later `advance`, which may be at the same time."""


class Substrate(Protocol):
    """Who owns containers: a plain one, a model of the stock scheduler, or a real ResourceManager.

    Every call returns the events that it led to, in order. Time only moves forward.
    """

    def begin(self, now_s: float) -> Sequence[Event]:
        """Servers and queues."""

    def submit(self, now_s: float, jobs: Sequence[JobSpec]) -> Sequence[Event]:
        """Submit jobs; leads to `JobSubmitted`, on stock arms also to `GangCommitted`.

        A job that is refused leads to `JobSubmitted` and `JobFailed` with the reason.
        """

    def finish(self, now_s: float, job_ids: Sequence[JobId]) -> Sequence[Event]:
        """Jobs are done and leave; leads to `JobFinished`, on stock arms to others' `GangCommitted`."""

    def apply(self, now_s: float, effects: Sequence[ContainerEffect]) -> Sequence[Event]:
        """Commit and release gangs."""

    def next_at_s(self) -> float | None:
        """When the substrate itself acts next (a preemption round, a waiting heartbeat), or None."""

    def advance(self, now_s: float) -> Sequence[Event]:
        """Whatever is due by itself at `now_s`."""

    def close(self) -> None:
        """End it; safe to call twice."""


class Arm(msgspec.Struct, frozen=True):
    """One side of a comparison: a name and its switches, as in ``gandiva:-slicing`` (DESIGN §10).

    Attributes:
        name: the whole text, as written.
        base: the part before the first colon.
        switches: mechanism to on or off.
        is_stock: whether the substrate schedules by itself (a baseline of DESIGN §7), or a policy decides.
    """

    name: str
    base: str
    switches: Mapping[str, bool]
    is_stock: bool


class RunSetup(msgspec.Struct, frozen=True):
    """What an engine needs to open a substrate for one run.

    Attributes:
        conf_dir: a site's own configuration directory; None takes the built-in one.
        work_dir: where the run may leave logs.
        height_max: H_max (G-21); 1 on stock arms.
    """

    arm: Arm
    cluster: Cluster
    seed: int
    height_max: int
    work_dir: str
    conf_dir: str | None = None


class OpenedSubstrate(msgspec.Struct, frozen=True):
    """A substrate ready to begin, and what it is.

    Attributes:
        scheduler_class: the class that hands out containers; for Hadoop's own its full Java name.
        versions: component to version, for the report.
    """

    substrate: Substrate
    scheduler_class: str
    versions: Mapping[str, str]


SubstrateFactory = Callable[[RunSetup], OpenedSubstrate]
"""What entry points of `gandiva.engines` and `gandiva.baselines` (stock arms of ``sim``) name.

Raises InputError where the engine cannot run that arm.
"""
