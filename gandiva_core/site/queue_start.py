"""Whether Hadoop 3.4 loads a queue tree: sums, kinds, words and numbers, each queue on its own.

Every rule was tried on a real ResourceManager; a yarn test goes on comparing the verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gandiva_core.site.capacities import Capacity, Kind
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.hadoop_keys import QUEUE_SUFFIXES, Form
from gandiva_core.site.queues import ANY_LABEL, DEFAULT_PARTITION, PREFIX, ROOT, Queue, QueueTree
from gandiva_core.site.shares import SUM_TOLERANCE_RATIO
from gandiva_core.site.switches import is_queue

LEAF_ORDERS = ("fifo", "fair", "fifo-for-pending-apps", "fifo-with-partitions")
PARENT_ORDERS = ("utilization", "priority-utilization")
STATES = ("RUNNING", "STOPPED")
LEGACY_KEY = PREFIX + "legacy-queue-mode.enabled"
MAPPINGS_KEY = PREFIX + "queue-mappings"

_REFUSES = "the ResourceManager refuses to start: correct it"
_NUMBERS = {
    Form.WHOLE: re.compile(r"[-+]?([0-9]+|0[xX][0-9a-fA-F]+)"),
    Form.DECIMAL: re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?[fFdD]?"),
}


def check_queue_start(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """Reasons why queues are refused."""
    for queue in tree.values():
        yield from _words(site, queue)
        yield from _numbers(site, queue)
        if queue.children and site.flag(LEGACY_KEY, True):
            for partition in _partitions(tree):
                yield from _children(site, tree, queue, partition)
    yield from _mappings(site, tree)


def is_number(text: str, form: Form) -> bool:
    """Whether Hadoop reads this text as a number of that form."""
    return bool(_NUMBERS[form].fullmatch(text))


def _refused(site: SiteConfiguration, key: str, found: str, expected: str) -> Finding:
    return Finding(Severity.ERROR, site.place(key), key, found, expected, _REFUSES)


def _words(site: SiteConfiguration, queue: Queue) -> Iterator[Finding]:
    prefix = f"{PREFIX}{queue.path}"
    state = site.text(f"{prefix}.state")
    if state and state.upper() not in STATES:
        yield _refused(site, f"{prefix}.state", repr(state), " or ".join(STATES))
    order = site.text(f"{prefix}.ordering-policy")
    words = PARENT_ORDERS if queue.children else LEAF_ORDERS
    if order and "." not in order and order not in words:
        yield _refused(site, f"{prefix}.ordering-policy", repr(order), " or ".join(words))
    label = queue.default_label
    if label and not {label, ANY_LABEL} & set(queue.labels):
        key = f"{prefix}.default-node-label-expression"
        expected = f"one of its accessible labels, {', '.join(queue.labels) or 'none'}"
        yield _refused(site, key, repr(label), expected)


def _numbers(site: SiteConfiguration, queue: Queue) -> Iterator[Finding]:
    for suffix, form in QUEUE_SUFFIXES.items():
        key = f"{PREFIX}{queue.path}.{suffix}"
        text = site.text(key)
        if form in _NUMBERS and text and not is_number(text, form):
            yield _refused(site, key, repr(text), form.value)
    for label, limits in queue.limits.items():
        amount = limits.capacity.uniform
        if amount and amount.kind is Kind.PERCENTAGE and not 0 <= amount.number <= 100:
            key = capacity_key(queue.path, label)
            yield _refused(site, key, f"{amount.number:g} %", "0 to 100 %")


def capacity_key(path: str, partition: str) -> str:
    """The key of a queue's capacity in a partition."""
    label = f".accessible-node-labels.{partition}" if partition else ""
    return f"{PREFIX}{path}{label}.capacity"


def _partitions(tree: QueueTree) -> list[str]:
    labels = {label for queue in tree.values() for label in queue.limits}
    return sorted(labels | {DEFAULT_PARTITION})


def _children(
    site: SiteConfiguration, tree: QueueTree, parent: Queue, partition: str
) -> Iterator[Finding]:
    """Capacities of one kind that add up, as the mode without mixed queues wants them."""
    capacities = [tree[path].limits_in(partition).capacity for path in parent.children]
    key = capacity_key(parent.children[0], partition)
    where = f" in partition {partition}" if partition else ""
    kinds = {kind for capacity in capacities for kind in _kinds(capacity)}
    if len(kinds) > 1:
        found = f"children of {parent.path}{where} by {' and '.join(sorted(kinds))}"
        yield _refused(site, key, found, "one kind for all of them")
        return
    own = parent.limits_in(partition).capacity
    is_amount = kinds == {Kind.ABSOLUTE.value}
    mixed = own.uniform is None if not is_amount else own.uniform is not None
    if parent.path != ROOT and kinds and mixed:
        found = f"amounts in only one of {parent.path} and its children"
        yield _refused(site, key, found + where, "amounts in both or in none")
    elif kinds <= {Kind.PERCENTAGE.value}:
        yield from _sum(site, key, parent, partition, capacities)


def _sum(
    site: SiteConfiguration,
    key: str,
    parent: Queue,
    partition: str,
    capacities: list[Capacity],
) -> Iterator[Finding]:
    """100 %, or nothing at all where the parent has nothing."""
    total = sum(capacity.uniform.number for capacity in capacities if capacity.uniform)
    has_own = parent.path == ROOT or _percentage(parent.limits_in(partition).capacity) > 0
    is_whole = abs(total - 100.0) <= SUM_TOLERANCE_RATIO * 100.0
    # A labelled partition is forgiven children with all of a parent that has nothing.
    if (is_whole and (has_own or partition)) or (total == 0 and not has_own):
        return
    where = f"children of {parent.path}" + (f" in partition {partition}" if partition else "")
    expected = "100 %" if has_own else f"nothing, as {parent.path} has nothing there"
    yield _refused(site, key, f"capacities of {where} that add up to {total:g} %", expected)


def _percentage(capacity: Capacity) -> float:
    return capacity.uniform.number if capacity.uniform else 0.0


def _kinds(capacity: Capacity) -> set[str]:
    """How a capacity is meant, no percentage being no statement."""
    if capacity.uniform is None:
        return {amount.kind.value for amount in capacity.amounts.values()}
    is_silent = capacity.uniform.kind is Kind.PERCENTAGE and capacity.uniform.number == 0
    return set() if is_silent else {capacity.uniform.kind.value}


def _mappings(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """`u:USER:QUEUE` and `g:GROUP:QUEUE`, onto leaves; patterns are Hadoop's to resolve."""
    for mapping in site.texts(MAPPINGS_KEY):
        parts = [part.strip() for part in mapping.split(":")]
        if len(parts) != 3 or parts[0] not in ("u", "g"):
            yield _refused(site, MAPPINGS_KEY, repr(mapping), "u:USER:QUEUE or g:GROUP:QUEUE")
            continue
        target = parts[2]
        grows = target not in tree and is_queue(site, target, tree)
        if "%" in target or target in _leaf_names(tree) or grows:
            continue
        found = f"{mapping!r}, where {target} is no leaf queue"
        yield _refused(site, MAPPINGS_KEY, found, "a leaf queue")


def _leaf_names(tree: QueueTree) -> set[str]:
    paths = [queue.path for queue in tree.values() if not queue.children]
    return {*paths, *(path.rpartition(".")[2] for path in paths)}
