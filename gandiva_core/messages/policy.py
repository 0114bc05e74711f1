"""The contract between the engine and a policy, and between whatever drives and whatever schedules."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Protocol

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.messages.decisions import Decision, Verdict
from gandiva_core.messages.effects import Effect
from gandiva_core.messages.events import Event
from gandiva_core.model.view import ClusterView

Decisions = Generator[Decision, Verdict, None]
"""Yields one decision at a time, is sent the verdict, and sees accepted ones in the live view."""


class Policy(Protocol):
    """Decides; never acts, never keeps state between events, never reads a clock (DESIGN §3).

    Promises of the engine: `decide` is called once an event, after the engine has booked the fact
    itself; calls never overlap; the view changes only by accepted decisions while the generator
    runs; an exception undoes the whole event.
    Promises of the policy: the same event and view give the same decisions; a submitted job is
    either placed or enqueued with a reason; ties end in `JobView.sequence` or an id.
    """

    @property
    def name(self) -> str:
        """The arm's name without switches, as in ``gandiva``."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Mechanisms that are on, for reports."""

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        """Answer one event."""


Switches = Mapping[str, bool]
"""Mechanism to on or off, from an arm's ``:-slicing``; a factory refuses unknown ones (InputError)."""

PolicyFactory = Callable[[Settings, Switches], Policy]
"""What an entry point of group ``gandiva.policies`` names."""


class Refusal(msgspec.Struct, frozen=True):
    """A decision that was not applied, and why."""

    decision: Decision
    reason: str


class Outcome(msgspec.Struct, frozen=True):
    """What one event led to."""

    number: int
    decisions: tuple[Decision, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    effects: tuple[Effect, ...] = ()


class Scheduler(Protocol):
    """The one door: an event in, an outcome out. The engine is one; the observer of a stock arm is another."""

    def handle(self, event: Event) -> Outcome:
        """Book a fact and answer it."""
