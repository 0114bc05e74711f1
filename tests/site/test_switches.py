"""Mechanisms per queue, inherited down the tree."""

from __future__ import annotations

from collections.abc import Callable

from gandiva_core.model.cluster import MECHANISMS
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.queues import PREFIX, read_queues
from gandiva_core.site.switches import check_switches, read_switches, switch_key

Load = Callable[[dict[str, str | dict[str, str]]], SiteConfiguration]


def test_a_queue_that_says_nothing_has_its_parents_value(load_site: Load) -> None:
    keys = {
        f"{PREFIX}root.queues": "a,b",
        f"{PREFIX}root.a.queues": "x,y",
        switch_key("root.a", "slicing"): "false",
        switch_key("root.a.y", "slicing"): " TRUE ",
    }
    site = load_site({"capacity-scheduler.xml": keys})
    tree = read_queues(site)
    switches = {switch.key: switch for switch in read_switches(site, tree)}
    assert len(switches) == len(tree) * len(MECHANISMS)
    values = {path: switches[switch_key(path, "slicing")].value for path in tree}
    assert values == {
        "root": "true",
        "root.a": "false",
        "root.a.x": "false",
        "root.a.y": "TRUE",
        "root.b": "true",
    }
    inherited = switches[switch_key("root.a.x", "slicing")]
    assert inherited.place == site.place(switch_key("root.a", "slicing"))
    assert switches[switch_key("root.b", "packing")].place == "default"
    assert list(check_switches(site, tree)) == []
