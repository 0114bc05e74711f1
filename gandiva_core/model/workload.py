"""A job together with what only the world knows of it: when it comes, how much it has to do, how it behaves."""

from __future__ import annotations

import msgspec

from gandiva_core.model.job import JobSpec
from gandiva_core.model.profile import ModelProfile


class PlannedJob(msgspec.Struct, frozen=True):
    """One job of a replayed trace (C-2, C-3). The scheduler is shown `spec` only.

    Attributes:
        arrival_s: virtual time of submission.
        minibatches: work to do, in mini-batches of the whole gang.
        profile: how its model behaves.
        start_s: from devices given for the first time to computing: its framework comes up, and holds them meanwhile.
        checkpoint_every_s: running time between its own checkpoints; what a restart falls back to (G-13).
    """

    arrival_s: float
    spec: JobSpec
    minibatches: float
    profile: ModelProfile
    checkpoint_every_s: float = 1800.0
    start_s: float = 0.0
