"""The model's rules one by one, on clusters of two and three servers."""

from __future__ import annotations

import msgspec
import pytest

from baselines.capacity.substrate import CapacitySubstrate
from gandiva_core.messages.effects import CommitGang, ReleaseGang
from gandiva_core.messages.events import (
    AmWaited,
    ContainersHeld,
    Event,
    GangCommitted,
    JobFailed,
    JobFinished,
    JobSubmitted,
    QueuesConfigured,
    ServerJoined,
)
from gandiva_core.model.cluster import Cluster, QueueLimit
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId, QueueName, ServerId
from tests.sim.worlds import servers


def job(name: str, *widths: int, queue: str = "root.default", priority: int = 0) -> JobSpec:
    """A gang with a container of each width."""
    workers = tuple(Worker(width, 1024 * width, width) for width in widths)
    spec = JobSpec(JobId(name), workers, queue=QueueName(queue), user="u")
    return msgspec.structs.replace(spec, priority_class=priority)


class Bench:
    """A model and a clock."""

    def __init__(self, count: int, queues: tuple[QueueLimit, ...] = ()) -> None:
        self.model = CapacitySubstrate(Cluster("c", servers(count), queues))
        self.now_s = 0.0

    def submit(self, *jobs: JobSpec) -> list[str]:
        self.now_s += 1
        return told(self.model.submit(self.now_s, jobs))

    def finish(self, *names: str) -> list[str]:
        self.now_s += 1
        return told(self.model.finish(self.now_s, [JobId(name) for name in names]))


def told(events: object) -> list[str]:
    """Starts as ``job@servers``, partial gangs as ``job~GPUs``; the rest left out."""
    assert isinstance(events, (list, tuple))
    lines = []
    for event in events:
        if isinstance(event, GangCommitted):
            lines.append(f"{event.job_id}@{','.join(event.servers)}")
        elif isinstance(event, ContainersHeld):
            lines.append(f"{event.job_id}~{event.held}")
    return lines


def test_containers_go_to_the_first_node_with_room_in_host_order() -> None:
    bench = Bench(2)
    assert bench.submit(job("a", 1, 1, 1)) == ["a@s1,s1,s1"]
    assert bench.submit(job("b", 2)) == ["b@s2"]
    assert bench.submit(job("c", 1)) == ["c@s1"]


def test_a_gang_that_does_not_fit_whole_holds_what_it_gets() -> None:
    """Hold and wait: nothing in YARN knows that these containers are worth nothing without the others."""
    bench = Bench(2)
    bench.submit(job("a", 1, 1))
    assert bench.submit(job("b", *(1,) * 8)) == ["b~6"]
    assert bench.finish("a") == ["b@s1,s1,s2,s2,s2,s2,s1,s1"]


def test_who_finds_no_node_reserves_one_and_the_node_serves_nobody_else() -> None:
    """`wide` reserves s1; that uses the queue up, so `d` waits although s2 has two GPUs free all the time."""
    bench = Bench(2)
    assert bench.submit(job("a", 2), job("b", 2), job("c", 2)) == ["a@s1", "b@s1", "c@s2"]
    assert bench.submit(job("wide", 4)) == []
    assert bench.submit(job("d", 2)) == []
    assert bench.finish("a") == []
    assert bench.finish("b") == ["wide@s1", "d@s2"]


def test_the_head_does_not_block_others_while_the_limit_leaves_them_room() -> None:
    """8 of 12 GPUs used, 3 reserved for `wide` on s1: one is left, and `small` has it at once."""
    bench = Bench(3)
    bench.submit(job("a", 3), job("b", 3), job("c", 2))
    assert bench.submit(job("wide", 3)) == []
    assert bench.submit(job("small", 1)) == ["small@s2"]
    assert bench.submit(job("next", 1)) == []


def test_a_starved_reservation_lets_its_owner_take_another_node_before_giving_it_up() -> None:
    """After enough heartbeats without room `wide` may hold both; s1 is free again one heartbeat of its own later."""
    bench = Bench(3)
    bench.submit(*(job(f"a{n}", 3) for n in range(3)))
    assert bench.submit(job("wide", 3)) == []
    assert bench.submit(job("small", 1)) == []
    assert bench.finish("a2") == ["wide@s3", "small@s2"]


def test_a_reservation_is_given_up_when_the_container_starts_elsewhere() -> None:
    bench = Bench(2)
    bench.submit(job("a", 4), job("b", 3))
    bench.submit(job("wide", 4))
    assert bench.finish("b") == ["wide@s2"]
    assert bench.finish("a") == []
    assert bench.submit(job("next", 4)) == ["next@s1"]


def test_higher_priority_goes_first_then_submission() -> None:
    bench = Bench(1)
    bench.submit(job("a", 4))
    bench.submit(job("low", 4), job("high", 4, priority=2), job("late", 4, priority=2))
    assert bench.finish("a") == ["high@s1"]
    assert bench.finish("high") == ["late@s1"]
    assert bench.finish("late") == ["low@s1"]


def test_a_master_behind_a_full_limit_waits_and_is_told_once() -> None:
    """Its job's asks are not even known before: `c` has no master while `b` waits for room under the limit."""
    bench = Bench(1)
    bench.submit(job("a", 4), job("b", 4))
    events = bench.model.submit(5.0, [job("c", 1)])
    assert AmWaited(5.0, JobId("c"), "NO_ROOM") in events
    assert not any(isinstance(e, AmWaited) for e in bench.model.submit(6.0, []))
    assert bench.finish("a") == ["b@s1"]
    assert bench.finish("b") == ["c@s1"]


def test_two_sizes_of_one_gang_are_asked_for_one_after_the_other() -> None:
    """6 GPUs as 4+2: the second size is looked at when the first is complete; ranks keep their sizes."""
    bench = Bench(2)
    bench.submit(job("a", 3))
    assert bench.submit(job("b", 4, 2)) == ["b~4"]
    assert bench.finish("a") == ["b@s2,s1"]


def test_memory_counts_as_well_as_gpus() -> None:
    bench = Bench(1)
    greedy = msgspec.structs.replace(job("a", 1), workers=(Worker(1, 458_752, 1),))
    assert bench.submit(greedy) == ["a@s1"]
    assert bench.submit(job("b", 1)) == []
    assert bench.finish("a") == ["b@s1"]


def test_a_node_of_another_partition_serves_only_its_own() -> None:
    first, second = servers(2)
    cluster = Cluster("c", (first, msgspec.structs.replace(second, partition="fast")))
    model = CapacitySubstrate(cluster)
    fast = msgspec.structs.replace(job("f", 4), partition="fast")
    assert told(model.submit(1.0, [fast, job("a", 4), job("b", 1)])) == ["f@s2", "a@s1"]


def queue(name: str, guaranteed: float, most: float) -> QueueLimit:
    return QueueLimit(QueueName(name), guaranteed, most, "root")


def test_queues_keep_to_their_limits_and_the_less_served_goes_first() -> None:
    bench = Bench(2, (queue("root.a", 6.0, 6.0), queue("root.b", 2.0, 2.0)))
    jobs = [job(f"a{n}", 2, queue="root.a") for n in range(4)]
    assert bench.submit(*jobs) == ["a0@s1", "a1@s1", "a2@s2"]
    assert bench.submit(job("b0", 1, queue="root.b"), job("b1", 1, queue="root.b")) == [
        "b0@s2",
        "b1@s2",
    ]
    assert bench.submit(job("b2", 1, queue="root.b")) == []
    assert bench.finish("a0") == ["a3@s1"]


def test_an_offer_beyond_the_parents_room_is_refused_and_the_heartbeat_lost() -> None:
    """`b` may have 6 of 8 GPUs and has 3; 1 is left in all. The allocator sees room up to 6 and offers `wide` (2) its
    node, the commit refuses: `small` (1) behind it is not served, though the last GPU would do. Later `small` waits for
    its user, who is over the guarantee.
    """
    bench = Bench(2, (queue("root.a", 4.0, 8.0), queue("root.b", 4.0, 6.0)))
    first = [job("a", 4, queue="root.a"), job("b", 3, queue="root.b")]
    assert bench.submit(*first) == ["a@s1", "b@s2"]
    assert bench.submit(job("wide", 2, queue="root.b")) == []
    assert bench.submit(job("small", 1, queue="root.b")) == []
    assert bench.finish("a") == ["wide@s1"]
    assert bench.finish("b") == ["small@s2"]


def test_an_unknown_queue_fails_its_job_only() -> None:
    bench = Bench(1)
    events = bench.model.submit(1.0, [job("a", 1, queue="root.x"), job("b", 1)])
    assert JobFailed(1.0, JobId("a"), "queue root.x does not exist") in events
    assert told(events) == ["b@s1"]


def test_a_queue_without_its_parent_is_refused() -> None:
    lost = QueueLimit(QueueName("root.x.y"), 1.0, 1.0, "root.x")
    with pytest.raises(InputError, match=r"queue root\.x\.y: found parent root\.x"):
        Bench(1, (lost,))


def test_it_begins_with_servers_and_queues_and_reports_ends_before_starts() -> None:
    only = queue("root.a", 4.0, 4.0)
    bench = Bench(1, (only,))
    begun = bench.model.begin(0.0)
    assert [type(event) for event in begun] == [ServerJoined, QueuesConfigured]
    bench.submit(job("a", 4, queue="root.a"), job("b", 4, queue="root.a"))
    events: list[Event] = list(bench.model.finish(5.0, [JobId("a")]))
    assert [type(event) for event in events] == [JobFinished, GangCommitted]


def test_a_broken_gang_asks_again_as_a_whole_behind_whom_its_nodes_were_reserved_for() -> None:
    bench = Bench(1)
    bench.submit(job("a", 2, 2))
    bench.submit(job("b", 4))
    events = bench.model.apply(9.0, [ReleaseGang(0, JobId("a"), "worker died")])
    assert told(events) == ["b@s1"]
    assert bench.finish("b") == ["a@s1,s1"]


def test_it_takes_no_orders() -> None:
    order = CommitGang(0, JobId("a"), (ServerId("s1"),), (Worker(1, 1, 1),))
    with pytest.raises(InputError, match="an order to commit"):
        Bench(1).model.apply(1.0, [order])


def test_it_never_acts_by_itself_and_closes_twice() -> None:
    model = Bench(1).model
    assert model.next_at_s() is None
    assert model.advance(1.0) == ()
    model.close()
    model.close()


def test_the_submission_event_comes_before_the_start() -> None:
    events = Bench(1).model.submit(1.0, [job("a", 1)])
    assert [type(event) for event in events] == [JobSubmitted, GangCommitted]
