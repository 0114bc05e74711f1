"""Largest first: of all gangs that wait, the one with most GPUs is placed next, and blocks smaller ones until it fits.

Large gangs never wait behind a stream of small ones. Nothing is over-subscribed; a gang that started runs to its end.
"""

from __future__ import annotations

from gandiva_core.config.settings import Settings
from gandiva_core.messages.decisions import Enqueue, Place, Wait
from gandiva_core.messages.events import Event, JobSubmitted
from gandiva_core.messages.policy import Decisions, Policy, Switches
from gandiva_core.model.errors import InputError
from gandiva_core.model.view import ClusterView, JobView
from gandiva_core.policies.cascade import Choice, Step, choose
from gandiva_core.policies.timeslice import TimeSlice

ON_FREE_GPUS = frozenset({Step.RELAXED})


class LargestFirst:
    """Keeps nothing between events: the queue is in the view."""

    name = "largest-first"
    mechanisms: tuple[str, ...] = ()

    def __init__(self, settings: Settings) -> None:
        # Hands devices to gangs whose containers are there; with nothing over-subscribed it never suspends.
        self._starts = TimeSlice(quantum_s=settings.quantum_s)

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        """One event, as few decisions as possible; the view shows each accepted one at once."""
        if isinstance(event, JobSubmitted):
            need = f"{event.job.gpus} GPUs"
            yield Enqueue(event.job.job_id, Wait("largest-first", need, "its turn by size"))
        yield from self._place_largest(view)
        yield from self._starts.decide(event, view)

    def _place_largest(self, view: ClusterView) -> Decisions:
        blocked: set[tuple[str, str]] = set()
        for job in sorted((view.jobs[job_id] for job_id in view.queue), key=_largest_first):
            line = (job.spec.partition, job.spec.queue)
            if line in blocked:
                continue
            found = choose(view, job.spec, 1, steps=ON_FREE_GPUS)
            is_placed = False
            if isinstance(found, Choice):
                verdict = yield Place(job.spec.job_id, found.servers, "largest-first")
                is_placed = verdict.accepted
            if not is_placed:
                blocked.add(line)


def _largest_first(job: JobView) -> tuple[int, int]:
    return (-job.spec.gpus, job.sequence)


def create(settings: Settings, switches: Switches) -> Policy:
    """What the entry point names."""
    for name in switches:
        raise InputError("largest-first", f"mechanism '{name}'", "no switch: it has none")
    return LargestFirst(settings)
