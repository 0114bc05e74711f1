"""What can be made to go wrong in a simulated world, on purpose and repeatably."""

from __future__ import annotations

import random
from collections.abc import Mapping

import msgspec

from gandiva_core.messages.events import GangBroken, ServerJoined, ServerLost
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import JobId

Fault = ServerLost | ServerJoined | GangBroken
"""A fault is the very event that reports it; its `at_s` says when it strikes."""


class WorldOptions(msgspec.Struct, frozen=True):
    """How a world differs from the plain one; every default is "not at all".

    Attributes:
        start_cost_s: from devices given to the first mini-batch of a job's first run, and of a restart.
        warm_s: until a new process could take a migrating job over; it computes on meanwhile (G-76).
        suspend_resume_s: what one suspend and the resume after it take together, where that was measured; None: what
            G-44 says for each job.
        faults: servers lost and back, gangs broken, each at its `at_s`.
        late_suspend_s: by job, how much longer than it should it computes on after each suspend order.
        late_ratio: share of suspend orders, drawn with the world's seed, that are obeyed `late_s` too late (G-12).
        late_s: how late those are.
        milestone_minibatches: the early-feedback mark that a job's client reports once (C-4).
    """

    start_cost_s: float = 0.0
    warm_s: float = 0.0
    suspend_resume_s: float | None = None
    faults: tuple[Fault, ...] = ()
    late_suspend_s: Mapping[JobId, float] = {}
    late_ratio: float = 0.0
    late_s: float = 0.0
    milestone_minibatches: int = 100


class Lateness:
    """How late each suspend order is obeyed; a plain world draws nothing."""

    def __init__(self, options: WorldOptions, seed: int) -> None:
        if not 0.0 <= options.late_ratio <= 1.0:
            raise InputError("late_ratio", repr(options.late_ratio), "a share from 0 to 1")
        self._options = options
        self._draw = random.Random(seed)

    def of(self, job_id: JobId) -> float:
        """Seconds that `job_id` computes on before it looks at the order."""
        late_s = self._options.late_suspend_s.get(job_id, 0.0)
        if self._options.late_ratio and self._draw.random() < self._options.late_ratio:
            late_s += self._options.late_s
        return late_s
