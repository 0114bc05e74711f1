"""What servers can do without agents, and what queues may have of them."""

from __future__ import annotations

import pytest

from gandiva_core.messages.events import (
    Event,
    JobKilled,
    QueuesConfigured,
    ServerJoined,
    ServerLost,
)
from gandiva_core.model.cluster import Server
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.site.configuration import SiteConfiguration
from gandiva_core.site.hadoop_xml import Property
from gandiva_core.site.queues import QueueTree, read_queues
from yarn_plugin.live.servers import ServerRules


def joined(name: str, gpus: int = 4) -> ServerJoined:
    return ServerJoined(1.0, Server(ServerId(name), gpus, 8192, 16))


def queues() -> QueueTree:
    keys = {"root.queues": "a,b", "root.a.capacity": "25", "root.b.capacity": "75"}
    values = [
        Property(f"yarn.scheduler.capacity.{key}", value, False, "capacity-scheduler.xml", 1)
        for key, value in keys.items()
    ]
    return read_queues(SiteConfiguration(values))


def guaranteed(event: Event) -> dict[str, float]:
    assert isinstance(event, QueuesConfigured)
    return {str(queue.name): queue.guaranteed_gpus for queue in event.queues}


@pytest.mark.parametrize("can_suspend", [False, True])
def test_servers_are_over_subscribed_only_where_the_site_says_so(can_suspend: bool) -> None:
    (event,) = ServerRules(None, can_suspend=can_suspend).complete([joined("a")])
    assert isinstance(event, ServerJoined)
    assert event.server.can_suspend is can_suspend


def test_queues_follow_the_servers_that_are_there() -> None:
    rules = ServerRules(queues(), can_suspend=False)
    events = list(rules.complete([joined("a"), joined("b")]))
    assert [type(event) for event in events] == [ServerJoined, QueuesConfigured] * 2
    assert guaranteed(events[1])["root.a"] == 1.0
    assert guaranteed(events[3])["root.a"] == 2.0
    lost, limits = rules.complete([ServerLost(2.0, ServerId("a"))])
    assert isinstance(lost, ServerLost)
    assert guaranteed(limits)["root.b"] == 3.0


def test_nothing_is_said_twice_and_other_events_pass() -> None:
    rules = ServerRules(queues(), can_suspend=False)
    list(rules.complete([joined("a")]))
    killed = JobKilled(2.0, JobId("J"))
    events = list(rules.complete([joined("a"), killed]))
    assert [type(event) for event in events] == [ServerJoined, JobKilled]
