"""Containers that are there and that the core did not order: which job each becomes, and that none is given back."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from gandiva_core.messages.effects import CommitGang, ReleaseGang
from gandiva_core.messages.events import (
    Event,
    GangRefused,
    JobAdopted,
    JobFailed,
    JobFinished,
    JobKilled,
    JobSubmitted,
    ReclaimAsked,
    ServerJoined,
    ServerLost,
)
from gandiva_core.model.units import JobId, ServerId
from tests.yarn_plugin.bridge.applications import APP, ATTEMPT, GPU, Cluster, ask, submitted
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.adoption import container_order

SIZE = {"priority": 1, "allocation_request_id": 0, "memory_mib": 1024, "vcores": 1, "gpus": 1}


def live(name: str, node: str = "n1:1") -> wire.LiveContainer:
    return wire.LiveContainer(name, node, **SIZE)  # type: ignore[arg-type]


def allocated(name: str, node: str = "n1:1") -> wire.ContainerAllocated:
    return wire.ContainerAllocated(app=APP, attempt=ATTEMPT, container=name, node=node, **SIZE)  # type: ignore[arg-type]


def recovered(name: str, node: str = "n1:1") -> wire.ContainerRecovered:
    return wire.ContainerRecovered(app=APP, attempt=ATTEMPT, container=name, node=node, **SIZE)  # type: ignore[arg-type]


def node_added(number: int) -> wire.NodeAdded:
    return wire.NodeAdded(node=f"n{number}:1", memory_mib=65536, vcores=64, gpus=8, rack="/r")


def snapshot(
    *containers: wire.LiveContainer,
    tags: tuple[str, ...] = (),
    kind: str = "YARN",
    asks: tuple[wire.Ask, ...] = (),
    nodes: Iterable[int] = range(1, 5),
    settings: wire.Adoption | None = None,
) -> wire.Resync:
    app = wire.ResyncApp(
        app=APP,
        attempt=ATTEMPT,
        queue="root.a",
        tags=tags,
        type=kind,
        asks=asks,
        containers=containers,
    )
    rows = tuple(
        wire.ResyncNode(node=f"n{n}:1", memory_mib=65536, vcores=64, gpus=8, rack="/r")
        for n in nodes
    )
    return wire.Resync(part=1, parts=1, nodes=rows, apps=(app,), settings=settings)


def adopted(events: Iterable[Event]) -> list[tuple[str, tuple[str, ...]]]:
    return [(e.job.job_id, e.containers) for e in events if isinstance(e, JobAdopted)]


def mode(word: str, *queues: str) -> wire.Settings:
    return wire.Settings(mode=word, adopted_queues=queues, adopted_partitions=("",), height_max=4)


# ---------------------------------------------------------------------- a core that knows nothing


def test_containers_are_ordered_by_epoch_and_number_not_by_text() -> None:
    names = [
        "container_e17_1_0001_01_000002",
        "container_1_0001_01_000010",
        "container_1_0001_01_000009",
    ]
    assert sorted(names, key=container_order) == [names[2], names[1], names[0]]


@pytest.mark.parametrize(
    ("tags", "kind", "expected"),
    [
        (
            ("gandiva.gang=1",),
            "YARN",
            [(APP, ("c1",)), (f"{APP}#2", ("c2",)), (f"{APP}#3", ("c3",))],
        ),
        (("gandiva.gang=2",), "YARN", [(APP, ("c1", "c2")), (f"{APP}#2", ("c3",))]),
        ((), "TONY", [(APP, ("c1", "c2", "c3"))]),
        ((), "YARN", [(APP, ("c1", "c2", "c3"))]),
    ],
)
def test_they_are_grouped_by_the_applications_rule(
    tags: tuple[str, ...], kind: str, expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    cluster = Cluster()
    events = cluster.tell(
        snapshot(live("c3"), live("c1"), live("c2", "n2:1"), tags=tags, kind=kind)
    )
    assert adopted(events) == expected


def test_an_adopted_job_says_where_its_containers_are_and_how_large() -> None:
    cluster = Cluster()
    (event,) = cluster.tell(snapshot(live("c1"), live("c2", "n3:1")), at_s=7.0)
    assert isinstance(event, JobAdopted)
    assert event.servers == (ServerId("n1:1"), ServerId("n3:1"))
    assert (event.job.workers, event.job.queue, event.at_s) == ((GPU, GPU), "root.a", 7.0)


def test_what_is_asked_for_beside_them_waits_as_a_job_of_its_own() -> None:
    cluster = Cluster()
    events = cluster.tell(snapshot(live("c1"), tags=("gandiva.gang=1",), asks=(ask(2),)))
    assert adopted(events) == [(APP, ("c1",))]
    assert submitted(events) == [(f"{APP}#2", 1), (f"{APP}#3", 1)]


def test_the_rest_of_a_declared_gang_is_placed_together_and_not_before_it_is_asked_for() -> None:
    """Three of four are there: waiting for four more asks would be waiting for ever."""
    cluster = Cluster()
    tags = ("gandiva.gang=4",)
    cluster.tell(snapshot(*(live(f"c{n}") for n in range(1, 7)), tags=tags, asks=(ask(1),)))
    assert submitted(cluster.asks(ask(2))) == [(f"{APP}#3", 2)]
    assert submitted(cluster.asks(ask(6))) == [(f"{APP}#4", 4)]


def test_asks_without_a_declared_gang_are_taken_to_rest_some_seconds_after_a_snapshot() -> None:
    """Nobody tells a new core that they did not change."""
    cluster = Cluster()
    assert submitted(cluster.tell(snapshot(asks=(ask(3),)), at_s=10.0)) == []
    assert cluster.translator.next_at_s() == 13.0
    assert submitted(cluster.translator.due(13.0)) == [(APP, 3)]


# ---------------------------------------------------------------------- a commit whose answer was lost


def pending(count: int, *tags: str) -> Cluster:
    cluster = Cluster()
    cluster.add_app(*tags)
    cluster.asks(ask(count))
    return cluster


def lose_answer(cluster: Cluster, job: str, workers: int) -> None:
    effect = CommitGang(1, JobId(job), (ServerId("n1:1"),) * workers, (GPU,) * workers)
    (order,) = cluster.desk.write([effect], 1.0).orders
    (refused,) = cluster.desk.book([wire.Answer(order.id, "STALE_EPOCH")], 1.0)
    assert isinstance(refused, GangRefused)


def test_a_lost_answer_is_found_in_the_snapshot_and_the_job_keeps_its_name() -> None:
    cluster = pending(4, "gandiva.gang=2")
    lose_answer(cluster, APP, 2)
    events = cluster.tell(
        snapshot(live("c1"), live("c2"), tags=("gandiva.gang=2",), asks=(ask(2),))
    )
    assert adopted(events) == [(APP, ("c1", "c2"))]
    assert len(events) == 1
    gang = cluster.register.apps[APP].gangs[JobId(APP)]
    assert gang.live == ["c1", "c2"]


def test_an_order_that_was_lost_itself_changes_nothing() -> None:
    cluster = pending(2, "gandiva.gang=2")
    lose_answer(cluster, APP, 2)
    assert cluster.tell(snapshot(tags=("gandiva.gang=2",), asks=(ask(2),))) == []


def test_a_gang_whose_containers_ended_meanwhile_in_part_is_no_longer_waited_for() -> None:
    cluster = pending(2, "gandiva.gang=2")
    lose_answer(cluster, APP, 2)
    events = cluster.tell(snapshot(live("c2"), tags=("gandiva.gang=2",)))
    assert [type(event) for event in events] == [JobAdopted, JobKilled]
    assert adopted(events) == [(f"{APP}#2", ("c2",))]


# ---------------------------------------------------------------------- a ResourceManager that restarted


def held_gang() -> Cluster:
    cluster = pending(2, "gandiva.gang=2")
    cluster.commit(APP, ["n1:1", "n2:1"], [GPU, GPU])
    return cluster


def test_nodes_that_come_back_one_by_one_bring_their_job_back_under_its_name() -> None:
    """E4: the snapshot after the restart has no node yet, and nothing may be given back because of it."""
    cluster = held_gang()
    events = cluster.tell(snapshot(tags=("gandiva.gang=2",), nodes=()))
    assert {type(event) for event in events} == {ServerLost}
    assert cluster.desk.write([ReleaseGang(5, JobId(APP), "lost")], 2.0).orders == ()
    first = cluster.tell(node_added(1), recovered("c1"))
    assert adopted(first) == [(f"{APP}#2", ("c1",))]
    second = cluster.tell(node_added(2), recovered("c2", "n2:1"))
    assert adopted(second) == [(APP, ("c1", "c2"))]
    assert [e.job_id for e in second if isinstance(e, JobKilled)] == [f"{APP}#2"]


def test_a_snapshot_with_half_of_a_gangs_nodes_gives_nothing_back() -> None:
    cluster = held_gang()
    events = cluster.tell(snapshot(live("c1"), tags=("gandiva.gang=2",), nodes=(1,)))
    assert adopted(events) == [(f"{APP}#2", ("c1",))]
    assert cluster.desk.write([ReleaseGang(5, JobId(APP), "lost")], 2.0).orders == ()
    events = cluster.tell(node_added(2), recovered("c2", "n2:1"))
    assert adopted(events) == [(APP, ("c1", "c2"))]


def test_containers_wait_for_their_node() -> None:
    cluster = Cluster()
    events = cluster.tell(snapshot(live("c1", "n9:1"), tags=("gandiva.gang=1",)))
    assert adopted(events) == []
    events = cluster.tell(node_added(9))
    assert [type(event) for event in events] == [ServerJoined, JobAdopted]
    assert cluster.tell(recovered("c1", "n9:1")) == [], "told twice"


def test_recovered_containers_serve_no_ask() -> None:
    cluster = pending(2, "gandiva.gang=1")
    events = cluster.tell(recovered("c1"))
    assert adopted(events) == [(f"{APP}#3", ("c1",))]
    assert [job for job, gang in cluster.register.apps[APP].gangs.items() if not gang.live] == [
        APP,
        f"{APP}#2",
    ]


def test_an_application_that_a_snapshot_missed_comes_back_under_names_of_its_own() -> None:
    """The core never hears of a job that ended again."""
    cluster = held_gang()
    cluster.tell(wire.Resync(part=1, parts=1))
    cluster.tell(node_added(1))
    cluster.add_app("gandiva.gang=2")
    assert adopted(cluster.tell(recovered("c1"))) == [(f"{APP}#2", ("c1",))]


def test_a_node_that_left_and_came_back_unnoticed_keeps_what_was_made_on_it_since() -> None:
    """The order was carried out on the node that had come back, before the core heard that it had left."""
    cluster = held_gang()
    old = wire.ContainerCompleted(app=APP, container="c0", node="n1:1", exit_status=-100)
    events = cluster.tell(old, wire.NodeRemoved(node="n1:1"), node_added(1))
    assert [type(event).__name__ for event in events] == [
        "ServerLost",
        "ServerJoined",
        "JobAdopted",
    ]
    assert adopted(events) == [(APP, ("c1", "c2"))]
    assert cluster.desk.write([ReleaseGang(5, JobId(APP), "lost")], 3.0).orders == ()


def test_an_order_that_was_carried_out_after_the_core_gave_its_job_up_is_given_back() -> None:
    """The server was lost while the order was out: its answer is disregarded, so its containers are nobody's."""
    cluster = held_gang()
    (order,) = cluster.desk.write([ReleaseGang(5, JobId(APP), "lost")], 3.0).orders
    assert isinstance(order, wire.ReleaseOrder)
    assert order.containers == ("c1", "c2")


# ---------------------------------------------------------------------- snapshots of what is known


def test_a_job_that_lost_a_part_is_broken_and_one_that_lost_all_has_ended() -> None:
    cluster = held_gang()
    kinds = [type(e).__name__ for e in cluster.tell(snapshot(live("c1"), tags=("gandiva.gang=2",)))]
    assert kinds == ["GangBroken"]
    cluster = held_gang()
    (failed,) = cluster.tell(snapshot(tags=("gandiva.gang=2",)), at_s=4.0)
    assert failed == JobFailed(4.0, JobId(APP), "its containers ended while events were lost")


def test_a_job_that_lost_all_and_is_asked_for_again_goes_on_waiting() -> None:
    cluster = held_gang()
    events = cluster.tell(snapshot(tags=("gandiva.gang=2",), asks=(ask(2),)))
    assert [type(event).__name__ for event in events] == ["GangBroken"]
    assert cluster.commit(APP, ["n1:1", "n1:1"], [GPU, GPU])


# ---------------------------------------------------------------------- stock code places


def observed(mode_word: str = "observe", *queues: str, tags: tuple[str, ...]) -> Cluster:
    cluster = Cluster()
    cluster.tell(mode(mode_word, *queues))
    cluster.add_app(*tags)
    return cluster


def test_in_observe_a_job_that_stock_code_placed_is_the_one_that_waited() -> None:
    cluster = observed("observe", "root.a", tags=("gandiva.gang=1",))
    assert submitted(cluster.asks(ask(2))) == [(APP, 1), (f"{APP}#2", 1)]
    assert adopted(cluster.tell(allocated("c1"))) == [(APP, ("c1",))]
    assert cluster.asks(ask(1)) == [], "the master's next heartbeat asks for one less"
    assert cluster.ends("c1") == [JobFinished(2.0, JobId(APP))]


def test_in_observe_nothing_is_committed_and_nothing_given_back() -> None:
    cluster = observed("observe", "root.a", tags=("gandiva.gang=2",))
    cluster.asks(ask(2))
    (refused,) = cluster.commit(APP, ["n1:1", "n1:1"], [GPU, GPU])
    assert isinstance(refused, GangRefused)
    assert refused.code == "MODE"
    cluster = held_gang()
    cluster.tell(mode("observe", "root.a"))
    cluster.ends("c1", 137)
    written = cluster.desk.write([ReleaseGang(5, JobId(APP), "broken")], 3.0)
    assert written.orders == ()
    assert adopted(written.refused) == [(f"{APP}#2", ("c2",))], "its sibling goes on, and counts"


def test_where_nothing_is_adopted_nobody_waits_and_containers_count() -> None:
    cluster = observed("full", "root.b", tags=("gandiva.gang=2",))
    assert cluster.asks(ask(2)) == []
    events = cluster.tell(allocated("c1"), allocated("c2", "n2:1"))
    assert adopted(events) == [(APP, ("c1",)), (f"{APP}#2", ("c2",))]
    assert cluster.ends("c1", 1) == [JobFailed(2.0, JobId(APP), "container ended with status 1")]
    gone = wire.ContainerCompleted(app=APP, container="c2", node="n2:1", exit_status=-100)
    lost = cluster.tell(gone, wire.NodeRemoved(node="n2:1"), at_s=3.0)
    assert lost[1:] == [JobFailed(3.0, JobId(f"{APP}#2"), "n2:1 was lost")]


def test_a_queue_that_is_adopted_later_gets_its_gangs_together_and_the_rest_is_placed() -> None:
    cluster = observed("full", "root.b", tags=("gandiva.gang=4",))
    cluster.asks(ask(6))
    for name in ("c1", "c2", "c3", "c4", "c5"):
        cluster.tell(allocated(name))
    cluster.asks(ask(3))
    events = cluster.tell(mode("full", "root.a", "root.b"))
    assert adopted(events) == [(f"{APP}#6", ("c1", "c2", "c3", "c4"))]
    assert [e.job_id for e in events if isinstance(e, JobKilled)] == [
        APP,
        f"{APP}#2",
        f"{APP}#3",
        f"{APP}#4",
    ]
    assert submitted(events) == [(f"{APP}#7", 3)]


def test_a_queue_that_is_no_longer_adopted_waits_for_stock_code() -> None:
    cluster = pending(2, "gandiva.gang=1")
    cluster.commit(APP, ["n1:1"], [GPU])
    events = cluster.tell(mode("full", "root.b"), at_s=5.0)
    assert events == [JobKilled(5.0, JobId(f"{APP}#2"))]
    assert adopted(cluster.tell(allocated("c7"))) == [(f"{APP}#3", ("c7",))]


def test_a_move_to_an_adopted_queue_makes_asks_jobs_and_back() -> None:
    cluster = observed("full", "root.b", tags=("gandiva.gang=1",))
    assert cluster.asks(ask(1)) == []
    there = cluster.tell(wire.AppMoved(app=APP, queue="root.b"))
    assert submitted(there) == [(APP, 1)]
    back = cluster.tell(wire.AppMoved(app=APP, queue="root.a"))
    assert [type(event).__name__ for event in back] == ["JobMoved", "JobKilled"]


# ---------------------------------------------------------------------- asks that insist


def strict(count: int, *places: str, **fields: object) -> tuple[wire.Ask, ...]:
    whole = ask(count, relax_locality=False, **fields)  # type: ignore[arg-type]
    return whole, *(ask(1, resource_name=place, **fields) for place in places)  # type: ignore[arg-type]


def only_on(events: Iterable[Event]) -> list[tuple[ServerId, ...]]:
    return [event.job.only_on for event in events if isinstance(event, JobSubmitted)]


def test_hosts_and_racks_that_an_ask_insists_on_are_the_only_servers_of_its_job() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=1")
    rack_of_host = ask(1, resource_name="/r", relax_locality=False)
    assert only_on(cluster.asks(*strict(1, "n3"), rack_of_host)) == [("n3:1",)]
    cluster = Cluster()
    cluster.add_app("gandiva.gang=1")
    every = tuple(f"n{n}:1" for n in range(1, 5))
    assert only_on(cluster.asks(*strict(1, "/r"))) == [every]
    cluster = Cluster()
    cluster.add_app("gandiva.gang=1")
    assert only_on(cluster.asks(ask(1), ask(1, resource_name="n3"))) == [()]


def test_a_host_that_is_not_there_is_waited_for() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=1")
    assert only_on(cluster.asks(*strict(1, "n9"))) == [("n9",)]
    events = cluster.tell(node_added(9))
    assert [type(e).__name__ for e in events] == ["ServerJoined", "JobKilled", "JobSubmitted"]
    assert only_on(events) == [("n9:1",)]


def test_asks_of_one_gang_for_two_partitions_or_hosts_say_why_they_wait() -> None:
    cluster = Cluster()
    cluster.add_app(kind="TONY")
    cluster.asks(ask(1, label="p"), ask(1, priority=2))
    assert submitted(cluster.rest()) == []
    assert "several partitions" in cluster.register.apps[APP].hindrance()
    cluster = Cluster()
    cluster.add_app("gandiva.gang=4")
    cluster.asks(ask(3))
    assert cluster.register.apps[APP].hindrance().startswith("3 of 4 containers of a gang")


def test_opportunistic_containers_with_gpus_are_refused_by_name() -> None:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=1")
    assert cluster.asks(ask(2, execution_type="OPPORTUNISTIC")) == []
    assert "2 opportunistic containers" in cluster.register.apps[APP].hindrance()


def test_an_ask_that_changed_its_size_or_place_is_another_job() -> None:
    cluster = pending(1, "gandiva.gang=1")
    events = cluster.asks(ask(1, gpus=2))
    assert [type(event) for event in events] == [JobKilled, JobSubmitted]
    events = cluster.asks(*strict(1, "n2", gpus=2))
    assert [type(event) for event in events] == [JobKilled, JobSubmitted]


# ---------------------------------------------------------------------- masters with a GPU


@pytest.mark.parametrize(("tags", "kind"), [(("gandiva.gang=4",), ""), ((), "TONY"), ((), "")])
def test_a_master_that_asks_for_a_gpu_is_placed_alone_and_at_once(
    tags: tuple[str, ...], kind: str
) -> None:
    """It sends no heartbeat before it runs, and asks for no worker: waiting for either would be for ever."""
    cluster = Cluster()
    cluster.add_app(*tags, kind=kind)
    assert submitted(cluster.asks(ask(1, is_master=True))) == [(APP, 1)]
    cluster.commit(APP, ["n1:1"], [GPU])
    cluster.asks(ask(4))
    cluster.rest()
    assert cluster.commit(f"{APP}#2", ["n1:1"] * 4, [GPU] * 4)
    assert cluster.ends("c1") == [JobFinished(2.0, JobId(APP))]


def test_a_master_that_is_there_is_no_part_of_its_workers_gang() -> None:
    cluster = Cluster()
    master = msgspec.structs.replace(live("c1"), is_master=True)
    events = cluster.tell(snapshot(master, live("c2"), live("c3"), tags=("gandiva.gang=2",)))
    assert adopted(events) == [(APP, ("c1",)), (f"{APP}#2", ("c2", "c3"))]


# ---------------------------------------------------------------------- preemption


def test_the_monitors_wish_names_the_job_and_a_wish_taken_back_is_none() -> None:
    cluster = held_gang()
    wish = wire.ReclaimAsked(app=APP, container="c2", gpus=1, reason="preemption")
    assert cluster.tell(wish, at_s=6.0) == [ReclaimAsked(6.0, JobId(APP), 1)]
    for other in (
        wire.ReclaimAsked(app=APP, container="c2", reason="nonkillable"),
        wire.ReclaimAsked(app=APP, container="gone", reason="killable"),
    ):
        assert cluster.tell(other) == []
