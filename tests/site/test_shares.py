"""Shares down the tree, and limits in physical GPUs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.model.errors import InputError
from gandiva_core.site.capacities import FULL, Amount, Capacity, Kind
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.queues import PREFIX, Limits, Queue, QueueTree, read_queues
from gandiva_core.site.shares import check_partitions, gpu_limits, shares

Load = Callable[[dict[str, str | dict[str, str]]], SiteConfiguration]


def tree_of(load_site: Load, keys: dict[str, str]) -> QueueTree:
    return read_queues(
        load_site({"capacity-scheduler.xml": {f"{PREFIX}{key}": v for key, v in keys.items()}})
    )


def limits_of(tree: QueueTree, gpus: dict[str, int]) -> dict[str, tuple[float, float]]:
    return {
        str(limit.name): (limit.guaranteed_gpus, limit.max_gpus) for limit in gpu_limits(tree, gpus)
    }


def test_percentages_multiply_down_the_tree(load_site: Load) -> None:
    """H15's numbers."""
    tree = tree_of(
        load_site,
        {
            "root.queues": "default,fruit",
            "root.fruit.queues": "apples,bananas,oranges",
            "root.default.capacity": "60.0",
            "root.fruit.capacity": "40.0",
            "root.fruit.maximum-capacity": "50.0",
            "root.fruit.apples.capacity": "50.0",
            "root.fruit.bananas.capacity": "25.0",
            "root.fruit.bananas.maximum-capacity": "50.0",
            "root.fruit.oranges.capacity": "25.0",
            "root.fruit.oranges.maximum-capacity": "60.0",
        },
    )
    found = shares(tree, 100)
    fruit = {
        path.rpartition(".")[2]: (share.guaranteed_ratio, share.maximum_ratio)
        for path, share in found.items()
    }
    assert fruit["fruit"] == pytest.approx((0.4, 0.5))
    assert fruit["apples"] == pytest.approx((0.2, 0.5))
    assert fruit["bananas"] == pytest.approx((0.1, 0.25))
    assert fruit["oranges"] == pytest.approx((0.1, 0.3))
    assert limits_of(tree, {"": 100})["root.fruit.oranges"] == pytest.approx((10, 30))


def test_weights_divide_the_parents_share(load_site: Load) -> None:
    tree = tree_of(
        load_site, {"root.queues": "a,b", "root.a.capacity": "3w", "root.b.capacity": "1w"}
    )
    assert limits_of(tree, {"": 16}) == {"root": (16, 16), "root.a": (12, 16), "root.b": (4, 16)}


def test_amounts_are_gpus_themselves(load_site: Load) -> None:
    """H21 a."""
    tree = tree_of(
        load_site,
        {
            "root.queues": "train,batch",
            "root.capacity": "[memory=409600,vcores=64,yarn.io/gpu=16]",
            "root.train.capacity": "[memory=307200,vcores=48,yarn.io/gpu=12]",
            "root.batch.capacity": "[memory=102400,vcores=16,yarn.io/gpu=4]",
            "root.batch.maximum-capacity": "[memory=204800,vcores=32,yarn.io/gpu=8]",
        },
    )
    assert limits_of(tree, {"": 16}) == {
        "root": (16, 16),
        "root.train": (12, 16),
        "root.batch": (4, 8),
    }
    memory = shares(tree, 409600, resource="memory-mb")
    assert memory["root.train"].guaranteed_ratio == 0.75
    assert shares(tree, 0)["root.train"].guaranteed_ratio == 0.0


def test_each_partition_has_its_own_shares(load_site: Load) -> None:
    """H21 d: .75 and .25 of the labelled GPUs, half and half of what has no label."""
    keys = {
        "root.queues": "train,batch",
        "root.accessible-node-labels": "gpunode",
        "root.accessible-node-labels.gpunode.capacity": "[memory=400,vcores=64,yarn.io/gpu=16]",
    }
    for queue, gpus in (("train", 12), ("batch", 4)):
        keys[f"root.{queue}.capacity"] = "[memory=200,vcores=32]"
        keys[f"root.{queue}.accessible-node-labels"] = "gpunode"
        label = f"root.{queue}.accessible-node-labels.gpunode.capacity"
        keys[label] = f"[memory={gpus * 25},vcores={gpus * 4},yarn.io/gpu={gpus}]"
    tree = tree_of(load_site, keys)
    assert shares(tree, 400, resource="memory-mb")["root.train"].guaranteed_ratio == 0.5
    assert shares(tree, 16, "gpunode")["root.train"].guaranteed_ratio == 0.75
    limits = limits_of(tree, {"": 0, "gpunode": 16})
    assert (limits["root.train"][0], limits["root.batch"][0]) == (12, 4)


def test_limits_are_told_a_partition_apart(load_site: Load) -> None:
    """DESIGN §4: G and M per queue and partition, in that partition's physical GPUs."""
    keys = {
        "root.queues": "a,b",
        "root.a.capacity": "50",
        "root.b.capacity": "50",
        "root.accessible-node-labels": "fast",
        "root.accessible-node-labels.fast.capacity": "100",
        "root.a.accessible-node-labels.fast.capacity": "25",
        "root.a.accessible-node-labels.fast.maximum-capacity": "75",
        "root.b.accessible-node-labels.fast.capacity": "75",
    }
    found = gpu_limits(tree_of(load_site, keys), {"fast": 8, "": 4})
    figures = [(each.partition, each.name, each.guaranteed_gpus, each.max_gpus) for each in found]
    assert figures == [
        ("", "root", 4, 4),
        ("", "root.a", 2, 4),
        ("", "root.b", 2, 4),
        ("fast", "root", 8, 8),
        ("fast", "root.a", 2, 6),
        ("fast", "root.b", 6, 8),
    ]


def test_ordering_and_switched_off_mechanisms_come_along(load_site: Load) -> None:
    """Per queue keys of Gandiva, inherited down the tree; a child may switch on again what its parent has off."""
    keys = {
        "root.queues": "a,b",
        "root.a.queues": "x,y",
        "root.a.capacity": "50",
        "root.b.capacity": "50",
        "root.a.x.capacity": "50",
        "root.a.y.capacity": "50",
        "root.b.ordering-policy": "fair",
        "root.a.gandiva.slicing": "false",
        "root.a.gandiva.packing": "FALSE",
        "root.a.y.gandiva.slicing": "true",
    }
    found = {each.name: each for each in gpu_limits(tree_of(load_site, keys), {"": 8})}
    off = {name.rpartition(".")[2]: each.mechanisms_off for name, each in found.items()}
    assert off == {
        "root": (),
        "a": ("slicing", "packing"),
        "x": ("slicing", "packing"),
        "y": ("packing",),
        "b": (),
    }
    assert [name for name, each in found.items() if each.ordering == "fair"] == ["root.b"]


def test_a_switch_is_true_or_false(load_site: Load) -> None:
    keys = {"root.queues": "a", "root.a.capacity": "100", "root.a.gandiva.slicing": "maybe"}
    with pytest.raises(InputError, match="maybe"):
        tree_of(load_site, keys)


def test_a_queue_without_access_to_the_gpus_has_none(load_site: Load) -> None:
    """H01's shape: all labelled GPUs belong to one queue, whose applications do not ask there by themselves."""
    tree = tree_of(
        load_site,
        {
            "root.queues": "gpus,default",
            "root.gpus.capacity": "2",
            "root.default.capacity": "98",
            "root.accessible-node-labels": "GPU",
            "root.gpus.accessible-node-labels": "GPU",
            "root.gpus.accessible-node-labels.GPU.capacity": "100",
            "root.default.accessible-node-labels": " ",
        },
    )
    gpus = {"": 0, "GPU": 16}
    assert limits_of(tree, gpus)["root.gpus"] == (16, 16)
    assert limits_of(tree, gpus)["root.default"] == (0, 0)
    (finding,) = check_partitions(tree, gpus)
    assert finding.subject == "root.gpus"
    assert "wait for ever" in finding.text
    assert list(check_partitions(tree, {"": 4, "GPU": 16})) == []


def test_children_must_add_up(load_site: Load) -> None:
    tree = tree_of(
        load_site, {"root.queues": "a,b", "root.a.capacity": "30", "root.b.capacity": "30"}
    )
    with pytest.raises(InputError, match="add up to 60 %"):
        shares(tree, 16)


@pytest.mark.parametrize(("last", "fits"), [("33.334", True), ("33.38", True), ("33.5", False)])
def test_the_sum_has_hadoops_tolerance(load_site: Load, last: str, fits: bool) -> None:
    """H09: 33.333 + 33.333 + 33.334."""
    keys = {"root.queues": "a,b,c", "root.a.capacity": "33.333", "root.b.capacity": "33.333"}
    tree = tree_of(load_site, keys | {"root.c.capacity": last})
    if fits:
        assert shares(tree, 1)["root.a"].guaranteed_ratio == pytest.approx(0.33333)
    else:
        with pytest.raises(InputError):
            shares(tree, 1)


@given(
    parts=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    gpus=st.integers(0, 500),
)
def test_weighted_guarantees_are_the_whole_and_stay_below_maxima(
    parts: list[int], gpus: int
) -> None:
    names = [f"root.q{index}" for index in range(len(parts))]
    queues = {"root": Queue("root", "", tuple(names), {})}
    for name, part in zip(names, parts, strict=True):
        weight = Capacity(Amount(float(part), Kind.WEIGHT))
        queues[name] = Queue(name, "root", (), {"": Limits(weight, FULL)})
    limits = [limit for limit in gpu_limits(queues, {"": gpus}) if limit.parent]
    assert sum(limit.guaranteed_gpus for limit in limits) == pytest.approx(gpus)
    assert all(limit.guaranteed_gpus <= limit.max_gpus + 1e-9 for limit in limits)
