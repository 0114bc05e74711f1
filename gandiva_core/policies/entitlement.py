"""What each queue is entitled to of a partition's GPUs, down the tree (DESIGN §4).

A queue gets min(demand, G_q) first. What its parent has beyond that goes to the children that want more, in proportion
to G_q and up to min(demand, M_q); children without a guarantee share equally once no other wants more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.units import QueueName

_SLACK = 1e-9


def entitlements(
    limits: Sequence[QueueLimit], demand: Mapping[QueueName, float], gpus: float
) -> dict[QueueName, float]:
    """GPUs that each queue of one partition is entitled to, parents included.

    What the children of a queue are entitled to never exceeds what it is entitled to itself, and no queue more than it
    asks for or may run.

    Args:
        limits: the partition's queues; those whose parent is not among them divide `gpus`.
        demand: GPUs asked for, in the queues that jobs are in; a parent's children are added to its own.
        gpus: physical GPUs of the partition.
    """
    tree = _Tree(limits, demand)
    found: dict[QueueName, float] = {}
    tree.divide(tree.top, 0.0, gpus, found)
    return found


def fill(amount: float, caps: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Divide an amount in proportion to weights, nobody above its cap; who has no weight shares equally what is left.

    Returns:
        Parts that add up to the smaller of the amount and all caps.
    """
    parts = [0.0] * len(caps)
    for members in (
        [i for i in range(len(caps)) if weights[i] > 0.0],
        [i for i in range(len(caps)) if weights[i] <= 0.0],
    ):
        shares = {i: weights[i] if weights[i] > 0.0 else 1.0 for i in members}
        pressure = sum(shares.values())
        for i in sorted(members, key=lambda i: (caps[i] / shares[i], i)):
            # From the one that is satisfied first on, so that what it leaves is divided among the others.
            parts[i] = min(caps[i], amount * shares[i] / max(pressure, shares[i]))
            amount = max(0.0, amount - parts[i])
            pressure -= shares[i]
    return parts


class _Tree:
    """One partition's queues with what they can use."""

    def __init__(self, limits: Sequence[QueueLimit], demand: Mapping[QueueName, float]) -> None:
        self._demand = demand
        self._children: dict[str, list[QueueLimit]] = defaultdict(list)
        self._wanted: dict[QueueName, float] = {}
        names: set[str] = {limit.name for limit in limits}
        for limit in limits:
            self._children[limit.parent if limit.parent in names else ""].append(limit)
        self.top = self._children[""]
        for limit in self.top:
            self._want(limit)

    def _want(self, limit: QueueLimit) -> float:
        """What a queue can use: its demand and its children's, no more than it may run."""
        below = sum(self._want(child) for child in self._children.get(limit.name, ()))
        wanted = min(self._demand.get(limit.name, 0.0) + below, limit.max_gpus)
        self._wanted[limit.name] = wanted
        return wanted

    def divide(
        self,
        siblings: Sequence[QueueLimit],
        own_gpus: float,
        gpus: float,
        found: dict[QueueName, float],
    ) -> None:
        """Divide among siblings, and each one's among its children; jobs of the parent are a sibling without G."""
        caps = [self._wanted[limit.name] for limit in siblings] + [own_gpus]
        weights = [limit.guaranteed_gpus for limit in siblings] + [0.0]
        sure = [min(cap, weight) for cap, weight in zip(caps, weights, strict=True)]
        if sum(sure) > gpus + _SLACK:
            sure = fill(gpus, sure, weights)  # more is guaranteed than there is
        more = fill(
            max(0.0, gpus - sum(sure)),
            [cap - part for cap, part in zip(caps, sure, strict=True)],
            weights,
        )
        for limit, part, rest in zip(siblings, sure, more, strict=False):
            found[limit.name] = part + rest
            below = self._children.get(limit.name, ())
            if below:
                own = self._demand.get(limit.name, 0.0)
                self.divide(below, own, found[limit.name], found)
