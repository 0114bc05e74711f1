"""Each invariant can fail: a state broken by hand is caught by the full check, and by the check of what was touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gandiva_core.engine import invariants
from gandiva_core.engine.ledger import Ledger
from gandiva_core.engine.state import State
from gandiva_core.messages import events as e
from gandiva_core.model.cluster import QueueLimit
from gandiva_core.model.errors import InvariantError
from gandiva_core.model.job import JobPhase
from gandiva_core.model.units import JobId, QueueName, ServerId
from tests.builders import job, on, server
from tests.engine.scene import Scene, limit, run

R, W, S1 = JobId("r"), JobId("w"), ServerId("s1")


def broken_state() -> State:
    """`r` runs on s1/0 and s1/1, `o` is suspended, `c` resumes on s1/2, `w` waits; nothing is broken yet."""
    scene = Scene(server("s1"), server("s2"))
    scene.tell(e.QueuesConfigured(0.0, (limit("root", 8), limit("root.default", 8, "root"))))
    scene.running("r", on("s1", 0, 1))
    scene.running("o", on("s1", 2))
    scene.switched(scene.switch(suspend=["o"]), stopped=["o"])
    scene.settle(job("c"), "s1")
    scene.switch(run=[run("c", on("s1", 2))])
    scene.submit(job("w"))
    state = scene.engine.view
    assert isinstance(state, State)
    return state


def _set(kind: str, key: object, attribute: str, value: object) -> Callable[[State], None]:
    return lambda state: setattr(getattr(state, kind)[key], attribute, value)


def _device(row: str, gpu: int, job_id: str | None) -> Callable[[State], None]:
    return lambda state: getattr(state.servers[S1], row).__setitem__(gpu, job_id)


BREAKS: dict[str, tuple[Callable[[State], None], str]] = {
    "a hold by a job at rest": (_device("holders", 3, "o"), "held by o in suspended"),
    "a gang without one device": (_device("holders", 1, None), "a broken gang"),
    "a gang with one too many": (_device("holders", 3, "r"), "has 3 devices on s1, its share is 2"),
    "a claim on a device that goes on": (
        _device("claims", 0, "c"),
        "held by r in running, claimed by c",
    ),
    "a claim by a job at rest": (_device("claims", 3, "o"), "claimed by o in suspended"),
    "a claim missing": (_device("claims", 2, None), "a broken gang"),
    "bindings that are not the share": (
        _set("jobs", "r", "bindings", (on("s1", 0),)),
        "bound to {'s1': 1} of its shares",
    ),
    "a run without a start": (
        _set("jobs", "r", "run_since_s", None),
        "running with a run since None",
    ),
    "a start without a run": (_set("jobs", "o", "run_since_s", 1.0), "suspended with a run since"),
    "an answer nobody awaits": (_set("jobs", "o", "switch_id", 3), "suspended, awaiting switch 3"),
    "an order without an answer": (
        _set("jobs", "c", "switch_id", 0),
        "resuming, awaiting switch 0",
    ),
    "a resident without a server": (_set("jobs", "o", "shares", {}), "suspended with shares"),
    "a waiting job with a server": (_set("jobs", "w", "shares", {"s1": 1}), "queued with shares"),
    "a share the server knows not": (
        lambda state: state.servers[S1].residents.clear(),
        "None GPUs resident on s1, not 2",
    ),
    "an undecided job": (_set("jobs", "w", "phase", JobPhase.SUBMITTED), "still undecided"),
    "M": (_set("servers", "s1", "allocated", 3), "server s1: M: found 3; expected 4"),
    "memory": (_set("servers", "s1", "memory_free_mib", 7), "server s1: free: found (7,"),
    "vcores": (_set("servers", "s1", "vcores_free", 7), "server s1: free: found"),
    "affinity of an empty server": (_set("servers", "s2", "affinity", 2), "s2: affinity: found 2"),
    "affinity of a used one": (_set("servers", "s1", "affinity", 0), "s1: affinity: found 0"),
    "height": (lambda state: setattr(state, "height_max", 0), "at most 0 GPUs on 4"),
    "running of a queue": (
        _set("queues", ("root", ""), "running", 9),
        "queue root: found 9 running and 4 resident GPUs",
    ),
    "demand of a queue": (
        _set("queues", ("root", ""), "demand", 3),
        "queue root: use: found (3, 4, 0, 3)",
    ),
    "unsliced of a queue": (
        _set("queues", ("root", ""), "unsliced", 3),
        "queue root: use: found (3, 4, 3, 5)",
    ),
    "unsliced": (_set("servers", "s1", "unsliced", 1), "server s1: unsliced: found 1; expected 0"),
    "use of a queue": (
        _set("queues", ("root", ""), "resident", 3),
        "queue root: use: found (3, 3, 0, 5)",
    ),
    "a waiting job not in the queue": (lambda state: state.queue.clear(), "queue: found []"),
    "queue keys": (lambda state: state.queue_sequences.clear(), "queue: found []"),
    "order of jobs": (_set("jobs", "r", "sequence", 9), "ordered by sequence"),
    "order of servers": (
        lambda state: setattr(state, "servers", dict(reversed(state.servers.items()))),
        "ordered by id",
    ),
    "a stale domain": (
        lambda state: state.domains._found.update({S1: (S1, ServerId("s2"))}),
        "domain of s1",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_full_check_catches(name: str) -> None:
    act, message = BREAKS[name]
    state = broken_state()
    invariants.check_all(state)
    act(state)
    with pytest.raises(InvariantError) as caught:
        invariants.check_all(state)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "name", ["a hold by a job at rest", "a gang without one device", "M", "running of a queue"]
)
def test_touched_check_catches_what_the_event_touched(name: str) -> None:
    act, message = BREAKS[name]
    state = broken_state()
    act(state)
    ledger = Ledger(state)
    invariants.check(ledger, is_full=False)
    ledger.touched_jobs[R] = ledger.touched_servers[S1] = ledger.moved_servers[S1] = None
    ledger.touched_queues = dict.fromkeys(state.queues.values())
    with pytest.raises(InvariantError) as caught:
        invariants.check(ledger, is_full=False)
    assert message in str(caught.value)


def test_limit_exceeded_by_a_fact_is_no_breach() -> None:
    state = broken_state()
    ledger = Ledger(state)
    ledger.configure_queues((QueueLimit(QueueName("root"), 1, 1),))
    ledger.revise_server(server("s1", memory_mib=10))
    invariants.check_all(state)
    for each in state.queues.values():
        assert each.is_overfull
        each.is_overfull = False
    with pytest.raises(InvariantError, match="queue root"):
        invariants.check_all(state)


class TestExcess:
    """A fact may leave an excess, a decision may not add to it: the ledger tells them apart whatever a check let by."""

    def found(self) -> tuple[Ledger, State]:
        """Five found on a server of four that cannot suspend, in a queue of one GPU; one of them runs."""
        scene = Scene(server("s1", can_suspend=False), server("s2"))
        scene.tell(e.QueuesConfigured(0.0, (limit("root", 1),)))
        for name in "abcde":
            scene.tell(e.JobAdopted(0.0, job(name), ("c",), (S1,)))
        scene.start("a", on("s1", 0))
        scene.submit(job("w"))
        state = scene.engine.view
        assert isinstance(state, State)
        invariants.check_all(state)
        return Ledger(state), state

    def test_placed_on_a_server_above_its_height(self) -> None:
        ledger, state = self.found()
        ledger.configure_queues(())
        ledger.settle(state.jobs[W], (S1,))
        with pytest.raises(InvariantError, match="server s1: found 6 GPUs allocated"):
            invariants.check(ledger, is_full=False)

    def test_placed_in_a_queue_above_its_residents(self) -> None:
        ledger, state = self.found()
        ledger.settle(state.jobs[W], (ServerId("s2"),))
        with pytest.raises(InvariantError, match="queue root: found 1 running and 6 resident"):
            invariants.check(ledger, is_full=False)

    def test_run_in_a_queue_above_its_limit(self) -> None:
        ledger, state = self.found()
        ledger.configure_queues((QueueLimit(QueueName("root"), 0.5, 0.5),))
        invariants.check(ledger, is_full=False)
        ledger.promise(state.jobs[JobId("b")], (on("s1", 1),))
        with pytest.raises(InvariantError, match="queue root: found 2 running"):
            invariants.check(ledger, is_full=False)

    def test_placed_where_only_the_running_ones_are_too_many(self) -> None:
        """Residents have room under M_q × height although more runs than M_q: no breach."""
        scene = Scene(server("s1"))
        scene.tell(e.QueuesConfigured(0.0, (limit("root", 4),)))
        scene.running("a", on("s1", 0, 1))
        scene.tell(e.QueuesConfigured(0.0, (limit("root", 1),)))
        scene.submit(job("b"), "s1")
        assert scene.phase("b") is JobPhase.COMMITTING
