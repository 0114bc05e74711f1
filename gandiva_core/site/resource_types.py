"""Declared resource types, by the rules of Hadoop's `ResourceUtils`."""

from __future__ import annotations

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
    for name in site.texts(TYPES_KEY):
        if _redefines_mandatory(site, name):
            text = f"lists {name}, which is always there; the ResourceManager refuses to start: remove it"
            yield Finding(Severity.ERROR, place, TYPES_KEY, text)
    if not has_gpu(site):
        text = f"{GPU} not in {TYPES_KEY}: the ResourceManager counts no GPU; declare it"
        yield Finding(Severity.ERROR, place, TYPES_KEY, text)
    for name in declared(site):
        yield from _unknown_keys(site, f"{TYPES_KEY}.{name}.")


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
        advice = f"write {prefix}{right}" if right else "Hadoop knows no such key"
        yield Finding(Severity.WARNING, site.place(key), key, f"does nothing: {advice}")
