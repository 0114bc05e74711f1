"""The simulator's own substrate: whole gangs or nothing, physical devices times the height, memory once (DESIGN §4)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.messages.effects import CommitGang, ReleaseGang
from gandiva_core.messages.events import (
    GangCommitted,
    GangRefused,
    JobFailed,
    JobFinished,
    JobSubmitted,
    QueuesConfigured,
    ServerJoined,
)
from gandiva_core.model.cluster import Cluster, QueueLimit
from gandiva_core.model.job import Worker
from gandiva_core.model.units import JobId, QueueName, ServerId
from gandiva_core.sim.plain import PlainSubstrate
from tests.sim.worlds import planned, servers


def commit(name: str, *places: str, gpus: int = 1, memory_mib: int = 1024) -> CommitGang:
    """One worker a place."""
    worker = Worker(gpus, memory_mib, 1)
    return CommitGang(0, JobId(name), tuple(map(ServerId, places)), (worker,) * len(places))


def test_it_begins_with_servers_and_then_queues() -> None:
    queue = QueueLimit(QueueName("root.a"), 4.0, 4.0, "root")
    cluster = Cluster("c", servers(2), (queue,))
    events = PlainSubstrate(cluster, 4).begin(0.0)
    assert events == [
        *(ServerJoined(0.0, server) for server in cluster.servers),
        QueuesConfigured(0.0, (queue,)),
    ]
    assert len(PlainSubstrate(Cluster("c", servers(2)), 4).begin(0.0)) == 2


def test_devices_are_handed_out_as_often_as_the_height_allows_and_no_more() -> None:
    substrate = PlainSubstrate(Cluster("c", servers(1)), 2)
    events = substrate.apply(0.0, [commit(f"j{n}", "s1", gpus=4) for n in range(3)])
    assert [type(event) for event in events] == [GangCommitted, GangCommitted, GangRefused]
    refused = events[-1]
    assert isinstance(refused, GangRefused)
    assert (refused.code, refused.detail) == ("NO_ROOM", "s1: 4 GPUs asked, 0 free")


def test_a_server_that_cannot_suspend_is_never_over_subscribed() -> None:
    fixed = msgspec.structs.replace(servers(1)[0], can_suspend=False)
    substrate = PlainSubstrate(Cluster("c", (fixed,)), 4)
    events = substrate.apply(0.0, [commit("a", "s1", gpus=4), commit("b", "s1")])
    assert [type(event) for event in events] == [GangCommitted, GangRefused]


def test_memory_is_not_inflated() -> None:
    """G-46: at a quarter of the memory each, four fit and the fifth does not, whatever the height."""
    substrate = PlainSubstrate(Cluster("c", servers(1)), 4)
    asks = [commit(f"j{n}", "s1", memory_mib=458_752 // 4) for n in range(5)]
    events = substrate.apply(0.0, asks)
    assert [isinstance(event, GangCommitted) for event in events] == [True] * 4 + [False]


def test_a_gang_is_committed_whole_or_not_at_all() -> None:
    substrate = PlainSubstrate(Cluster("c", servers(2)), 1)
    before = substrate.free()
    events = substrate.apply(0.0, [commit("a", "s1", "s2", "s2", "s9")])
    assert isinstance(events[0], GangRefused)
    assert substrate.free() == before


def test_containers_are_named_one_a_worker_and_never_twice() -> None:
    substrate = PlainSubstrate(Cluster("c", servers(1)), 1)
    first = substrate.apply(0.0, [commit("a", "s1", "s1")])
    substrate.apply(1.0, [ReleaseGang(0, JobId("a"), "x")])
    second = substrate.apply(2.0, [commit("a", "s1")])
    assert first == [GangCommitted(0.0, JobId("a"), ("container_1", "container_2"))]
    assert second == [GangCommitted(2.0, JobId("a"), ("container_3",))]


def test_a_job_of_an_unknown_queue_fails_and_the_others_go_on() -> None:
    queue = QueueLimit(QueueName("root.a"), 4.0, 4.0, "root")
    substrate = PlainSubstrate(Cluster("c", servers(1), (queue,)), 1)
    good = msgspec.structs.replace(planned("a", 1).spec, queue=QueueName("root.a"))
    bad = planned("b", 1).spec
    assert substrate.submit(3.0, [good, bad]) == [
        JobSubmitted(3.0, good),
        JobFailed(3.0, JobId("b"), "queue root.default does not exist"),
    ]


def test_it_never_acts_by_itself_and_closes_twice() -> None:
    substrate = PlainSubstrate(Cluster("c", servers(1)), 1)
    assert substrate.next_at_s() is None
    assert substrate.advance(1.0) == ()
    substrate.close()
    substrate.close()


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9), st.lists(st.integers(1, 3), min_size=1, max_size=4), st.booleans()
        ),
        max_size=60,
    )
)
@pytest.mark.parametrize("height", [1, 3])
def test_the_books_balance_whatever_comes(
    height: int, orders: list[tuple[int, list[int], bool]]
) -> None:
    """Never below 0, never above the whole, and the start again when all are gone."""
    substrate = PlainSubstrate(Cluster("c", servers(3)), height)
    start = substrate.free()
    resident: set[str] = set()
    for number, places, ends in orders:
        name = f"j{number}"
        if name in resident:
            if ends:
                resident.remove(name)
                assert substrate.finish(0.0, [JobId(name)]) == [JobFinished(0.0, JobId(name))]
            continue
        events = substrate.apply(0.0, [commit(name, *(f"s{place}" for place in places))])
        resident |= {name} if isinstance(events[0], GangCommitted) else set()
        for server_id, room in substrate.free().items():
            assert all(0 <= left <= start[server_id][n] for n, left in enumerate(room))
    substrate.finish(0.0, [JobId(name) for name in sorted(resident)])
    assert substrate.free() == start
