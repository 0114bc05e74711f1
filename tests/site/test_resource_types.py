"""Declared types, and keys that do nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Severity
from gandiva_core.site.resource_types import (
    UNLIMITED,
    check_resource_types,
    declared,
    gpu_maximum_allocation,
    has_gpu,
)

Load = Callable[[dict[str, str | dict[str, str]]], SiteConfiguration]
GPU_TYPE = {"yarn.resource-types": "yarn.io/gpu"}


def test_a_site_with_gpus_has_nothing_to_say(load_site: Load) -> None:
    site = load_site({"resource-types.xml": GPU_TYPE})
    assert declared(site) == ("memory-mb", "vcores", "yarn.io/gpu")
    assert has_gpu(site)
    assert list(check_resource_types(site)) == []


def test_other_vendors_devices_are_no_gpus(load_site: Load) -> None:
    """H03."""
    site = load_site({"resource-types.xml": {"yarn.resource-types": "a.com/ve,b.com/cmp"}})
    assert declared(site) == ("memory-mb", "vcores", "a.com/ve", "b.com/cmp")
    (finding,) = check_resource_types(site)
    assert finding.severity is Severity.ERROR
    assert "yarn.io/gpu not in yarn.resource-types" in finding.text


@pytest.mark.parametrize(
    ("types", "units", "is_error"),
    [
        ("memory-mb,vcores", {}, True),
        ("memory", {}, True),
        ("vcores", {}, False),
        ("memory-mb", {"yarn.resource-types.memory-mb.units": "Mi"}, False),
        ("vcores", {"yarn.resource-types.vcores.units": "k"}, True),
    ],
)
def test_a_mandatory_type_cannot_be_declared_again(
    load_site: Load, types: str, units: dict[str, str], is_error: bool
) -> None:
    """H04."""
    keys = {"yarn.resource-types": f"{types},yarn.io/gpu"} | units
    errors = [
        finding
        for finding in check_resource_types(load_site({"resource-types.xml": keys}))
        if finding.severity is Severity.ERROR
    ]
    assert bool(errors) is is_error
    assert all(finding.place.endswith("resource-types.xml:2") for finding in errors)


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"yarn.resource-types": "yarn.io/gpu,yarn.io/gpu"}, "yarn.io/gpu twice"),
        ({"yarn.resource-types": "yarn.io/gpu,%x"}, "'%x'"),
        (GPU_TYPE | {"yarn.resource-types.yarn.io/gpu.maximum-allocation": "all"}, "'all'"),
        (GPU_TYPE | {"yarn.resource-types.yarn.io/gpu.units": "k"}, "'k'"),
        (GPU_TYPE | {"yarn.resource-types.yarn.io/gpu.type": "countable"}, "'countable'"),
    ],
)
def test_what_hadoop_cannot_read_is_an_error(
    load_site: Load, keys: dict[str, str], found: str
) -> None:
    (finding,) = check_resource_types(load_site({"resource-types.xml": keys}))
    assert finding.severity is Severity.ERROR
    assert finding.found == found


def test_names_from_old_documents_do_nothing_and_are_told(load_site: Load) -> None:
    """H23 b and c."""
    old = GPU_TYPE | {"yarn.resource-types.yarn.io/gpu.maximum": "4"}
    site = load_site({"resource-types.xml": old})
    assert gpu_maximum_allocation(site) == UNLIMITED
    (finding,) = check_resource_types(site)
    assert "write yarn.resource-types.yarn.io/gpu.maximum-allocation" in finding.text
    new = GPU_TYPE | {"yarn.resource-types.yarn.io/gpu.maximum-allocation": "4"}
    assert gpu_maximum_allocation(load_site({"resource-types.xml": new})) == 4
    odd = GPU_TYPE | {"yarn.resource-types.yarn.io/gpu.colour": "4"}
    (finding,) = check_resource_types(load_site({"resource-types.xml": odd}))
    assert "it does nothing: remove it" in finding.text
