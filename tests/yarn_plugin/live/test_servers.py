"""What the settings make of servers and queues: who may share devices, heights, limits a partition."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from gandiva_core.messages.events import (
    Event,
    JobKilled,
    QueuesConfigured,
    ServerJoined,
    ServerLost,
)
from gandiva_core.model.cluster import MECHANISMS, QueueLimit, Server
from gandiva_core.model.units import JobId, ServerId
from yarn_plugin.bridge.wire import Adoption, Limit
from yarn_plugin.live.servers import ServerRules


def joined(name: str, gpus: int = 4, partition: str = "") -> ServerJoined:
    return ServerJoined(1.0, Server(ServerId(name), gpus, 8192, 16, partition=partition))


def adoption(mode: str = "full", **changes: object) -> Adoption:
    limits = (
        Limit("root"),
        Limit("root.a", "root", guaranteed_ratio=0.25, max_ratio=0.5, mechanisms_off=("packing",)),
        Limit("root.b", "root", guaranteed_gpus=3.0, max_gpus=6.0, ordering="fair"),
        Limit("root.b", "root", partition="p", guaranteed_ratio=0.5),
    )
    fields = {
        "adopted_queues": ("root.a", "root.b"),
        "adopted_partitions": ("", "p"),
        "height_max": 4,
        "limits": limits,
    }
    return Adoption(mode, **{**fields, **changes})  # type: ignore[arg-type]


def limit(event: Event, queue: str, partition: str = "") -> QueueLimit:
    assert isinstance(event, QueuesConfigured)
    return next(q for q in event.queues if (q.name, q.partition) == (queue, partition))


def can_suspend(event: Event) -> bool:
    assert isinstance(event, ServerJoined)
    return event.server.can_suspend


@pytest.mark.parametrize(
    ("mode", "flag", "expected"),
    [
        ("full", True, True),
        ("full", False, False),
        ("place", True, False),
        ("observe", True, False),
    ],
)
def test_devices_are_shared_in_full_only_and_only_where_something_can_suspend(
    mode: str, *, flag: bool, expected: bool
) -> None:
    rules = ServerRules(can_suspend=lambda _: flag)
    list(rules.settle(adoption(mode), 0.0))
    assert can_suspend(next(rules.complete([joined("a")]))) is expected
    assert [order.height for order in rules.heights()] == ([4] if expected else [])


def test_a_partition_that_is_not_adopted_is_never_shared() -> None:
    rules = ServerRules(can_suspend=lambda _: True)
    list(rules.settle(adoption(adopted_partitions=("",)), 0.0))
    events = rules.complete([joined("a"), joined("b", partition="p")])
    servers = [event for event in events if isinstance(event, ServerJoined)]
    assert [can_suspend(event) for event in servers] == [True, False]


def test_another_mode_is_told_for_servers_that_are_there_and_heights_follow() -> None:
    rules = ServerRules(can_suspend=lambda _: True)
    list(rules.settle(adoption("full"), 0.0))
    list(rules.complete([joined("a"), joined("b")]))
    for order in rules.heights():
        rules.raised(order)
    assert rules.heights() == []
    events = [e for e in rules.settle(adoption("place"), 5.0) if isinstance(e, ServerJoined)]
    assert [(event.at_s, can_suspend(event)) for event in events] == [(5.0, False)] * 2
    assert [(order.node, order.height) for order in rules.heights()] == [("a", 1), ("b", 1)]


def test_a_new_session_asks_for_heights_again_and_a_refused_one_is_tried_again() -> None:
    rules = ServerRules(can_suspend=lambda _: True)
    list(rules.settle(adoption(), 0.0))
    list(rules.complete([joined("a")]))
    (order,) = rules.heights()
    assert rules.heights() == [order]
    rules.raised(order)
    rules.new_session()
    assert rules.heights() == [order]


def test_limits_are_of_physical_gpus_by_partition_and_follow_the_servers_that_are_there() -> None:
    rules = ServerRules(can_suspend=lambda _: False)
    list(rules.settle(adoption(), 0.0))
    events = list(rules.complete([joined("a"), joined("b"), joined("c", 2, "p")]))
    assert [type(event) for event in events] == [ServerJoined, QueuesConfigured] * 3
    a = limit(events[3], "root.a")
    assert (a.guaranteed_gpus, a.max_gpus, a.parent) == (2.0, 4.0, "root")
    b = limit(events[3], "root.b")
    assert (b.guaranteed_gpus, b.max_gpus, b.ordering) == (3.0, 6.0, "fair")
    assert limit(events[5], "root.b", "p").guaranteed_gpus == 1.0
    lost, limits = rules.complete([ServerLost(2.0, ServerId("a"))])
    assert isinstance(lost, ServerLost)
    assert limit(limits, "root.a").guaranteed_gpus == 1.0


@pytest.mark.parametrize("changes", [{"mode": "observe"}, {"adopted_queues": ("root.b",)}])
def test_jobs_of_queues_that_are_not_ours_are_spared_every_mechanism(
    changes: dict[str, object],
) -> None:
    rules = ServerRules(can_suspend=lambda _: True)
    list(rules.settle(adoption(**changes), 0.0))  # type: ignore[arg-type]
    limits = list(rules.complete([joined("a")]))[-1]
    assert limit(limits, "root.a").mechanisms_off == MECHANISMS
    if changes.get("mode") != "observe":
        assert limit(limits, "root").mechanisms_off == (), "a parent's other leaves are ours"


def test_a_queues_own_switches_are_kept() -> None:
    rules = ServerRules(can_suspend=lambda _: True)
    list(rules.settle(adoption(), 0.0))
    limits = list(rules.complete([joined("a")]))[-1]
    assert limit(limits, "root.a").mechanisms_off == ("packing",)


def test_nothing_is_said_twice_and_other_events_pass() -> None:
    rules = ServerRules(can_suspend=lambda _: False)
    list(rules.settle(adoption(), 0.0))
    list(rules.complete([joined("a")]))
    killed = JobKilled(2.0, JobId("J"))
    events = list(rules.complete([joined("a"), killed]))
    assert [type(event) for event in events] == [ServerJoined, JobKilled]
    assert list(rules.settle(adoption(), 3.0)) == []


def test_devices_that_are_lost_are_not_the_servers_however_often_it_is_looked_at() -> None:
    """G-13: YARN goes on telling of all of them."""
    lost = 0
    rules = ServerRules(can_suspend=lambda _: True, lost_gpus=lambda _: lost)

    def gpus(events: Iterable[Event]) -> list[int]:
        return [event.server.gpus for event in events if isinstance(event, ServerJoined)]

    assert gpus(rules.complete([joined("s1")])) == [4]
    lost = 1
    assert gpus(rules.review([ServerId("s1")], 1.0)) == [3]
    assert gpus(rules.review([ServerId("s1")], 1.0)) == []
    assert gpus(rules.complete([joined("s1")])) == [3]


def test_a_server_that_yarn_decommissions_is_emptied_whatever_people_say() -> None:
    """DESIGN §5; only YARN opens it again."""
    rules = ServerRules(can_suspend=lambda _: True)
    leaving = msgspec.structs.replace(joined("s1").server, is_draining=True)
    (event,) = rules.complete([ServerJoined(1.0, leaving)])
    assert isinstance(event, ServerJoined)
    assert event.server.is_draining
    assert list(rules.drain(ServerId("s1"), 2.0, is_draining=False)) == []
    (event,) = rules.complete([joined("s1")])
    assert isinstance(event, ServerJoined)
    assert not event.server.is_draining
