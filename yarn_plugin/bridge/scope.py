"""What of a cluster the core decides: mode, queues and partitions (steps of adoption). Pure."""

from __future__ import annotations

import msgspec

from yarn_plugin.bridge.wire import Adoption

OBSERVE = "observe"
FULL = "full"


class Scope(msgspec.Struct, frozen=True):
    """The part of `wire.Adoption` that says whose asks are the core's.

    Attributes:
        mode: ``observe``, ``place`` or ``full``.
        queues: paths that are adopted, their children included; None for all.
        partitions: names that are; None for all.
    """

    mode: str = FULL
    queues: frozenset[str] | None = None
    partitions: frozenset[str] | None = None

    @classmethod
    def of(cls, adoption: Adoption) -> Scope:
        """As the ResourceManager told it."""
        queues, partitions = adoption.adopted_queues, adoption.adopted_partitions
        return cls(adoption.mode, frozenset(queues), frozenset(partitions))

    def has_queue(self, queue: str) -> bool:
        """Whether a queue, or one above it, is adopted."""
        if self.queues is None:
            return True
        while queue and queue not in self.queues:
            queue = queue.rpartition(".")[0]
        return bool(queue)

    def has_partition(self, partition: str) -> bool:
        """Whether a partition is adopted."""
        return self.partitions is None or partition in self.partitions

    def has(self, queue: str, partition: str) -> bool:
        """Whether asks there are jobs of the core: decided upon, in observe too."""
        return self.has_queue(queue) and self.has_partition(partition)

    def places(self, queue: str, partition: str) -> bool:
        """Whether the core's decisions about them are carried out."""
        return self.mode != OBSERVE and self.has(queue, partition)
