"""Per queue switches of mechanisms: `yarn.scheduler.capacity.<queue>.gandiva.<mechanism>`, inherited down the tree."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

import msgspec

from gandiva_core.model.cluster import MECHANISMS
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity
from gandiva_core.site.queues import PREFIX, QueueTree

MARK = ".gandiva."
GROWING = ("auto-create-child-queue.enabled", "auto-queue-creation-v2.enabled", "reservable")
"""Children of a queue with one of these come and go with their applications."""
DEFAULT_PLACE = "default"


class Switch(msgspec.Struct, frozen=True):
    """One mechanism in one queue.

    Attributes:
        key: the queue's own key, set or not.
        value: ``true`` or ``false``, as written where it is set.
        place: file and line of the key in force, the queue's or one of its ancestors'; `DEFAULT_PLACE` for none.
    """

    key: str
    value: str
    place: str


def switch_key(queue: str, mechanism: str) -> str:
    """The key of a mechanism in a queue."""
    return f"{PREFIX}{queue}{MARK}{mechanism}"


def read_switches(site: SiteConfiguration, tree: QueueTree) -> tuple[Switch, ...]:
    """Every queue's switches, parents first; a queue that says nothing has its parent's."""
    found: dict[tuple[str, str], Switch] = {}
    for queue in tree.values():
        for mechanism in MECHANISMS:
            key = switch_key(queue.path, mechanism)
            above = found.get((queue.parent, mechanism))
            value, place = (above.value, above.place) if above else ("true", DEFAULT_PLACE)
            if site.text(key):
                value, place = site.text(key), site.place(key)
            found[queue.path, mechanism] = Switch(key, value, place)
    return tuple(found.values())


def check_switches(site: SiteConfiguration, tree: QueueTree) -> Iterator[Finding]:
    """Switches of queues or mechanisms that are not there; values are looked at as the tree is read."""
    for key in site.keys(PREFIX):
        queue, mark, mechanism = key.removeprefix(PREFIX).rpartition(MARK)
        if not mark:
            continue
        if mechanism not in MECHANISMS:
            close = get_close_matches(mechanism, MECHANISMS, n=1, cutoff=0.6)
            expected = f"{close[0]}?" if close else f"one of {', '.join(MECHANISMS)}"
            yield _refused(site, key, f"no mechanism {mechanism!r}", expected)
        elif not is_queue(site, queue, tree):
            likely = nearest_queue(queue, tree)
            expected = f"{likely}?" if likely else f"one of {', '.join(tree)}"
            yield _refused(site, key, f"no queue {queue}", expected)


def is_queue(site: SiteConfiguration, path: str, tree: QueueTree) -> bool:
    """Whether there is a queue of this path, or one may come by itself below its parent."""
    if path in tree:
        return True
    above = path
    while "." in above:
        above = above.rpartition(".")[0]
        if above in tree:
            return any(site.flag(f"{PREFIX}{above}.{word}", False) for word in GROWING)
    return False


def nearest_queue(name: str, tree: QueueTree) -> str | None:
    """The path that a name is probably meant to be: a leaf by its short name, or one that looks alike."""
    ending = [path for path in tree if path.endswith(f".{name}")]
    if ending:
        return ending[0]
    close = get_close_matches(name, tree, n=1, cutoff=0.6)
    return close[0] if close else None


def _refused(site: SiteConfiguration, key: str, found: str, expected: str) -> Finding:
    advice = "the ResourceManager refuses to start, or to refresh: correct it"
    return Finding(Severity.ERROR, site.place(key), key, found, expected, advice)
