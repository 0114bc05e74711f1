"""PyTorch: a checkpoint every so many mini-batches, and the last one found again by a worker that was restarted (B03).

All ranks write at the same step, each its own part; a step counts once every rank's part of it is whole. Nothing here
ends a job: where no checkpoint can be written or read, that is said, and the training goes on.
"""

import os
import time
from typing import Optional, Protocol

from nodemanager_agent.client.child import say
from nodemanager_agent.client.framework import Limits, Refusal
from nodemanager_agent.client.interval import Interval
from nodemanager_agent.client.kept import Kept
from nodemanager_agent.client.rank import Rank
from nodemanager_agent.client.replica import Loaded, Replica
from nodemanager_agent.client.torch_replica import obstacle

FOLDER = "GANDIVA_CHECKPOINT_DIR"
EVERY = "GANDIVA_CHECKPOINT_EVERY"
"""Environment: this job's folder, which all of its nodes see, and mini-batches from one checkpoint to the next."""

KEPT = 2
"""Generations that stay: one to fall back to."""


class Ranked(Protocol):
    """What is asked of the framework: one of the gang's ranks."""

    def meet(self) -> None:
        """Find the gang."""

    def is_same(self, number: int) -> bool:
        """Whether all ranks have the same number."""

    def limits(self) -> Limits:
        """What can be done with this process."""


class Periodic:
    """The checkpoints of one rank."""

    def __init__(self, framework: Ranked, rank: Rank, kept: Kept, replica: Replica) -> None:
        self._framework = framework
        self._rank = rank
        self._kept = kept
        self._replica = replica
        self._folder = os.environ.get(FOLDER) or ""
        self._interval = Interval(_every())
        self._step = 0
        self._has_begun = False
        if not _every():
            self._folder = ""

    def begin(self) -> None:
        """At the top of the first mini-batch: go on where an earlier life of this job was last saved."""
        if self._has_begun:
            return
        self._has_begun = True
        if not self._folder:
            return
        reason = obstacle() if self._kept else "the script keeps no state"
        if reason:
            self._stop("no checkpoints: " + reason)
            return
        self._framework.meet()
        step, loaded = self._look()
        if not self._framework.is_same(step):
            say("its ranks do not find the same checkpoint: it begins anew")
        elif loaded is not None:
            self._replica.put(loaded)
            self._rank.adopt(step)
            self.go_on(step)
            say("goes on from its checkpoint after {} mini-batches".format(step))

    def go_on(self, step: int) -> None:
        """So many mini-batches are done, in this process or in one that it took over from."""
        self._has_begun = True
        self._step = step
        self._interval = Interval(_every(), step)

    def boundary(self) -> None:
        """One more is done; save, if it is time."""
        self._step += 1
        if not self._folder or not self._interval.is_due(self._step):
            return
        limits = self._framework.limits()
        if not limits.can_move:
            self._stop("no checkpoints: " + limits.reason)
            return
        # Or not: all ranks try again at the same step, the next that is due.
        self._interval.written(self._step)
        try:
            self._replica.write(self._folder, self._step, time.time(), KEPT)
        except (Refusal, OSError) as error:
            say("no checkpoint after {} mini-batches: {}".format(self._step, error))

    def unmarked(self) -> None:
        """The script does not say where its mini-batches begin."""
        if self._folder:
            self._stop("no checkpoints: it does not say where its mini-batches begin")

    def _look(self) -> "tuple[int, Optional[Loaded]]":
        try:
            found = self._replica.find_whole(self._folder)
            return (-1, None) if found is None else (found.zero.step, self._replica.read(found))
        except (Refusal, OSError) as error:
            say("its checkpoint is not used: {}".format(error))
            return -1, None

    def _stop(self, text: str) -> None:
        self._folder = ""
        say(text)


def _every() -> int:
    try:
        return max(0, int(os.environ.get(EVERY) or 0))
    except ValueError:
        return 0
