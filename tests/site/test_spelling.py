"""Keys beside a well-known one."""

from __future__ import annotations

import pytest

from gandiva_core.site.spelling import edits, misspelt, near


@pytest.mark.parametrize(
    ("left", "right", "count"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "abd", 1), ("abc", "acb", 1), ("abc", "", 3)],
)
def test_edits(left: str, right: str, count: int) -> None:
    assert edits(left, right) == edits(right, left) == count


@pytest.mark.parametrize(
    ("key", "likely"),
    [
        ("yarn.scheduler.minimun-allocation-mb", "yarn.scheduler.minimum-allocation-mb"),
        ("yarn.nodemanager.aux-service", "yarn.nodemanager.aux-services"),
        ("yarn.nodemanager.Aux-Services", "yarn.nodemanager.aux-services"),
        ("yarn.scheduler.minimum-allocation-mb", None),
        ("yarn.scheduler.increment-allocation-mb", None),
        ("yarn.resourcemanager.address.rm1", None),
        ("yarn.scheduler.gandiva.moed", None),
        ("a.b", None),
        ("yarn.scheduler.capacity.resource-calculater", "yarn.scheduler.capacity.resource-calcu"),
        ("yarn.scheduler.capacity.root.a.capacitty", "yarn.scheduler.capacity.root.a.capacity"),
        ("yarn.scheduler.capacity.root.a.user-settings.joe.weight", None),
    ],
)
def test_only_what_is_near_and_not_known(key: str, likely: str | None) -> None:
    found = misspelt(key, ["root", "root.a"])
    assert found is None if likely is None else str(found).startswith(likely)


def test_two_parts_that_differ_are_another_key() -> None:
    assert near("yarn.schedular.minimun-x", ("yarn.scheduler.minimum-x",)) is None
    assert near("yarn.rm1.address", ("yarn.rm2.address",)) is None
