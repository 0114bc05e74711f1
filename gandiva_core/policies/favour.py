"""Who is served first while some queue lacks what it is entitled to (DESIGN §4); `guarantees` decides, others read.

Remembered under ``favoured/PARTITION``: what each queue of the partition is entitled to, in GPUs, in the order in which
they are served: first the favoured ones, as many as the entry without a name says, then the others, the queue
furthest above its entitlement last. Nothing is remembered while nobody lacks anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import QueueKey, QueueName
from gandiva_core.model.view import ClusterView, Memory

GUARANTEES = "guarantees"
"""The timer of the looks at what queues get."""

FAVOURED = "favoured/"
COUNT = ""
"""The name of the entry that says how many are favoured; no queue is empty."""

Tier = tuple[int, float]
"""(place in the order of service, fraction of the time that a resident of the queue is entitled to run)."""

UNKNOWN: Tier = (1_000_000, 0.0)
"""Of a queue that was not there when the order was made."""


def favoured_in(order: Memory) -> list[QueueName]:
    """Queues that lack, the one that lacks most first."""
    names = [QueueName(name) for name in order if name != COUNT]
    return names[: int(order[COUNT])]


def is_favoured(view: ClusterView, spec: JobSpec) -> bool:
    """Whether a job's queue lacks what it is entitled to, and more residents of it could help."""
    chain = view.chain(spec.queue, spec.partition)
    if not chain:
        return False
    leaf = chain[0]
    order = view.memory.get(FAVOURED + leaf.limit.partition)
    if order is None or leaf.limit.name not in favoured_in(order):
        return False
    return leaf.resident < order[leaf.limit.name]


def tiers(view: ClusterView, queues: Iterable[QueueKey]) -> Mapping[QueueKey, Tier] | None:
    """How the queues of a slicing domain's residents are served; None where none of them is favoured."""
    found: dict[QueueKey, Tier] = {}
    is_any_favoured = False
    for queue in dict.fromkeys(queues):
        chain = view.chain(*queue)
        order = view.memory.get(FAVOURED + chain[0].limit.partition) if chain else None
        if order is None or chain[0].limit.name not in order:
            found[queue] = UNKNOWN
            continue
        leaf = chain[0]
        names = [name for name in order if name != COUNT]
        place = names.index(leaf.limit.name)
        is_any_favoured = is_any_favoured or place < order[COUNT]
        found[queue] = place, min(1.0, order[leaf.limit.name] / max(1, leaf.resident))
    return found if is_any_favoured else None
