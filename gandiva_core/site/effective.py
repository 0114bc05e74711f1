"""What is in force and where it came from: our keys, every queue's switches, and Hadoop's keys that matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from gandiva_core.config.keys import KEYS, PREFIX
from gandiva_core.config.reading import environment_source
from gandiva_core.model.errors import InputError
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.hadoop_keys import HADOOP_KEYS, SHOWN
from gandiva_core.site.queues import QueueTree, read_queues
from gandiva_core.site.switches import DEFAULT_PLACE, read_switches

HADOOP_DEFAULT = "Hadoop's default"
NOT_SET = "not set"
HIDDEN = "(hidden)"

_SECRET = re.compile(r"password|passphrase|secret(?!.*file)|credential|\.zk\.auth$", re.IGNORECASE)


class Effective(msgspec.Struct, frozen=True):
    """One key.

    Attributes:
        value: in force, references expanded; `HIDDEN` for a secret.
        origin: file and line, ``environment NAME``, or whose default it is.
    """

    key: str
    value: str
    origin: str


def shown(site: SiteConfiguration, environment: Mapping[str, str]) -> Iterator[Effective]:
    """What an administrator looks for, in the catalogue's order.

    Raises:
        InputError: references that go in a circle.
    """
    yield from _own(site, environment)
    tree = _tree(site)
    if tree is not None:
        for switch in read_switches(site, tree):
            yield Effective(switch.key, switch.value, switch.place)
    for key in SHOWN:
        yield _one(site, key.name)


def differences(
    left: SiteConfiguration, right: SiteConfiguration
) -> Iterator[tuple[Effective, Effective]]:
    """Keys whose values in force differ; a default that one of them states is no difference.

    Raises:
        InputError: references that go in a circle.
    """
    for key in sorted({*left.keys(), *right.keys()}):
        pair = (_one(left, key), _one(right, key))
        if pair[0].value.strip() != pair[1].value.strip():
            yield _hidden(pair[0]), _hidden(pair[1])


def _own(site: SiteConfiguration, environment: Mapping[str, str]) -> Iterator[Effective]:
    """Our keys; the environment wins, and reaches the core only."""
    sources = {**site.located(PREFIX), **environment_source(environment)}
    for key in KEYS:
        located = sources.get(key.name)
        if located is None:
            yield Effective(key.name, key.default, DEFAULT_PLACE if key.default else NOT_SET)
        else:
            yield Effective(key.name, located.value.strip(), located.place)
    known = {key.name for key in KEYS}
    for name, located in sources.items():
        if name not in known:
            yield Effective(name, located.value.strip(), f"{located.place} (an unknown key)")


def _one(site: SiteConfiguration, key: str) -> Effective:
    value = site.get(key)
    if value is not None:
        return Effective(key, value.strip(), site.place(key))
    own = {known.name: known.default for known in KEYS}
    if key in own:
        return Effective(key, own[key], DEFAULT_PLACE if own[key] else NOT_SET)
    hadoop = HADOOP_KEYS.get(key)
    has_default = hadoop is not None and bool(hadoop.default)
    default = hadoop.default if hadoop is not None else ""
    return Effective(key, default, HADOOP_DEFAULT if has_default else NOT_SET)


def _hidden(item: Effective) -> Effective:
    if item.value and _SECRET.search(item.key):
        return Effective(item.key, HIDDEN, item.origin)
    return item


def _tree(site: SiteConfiguration) -> QueueTree | None:
    """The queues; None where `config validate` would say what is wrong with them."""
    try:
        return read_queues(site)
    except InputError:
        return None
