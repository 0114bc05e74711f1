"""What the ResourceManager's events mean to the core: gangs of DESIGN §6, servers, ends, losses, resyncs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.messages.effects import CommitGang, ReleaseGang
from gandiva_core.messages.events import (
    Event,
    GangBroken,
    GangCommitted,
    GangRefused,
    JobFailed,
    JobFinished,
    JobKilled,
    JobMoved,
    JobSubmitted,
    ServerJoined,
    ServerLost,
)
from gandiva_core.model.cluster import Server
from gandiva_core.model.job import Worker
from gandiva_core.model.units import AcceleratorType, JobId, ServerId
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.gangs import GangRule, gang_rule
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.translate import Translator, application_name

GPU = Worker(1, 1024, 1)
APP = "application_1_0001"
ATTEMPT = "appattempt_1_0001_000001"
PREEMPTED = -102
ABORTED = -100


def ask(count: int, gpus: int = 1, priority: int = 1, **fields: object) -> wire.Ask:
    return wire.Ask(
        priority=priority,
        count=count,
        memory_mib=1024 * gpus,
        vcores=gpus,
        gpus=gpus,
        allocation_request_id=0,
        **fields,  # type: ignore[arg-type]
    )


class Cluster:
    """A translator, a desk, and a ResourceManager that does what it is told."""

    def __init__(self, **fields: object) -> None:
        self.register = Register()
        self.translator = Translator(self.register, **fields)  # type: ignore[arg-type]
        self.desk = OrderDesk(self.register)
        self.containers = 0
        self.tell(
            *(
                wire.NodeAdded(node=f"n{i}:1", memory_mib=65536, vcores=64, gpus=8, rack="/r")
                for i in range(1, 5)
            )
        )

    def tell(self, *events: wire.RmEvent, at_s: float = 0.0) -> list[Event]:
        return self.translator.translate(events, at_s)

    def add_app(self, *tags: str, kind: str = "YARN", name: str = "", app: str = APP) -> None:
        self.tell(
            wire.AppAdded(
                app=app,
                attempt=ATTEMPT,
                queue="root.a",
                user="ann",
                tags=tags,
                type=kind,
                name=name,
            )
        )

    def asks(self, *asks: wire.Ask, app: str = APP, at_s: float = 0.0) -> list[Event]:
        return self.tell(wire.Asks(app=app, attempt=ATTEMPT, asks=asks), at_s=at_s)

    def rest(self, at_s: float = 0.0) -> list[Event]:
        return self.tell(wire.AsksUnchanged(app=APP, attempt=ATTEMPT), at_s=at_s)

    def commit(self, job_id: str, servers: Iterable[str], workers: Iterable[Worker]) -> list[Event]:
        effect = CommitGang(1, JobId(job_id), tuple(ServerId(s) for s in servers), tuple(workers))
        written = self.desk.write([effect], 1.0)
        answers = []
        for order in written.orders:
            assert isinstance(order, wire.CommitOrder)
            first = self.containers + 1
            self.containers += len(order.containers)
            names = tuple(f"c{n}" for n in range(first, self.containers + 1))
            answers.append(wire.Answer(order.id, "OK", containers=names))
        return [*written.refused, *self.desk.book(answers, 1.0)]

    def ends(self, container: str, exit_status: int = 0, node: str = "n1:1") -> list[Event]:
        return self.tell(
            wire.ContainerCompleted(
                app=APP, container=container, node=node, exit_status=exit_status
            ),
            at_s=2.0,
        )

    def leaves(self, state: str = "FINISHED") -> list[Event]:
        return self.tell(wire.AppRemoved(app=APP, attempt=ATTEMPT, final_state=state), at_s=3.0)


def submitted(events: Iterable[Event]) -> list[tuple[str, int]]:
    """Ids and numbers of workers of the jobs that events submit."""
    return [(e.job.job_id, len(e.job.workers)) for e in events if isinstance(e, JobSubmitted)]


def running_gang(*tags: str) -> Cluster:
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2", *tags)
    cluster.asks(ask(2))
    cluster.commit(APP, ["n1:1", "n2:1"], [GPU, GPU])
    return cluster


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


# ---------------------------------------------------------------------- losses and ends


def test_an_am_that_lets_its_workers_go_is_finishing() -> None:
    cluster = running_gang()
    assert cluster.ends("c1", ABORTED) == []
    assert cluster.ends("c2", ABORTED, "n2:1") == []
    assert cluster.leaves() == [JobFinished(3.0, JobId(APP))]


def test_all_workers_done_is_a_finished_job_and_said_once() -> None:
    cluster = running_gang()
    assert cluster.ends("c1") == []
    assert cluster.ends("c2") == [JobFinished(2.0, JobId(APP))]
    assert cluster.leaves() == []


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("FINISHED", JobFinished(3.0, JobId(APP))),
        ("SUCCEEDED", JobFinished(3.0, JobId(APP))),
        ("KILLED", JobKilled(3.0, JobId(APP))),
        ("FAILED", JobFailed(3.0, JobId(APP), "application FAILED")),
    ],
)
def test_an_application_ends_as_its_final_state_says(state: str, expected: Event) -> None:
    cluster = running_gang()
    assert cluster.leaves(state) == [expected]
    assert cluster.leaves(state) == []


@pytest.mark.parametrize("status", [1, 137, PREEMPTED, -101, -104])
def test_a_lost_worker_breaks_its_gang_once(status: int) -> None:
    """G-13: the gang restarts; the siblings stay until the core releases them."""
    cluster = running_gang()
    [broken] = cluster.ends("c1", status)
    assert isinstance(broken, GangBroken)
    assert str(status) in broken.reason
    [order] = cluster.desk.write([ReleaseGang(7, JobId(APP), "broken")], 2.0).orders
    assert order == wire.ReleaseOrder(f"7/{APP}", ATTEMPT, ("c2",))
    assert cluster.ends("c2", ABORTED, "n2:1") == []


def test_a_broken_gang_can_be_ordered_once_all_is_asked_for_again() -> None:
    cluster = running_gang()
    cluster.ends("c1", 1)
    cluster.desk.write([ReleaseGang(7, JobId(APP), "broken")], 2.0)
    [early] = cluster.commit(APP, ["n3:1", "n3:1"], [GPU, GPU])
    assert isinstance(early, GangRefused)
    assert early.code == "ASK_GONE"
    assert cluster.asks(ask(1)) == []
    assert cluster.asks(ask(2)) == []
    assert isinstance(cluster.commit(APP, ["n3:1", "n3:1"], [GPU, GPU])[0], GangCommitted)


@pytest.mark.parametrize("node_first", [True, False])
def test_a_lost_node_is_told_once_and_not_again_by_its_containers(*, node_first: bool) -> None:
    cluster = running_gang()
    done = wire.ContainerCompleted(app=APP, container="c1", node="n1:1", exit_status=ABORTED)
    gone = wire.NodeRemoved(node="n1:1")
    events = cluster.tell(*((gone, done) if node_first else (done, gone)), at_s=5.0)
    assert [type(event) for event in events] == [ServerLost]
    [order] = cluster.desk.write([ReleaseGang(7, JobId(APP), "lost")], 5.0).orders
    assert order == wire.ReleaseOrder(f"7/{APP}", ATTEMPT, ("c2",))


def test_a_new_attempt_breaks_what_the_old_one_held() -> None:
    cluster = running_gang()
    second = "appattempt_1_0001_000002"
    again = wire.AppAdded(app=APP, attempt=second, queue="root.a")
    [broken] = cluster.tell(again, at_s=4.0)
    assert isinstance(broken, GangBroken)
    assert cluster.tell(wire.Asks(app=APP, attempt=second, asks=(ask(2),))) == []
    assert isinstance(cluster.commit(APP, ["n1:1", "n2:1"], [GPU, GPU])[0], GangCommitted)


def test_an_application_that_asks_again_is_done_with_the_gang_it_let_go() -> None:
    cluster = running_gang()
    cluster.ends("c1", ABORTED)
    cluster.ends("c2", ABORTED)
    events = cluster.asks(ask(2), at_s=9.0)
    assert events[0] == JobFinished(9.0, JobId(APP))
    assert submitted(events) == [(f"{APP}#2", 2)]


def test_moves_are_told_for_every_job() -> None:
    cluster = running_gang()
    moved = wire.AppMoved(app=APP, queue="root.b")
    assert [type(e) for e in cluster.tell(moved)] == [JobMoved]


def test_guard_refusals_are_counted() -> None:
    cluster = Cluster()
    assert cluster.tell(wire.ForeignGpuRefused(app=APP, count=3)) == []
    assert cluster.translator.foreign_refused == 3


# ---------------------------------------------------------------------- resync


def node(name: str) -> wire.ResyncNode:
    return wire.ResyncNode(node=name, memory_mib=65536, vcores=64, gpus=8, rack="/r")


def test_a_resync_of_what_is_known_is_no_news() -> None:
    cluster = running_gang()
    live = (wire.LiveContainer("c1", "n1:1"), wire.LiveContainer("c2", "n2:1"))
    app = wire.ResyncApp(app=APP, attempt=ATTEMPT, queue="root.a", containers=live)
    nodes = tuple(node(f"n{i}:1") for i in range(1, 5))
    assert cluster.tell(wire.Resync(part=1, parts=1, nodes=nodes, apps=(app,))) == []


def test_a_resync_in_parts_tells_what_was_missed() -> None:
    """C05: a snapshot of a large cluster comes in parts, and counts once the last is there."""
    cluster = running_gang()
    cluster.add_app("gandiva.gang=1", app="application_1_0002")
    cluster.asks(ask(1), app="application_1_0002")
    live = (wire.LiveContainer("c2", "n2:1"),)
    first = wire.Resync(part=1, parts=2, nodes=(node("n1:1"), node("n2:1"), node("n9:1")))
    app = wire.ResyncApp(app=APP, attempt=ATTEMPT, queue="root.b", containers=live)
    new = wire.ResyncApp(
        app="application_1_0003",
        attempt="a3",
        queue="root.a",
        tags=("gandiva.gang=1",),
        asks=(ask(1),),
    )
    last = wire.Resync(part=2, parts=2, apps=(app, new))
    assert cluster.tell(first) == []
    events = cluster.tell(last, at_s=8.0)
    assert [type(event) for event in events] == [
        ServerLost,
        ServerLost,
        ServerJoined,
        JobFailed,
        GangBroken,
        JobMoved,
        JobSubmitted,
    ]


def test_a_batch_that_is_none_is_an_input_error() -> None:
    with pytest.raises(Exception, match="takeEvents"):
        wire.decode_batch('{"ok": true, "events": [{"kind": "nonsense"}]}')


# ---------------------------------------------------------------------- properties

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 6)),
        st.tuples(st.just("rest"), st.just(0)),
        st.tuples(st.just("commit"), st.integers(0, 5)),
        st.tuples(st.just("end"), st.sampled_from([0, 1, ABORTED, PREEMPTED])),
        st.tuples(st.just("lose"), st.integers(1, 4)),
        st.tuples(st.just("back"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.just(0)),
    ),
    max_size=30,
)


@given(
    tag=st.sampled_from(["", "gandiva.gang=1", "gandiva.gang=2", "gandiva.gang=3"]),
    kind=st.sampled_from(["YARN", "TONY", "SPARK"]),
    steps=_STEPS,
)
def test_jobs_come_once_and_end_once_whatever_happens(
    tag: str, kind: str, steps: list[tuple[str, int]]
) -> None:
    """Every job is submitted once and ends once; nothing is told of one that has ended; at the end none is left."""
    cluster = Cluster()
    cluster.add_app(*([tag] if tag else []), kind=kind)
    seen: list[Event] = []
    clock_s = 0.0
    for what, number in steps:
        clock_s += 100.0
        seen += _step(cluster, what, number, clock_s)
    seen += cluster.leaves()
    live: set[str] = set()
    known: set[str] = set()
    for event in seen:
        if isinstance(event, JobSubmitted):
            assert event.job.job_id not in known
            known.add(event.job.job_id)
            live.add(event.job.job_id)
        elif isinstance(event, (JobFinished, JobKilled, JobFailed)):
            live.remove(event.job_id)
        elif isinstance(event, (GangBroken, GangCommitted)):
            assert event.job_id in live
    assert not live
    assert not cluster.register.job_of
    assert not cluster.register.app_of


def _step(cluster: Cluster, what: str, number: int, at_s: float) -> list[Event]:
    jobs = sorted(cluster.register.app_of)
    containers = sorted(cluster.register.job_of)
    match what:
        case "ask":
            return cluster.asks(ask(number), at_s=at_s)
        case "rest":
            return cluster.rest(at_s)
        case "commit" if jobs:
            gang = cluster.register.find(JobId(jobs[number % len(jobs)]))
            assert gang is not None
            workers = [member.worker for member in gang[1].members]
            servers = sorted(cluster.register.node_of)
            chosen = [
                servers[rank % len(servers)] for rank in range(len(workers) if servers else 0)
            ]
            return cluster.commit(gang[1].job_id, chosen, workers) if chosen else []
        case "end" if containers:
            return cluster.ends(containers[0], number, "elsewhere:1")
        case "lose":
            lost = cluster.tell(wire.NodeRemoved(node=f"n{number}:1"), at_s=at_s)
            effects = [ReleaseGang(1, JobId(job), "lost") for job in jobs]
            cluster.desk.write(effects if lost else [], at_s)
            return lost
        case "back":
            back = wire.NodeAdded(node=f"n{number}:1", memory_mib=65536, vcores=64, gpus=8)
            return cluster.tell(back, at_s=at_s)
        case "wait":
            return cluster.translator.due(at_s)
    return []
