"""Chores on a real clock, in their own thread: ask for rotation, delete old segments. Never the quantum (DESIGN §8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from apscheduler.schedulers.background import BackgroundScheduler

from gandiva_core.runtime.lossy import LossyJournal
from gandiva_core.runtime.segments import Retention, SegmentedJournal, prune

ROTATE_EVERY_S = 3600.0
PRUNE_EVERY_S = 600.0


class Chore(msgspec.Struct, frozen=True):
    """Something to do now and then; `act` must be safe beside the scheduling thread."""

    name: str
    every_s: float
    act: Callable[[], object]


def journal_chores(
    journal: SegmentedJournal | LossyJournal,
    folder: Path,
    retention: Retention,
    *,
    rotate_every_s: float = ROTATE_EVERY_S,
    prune_every_s: float = PRUNE_EVERY_S,
) -> tuple[Chore, ...]:
    """Rotation and pruning of a live journal; the writing thread rotates, between two events."""
    return (
        Chore("rotate journal", rotate_every_s, journal.ask_rotation),
        Chore("prune journal", prune_every_s, lambda: prune(folder, retention)),
    )


class Housekeeping:
    """Runs chores until it is stopped; use as a context manager.

    A chore that is late runs once, not once for each time it missed, never beside itself, and however late it is.
    """

    def __init__(self, chores: Sequence[Chore]) -> None:
        defaults = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        self._scheduler: Any = BackgroundScheduler(job_defaults=defaults, timezone="UTC")
        for chore in chores:
            self._scheduler.add_job(
                chore.act, "interval", seconds=chore.every_s, id=chore.name, name=chore.name
            )

    def __enter__(self) -> Housekeeping:
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.shutdown(wait=True)
