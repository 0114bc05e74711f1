"""What a simulated switch promised, told when it is due: promises that came true."""

from __future__ import annotations

import msgspec

from gandiva_core.messages.events import ResidentsSwitched
from gandiva_core.model.units import JobId
from gandiva_core.sim.progress import JobRun


class Report(msgspec.Struct):
    """A `ResidentsSwitched` on its way: (job, time, the life it was promised in)."""

    switch_id: int
    stopped: list[tuple[JobRun, float, int]]
    started: list[tuple[JobRun, float, int]]

    def event(self, at_s: float) -> ResidentsSwitched:
        """It is due: jobs that ended or crashed in between are left out."""
        return ResidentsSwitched(at_s, self.switch_id, _kept(self.stopped), _kept(self.started))


def _kept(promised: list[tuple[JobRun, float, int]]) -> tuple[tuple[JobId, float], ...]:
    return tuple(
        (run.job.spec.job_id, at_s)
        for run, at_s, life in promised
        if not run.ended and run.life == life
    )
