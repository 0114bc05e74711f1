"""The queue tree of a `capacity-scheduler.xml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from gandiva_core.model.cluster import MECHANISMS
from gandiva_core.model.errors import InputError
from gandiva_core.site.capacities import FULL, NONE, Capacity, parse_capacity
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity

PREFIX = "yarn.scheduler.capacity."
ROOT = "root"
DEFAULT_PARTITION = ""
ANY_LABEL = "*"
MAP_REDUCE_1_PREFIX = "mapred.capacity-scheduler."
QUEUE_DEPTH_MAX = 50

_LABELS = ".accessible-node-labels"
_FAIR = {"fair", "FairOrderingPolicy"}
_TELLING_SUFFIXES = (".capacity", ".maximum-capacity", ".state", ".queues")


class Limits(msgspec.Struct, frozen=True):
    """A queue's capacity and maximum in one partition, as written."""

    capacity: Capacity
    maximum: Capacity = FULL


class Queue(msgspec.Struct, frozen=True):
    """One queue.

    Attributes:
        path: from the root, ``root.users.anna``.
        children: in the order of the file.
        limits: by partition; the default partition is the empty text.
        labels: partitions it may use beside the default one; `ANY_LABEL` alone means all.
        default_label: label of an application that names none; empty for the default partition.
        ordering_policy: ``fifo``, ``fair`` or a class name.
        mechanisms_off: Gandiva's mechanisms that are switched off here or above, and not on again.
    """

    path: str
    parent: str
    children: tuple[str, ...]
    limits: Mapping[str, Limits]
    labels: tuple[str, ...] = ()
    default_label: str = ""
    ordering_policy: str = "fifo"
    mechanisms_off: tuple[str, ...] = ()

    @property
    def ordering(self) -> str:
        """``fair`` or, for every other policy, ``fifo``."""
        return "fair" if self.ordering_policy.rpartition(".")[2] in _FAIR else "fifo"

    def reaches(self, partition: str) -> bool:
        """Whether its applications may run there."""
        return partition == DEFAULT_PARTITION or bool({partition, ANY_LABEL} & set(self.labels))

    def limits_in(self, partition: str) -> Limits:
        """What is written for a partition; nothing written means no guarantee there, and the root has all."""
        written = self.limits.get(partition)
        if written is not None:
            return written
        return Limits(FULL if self.path == ROOT else NONE)


QueueTree = Mapping[str, Queue]
"""Queues by path, parents before children."""


def read_queues(site: SiteConfiguration) -> QueueTree:
    """The tree under `root`.

    Raises:
        InputError: no child of root (with a word on MapReduce 1 keys if there are such), a queue listed twice, or
            a value that is not a capacity.
    """
    if not site.texts(f"{PREFIX}{ROOT}.queues"):
        raise _no_queues(site)
    return {queue.path: queue for queue in _walk(site, ROOT, "", (), ())}


def leaves(tree: QueueTree) -> tuple[Queue, ...]:
    """Queues that take applications."""
    return tuple(queue for queue in tree.values() if not queue.children)


def check_queues(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """Settings that belong to no queue of the tree, once a queue (case H06)."""
    told: set[str] = set()
    for key in site.keys(f"{PREFIX}{ROOT}."):
        path = _path_of(key)
        if path is None or path in tree or path in told:
            continue
        told.add(path)
        found = f"settings for {path}, which no queues key lists"
        above = f"{PREFIX}{path.rpartition('.')[0]}.queues"
        advice = f"they do nothing: list it in {above} or remove them"
        yield Finding(
            Severity.WARNING, site.place(key), key, found, "a queue that is there", advice
        )
    yield from _low_maxima(site, tree)


def _low_maxima(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """A maximum below its capacity: Hadoop 3.4 loads it, and the capacity then counts as the maximum."""
    for queue in tree.values():
        for label, limits in queue.limits.items():
            low, high = limits.capacity.uniform, limits.maximum.uniform
            if low and high and low.kind is high.kind and low.number > high.number:
                prefix = f"{PREFIX}{queue.path}" + (f"{_LABELS}.{label}" if label else "")
                key = f"{prefix}.maximum-capacity"
                expected = f"at least the capacity, {low.number:g}"
                advice = "nobody can say which of the two counts: raise it or lower the capacity"
                found = f"{high.number:g}"
                yield Finding(Severity.WARNING, site.place(key), key, found, expected, advice)


def _walk(
    site: SiteConfiguration,
    path: str,
    parent: str,
    inherited: tuple[str, ...],
    off_above: tuple[str, ...],
) -> Iterator[Queue]:
    if path.count(".") > QUEUE_DEPTH_MAX:
        raise InputError(site.describe(f"{PREFIX}{parent}.queues"), path, "queues less deep")
    key = f"{PREFIX}{path}"
    names = site.texts(f"{key}.queues")
    if len(set(names)) != len(names):
        raise InputError(site.describe(f"{key}.queues"), ",".join(names), "each queue once")
    labels = _labels(site, path, inherited)
    off = _mechanisms_off(site, path, off_above)
    yield Queue(
        path=path,
        parent=parent,
        children=tuple(f"{path}.{name}" for name in names),
        limits=_limits(site, path),
        labels=labels,
        default_label=site.text(f"{key}.default-node-label-expression"),
        ordering_policy=site.text(f"{key}.ordering-policy", "fifo"),
        mechanisms_off=off,
    )
    for name in names:
        yield from _walk(site, f"{path}.{name}", path, labels, off)


def _mechanisms_off(
    site: SiteConfiguration, path: str, off_above: tuple[str, ...]
) -> tuple[str, ...]:
    """A queue that says nothing has its parent's switches; all are on at the root."""
    off: list[str] = []
    for mechanism in MECHANISMS:
        key = f"{PREFIX}{path}.gandiva.{mechanism}"
        text = site.text(key).lower()
        if text not in {"", "true", "false"}:
            raise InputError(site.describe(key), text, "true or false")
        if text == "false" or (not text and mechanism in off_above):
            off.append(mechanism)
    return tuple(off)


def _labels(site: SiteConfiguration, path: str, inherited: tuple[str, ...]) -> tuple[str, ...]:
    """A queue that says nothing has its parent's labels; root then has all."""
    key = f"{PREFIX}{path}{_LABELS}"
    if site.get(key) is not None:
        return site.texts(key)
    return (ANY_LABEL,) if path == ROOT else inherited


def _limits(site: SiteConfiguration, path: str) -> dict[str, Limits]:
    """Limits of the default partition and of each that the queue has a key for."""
    limits = {DEFAULT_PARTITION: _one_limit(site, f"{PREFIX}{path}", path)}
    prefix = f"{PREFIX}{path}{_LABELS}."
    for key in site.keys(prefix):
        label, _, suffix = key.removeprefix(prefix).rpartition(".")
        if label and suffix in ("capacity", "maximum-capacity"):
            limits[label] = _one_limit(site, f"{prefix}{label}", path)
    return limits


def _one_limit(site: SiteConfiguration, prefix: str, path: str) -> Limits:
    capacity = _capacity(site, f"{prefix}.capacity", FULL if path == ROOT else NONE)
    maximum = _capacity(site, f"{prefix}.maximum-capacity", FULL)
    if maximum.uniform is not None and maximum.uniform.number < 0:
        maximum = FULL  # -1 is Hadoop's way to say "no maximum of its own"
    return Limits(capacity, maximum)


def _capacity(site: SiteConfiguration, key: str, default: Capacity) -> Capacity:
    text = site.text(key)
    return parse_capacity(text, site.describe(key)) if text else default


def _path_of(key: str) -> str | None:
    """The queue a key speaks of, for keys that every queue has; None for others."""
    if _LABELS in key:
        return None
    suffix = next((suffix for suffix in _TELLING_SUFFIXES if key.endswith(suffix)), None)
    return None if suffix is None else key.removeprefix(PREFIX).removesuffix(suffix)


def _no_queues(site: SiteConfiguration) -> InputError:
    key = f"{PREFIX}{ROOT}.queues"
    old = next(site.keys(MAP_REDUCE_1_PREFIX), None)
    if old is None:
        return InputError(site.describe(key), "no queue under root", "a list such as default")
    found = f"MapReduce 1 keys ({MAP_REDUCE_1_PREFIX}*), which YARN does not read"
    return InputError(site.place(old), found, f"{key} and {PREFIX}root.<queue>.capacity")
