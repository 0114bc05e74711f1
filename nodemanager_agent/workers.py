"""What the agent knows of each worker, and what is under way with it. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gandiva_core.messages.agents import Expected, Method, WorkerReport, WorkerState
from nodemanager_agent.lifecycle import Stimulus, follow, is_allowed
from nodemanager_agent.pace import Pace

_ALARM_AFTER = 3


class Done(msgspec.Struct, frozen=True):
    """A launcher did what it was told.

    Attributes:
        at_s: on this machine's wall clock.
    """

    at_s: float
    figures: Mapping[str, float] = {}


class Undone(msgspec.Struct, frozen=True):
    """It did not; a code of G-12 and a sentence."""

    code: str
    detail: str = ""


Outcome = Done | Undone


@dataclass(slots=True)
class Order:
    """One order to a launcher; at most one a worker is under way (G-11 iv).

    Attributes:
        goal: the state in which it has been carried out.
        until_s: monotonic time at which it counts as failed.
        then: told the outcome, once.
        is_sent: over the line that is open now.
    """

    id: str
    op: str
    goal: WorkerState
    values: Mapping[str, Any]
    until_s: float
    then: Callable[[Outcome], None]
    is_sent: bool = False


class Progress(msgspec.Struct, frozen=True):
    """A launcher's ``progress``; what it does not say is not known."""

    state: str | None = None
    method: Method | None = None
    can_pack: bool = False
    can_move: bool = False
    can_resize: bool = False
    reason: str | None = None
    minibatches: int = 0
    minibatch_s: float | None = None
    memory_mib: float | None = None
    memory_peak_mib: float | None = None
    memory_min_mib: float | None = None
    utilisation_ratio: float | None = None


@dataclass(slots=True)
class Worker:
    """One worker of this node.

    Attributes:
        expected: as the core said; None where it did not, or no longer does.
        token: what its launcher has to show when it comes again.
        is_connected: its launcher's line is open.
        ordered: the order under way; `queued`: those behind it.
        late: op of orders that were given up, by id: their answers may still come.
        suspend_failures: in a row.
        seen_at_s: when a process of an unregistered container was first seen; monotonic.
        pace: its mini-batch times alone and packed.
        utilisation_ratio, minibatch_s_seen: measured from outside.
    """

    container_id: str
    state: WorkerState = WorkerState.EXPECTED
    expected: Expected | None = None
    pid: int = 0
    start_ticks: int | None = None
    uid: int = -1
    token: str = ""
    is_connected: bool = False
    progress: Progress = field(default_factory=Progress)
    pace: Pace = field(default_factory=Pace)
    ordered: Order | None = None
    queued: deque[Order] = field(default_factory=deque)
    late: dict[str, str] = field(default_factory=dict)
    suspend_failures: int = 0
    ancestors: frozenset[int] = frozenset()
    seen_at_s: float | None = None
    utilisation_ratio: float | None = None
    minibatch_s_seen: float | None = None
    host_memory_mib: int | None = None

    def follow(self, stimulus: Stimulus) -> None:
        """Change the state, by the table only."""
        self.state = follow(self.state, stimulus, self.container_id)

    def may(self, stimulus: Stimulus) -> bool:
        """Whether the table has a row for it."""
        return is_allowed(self.state, stimulus)

    @property
    def is_alarming(self) -> bool:
        """It did not stop three times in a row (FAULTS E11)."""
        return self.suspend_failures >= _ALARM_AFTER

    def forbids(self, what: str) -> bool:
        """Whether its owner or queue does."""
        return self.expected is not None and what in self.expected.never

    def report(self, gpus: tuple[int, ...]) -> WorkerReport:
        """As the core hears of it."""
        told = self.progress
        method = Method.NONE if self._is_unable() else told.method
        reason = told.reason or ""
        if self.is_alarming:
            reason = f"did not stop {self.suspend_failures} times in a row"
        return WorkerReport(
            self.container_id,
            self.state,
            gpus,
            method,
            told.can_pack,
            told.can_move,
            told.can_resize,
            reason,
            told.minibatches,
            self.minibatch_s_seen if told.minibatch_s is None else told.minibatch_s,
            self.utilisation_ratio,
            _whole(told.memory_mib),
            _whole(told.memory_peak_mib),
            _whole(told.memory_min_mib),
            self.host_memory_mib,
            tuple(sorted(self.pace.company)) if self.state is WorkerState.RUNNING else (),
            self.pace.alone_s,
            self.pace.packed_s,
        )

    def _is_unable(self) -> bool:
        return self.state is WorkerState.UNHOOKED or self.is_alarming or self.forbids("suspend")


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
