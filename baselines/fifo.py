"""FIFO, exclusive: gangs start in order of arrival on free GPUs, and the first that does not fit blocks all behind it.

Each queue and partition has its own line. A gang goes to the server with fewest free GPUs that holds it whole, else to
the smallest set of servers; once started it runs to its end.
"""

from __future__ import annotations

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.messages.decisions import Enqueue, Place, Wait
from gandiva_core.messages.events import (
    Event,
    JobSubmitted,
    MinibatchesReached,
    ResidentsSwitched,
)
from gandiva_core.messages.policy import Decisions, Policy, Switches
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import QueueName
from gandiva_core.model.view import ClusterView
from gandiva_core.policies.cascade import Choice, Step, choose
from gandiva_core.policies.timeslice import TimeSlice

EXCLUSIVE = frozenset({Step.RELAXED})
"""The one step of Gandiva's cascade that knows neither affinity nor over-subscription: best fit on free GPUs."""


class Fifo(msgspec.Struct, frozen=True):
    """Strict first in, first out.

    Attributes:
        starts: hands devices to gangs whose containers are there; never slices, since nothing is over-subscribed.
    """

    starts: TimeSlice
    name: str = "fifo"
    mechanisms: tuple[str, ...] = ()

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        """Place heads while they fit; then start whoever has its containers."""
        if isinstance(event, JobSubmitted):
            behind = len(view.queue)
            yield Enqueue(
                event.job.job_id,
                Wait("fifo", f"{event.job.gpus} GPUs", f"{behind} jobs before it"),
            )
        if not isinstance(event, ResidentsSwitched | MinibatchesReached):
            yield from self._place_heads(view)
        yield from self.starts.decide(event, view)

    def _place_heads(self, view: ClusterView) -> Decisions:
        blocked: set[tuple[QueueName, str]] = set()
        for job_id in tuple(view.queue):
            job = view.jobs[job_id]
            line = (job.spec.queue, job.spec.partition)
            if line in blocked or job.phase is not JobPhase.QUEUED:
                continue
            found = choose(view, job.spec, 1, steps=EXCLUSIVE)
            is_placed = False
            if isinstance(found, Choice):
                verdict = yield Place(job_id, found.servers, "fifo")
                is_placed = verdict.accepted
            if not is_placed:
                blocked.add(line)


def create(settings: Settings, switches: Switches) -> Policy:
    """The policy; it has no switches.

    Raises:
        InputError: for any switch.
    """
    for name in switches:
        raise InputError("fifo", f"mechanism '{name}'", "no switch: fifo has none")
    return Fifo(TimeSlice(quantum_s=settings.quantum_s))
