"""Tells each application why its first waiting job waits, in the diagnostics of `yarn application -status`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gandiva_core.messages.decisions import Enqueue, Wait
from gandiva_core.messages.events import Event, GangCommitted, JobAdopted, JobSubmitted
from gandiva_core.messages.policy import Outcome
from gandiva_core.model.units import JobId
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase
from yarn_plugin.bridge.register import Register
from yarn_plugin.live.reasons import one_line, sentence

INTERVAL_S = 1.0
"""An application is told no more often."""

ORDERS_MAX = 500
"""In one call; the rest goes with the next."""

_NOTHING = ("", -math.inf)
_UNKNOWN = (None, -math.inf)


class Explanations:
    """Follows decisions and says what is new.

    Args:
        register: of the translator; jobs are called by their application's id.
    """

    def __init__(self, register: Register) -> None:
        self._register = register
        self._reasons: dict[JobId, Wait] = {}
        self._stale: dict[str, None] = {}
        self._told: dict[str, tuple[str | None, float]] = {}

    def note_batch(self, events: Iterable[wire.RmEvent]) -> None:
        """Asks changed, perhaps."""
        for event in events:
            if isinstance(event, wire.Asks | wire.AsksUnchanged | wire.AppRemoved | wire.AppMoved):
                self._stale[event.app] = None
            elif isinstance(event, wire.Settings):
                self._stale.update(dict.fromkeys(self._register.apps))
            elif isinstance(event, wire.Resync):  # what was told before, by whomever, is not known
                self._told = dict.fromkeys(self._register.apps, _UNKNOWN)
                self._stale.update(dict.fromkeys(self._register.apps))

    def note(self, event: Event, outcome: Outcome) -> None:
        """An event was handled: jobs were placed or left, or have other reasons to wait."""
        job_id = (
            event.job.job_id
            if isinstance(event, JobSubmitted | JobAdopted)
            else getattr(event, "job_id", None)
        )
        if job_id is not None:
            self._stale[_app_of(job_id)] = None
            is_placed = isinstance(event, GangCommitted | JobAdopted)
            if is_placed or job_id not in self._register.app_of:
                self._reasons.pop(job_id, None)
        for decision in outcome.decisions:
            if isinstance(decision, Enqueue):
                self._reasons[decision.job_id] = decision.reason
                self._stale[_app_of(decision.job_id)] = None

    def next_at_s(self) -> float | None:
        """When the next application may be told something."""
        times = (self._told.get(app_id, _NOTHING)[1] + INTERVAL_S for app_id in self._stale)
        return min(times, default=None)

    def due(self, now_s: float) -> list[wire.ExplainOrder]:
        """What is new, for applications that were not told within the last second."""
        orders: list[wire.ExplainOrder] = []
        for app_id in list(self._stale):
            if len(orders) == ORDERS_MAX:
                break
            before, at_s = self._told.get(app_id, _NOTHING)
            app = self._register.apps.get(app_id)
            text = "" if app is None else self._text(app)
            if app is None or text == before:
                del self._stale[app_id]
            elif now_s >= at_s + INTERVAL_S:
                del self._stale[app_id]
                self._told[app_id] = (text, now_s)
                orders.append(wire.ExplainOrder(f"explain/{app_id}", app_id, text))
            if app is None:
                self._told.pop(app_id, None)
        return orders

    def _text(self, app: Application) -> str:
        if not app.is_placed_by_us:
            return ""
        waiting = [gang for gang in app.gangs.values() if gang.phase is not GangPhase.HELD]
        first = next((gang for gang in waiting if gang.job_id in self._reasons), None)
        if first is None:
            return one_line(app.hindrance())
        text = self._sentence(first)
        return text if len(waiting) == 1 else one_line(f"{text}; {len(waiting) - 1} more wait")

    def _sentence(self, gang: Gang) -> str:
        return sentence(gang, self._reasons[gang.job_id], gang.site.label)


def _app_of(job_id: JobId) -> str:
    return job_id.partition("#")[0]
