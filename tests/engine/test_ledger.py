"""The ledger takes back everything: what-if, rollback, and accounts that equal a count from scratch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.engine import invariants
from gandiva_core.engine.ledger import ENDED_KEPT, Ledger
from gandiva_core.engine.lifecycle import Lifecycle
from gandiva_core.engine.snapshot import EngineSnapshot, take
from gandiva_core.engine.state import JobState, State
from gandiva_core.engine.transitions import Stimulus
from gandiva_core.messages.decisions import Wait
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, QueueName, ServerId
from tests.builders import job, on, server

WHY = Wait("test", "", "")


class Books:
    """A ledger over three servers with a queue tree."""

    def __init__(self) -> None:
        self.state = State(height_max=4)
        self.ledger = Ledger(self.state)
        self.life = Lifecycle(self.ledger)
        for name in ("s1", "s2", "s3"):
            self.ledger.add_server(server(name))
        root = QueueLimit(QueueName("root"), 12, 12)
        self.ledger.configure_queues((root, QueueLimit(QueueName("root.default"), 12, 12, "root")))
        self.ledger.seal()

    def submit(self, name: str, gpus: int) -> JobState:
        spec = job(name, gpus)
        each = JobState(
            spec, self.state.next_sequence, 0.0, self.state.chain(spec.queue, spec.partition)
        )
        self.ledger.add_job(each)
        self.life.enqueue(each, WHY)
        return each

    def look(self) -> tuple[EngineSnapshot, object]:
        """All that can be seen, derived sums included."""
        servers = [
            (
                list(each.residents.items()),
                each.allocated,
                each.memory_free_mib,
                each.vcores_free,
                list(each.holders),
                list(each.claims),
            )
            for each in self.state.servers.values()
        ]
        queues = [(link.running, link.resident) for link in self.state.queues.values()]
        order = list(self.state.jobs), list(self.state.queue), list(self.state.queue_sequences)
        domains = [self.state.domain(server_id) for server_id in self.state.servers]
        return take(self.state), (servers, queues, order, domains)


def step(books: Books, number: int) -> None:
    """Something legal, chosen by a number; nothing where nothing fits."""
    jobs = list(books.state.jobs.values())
    choice, number = number % 8, number // 8
    each = jobs[number % len(jobs)] if jobs else None
    if choice == 0 or each is None:
        books.submit(f"j{books.state.next_sequence}", 1 + number % 6)
    elif choice == 1:
        books.life.end(each, Stimulus.KILLED)
    elif each.phase is JobPhase.QUEUED:
        names = list(books.state.servers)
        books.life.place(
            each, tuple(names[(number + i // 2) % len(names)] for i in range(each.spec.gpus))
        )
    elif each.phase is JobPhase.COMMITTING:
        (books.life.commit if choice < 7 else lambda j: books.life.refuse(j, WHY))(each)
    elif each.phase in {JobPhase.STARTING, JobPhase.SUSPENDED}:
        _run(books, each)
    elif each.phase is JobPhase.RESUMING:
        books.life.start(each, 1.0)
    elif each.phase is JobPhase.RUNNING and choice < 6:
        books.life.order_suspend(each, 9)
    elif each.phase is JobPhase.SUSPENDING:
        books.life.stop(each, 2.0)
    else:
        books.life.break_gang(each, WHY)


def _run(books: Books, each: JobState) -> None:
    bindings = []
    for server_id, share in each.shares.items():
        known = books.state.servers[server_id]
        free = [gpu for gpu in range(4) if known.holders[gpu] is None and known.claims[gpu] is None]
        if len(free) < share:
            return
        bindings.append(on(server_id, *free[:share]))
    books.life.order_run(each, tuple(bindings), 5)


STEPS = st.lists(st.integers(0, 1 << 12), max_size=40)


@given(before=STEPS, inside=STEPS)
def test_what_if_leaves_no_trace(before: list[int], inside: list[int]) -> None:
    books = Books()
    for number in before:
        step(books, number)
    books.ledger.seal()
    seen = books.look()
    with books.ledger.what_if() as state:
        for number in inside:
            step(books, number)
        assert state is books.state
    assert books.look() == seen
    invariants.check_all(books.state)


@given(before=STEPS, first=STEPS, second=STEPS)
def test_rollback_to_a_checkpoint_keeps_what_came_before_it(
    before: list[int], first: list[int], second: list[int]
) -> None:
    books = Books()
    for number in (*before, *first):
        step(books, number)
    seen, mark = books.look(), books.ledger.checkpoint()
    for number in second:
        step(books, number)
    books.ledger.rollback(mark)
    assert books.look() == seen


@given(steps=STEPS)
def test_accounts_equal_a_count_from_scratch(steps: list[int]) -> None:
    books = Books()
    for number in steps:
        step(books, number)
        invariants.check_all(books.state)


def test_what_if_takes_back_after_an_exception() -> None:
    books = Books()
    each = books.submit("j", 2)
    books.ledger.seal()

    def fail() -> None:
        with books.ledger.what_if():
            books.life.place(each, (ServerId("s1"), ServerId("s2")))
            assert books.state.domain(ServerId("s1")) == ("s1", "s2")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert each.phase is JobPhase.QUEUED
    assert books.state.domain(ServerId("s1")) == ("s1",)


def test_nested_what_ifs() -> None:
    books = Books()
    first, second = books.submit("a", 1), books.submit("b", 1)
    with books.ledger.what_if():
        books.life.place(first, (ServerId("s1"),))
        with books.ledger.what_if():
            books.life.place(second, (ServerId("s1"),))
            assert books.state.servers[ServerId("s1")].allocated == 2
        assert books.state.servers[ServerId("s1")].allocated == 1
    assert books.state.servers[ServerId("s1")].allocated == 0


def test_servers_come_and_go_and_come_back() -> None:
    books = Books()
    seen = books.look()
    with books.ledger.what_if() as state:
        books.ledger.add_server(server("s0"))
        assert list(state.servers) == ["s0", "s1", "s2", "s3"]
        books.ledger.remove_server(ServerId("s2"))
        assert list(state.servers) == ["s0", "s1", "s3"]
    assert books.look() == seen


class TestContradictions:
    """Whatever the checks should have refused is a bug of ours (paired assertions)."""

    def running(self) -> tuple[Books, JobState]:
        books = Books()
        each = books.submit("j", 1)
        books.life.place(each, (ServerId("s1"),))
        books.life.commit(each)
        books.life.order_run(each, (on("s1", 0),), 1)
        books.life.start(each, 0.0)
        return books, each

    def test_device_held_twice(self) -> None:
        books, _ = self.running()
        other = books.submit("k", 1)
        books.life.place(other, (ServerId("s1"),))
        books.life.commit(other)
        books.life.order_run(other, (on("s1", 0),), 2)
        with pytest.raises(InvariantError, match="s1/0 is not free for k"):
            books.life.start(other, 0.0)

    def test_device_promised_twice(self) -> None:
        books, each = self.running()
        books.ledger.promise(each, (on("s1", 1),))
        with pytest.raises(InvariantError, match="s1/1 is promised already"):
            books.ledger.promise(each, (on("s1", 1),))

    def test_gang_settled_twice(self) -> None:
        books, each = self.running()
        with pytest.raises(InvariantError, match="job j is resident already"):
            books.ledger.settle(each, (ServerId("s2"),))

    def test_job_that_leaves_a_queue_it_is_not_in(self) -> None:
        books, each = self.running()
        with pytest.raises(InvariantError, match="job j is not in the queue"):
            books.ledger.leave_queue(each)


def test_ended_jobs_are_remembered_up_to_a_limit() -> None:
    books = Books()
    books.state.ended = {JobId(f"old{i}"): None for i in range(ENDED_KEPT)}
    books.life.end(books.submit("new", 1), Stimulus.FINISHED)
    assert len(books.state.ended) == ENDED_KEPT
    assert "old0" not in books.state.ended
    assert "new" in books.state.ended
