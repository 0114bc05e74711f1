"""Declared resource types, by the rules of Hadoop's `ResourceUtils`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Finding, Severity

GPU = "yarn.io/gpu"
MEMORY = "memory-mb"
VCORES = "vcores"
TYPES_KEY = "yarn.resource-types"
UNLIMITED = 2**63 - 1
"""What Hadoop takes for a maximum that is not set."""

_MANDATORY_UNITS = {MEMORY: "Mi", VCORES: ""}
_KNOWN_SUFFIXES = frozenset(
    {
        "units",
        "type",
        "tags",
        "attributes",
        "minimum-allocation",
        "maximum-allocation",
        "increment-allocation",
    }
)
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9-]+)*/)?[A-Za-z][A-Za-z0-9._-]*")
_WHOLE = re.compile(r"[-+]?[0-9]+")
_OLD_SUFFIXES = {"minimum": "minimum-allocation", "maximum": "maximum-allocation"}


def declared(site: SiteConfiguration) -> tuple[str, ...]:
    """Every type the cluster knows, memory and vcores first."""
    extra = (name for name in site.texts(TYPES_KEY) if name not in _MANDATORY_UNITS)
    return (MEMORY, VCORES, *extra)


def has_gpu(site: SiteConfiguration) -> bool:
    """Whether GPUs are counted at all."""
    return GPU in site.texts(TYPES_KEY)


def gpu_maximum_allocation(site: SiteConfiguration) -> int:
    """GPUs in one container at most, as configured; `UNLIMITED` where nothing is."""
    return site.whole(f"{TYPES_KEY}.{GPU}.maximum-allocation", UNLIMITED)


def check_resource_types(site: SiteConfiguration) -> Iterator[Finding]:
    """What is wrong with the declared types (cases H03, H04, H23)."""
    place = site.place(TYPES_KEY)
    names = site.texts(TYPES_KEY)
    for name in dict.fromkeys(names):
        if _redefines_mandatory(site, name):
            yield _refused(site, name, "only types beside memory-mb and vcores", f"remove {name}")
        elif names.count(name) > 1:
            yield _refused(site, f"{name} twice", "each type once", "remove one")
        elif not _NAME.fullmatch(name):
            yield _refused(site, repr(name), "a name such as yarn.io/gpu", "correct it")
    if not has_gpu(site):
        text = "the ResourceManager counts no GPU: declare it on every ResourceManager, node and client"
        yield Finding(Severity.ERROR, place, TYPES_KEY, f"{GPU} not in {TYPES_KEY}", GPU, text)
    for name in declared(site):
        yield from _unknown_keys(site, f"{TYPES_KEY}.{name}.")
        yield from _bad_values(site, name)


def _refused(site: SiteConfiguration, found: str, expected: str, todo: str) -> Finding:
    advice = f"the ResourceManager refuses to start: {todo}"
    return Finding(Severity.ERROR, site.place(TYPES_KEY), TYPES_KEY, found, expected, advice)


def _redefines_mandatory(site: SiteConfiguration, name: str) -> bool:
    """Hadoop accepts memory-mb and vcores in the list only with exactly their own units."""
    if name == "memory":
        return True
    units = _MANDATORY_UNITS.get(name)
    return units is not None and site.text(f"{TYPES_KEY}.{name}.units") != units


def _unknown_keys(site: SiteConfiguration, prefix: str) -> Iterator[Finding]:
    for key in site.keys(prefix):
        suffix = key.removeprefix(prefix)
        if suffix in _KNOWN_SUFFIXES:
            continue
        right = _OLD_SUFFIXES.get(suffix)
        expected = f"{prefix}{right}" if right else "a key that Hadoop knows"
        advice = (
            f"it does nothing: write {prefix}{right}" if right else "it does nothing: remove it"
        )
        yield Finding(Severity.WARNING, site.place(key), key, "an unknown key", expected, advice)


def _bad_values(site: SiteConfiguration, name: str) -> Iterator[Finding]:
    """What Hadoop does not parse: bounds in words, a type that is none, another unit for GPUs."""
    checks = (
        ("minimum-allocation", _WHOLE, "a whole number"),
        ("maximum-allocation", _WHOLE, "a whole number"),
        ("type", re.compile("COUNTABLE"), "COUNTABLE"),
        *([("units", re.compile(""), "no unit")] if name == GPU else []),
    )
    for suffix, pattern, expected in checks:
        key = f"{TYPES_KEY}.{name}.{suffix}"
        if site.text(key) and not pattern.fullmatch(site.text(key)):
            advice = "the ResourceManager refuses to start: correct it"
            found = repr(site.text(key))
            yield Finding(Severity.ERROR, site.place(key), key, found, expected, advice)
