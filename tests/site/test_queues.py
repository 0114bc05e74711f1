"""The queue tree: paths, labels, and files that Hadoop refuses as well."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gandiva_core.model.errors import InputError
from gandiva_core.site.capacities import Amount, Kind
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.findings import Severity
from gandiva_core.site.queues import PREFIX, QueueTree, check_queues, leaves, read_queues

Load = Callable[[dict[str, str | dict[str, str]]], SiteConfiguration]


def site_of(load_site: Load, keys: dict[str, str]) -> SiteConfiguration:
    named = {PREFIX + key if key.startswith("root") else key: value for key, value in keys.items()}
    return load_site({"capacity-scheduler.xml": named})


def tree_of(load_site: Load, keys: dict[str, str]) -> QueueTree:
    return read_queues(site_of(load_site, keys))


def test_a_tree_is_read_parents_first(load_site: Load) -> None:
    """H15's shape: nested, without a capacity for root."""
    tree = tree_of(
        load_site,
        {
            "root.queues": "default, fruit",
            "root.fruit.queues": "apples",
            "root.default.capacity": "60",
            "root.fruit.capacity": "40",
            "root.fruit.apples.capacity": "100",
            "root.fruit.apples.ordering-policy": "fair",
        },
    )
    assert list(tree) == ["root", "root.default", "root.fruit", "root.fruit.apples"]
    assert [queue.path for queue in leaves(tree)] == ["root.default", "root.fruit.apples"]
    assert tree["root.fruit.apples"].ordering_policy == "fair"
    assert tree["root.default"].ordering_policy == "fifo"
    assert tree["root.fruit"].limits_in("").capacity.of("x") == Amount(40.0, Kind.PERCENTAGE)


def test_labels_are_inherited_until_a_queue_says_otherwise(load_site: Load) -> None:
    """H02's shape: root has all labels, each queue its own."""
    tree = tree_of(
        load_site,
        {
            "root.queues": "a,b,c",
            "root.accessible-node-labels": "*",
            "root.a.accessible-node-labels": "big",
            "root.a.accessible-node-labels.big.capacity": "100",
            "root.a.default-node-label-expression": "big",
            "root.b.accessible-node-labels": " ",
        },
    )
    assert tree["root.a"].reaches("big")
    assert not tree["root.a"].reaches("small")
    assert not tree["root.b"].reaches("big")
    assert tree["root.c"].reaches("small")
    assert all(queue.reaches("") for queue in tree.values())
    assert tree["root.a"].default_label == "big"
    assert tree["root.a"].limits_in("big").capacity.uniform == Amount(100.0, Kind.PERCENTAGE)
    assert tree["root.b"].limits_in("big").capacity.uniform == Amount(0.0, Kind.PERCENTAGE)


def test_minus_one_means_no_maximum(load_site: Load) -> None:
    """H01."""
    tree = tree_of(load_site, {"root.queues": "a", "root.a.maximum-capacity": "-1"})
    assert tree["root.a"].limits_in("").maximum.of("x") == Amount(100.0, Kind.PERCENTAGE)


def test_settings_of_a_queue_that_is_not_listed_are_told_once(load_site: Load) -> None:
    """H06."""
    site = site_of(
        load_site,
        {
            "root.queues": "a",
            "root.a.capacity": "100",
            "root.default.capacity": "100",
            "root.default.state": "RUNNING",
            "root.accessible-node-labels.x.capacity": "100",
        },
    )
    (finding,) = check_queues(site, read_queues(site))
    assert "root.default" in finding.text
    assert finding.place.endswith("capacity-scheduler.xml:4")


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"root.capacity": "100"}, "no queue under root"),
        ({"mapred.capacity-scheduler.queue.default.capacity": "100"}, "MapReduce 1 keys"),
        ({"root.queues": "a,a"}, "a,a"),
        ({"root.queues": "a", "root.a.capacity": "much"}, "'much'"),
    ],
)
def test_what_hadoop_refuses_is_refused_with_file_line_and_key(
    load_site: Load, keys: dict[str, str], found: str
) -> None:
    """H18 is the second."""
    with pytest.raises(InputError) as caught:
        tree_of(load_site, keys)
    assert found in caught.value.found
    assert "\n" not in str(caught.value)


def test_a_tree_without_end_is_refused(load_site: Load) -> None:
    path = "root"
    keys = {}
    for _ in range(60):
        keys[f"{path}.queues"] = "q"
        path += ".q"
    with pytest.raises(InputError, match="less deep"):
        tree_of(load_site, keys)


def test_a_maximum_below_the_capacity_is_told(load_site: Load) -> None:
    """A real ResourceManager loads it, in a label too."""
    keys = {"root.queues": "a", "root.a.capacity": "100", "root.a.maximum-capacity": "40"}
    label = "root.a.accessible-node-labels.g."
    keys |= {f"{label}capacity": "100", f"{label}maximum-capacity": "30"}
    site = load_site(
        {"capacity-scheduler.xml": {f"{PREFIX}{key}": value for key, value in keys.items()}}
    )
    found = list(check_queues(site, read_queues(site)))
    assert [(item.severity, item.found) for item in found] == [
        (Severity.WARNING, "40"),
        (Severity.WARNING, "30"),
    ]
