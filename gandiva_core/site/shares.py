"""From a queue tree to what each queue is guaranteed and allowed: shares, and physical GPUs (DESIGN §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.errors import InputError
from gandiva_core.model.units import QueueName
from gandiva_core.site.capacities import Amount, Kind
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.queues import DEFAULT_PARTITION, ROOT, Queue, QueueTree, leaves
from gandiva_core.site.resource_types import GPU

SUM_TOLERANCE_RATIO = 0.0005
"""Hadoop's PRECISION: children's percentages must add up to 100 within it."""


class Share(msgspec.Struct, frozen=True):
    """Fractions of a partition's whole amount of one resource, down from the root (0 to 1)."""

    guaranteed_ratio: float
    maximum_ratio: float


def shares(
    tree: QueueTree, total: float, partition: str = DEFAULT_PARTITION, resource: str = GPU
) -> dict[str, Share]:
    """Absolute shares of one resource in one partition, by queue path.

    Percentages multiply down the tree; weights divide the parent's share among its children; amounts are
    divided by `total`.

    Args:
        tree: the queues.
        total: how much of the resource the partition has; 0 is allowed, shares of amounts are then 0.
        partition: a node label, or the default partition.
        resource: which component of amounts to take.

    Raises:
        InputError: percentages of children that do not add up to 100, or more guaranteed than the parent has.
    """
    result = {ROOT: Share(1.0, 1.0)}
    for parent in (queue for queue in tree.values() if queue.children):
        children = [tree[path] for path in parent.children]
        amounts = [_amount(child, partition, resource) for child in children]
        _check_sum(parent, amounts, partition)
        weights = sum(amount.number for amount in amounts if amount.kind is Kind.WEIGHT)
        for child, amount in zip(children, amounts, strict=True):
            above = result[parent.path]
            guaranteed = _ratio(amount, above.guaranteed_ratio, total, weights)
            written = child.limits_in(partition).maximum.of(resource)
            highest = _ratio(written, above.maximum_ratio, total, weights)
            reachable = child.reaches(partition)
            result[child.path] = (
                Share(guaranteed, max(guaranteed, min(highest, above.maximum_ratio)))
                if reachable
                else Share(0.0, 0.0)
            )
    return result


def gpu_limits(tree: QueueTree, gpus: Mapping[str, int]) -> tuple[QueueLimit, ...]:
    """The engine's limits: G_q and M_q of each queue, root included, in each partition's physical GPUs.

    Args:
        tree: the queues.
        gpus: physical GPUs by partition; the default partition is the empty text.

    Raises:
        InputError: as `shares`.
    """
    by_partition = {partition: shares(tree, count, partition) for partition, count in gpus.items()}
    return tuple(
        QueueLimit(
            QueueName(path),
            by_partition[partition][path].guaranteed_ratio * count,
            by_partition[partition][path].maximum_ratio * count,
            queue.parent,
            partition,
            queue.ordering,
            queue.mechanisms_off,
        )
        for partition, count in sorted(gpus.items())
        for path, queue in tree.items()
    )


def check_partitions(tree: QueueTree, gpus: Mapping[str, int]) -> Iterator[Finding]:
    """Leaves whose GPUs all lie where an application without a label never asks (case H01)."""
    allowed: Counter[str] = Counter()
    for limit in gpu_limits(tree, gpus):
        allowed[limit.name] += limit.max_gpus > 0
    for queue in leaves(tree):
        home = queue.default_label or DEFAULT_PARTITION
        if allowed[queue.path] and not gpus.get(home, 0):
            where = f"the partition {home!r}" if home else "the default partition"
            text = (
                "an application without a label expression asks there and would wait for ever: set "
                f"{queue.path}.default-node-label-expression"
            )
            expected = "a default label expression"
            place, found = "capacity-scheduler.xml", f"no GPU in {where}"
            yield Finding(Severity.WARNING, place, queue.path, found, expected, text)


def queue_with_gpu_amount(tree: QueueTree, partitions: Iterable[str]) -> str | None:
    """The first queue whose capacity or maximum is an amount of GPUs and no share; None where there is none."""
    for queue in tree.values():
        for partition in partitions:
            limits = queue.limits_in(partition)
            for amount in (limits.capacity.of(GPU), limits.maximum.of(GPU)):
                if amount.kind is Kind.ABSOLUTE and amount.number > 0:
                    return queue.path
    return None


def _amount(queue: Queue, partition: str, resource: str) -> Amount:
    if not queue.reaches(partition):
        return Amount(0.0, Kind.PERCENTAGE)
    return queue.limits_in(partition).capacity.of(resource)


def _ratio(amount: Amount, above_ratio: float, total: float, weights: float) -> float:
    match amount.kind:
        case Kind.PERCENTAGE:
            return above_ratio * amount.number / 100.0
        case Kind.WEIGHT:
            return above_ratio * amount.number / weights if weights else 0.0
        case Kind.ABSOLUTE:
            return amount.number / total if total else 0.0


def _check_sum(parent: Queue, amounts: list[Amount], partition: str) -> None:
    """In a labelled partition all children may have nothing: the label is then unused."""
    if not amounts or any(amount.kind is not Kind.PERCENTAGE for amount in amounts):
        return
    total = sum(amount.number for amount in amounts)
    unused = partition != DEFAULT_PARTITION and total == 0
    if unused or abs(total - 100.0) <= SUM_TOLERANCE_RATIO * 100.0:
        return
    where = f"{parent.path} in partition {partition!r}" if partition else parent.path
    place = f"capacity-scheduler.xml: children of {where}"
    raise InputError(place, f"capacities that add up to {total:g} %", "100 %")
