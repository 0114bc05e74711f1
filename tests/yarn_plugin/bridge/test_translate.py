"""From the ResourceManager's events to the core's: servers, gangs, orders."""

from __future__ import annotations

import pytest

from gandiva_core.messages.effects import CommitGang
from gandiva_core.messages.events import (
    GangCommitted,
    GangRefused,
    JobFailed,
    JobFinished,
    JobKilled,
    JobSubmitted,
    ServerJoined,
    ServerLost,
)
from gandiva_core.model.cluster import Server
from gandiva_core.model.job import Worker
from gandiva_core.model.units import AcceleratorType, JobId, ServerId
from tests.yarn_plugin.bridge.applications import (
    APP,
    ATTEMPT,
    GPU,
    Cluster,
    ask,
    submitted,
)
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.gangs import GangRule, gang_rule, owners_limits
from yarn_plugin.bridge.translate import Translator, application_name

# ---------------------------------------------------------------------- which rule


@pytest.mark.parametrize(
    ("tags", "kind", "expected"),
    [
        (("gandiva.gang=4",), "YARN", (GangRule.DECLARED, 4)),
        (("other", " Gandiva.Gang=4 "), "SPARK", (GangRule.DECLARED, 4)),
        (("gandiva.gang=1",), "TONY", (GangRule.INDEPENDENT, 1)),
        ((), "TONY", (GangRule.TONY, 0)),
        ((), "spark", (GangRule.INDEPENDENT, 1)),
        ((), "TEZ", (GangRule.INDEPENDENT, 1)),
        ((), "MAPREDUCE", (GangRule.INDEPENDENT, 1)),
        ((), "YARN", (GangRule.SOFT, 0)),
        (
            ("gandiva.gang=0", "gandiva.gang=-3", "gandiva.gang=x", "gandiva.gang="),
            "YARN",
            (GangRule.SOFT, 0),
        ),
    ],
)
def test_rule(tags: tuple[str, ...], kind: str, expected: tuple[GangRule, int]) -> None:
    assert gang_rule(tags, kind) == expected


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ((), ()),
        (("gandiva.suspend=never", "gandiva.gang=2"), ("suspend",)),
        (("Gandiva.Resize=NEVER ", "gandiva.pack=never"), ("pack", "resize")),
        (("gandiva.suspend=allow", "gandiva.migrate=", "gandiva.suspend"), ()),
    ],
)
def test_owners_limits_are_read_from_tags(tags: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """DESIGN §6: an owner may forbid, and whatever else is written forbids nothing."""
    assert owners_limits(tags) == expected


# ---------------------------------------------------------------------- servers


def test_node_becomes_server_with_what_is_known_beside_yarn() -> None:
    known = Server(ServerId("alpha"), 0, 0, 0, AcceleratorType("P100"))
    translator = Translator(known_servers={"alpha:1": known})
    told = translator.translate(
        [
            wire.NodeAdded(
                node="alpha:1", memory_mib=10, vcores=2, gpus=4, rack="/r9", partition="g"
            )
        ],
        5.0,
    )
    assert told == [
        ServerJoined(5.0, Server(ServerId("alpha"), 4, 10, 2, AcceleratorType("P100"), "/r9", "g"))
    ]


def test_node_without_gpu_is_no_server() -> None:
    translator = Translator()
    node = wire.NodeAdded(node="cpu:1", memory_mib=10, vcores=2, gpus=0)
    assert translator.translate([node, wire.NodeRemoved(node="cpu:1")], 0.0) == []


def test_over_subscription_update_is_no_news_and_a_real_change_is() -> None:
    """DESIGN §4: the schedulable count is inflated, the physical one is what the core knows."""
    cluster = Cluster()
    same = wire.NodeUpdated(node="n1:1", memory_mib=65536, vcores=64, gpus=8, schedulable_gpus=32)
    fewer = wire.NodeUpdated(node="n1:1", memory_mib=65536, vcores=64, gpus=7)
    assert cluster.tell(same) == []
    [joined] = cluster.tell(fewer)
    assert isinstance(joined, ServerJoined)
    assert (joined.server.gpus, joined.server.rack) == (7, "/r")


@pytest.mark.parametrize("state", ["LOST", "UNHEALTHY", "DECOMMISSIONED", "SHUTDOWN"])
def test_node_that_left_by_state_is_lost_once(state: str) -> None:
    cluster = Cluster()
    gone = wire.NodeUpdated(node="n1:1", memory_mib=65536, vcores=64, gpus=8, state=state)
    assert [type(e) for e in cluster.tell(gone, gone, wire.NodeRemoved(node="n1:1"))] == [
        ServerLost
    ]


# ---------------------------------------------------------------------- declared gangs


def test_declared_gang_waits_for_all_of_its_asks() -> None:
    """B01: asks that come one by one make no partial gang."""
    cluster = Cluster()
    cluster.add_app("gandiva.gang=6")
    for count in range(1, 6):
        assert cluster.asks(ask(count)) == []
        assert cluster.rest() == []
    [event] = cluster.asks(ask(6))
    assert isinstance(event, JobSubmitted)
    assert event.job.job_id == APP
    assert event.job.workers == (GPU,) * 6
    assert (event.job.queue, event.job.user) == ("root.a", "ann")
    assert cluster.asks(ask(6)) == []


def test_declared_gang_over_several_sizes() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    assert cluster.asks(ask(1, gpus=4)) == []
    [event] = cluster.asks(ask(1, gpus=4), ask(1, gpus=2, priority=2))
    assert isinstance(event, JobSubmitted)
    assert [worker.gpus for worker in event.job.workers] == [4, 2]
    assert event.job.affinity_class == 8


def test_more_asks_than_declared_make_further_gangs() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    assert submitted(cluster.asks(ask(5))) == [(APP, 2), (f"{APP}#2", 2)]
    assert submitted(cluster.asks(ask(6))) == [(f"{APP}#3", 2)]


def test_place_entries_and_foreign_asks_do_not_count() -> None:
    """Node and rack entries repeat the count of the whole-cluster entry; opportunistic asks bypass every scheduler."""
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    rack = ask(2, resource_name="/r")
    opportunistic = ask(2, priority=7, execution_type="OPPORTUNISTIC")
    cpu = wire.Ask(priority=9, count=5, memory_mib=1, vcores=1, gpus=0)
    assert submitted(cluster.asks(rack, ask(1), opportunistic, cpu)) == []
    assert submitted(cluster.asks(rack, ask(2), opportunistic, cpu)) == [(APP, 2)]


def test_asks_of_an_unknown_or_older_attempt_mean_nothing() -> None:
    cluster = Cluster()
    assert cluster.asks(ask(2)) == []
    cluster.add_app("gandiva.gang=2")
    old = wire.Asks(app=APP, attempt="appattempt_1_0001_000000", asks=(ask(2),))
    assert cluster.tell(old) == []


def test_withdrawn_asks_take_their_job_away_and_may_come_back() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    cluster.asks(ask(2))
    assert cluster.asks(ask(1), at_s=4.0) == [JobKilled(4.0, JobId(APP))]
    assert submitted(cluster.asks(ask(2))) == [(f"{APP}#2", 2)]


def test_label_of_the_asks_is_the_partition() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=1")
    [event] = cluster.asks(ask(1, label="gpu"))
    assert isinstance(event, JobSubmitted)
    assert event.job.partition == "gpu"


# ---------------------------------------------------------------------- TonY, soft, independent


def test_tony_takes_all_priorities_once_they_rest_and_never_singly() -> None:
    cluster = Cluster()
    cluster.add_app(kind="TONY")
    assert cluster.asks(ask(1)) == []
    assert cluster.asks(ask(1), ask(4, priority=2)) == []
    assert submitted(cluster.rest()) == [(APP, 5)]
    assert cluster.translator.next_at_s() is None
    assert cluster.translator.due(1e9) == []


def test_soft_gang_is_tried_whole_then_singly() -> None:
    """DESIGN §6: unchanged for two AM heartbeats, whole; singly after the gang wait."""
    cluster = Cluster()
    cluster.add_app()
    assert cluster.asks(ask(3), at_s=10.0) == []
    assert submitted(cluster.rest(at_s=11.0)) == [(APP, 3)]
    assert cluster.translator.next_at_s() == 311.0
    assert cluster.translator.due(310.9) == []
    events = cluster.translator.due(311.0)
    assert events[0] == JobKilled(311.0, JobId(APP))
    assert submitted(events) == [(f"{APP}#2", 1), (f"{APP}#3", 1), (f"{APP}#4", 1)]
    assert cluster.translator.next_at_s() is None
    assert submitted(cluster.asks(ask(4))) == [(f"{APP}#5", 1)]


def test_soft_gang_that_was_placed_in_time_stays_whole() -> None:
    cluster = Cluster()
    cluster.add_app()
    cluster.asks(ask(2))
    cluster.rest()
    cluster.commit(APP, ["n1:1", "n1:1"], [GPU, GPU])
    assert cluster.translator.next_at_s() is None
    assert cluster.translator.due(1e9) == []


@pytest.mark.parametrize("kind", ["SPARK", "TEZ", "MAPREDUCE"])
def test_elastic_frameworks_are_jobs_a_container(kind: str) -> None:
    cluster = Cluster()
    cluster.add_app(kind=kind)
    assert submitted(cluster.asks(ask(2))) == [(APP, 1), (f"{APP}#2", 1)]
    cluster.commit(f"{APP}#2", ["n3:1"], [GPU])
    assert cluster.ends("c1") == [JobFinished(2.0, JobId(f"{APP}#2"))]
    assert submitted(cluster.asks(ask(2))) == [(f"{APP}#3", 1)]


def test_a_lost_independent_container_is_a_failed_job_and_its_successor_a_new_one() -> None:
    cluster = Cluster()
    cluster.add_app(kind="SPARK")
    cluster.asks(ask(1))
    cluster.commit(APP, ["n1:1"], [GPU])
    [failed] = cluster.ends("c1", exit_status=137)
    assert failed == JobFailed(2.0, JobId(APP), "container ended with status 137")
    assert submitted(cluster.asks(ask(1))) == [(f"{APP}#2", 1)]


def test_a_replay_calls_jobs_by_the_application_name() -> None:
    cluster = Cluster(job_name=application_name)
    cluster.add_app("gandiva.gang=1", name="J17")
    assert submitted(cluster.asks(ask(2))) == [("J17", 1), ("J17#2", 1)]


# ---------------------------------------------------------------------- orders and answers


def test_commit_names_the_ask_of_each_worker() -> None:
    """The order carries the ask's key, so that the right line of the table shrinks; any rank order will do."""
    cluster = Cluster()
    cluster.add_app("gandiva.gang=3")
    cluster.asks(ask(2), ask(1, gpus=4, priority=5))
    big = Worker(4, 4096, 4)
    effect = CommitGang(
        9, JobId(APP), (ServerId("n2:1"), ServerId("n1:1"), ServerId("n1:1")), (big, GPU, GPU)
    )
    [order] = cluster.desk.write([effect], 1.0).orders
    assert isinstance(order, wire.CommitOrder)
    assert (order.id, order.attempt) == (f"9/{APP}", ATTEMPT)
    assert [(c.node, c.priority, c.gpus) for c in order.containers] == [
        ("n2:1", 5, 4),
        ("n1:1", 1, 1),
        ("n1:1", 1, 1),
    ]
    answer = wire.Answer(order.id, "OK", containers=("c1", "c2", "c3"))
    assert cluster.desk.book([answer], 1.0) == [GangCommitted(1.0, JobId(APP), ("c1", "c2", "c3"))]
    assert cluster.desk.book([answer], 1.0) == []


def test_a_refusal_keeps_the_gang_waiting() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    cluster.asks(ask(2))
    effect = CommitGang(9, JobId(APP), (ServerId("n1:1"),) * 2, (GPU, GPU))
    [order] = cluster.desk.write([effect], 1.0).orders
    answer = wire.Answer(order.id, "NO_ROOM", detail="1 of 2 GPUs")
    assert cluster.desk.book([answer], 1.5) == [
        GangRefused(1.5, JobId(APP), "NO_ROOM", "1 of 2 GPUs")
    ]
    assert isinstance(cluster.commit(APP, ["n1:1", "n2:1"], [GPU, GPU])[0], GangCommitted)


@pytest.mark.parametrize(
    ("job", "servers", "workers", "code"),
    [
        ("application_9_9999", ["n1:1", "n1:1"], [GPU, GPU], "ASK_GONE"),
        (APP, ["n1:1", "n9:1"], [GPU, GPU], "NODE_STATE"),
        (APP, ["n1:1", "n1:1"], [GPU, Worker(2, 1024, 1)], "ASK_GONE"),
    ],
)
def test_what_cannot_be_ordered_is_refused_at_once(
    job: str, servers: list[str], workers: list[Worker], code: str
) -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    cluster.asks(ask(2))
    [refused] = cluster.commit(job, servers, workers)
    assert isinstance(refused, GangRefused)
    assert refused.code == code
    assert refused.detail
