"""The loop between world, substrate and scheduler, the same for the simulator, the real RM and the stock arms.

At one instant: completions leave, then reports of the world, then arrivals, then what the substrate does by
itself. Each event goes to the scheduler and, with its outcome, into the journal; its effects go out at once,
and the events they bring come back at the same instant, first in first out. The run ends when neither side has
anything left to happen.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import msgspec

from gandiva_core.messages.effects import (
    FOR_CONTAINERS,
    FOR_WORLD,
    ContainerEffect,
    Effect,
    WorldEffect,
)
from gandiva_core.messages.events import Event, GangRefused, TimerFired
from gandiva_core.messages.policy import Scheduler
from gandiva_core.model.errors import InvariantError
from gandiva_core.runtime.journal import (
    Ending,
    Entry,
    JournalFile,
    JournalSink,
    Unfinished,
    entry_of,
)
from gandiva_core.runtime.outstanding import Outstanding
from gandiva_core.runtime.ports import Substrate, World

EVENTS_PER_INSTANT_MAX = 500_000
"""More at one virtual time is a policy and a substrate that answer each other for ever."""

TIMERS_ALONE_MAX = 50_000
"""So many timers in a row, and gangs refused again at each, are a scheduler that waits for nothing.

Refused once a minute, as a queue's or user's limit may do for ever, that is more than two weeks.
"""

_PROGRESS_EVERY = 512


class Progress(msgspec.Struct, frozen=True):
    """How far a run is, in jobs and virtual time."""

    jobs_done: int
    jobs_total: int
    now_s: float


class DriverReport(msgspec.Struct, frozen=True):
    """How a run ended.

    Attributes:
        events: how many the scheduler handled.
        unfinished: jobs that never ended; a deadlock or starvation where the run is complete.
        journal: None where none was asked for.
    """

    ended_at_s: float
    events: int
    jobs_done: int
    unfinished: tuple[Unfinished, ...]
    journal: JournalFile | None


class Driver:
    """One run of one arm.

    Args:
        world, substrate, scheduler: see `gandiva_core.runtime.ports` and `Scheduler`.
        journal: where entries go; the driver closes it, and the substrate, whatever happens.
        observers: called with every entry, after the journal.
        trailer: figures for the journal's trailer, asked for once at the end.
        progress: called now and then, and at the end.
        jobs_total: for progress only.
    """

    def __init__(
        self,
        world: World,
        substrate: Substrate,
        scheduler: Scheduler,
        *,
        journal: JournalSink | None = None,
        observers: Sequence[Callable[[Entry], None]] = (),
        trailer: Callable[[], Mapping[str, Any]] | None = None,
        progress: Callable[[Progress], None] | None = None,
        jobs_total: int = 0,
    ) -> None:
        self._world = world
        self._substrate = substrate
        self._scheduler = scheduler
        self._journal = journal
        self._observers = tuple(observers)
        self._trailer = trailer
        self._progress = progress
        self._jobs_total = jobs_total
        self._outstanding = Outstanding()
        self._inbox: deque[Event] = deque()
        self._now_s = 0.0
        self._events = 0
        self._events_now = 0
        self._timers_alone = 0
        self._is_interrupted = False

    def run(self) -> DriverReport:
        """Drive to the end.

        Raises:
            KeyboardInterrupt: on Ctrl-C, between two events, after the journal was closed with ``complete: false``.
            GandivaError: from the scheduler or a port; the journal is closed likewise.
        """
        is_complete = False
        try:
            with self._interrupt_deferred():
                self._loop()
            is_complete = True
        finally:
            try:
                file = self._close(is_complete)
            finally:
                self._substrate.close()
            self._report_progress()
        return DriverReport(
            self._now_s,
            self._events,
            self._outstanding.ended,
            self._outstanding.unfinished(),
            file,
        )

    # ------------------------------------------------------------------ time

    def _loop(self) -> None:
        self._take(self._substrate.begin(self._now_s))
        while self._timers_alone <= TIMERS_ALONE_MAX:
            now_s = self._next_at_s()
            if now_s is None:
                return
            if now_s < self._now_s:
                raise InvariantError(f"time went back from {self._now_s} s to {now_s} s")
            if now_s > self._now_s:
                self._now_s = now_s
                self._events_now = 0
            self._pass_instant(now_s)

    def _next_at_s(self) -> float | None:
        world_s, substrate_s = self._world.next_at_s(), self._substrate.next_at_s()
        if world_s is None:
            return substrate_s
        return world_s if substrate_s is None else min(world_s, substrate_s)

    def _pass_instant(self, now_s: float) -> None:
        due_s = self._world.next_at_s()
        if due_s is not None and due_s <= now_s:
            step = self._world.advance(now_s)
            # A world that is always due and never does anything is caught too.
            self._events_now += 1
            if step.completed:
                self._take(self._substrate.finish(now_s, step.completed))
            if step.events:
                self._take(step.events)
            if step.arrivals:
                self._outstanding.arrive(step.arrivals, now_s)
                self._take(self._substrate.submit(now_s, step.arrivals))
        due_s = self._substrate.next_at_s()
        if due_s is not None and due_s <= now_s:
            self._events_now += 1
            self._take(self._substrate.advance(now_s))
        if self._events_now > EVENTS_PER_INSTANT_MAX:
            self._give_up()

    # ------------------------------------------------------------------ events

    def _take(self, events: Sequence[Event]) -> None:
        """Handle events and all that they bring back at this instant."""
        inbox = self._inbox
        inbox.extend(events)
        while inbox:
            event = inbox.popleft()
            self._handle(event)
            if self._is_interrupted:
                raise KeyboardInterrupt
            if self._events_now > EVENTS_PER_INSTANT_MAX:
                self._give_up()

    def _handle(self, event: Event) -> None:
        outcome = self._scheduler.handle(event)
        self._events += 1
        self._events_now += 1
        is_waiting = type(event) is TimerFired or type(event) is GangRefused
        self._timers_alone = self._timers_alone + 1 if is_waiting else 0
        entry = entry_of(event, outcome)
        if self._journal is not None:
            self._journal.write(entry)
        for observe in self._observers:
            observe(entry)
        self._outstanding.observe(entry)
        if outcome.effects:
            self._send(outcome.effects)
        if self._events % _PROGRESS_EVERY == 0:
            self._report_progress()

    def _send(self, effects: Sequence[Effect]) -> None:
        """Route effects; some concern containers and the processes inside them alike."""
        for_world: list[WorldEffect] = []
        for_substrate: list[ContainerEffect] = []
        for effect in effects:
            kind = type(effect)
            if kind in FOR_CONTAINERS:
                for_substrate.append(effect)  # type: ignore[arg-type]  # by its exact type
            if kind in FOR_WORLD:
                for_world.append(effect)  # type: ignore[arg-type]  # by its exact type
        if for_world:
            self._world.apply(self._now_s, for_world)
        if for_substrate:
            self._inbox.extend(self._substrate.apply(self._now_s, for_substrate))

    def _give_up(self) -> None:
        raise InvariantError(
            f"more than {EVENTS_PER_INSTANT_MAX} events at {self._now_s} s: scheduler and substrate "
            "answer each other for ever"
        )

    # ------------------------------------------------------------------ the end

    def _close(self, is_complete: bool) -> JournalFile | None:
        if self._journal is None:
            return None
        metrics = self._trailer() if self._trailer is not None else {}
        ending = Ending(is_complete, self._now_s, self._outstanding.unfinished(), metrics)
        return self._journal.close(ending)

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress(Progress(self._outstanding.ended, self._jobs_total, self._now_s))

    @contextmanager
    def _interrupt_deferred(self) -> Iterator[None]:
        """Ctrl-C takes effect between two events, so that journal and state stay whole.

        Only where Python's own handler is in place and this is the main thread; another handler keeps its say.
        """
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._note_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._is_interrupted:
            signal.default_int_handler(number, frame)
        self._is_interrupted = True
