"""Tests of one module that follow each other on one cluster stay in the order in which they are written."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests of a module with `IN_ORDER` back, wherever a shuffle has taken them."""
    places: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        if _is_in_order(item):
            places.setdefault(item.location[0], []).append(at)
    for mine in (
        places.values()
    ):  # each module by itself: its cluster is up from its first test to its last
        ordered = sorted((items[at] for at in mine), key=_line)
        for at, item in zip(mine, ordered, strict=True):
            items[at] = item


def _is_in_order(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and getattr(item.module, "IN_ORDER", False)


def _line(item: pytest.Item) -> int:
    return item.location[1] or 0
