"""The policy `gandiva`: its mechanisms in order, least disruptive first."""

from __future__ import annotations

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.messages.events import Event, ResidentsSwitched
from gandiva_core.messages.policy import Decisions, Policy, Switches
from gandiva_core.model.cluster import MIGRATION, SLICING
from gandiva_core.model.errors import InputError
from gandiva_core.model.view import ClusterView
from gandiva_core.policies.guarantees import Guarantees
from gandiva_core.policies.migration import EMPTIED, MOVES, Migration
from gandiva_core.policies.reactive import Reactive
from gandiva_core.policies.timeslice import SLICE, TimeSlice

MECHANISMS = (SLICING, MIGRATION)
"""What can be switched; each is on unless switched off (G-0)."""


class Gandiva(msgspec.Struct, frozen=True):
    """Guarantees, reactive placement, moves on request, time-slicing (DESIGN §4, G-20, G-30, G-69).

    Holds settings only; what it knows is in the view.
    """

    guarantees: Guarantees | None
    reactive: Reactive
    timeslice: TimeSlice
    migration: Migration | None
    mechanisms: tuple[str, ...]
    name: str = "gandiva"

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        """Who is served first; then placement, since it disturbs nobody; then who runs."""
        if _is_about_slices(event) and not self._has_moves(view):
            return self.timeslice.decide(event, view)
        return self._in_order(event, view)

    def _has_moves(self, view: ClusterView) -> bool:
        return self.migration is not None and (MOVES in view.memory or EMPTIED in view.memory)

    def _in_order(self, event: Event, view: ClusterView) -> Decisions:
        if self.guarantees is not None:
            yield from self.guarantees.decide(event, view)
        yield from self.reactive.decide(event, view)
        if self.migration is not None:
            yield from self.migration.decide(event, view)
        yield from self.timeslice.decide(event, view)


def _is_about_slices(event: Event) -> bool:
    """The two events of every quantum, which place nobody."""
    if type(event) is ResidentsSwitched:
        return True
    key: str = getattr(event, "key", "")
    return key.startswith(SLICE)


def create(settings: Settings, switches: Switches) -> Policy:
    """The policy with its mechanisms switched.

    Raises:
        InputError: for a mechanism that it does not have.
    """
    for name in switches:
        if name not in MECHANISMS:
            raise InputError("gandiva", f"mechanism '{name}'", "one of " + ", ".join(MECHANISMS))
    mechanisms = tuple(name for name in MECHANISMS if switches.get(name, True))
    can_slice = SLICING in mechanisms
    return Gandiva(
        guarantees=Guarantees(settings.quantum_s) if can_slice else None,
        reactive=Reactive.of(settings, can_slice=can_slice),
        timeslice=TimeSlice(quantum_s=settings.quantum_s),
        migration=Migration(
            height_max=settings.height_max if can_slice else 1,
            pause_s=settings.quantum_s / 4,
            pause_max_s=10.0 * settings.quantum_s,
        )
        if MIGRATION in mechanisms
        else None,
        mechanisms=mechanisms,
    )
