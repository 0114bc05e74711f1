"""From the ResourceManager's events to the core's: losses, ends, resync, and any order of things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.messages.effects import ReleaseGang
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
from gandiva_core.model.units import JobId
from tests.yarn_plugin.bridge.applications import (
    ABORTED,
    APP,
    ATTEMPT,
    GPU,
    PREEMPTED,
    Cluster,
    ask,
    running_gang,
    submitted,
)
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.drained import DRAIN_S

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
    assert order == wire.ReleaseOrder(f"7/{APP}/release", ATTEMPT, ("c2",))
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
    assert order == wire.ReleaseOrder(f"7/{APP}/release", ATTEMPT, ("c2",))


SECOND = "appattempt_1_0001_000002"


def test_a_new_attempt_breaks_what_ended_with_the_old_one() -> None:
    """The containers of the first attempt are told as ended before the second one begins."""
    cluster = running_gang()
    cluster.ends("c1", ABORTED)
    cluster.ends("c2", ABORTED, "n2:1")
    again = wire.AppAdded(app=APP, attempt=SECOND, queue="root.a")
    [broken] = cluster.tell(again, at_s=4.0)
    assert isinstance(broken, GangBroken)
    assert cluster.tell(wire.Asks(app=APP, attempt=SECOND, asks=(ask(2),))) == []
    assert isinstance(cluster.commit(APP, ["n1:1", "n2:1"], [GPU, GPU])[0], GangCommitted)


def test_a_new_attempt_that_keeps_its_containers_keeps_its_gang() -> None:
    """keep-containers-across-application-attempts: nothing is broken, nothing given back."""
    cluster = running_gang()
    assert cluster.tell(wire.AppAdded(app=APP, attempt=SECOND, queue="root.a"), at_s=4.0) == []
    assert cluster.ends("c1") == []
    assert cluster.ends("c2") == [JobFinished(2.0, JobId(APP))]


def test_an_application_that_asks_again_is_done_with_the_gang_it_let_go() -> None:
    cluster = running_gang()
    cluster.ends("c1", ABORTED)
    cluster.ends("c2", ABORTED)
    events = cluster.asks(ask(2), at_s=9.0)
    assert events[0] == JobFinished(9.0, JobId(APP))
    assert submitted(events) == [(f"{APP}#2", 2)]


def test_a_gang_that_was_let_go_is_over_soon_even_if_its_application_goes_on() -> None:
    """Its GPUs are free: nobody may wait for them until the application ends."""
    cluster = running_gang()
    cluster.ends("c1", ABORTED)
    assert cluster.translator.next_at_s() is None
    cluster.ends("c2", ABORTED)
    over_s = 2.0 + DRAIN_S
    assert cluster.translator.next_at_s() == over_s
    assert cluster.translator.due(over_s - 0.1) == []
    assert cluster.translator.due(over_s) == [JobFinished(over_s, JobId(APP))]
    assert cluster.translator.next_at_s() is None
    assert submitted(cluster.asks(ask(2), at_s=9.0)) == [(f"{APP}#2", 2)]


def test_a_gang_of_a_lost_node_is_not_let_go() -> None:
    """YARN calls its containers released, and may tell of the node in a later batch."""
    cluster = Cluster()
    cluster.add_app("gandiva.gang=2")
    cluster.asks(ask(2))
    cluster.commit(APP, ["n1:1", "n1:1"], [GPU, GPU])
    cluster.ends("c1", ABORTED)
    cluster.ends("c2", ABORTED)
    cluster.tell(wire.NodeRemoved(node="n1:1"), at_s=2.5)
    assert cluster.translator.due(2.0 + DRAIN_S) == []


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
        JobMoved,
        GangBroken,
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
