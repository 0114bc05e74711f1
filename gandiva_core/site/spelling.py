"""Keys that are one or two letters beside a well-known one (case H12)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gandiva_core.config.keys import BY_NAME
from gandiva_core.config.keys import PREFIX as OWN_PREFIX
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.hadoop_keys import (
    HADOOP_KEYS,
    QUEUE_PREFIX,
    QUEUE_SUFFIXES,
    SCHEDULER_SUFFIXES,
)
from gandiva_core.site.queues import QueueTree

EDITS_MAX = 2
"""Letters added, dropped, changed or swapped in one part of a key."""
PART_LENGTH_MIN = 5
"""Shorter parts (rm1, rm2) differ by a letter on purpose."""


def check_spelling(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """Keys that Hadoop does not read and that look like one that it does."""
    for key in site.keys(""):
        likely = misspelt(key, tree)
        if likely is not None:
            advice = f"as it stands it does nothing: write {likely} or remove it"
            place = site.place(key)
            yield Finding(Severity.WARNING, place, key, "an unknown key", likely, advice)


def misspelt(key: str, queues: Collection[str] = ()) -> str | None:
    """The well-known key that this one is probably meant to be; None for one that is known, or far from all.

    Unknown keys of ours (`yarn.scheduler.gandiva.*`) are errors elsewhere, with their likely name.
    """
    if key.startswith(OWN_PREFIX) or key in HADOOP_KEYS:
        return None
    if not key.startswith(QUEUE_PREFIX):
        return near(key, (*HADOOP_KEYS, *BY_NAME))
    rest = key.removeprefix(QUEUE_PREFIX)
    path = max((q for q in queues if rest.startswith(f"{q}.")), key=len, default="")
    suffixes = QUEUE_SUFFIXES if path else SCHEDULER_SUFFIXES
    prefix = f"{QUEUE_PREFIX}{path}." if path else QUEUE_PREFIX
    likely = near(key.removeprefix(prefix), tuple(suffixes))
    return None if likely is None else prefix + likely


def near(name: str, known: Sequence[str]) -> str | None:
    """The known name with all parts but one the same, and that one nearly."""
    if name in known:
        return None
    parts = name.split(".")
    found = (other for other in known if _is_near(parts, other.split(".")))
    return next(found, None)


def _is_near(parts: Sequence[str], others: Sequence[str]) -> bool:
    if len(parts) != len(others):
        return False
    different = [pair for pair in zip(parts, others, strict=True) if pair[0] != pair[1]]
    if len(different) != 1:
        return False
    ours, other = different[0]
    if min(len(ours), len(other)) < PART_LENGTH_MIN or abs(len(ours) - len(other)) > EDITS_MAX:
        return False
    return edits(ours.lower(), other.lower()) <= EDITS_MAX


def edits(left: str, right: str) -> int:
    """Letters to add, drop, change or swap with their neighbour to make one of the other."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
