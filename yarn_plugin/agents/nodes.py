"""What is known of each node's agent: whether it is there, and what it last said of its workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from gandiva_core.messages.agents import (
    AgentHello,
    Device,
    Expected,
    Measured,
    WorkerReport,
)

LOST_S = 30.0
"""A node counts as able to suspend for so long after its agent was last there: agents are restarted."""


@dataclass(slots=True)
class NodeSide:
    """One node.

    Attributes:
        is_there: its agent's stream is open.
        lost_at_s: since when it is not.
        expected: workers that it has, by container.
        coming: workers of moves that warm up here, and of which the register does not know yet.
        told: those that the agent that is there was told of; None before the first time.
        lost: indices of devices that are gone, for good or until nothing of an ended worker is left on them.
        order: the other devices, by the engine's indices.
        doubted: devices that this very agent called unhealthy; only these come back when it calls them healthy.
    """

    hello: AgentHello
    is_there: bool = True
    lost_at_s: float = 0.0
    message_id: int = 0
    devices: tuple[Device, ...] = ()
    workers: dict[str, WorkerReport] = field(default_factory=dict)
    expected: dict[str, Expected] = field(default_factory=dict)
    coming: dict[str, Expected] = field(default_factory=dict)
    told: tuple[Expected, ...] | None = None
    lost: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    doubted: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        there = [gpu for gpu in range(len(self.hello.devices)) if gpu not in self.lost]
        kept = [gpu for gpu in self.order if gpu in there]
        self.order = [*kept, *(gpu for gpu in there if gpu not in kept)]

    def can_suspend(self, now_s: float) -> bool:
        """Whether jobs may share its devices."""
        return self.hello.can_suspend and (self.is_there or now_s < self.lost_at_s + LOST_S)

    def lose(self, gpu: int) -> bool:
        """A device is gone; whether that is news. The last one fills the gap, so that the others keep their indices."""
        self.doubted.add(gpu)
        if gpu in self.lost:
            return False
        self.lost.append(gpu)
        if gpu in self.order:
            self.order[self.order.index(gpu)] = self.order[-1]
            self.order.pop()
        return True

    def find(self, gpu: int) -> bool:
        """A device is healthy; whether that is news. What an earlier agent called lost stays so."""
        if gpu not in self.lost or gpu not in self.doubted:
            return False
        self.lost.remove(gpu)
        self.doubted.discard(gpu)
        self.order.append(gpu)
        return True

    def device(self, index: int) -> int:
        """The device behind one of the engine's indices, which count from 0 without gaps."""
        return self.order[index] if index < len(self.order) else index

    def next_id(self) -> int:
        """For the next command."""
        self.message_id += 1
        return self.message_id

    def measured(self, report: Measured | AgentHello) -> None:
        """Take over what it said."""
        self.devices = report.devices
        self.workers = {worker.container_id: worker for worker in report.workers}
