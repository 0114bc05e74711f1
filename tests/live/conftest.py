"""Tests of one module that follow each other on one cluster stay in the order in which they are written."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests of a module with `IN_ORDER` back, wherever a shuffle has taken them."""
    places = [at for at, item in enumerate(items) if _is_in_order(item)]
    ordered = sorted((items[at] for at in places), key=_place)
    for at, item in zip(places, ordered, strict=True):
        items[at] = item


def _is_in_order(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and getattr(item.module, "IN_ORDER", False)


def _place(item: pytest.Item) -> tuple[str, int]:
    path, line, _ = item.location
    return path, line or 0
