"""Gavel's iterator: a loader that is iterated under a lease (SPEC V-40 … V-44).

A lease is a number of steps and a time. When either is used up the loop ends, all workers meet, and the script saves a
checkpoint and exits; its next start loads it. Before that, after three quarters of what was granted last, more is asked
for. Usable without an agent: whoever grants is a callable.
"""

import math
import os
import time
from typing import Any, Callable, Iterator, NamedTuple, Optional

from nodemanager_agent.client import minibatch

RENEW_AT_RATIO = 0.75
"""Of the newest extension (V-42)."""

STEPS = "GANDIVA_LEASE_STEPS"
DURATION_S = "GANDIVA_LEASE_S"
"""Environment: the lease of a job that nobody else grants one; without them it is unlimited."""


class Lease(NamedTuple):
    """What may be used in all, since this process began iterating: steps, and active seconds."""

    max_steps: float = math.inf
    max_duration_s: float = math.inf


Grant = Callable[[int, float, Lease], Lease]
"""From steps and active seconds used, and the lease so far, to the lease from now on; the same for nothing more."""


class LeaseIterator:
    """Wraps a data loader (V-40).

    Args:
        loader: iterated once per epoch.
        checkpoint_dir: folder of this job's checkpoints.
        load: called by `load_checkpoint` with the file's path and whatever else it is given.
        save: called by `save_checkpoint`, as `load`.
        is_synthetic: give the first batch again and again, as if loading took no time.
        grant: who grants leases; asked at the first step and at renewals.
        meet: waits for all workers of the gang; by default torch's barrier, where there is a process group.
        now: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        loader: Any,
        checkpoint_dir: str,
        load: Callable[..., Any],
        save: Callable[..., Any],
        is_synthetic: bool = False,
        *,
        grant: Optional[Grant] = None,
        meet: Optional[Callable[[], None]] = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.steps = 0
        self.active_s = 0.0
        self.lease: Optional[Lease] = None
        self._loader = loader
        self._path = os.path.join(checkpoint_dir, "model.checkpoint")
        self._load = load
        self._save = save
        self._is_synthetic = is_synthetic
        self._grant = grant or from_environment
        self._meet = meet or barrier
        self._now = now
        self._is_complete = False
        self._is_expired = False
        self._renew_steps = self._renew_s = 0.0
        self._is_last = False
        self._since_s: Optional[float] = None

    @property
    def done(self) -> bool:
        """Whether the script has to save and end: it completed, or the lease is used up."""
        return self._is_complete or self._is_expired

    @property
    def is_expired(self) -> bool:
        """Whether it ended because the lease is used up, with work left."""
        return self._is_expired

    def complete(self) -> None:
        """The training has come to its end."""
        self._is_complete = True

    def load_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        """What `load` makes of the last checkpoint; None where there is none."""
        if not os.path.exists(self._path):
            return None
        return self._load(self._path, *args, **kwargs)

    def save_checkpoint(self, *args: Any, **kwargs: Any) -> Any:
        """As `save`, whole or not at all: what it wrote takes the place of the last one once it has returned."""
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        beside = "{}.{}".format(self._path, os.getpid())
        try:
            result = self._save(beside, *args, **kwargs)
            os.replace(beside, self._path)
        except BaseException:
            if os.path.exists(beside):
                os.unlink(beside)
            raise
        return result

    def __iter__(self) -> Iterator[Any]:
        self._since_s = None
        first: Any = None
        for batch in self._loader:
            first = batch if first is None else first
            minibatch()
            self._count()
            if self.done or not self._may_go_on():
                self._since_s = None
                return
            self.steps += 1
            yield first if self._is_synthetic else batch
        self._count()
        self._since_s = None

    def _count(self) -> None:
        """Time is active from the first batch of an epoch to its end."""
        now_s = self._now()
        if self._since_s is not None:
            self.active_s += now_s - self._since_s
        self._since_s = now_s

    def _may_go_on(self) -> bool:
        if self.lease is None:
            self._extend(Lease(0, 0.0))
        elif not self._is_last and self._is_due():
            self._extend(self.lease)
        assert self.lease is not None
        if self.steps < self.lease.max_steps and self.active_s < self.lease.max_duration_s:
            return True
        self._is_expired = True
        self._meet()
        return False

    def _is_due(self) -> bool:
        return self.steps >= self._renew_steps or self.active_s >= self._renew_s

    def _extend(self, before: Lease) -> None:
        """Ask; one answer without anything new is the last that is asked for."""
        after = self._grant(self.steps, self.active_s, before)
        self._is_last = after == before
        self._renew_steps = _later(before.max_steps, after.max_steps)
        self._renew_s = _later(before.max_duration_s, after.max_duration_s)
        self.lease = after


def gang_lease(lease: Lease, remaining: int, steps: int, active_s: float, rest_s: float) -> Lease:
    """One number of steps for all workers of a gang, so that each executes the same ones (V-44).

    Args:
        lease: of the worker that asked first.
        remaining: steps that the job has left, counted from its start.
        steps: used so far.
        active_s: in which they were done.
        rest_s: of this round.
    """
    if not active_s:
        return Lease(min(remaining, lease.max_steps))
    return Lease(min(remaining, steps + int(rest_s * steps / active_s)))


def from_environment(steps: int, active_s: float, lease: Lease) -> Lease:
    """The lease of a job that has no scheduler to ask: as its environment says, never extended."""
    del steps, active_s, lease
    return Lease(_number(STEPS), _number(DURATION_S))


def barrier() -> None:
    """Meet the other workers, where torch has a process group of several."""
    import sys  # noqa: PLC0415 - only looked at

    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        dist.barrier()


def _later(before: float, after: float) -> float:
    if math.isinf(after):
        return math.inf
    return before + RENEW_AT_RATIO * max(0.0, after - before)


def _number(name: str) -> float:
    try:
        return float(os.environ.get(name) or math.inf)
    except ValueError:
        return math.inf
