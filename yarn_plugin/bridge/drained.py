"""Gangs whose master let all workers go and neither ends nor asks again. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gandiva_core.messages.events import Event, JobFinished
from gandiva_core.model.units import JobId
from yarn_plugin.bridge.gangs import Application
from yarn_plugin.bridge.register import Register

DRAIN_S = 3.0
"""How long such a gang keeps its place.

YARN calls containers of a lost node released too, and may tell of the node only afterwards; a master that restarts its
workers asks for new ones within a few of its heartbeats.
"""


@dataclass(slots=True)
class Drained:
    """When they count as finished: their GPUs are free, whatever else the application does."""

    _until: dict[JobId, tuple[str, float]] = field(default_factory=dict)

    def note(self, app_id: str, app: Application, job_id: JobId | None, at_s: float) -> None:
        """A container of this job ended."""
        gang = None if job_id is None else app.gangs.get(job_id)
        if gang is not None and gang.is_drained:
            self._until[gang.job_id] = app_id, at_s + DRAIN_S

    def next_at_s(self) -> float | None:
        """When the first of them is over; None for never."""
        return next((at_s for _, at_s in self._until.values()), None)

    def due(self, register: Register, now_s: float) -> Iterator[Event]:
        """Those that are over by now, and have not been asked for again."""
        while (at_s := self.next_at_s()) is not None and at_s <= now_s:
            job_id = next(iter(self._until))
            app_id, _ = self._until.pop(job_id)
            app = register.apps.get(app_id)
            gang = None if app is None else app.gangs.get(job_id)
            if app is not None and gang is not None and gang.is_drained:
                register.remove(app, gang)
                yield JobFinished(now_s, job_id)
