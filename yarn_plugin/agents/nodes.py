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
        lost: indices of devices that are gone for good, in the order in which they went.
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

    def can_suspend(self, now_s: float) -> bool:
        """Whether jobs may share its devices."""
        return self.hello.can_suspend and (self.is_there or now_s < self.lost_at_s + LOST_S)

    def lose(self, gpu: int) -> bool:
        """A device is gone; whether that is news."""
        if gpu in self.lost:
            return False
        self.lost.append(gpu)
        return True

    def device(self, index: int) -> int:
        """The device behind one of the engine's indices, which count from 0 without gaps: the last fills a gap."""
        table = list(range(len(self.hello.devices)))
        for gpu in self.lost:
            if gpu in table:
                table[table.index(gpu)] = table[-1]
                table.pop()
        return table[index] if index < len(table) else index

    def next_id(self) -> int:
        """For the next command."""
        self.message_id += 1
        return self.message_id

    def measured(self, report: Measured | AgentHello) -> None:
        """Take over what it said."""
        self.devices = report.devices
        self.workers = {worker.container_id: worker for worker in report.workers}
