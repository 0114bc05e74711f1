"""All ranks of a torch.distributed job stop at the same mini-batch (DESIGN §5; FACTS §5).

At each boundary the wish to stop is all-reduced (MAX) on a group of its own, asynchronously, and read one boundary
later: every rank reads the same value at the same step. Around a stop they meet at the job's store, which no collective
time-out watches: nobody is frozen before all have stopped, and nobody goes on before all are back.
"""

import os
import time
from datetime import timedelta
from typing import Any, Callable, List, Optional

import torch
import torch.distributed as dist

MEET_S = 60.0
"""Until a rank that does not come to a stop counts as one that cannot."""

_AGREE = timedelta(seconds=60)
_GROUP = timedelta(hours=24)
_POLL_S = 0.002


class Alone:
    """A process without a gang."""

    rank = 0
    world_size = 1
    reason = ""

    def agree(self, is_wanted: bool) -> bool:
        """As wanted."""
        return is_wanted

    def is_same(self, number: int) -> bool:
        """It is the only one."""
        del number
        return True

    def settle(self, is_stopped: bool) -> bool:
        """As it is."""
        return is_stopped

    def is_resuming(self) -> bool:
        """Nobody else is there."""
        return False

    def regather(self) -> None:
        """Nobody to wait for."""


class Stranger(Alone):
    """A rank of a gang that cannot agree on anything: it is never stopped."""

    def __init__(self, world_size: int, reason: str) -> None:
        self.world_size = world_size
        self.reason = reason

    def agree(self, is_wanted: bool) -> bool:
        """Never."""
        del is_wanted
        return False

    def is_same(self, number: int) -> bool:
        """Nobody can say."""
        del number
        return False


class Gang(Alone):
    """A rank among others. All ranks make theirs at the same boundary: it is a collective call.

    Attributes:
        reason: why the gang can no longer agree; empty while it can.
    """

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        self.world = dist.group.WORLD
        self.reason = ""
        self._group = dist.new_group(backend="gloo", timeout=_GROUP)
        self._store = dist.PrefixStore("gandiva", dist.distributed_c10d._get_default_store())
        self._flag = torch.zeros(1, dtype=torch.int32)
        self._work: Any = None
        self._stops = 0

    def agree(self, is_wanted: bool) -> bool:
        """Read what was agreed a boundary ago, and ask anew unless it was to stop."""
        if self.reason:
            return False
        if self._work is not None and self._read():
            self._work = None
            return True
        if not self.reason:
            self._flag = torch.full((1,), int(is_wanted), dtype=torch.int32)
            self._work = dist.all_reduce(
                self._flag, op=dist.ReduceOp.MAX, group=self._group, async_op=True
            )
        return False

    def _read(self) -> bool:
        try:
            self._work.wait(_AGREE)
        except RuntimeError as error:
            self.reason = "the ranks do not step together: {}".format(error)
            return False
        return bool(self._flag.item())

    def is_same(self, number: int) -> bool:
        """Whether all ranks have the same number; a collective call."""
        ends = torch.tensor([number, -number], dtype=torch.int64)
        dist.all_reduce(ends, op=dist.ReduceOp.MAX, group=self._group)
        return bool(ends[0] == -ends[1])

    def settle(self, is_stopped: bool) -> bool:
        """Rank 0 asks all and tells all; it leaves last, since its process may be the store's."""
        self._stops += 1
        is_whole = self._ask("stop{}/".format(self._stops), is_stopped)
        if not is_whole:  # this rank goes on; who thinks otherwise must not wait for it
            self._store.set(self._resume + str(self.rank), "1")
        return is_whole

    @property
    def _resume(self) -> str:
        return "resume{}/".format(self._stops)

    def _ask(self, stop: str, is_stopped: bool) -> bool:
        others = [str(rank) for rank in range(1, self.world_size)]
        if self.rank:
            self._store.set(stop + str(self.rank), "1" if is_stopped else "0")
            if not self._await([stop + "all"], 2 * MEET_S):
                self._store.set(stop + str(self.rank), "0")
                return False
            verdict: bool = self._store.get(stop + "all") == b"1"
            self._store.set(stop + "left" + str(self.rank), "1")
            return verdict
        came = self._await([stop + rank for rank in others], MEET_S)
        verdict = (
            is_stopped and came and all(self._store.get(stop + rank) == b"1" for rank in others)
        )
        self._store.set(stop + "all", "1" if verdict else "0")
        self._await([stop + "left" + rank for rank in others], MEET_S)
        return bool(verdict)

    def is_resuming(self) -> bool:
        """Whether another rank has gone on from this stop."""
        keys = [self._resume + str(rank) for rank in range(self.world_size) if rank != self.rank]
        return any(self._store.check([key]) for key in keys)

    def regather(self) -> None:
        """Wait for all ranks, however long it takes the last one to be resumed."""
        self._store.set(self._resume + str(self.rank), "1")
        self._await([self._resume + str(rank) for rank in range(self.world_size)], None)

    def _await(self, keys: List[str], limit_s: Optional[float]) -> bool:
        return wait_for(lambda: bool(self._store.check(keys)), limit_s)


def wait_for(is_so: Callable[[], bool], limit_s: Optional[float]) -> bool:
    """Poll until something is so; False after the limit, None for none."""
    ends_s = None if limit_s is None else time.monotonic() + limit_s
    while not is_so():
        if ends_s is not None and time.monotonic() > ends_s:
            return False
        time.sleep(_POLL_S)
    return True


def gang_of(present: Alone) -> Alone:
    """The gang this process is in at its boundary now: the present one where nothing has changed."""
    if dist.is_available() and dist.is_initialized():
        if isinstance(present, Gang) and present.world is dist.group.WORLD:
            return present
        return Gang() if dist.get_world_size() > 1 else Alone()
    world_size = int(os.environ.get("WORLD_SIZE") or 1)
    if world_size > 1:
        same = isinstance(present, Stranger)
        return present if same else Stranger(world_size, "a gang without torch.distributed")
    return present if type(present) is Alone else Alone()
