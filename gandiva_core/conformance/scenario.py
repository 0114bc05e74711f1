"""Random small clusters, workloads and mishaps for the conformance suite, as a Hypothesis strategy.

Every job of a scenario fits its partition when all servers are there, and every lost server comes back, so that a
policy which lets a job wait for ever has no excuse.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from hypothesis import strategies as st

from gandiva_core.conformance.world import Delays, SmallWorld, Witness, Work
from gandiva_core.messages import events as e
from gandiva_core.messages.effects import CommitGang
from gandiva_core.messages.policy import Scheduler
from gandiva_core.model.cluster import SLICING, QueueLimit, Server
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import JobId, QueueName, ServerId

MEMORY_PER_GPU_MIB = 1024
SIZES = (1, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 12, 16)
QUEUES = ("root.a", "root.b")


class Scenario(msgspec.Struct, frozen=True):
    """One story to tell a policy.

    Attributes:
        stop_s, start_s: what switching costs.
        slow_every: each how many jobs one takes two and a half quanta to stop; 0 for none.
        refusals: which commits, by number, the substrate refuses.
    """

    servers: tuple[Server, ...]
    works: tuple[Work, ...]
    facts: tuple[e.Event, ...] = ()
    stop_s: float = 0.0
    start_s: float = 0.0
    slow_every: int = 0
    reports_each: bool = False
    refusals: frozenset[int] = frozenset()

    def world(self, scheduler: Scheduler, witness: Witness | None = None) -> SmallWorld:
        """The scenario, ready to run."""
        slow = {w.spec.job_id for w in self.works[:: self.slow_every]} if self.slow_every else set()
        commits = iter(range(1_000_000))

        def stop_s(job_id: JobId) -> float:
            return 150.0 if job_id in slow else self.stop_s

        def refuse(_commit: CommitGang, _now_s: float) -> str | None:
            return "NO_ROOM" if next(commits) in self.refusals else None

        delays = Delays(stop_s, lambda _: self.start_s, self.reports_each)
        return SmallWorld(
            scheduler,
            self.servers,
            self.works,
            delays=delays,
            refuse=refuse,
            facts=self.facts,
            witness=witness,
        )


def workers_of(gpus: int, per_container: int) -> tuple[Worker, ...]:
    """A gang as containers of up to `per_container` GPUs (DESIGN §7: one a GPU, or one a server)."""
    counts = [per_container] * (gpus // per_container)
    if gpus % per_container:
        counts.append(gpus % per_container)
    return tuple(Worker(count, count * MEMORY_PER_GPU_MIB // 4, 1) for count in counts)


def servers_of(count: int, gpus: int, partition: str = "", prefix: str = "s") -> list[Server]:
    """Equal servers whose memory allows a height of four."""
    return [
        Server(
            ServerId(f"{prefix}{number:02d}"),
            gpus,
            gpus * MEMORY_PER_GPU_MIB,
            gpus * 4,
            rack=f"/rack{number % 2}",
            partition=partition,
        )
        for number in range(count)
    ]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """One or two partitions, gangs of 1 to 16, both shapes, queues, lost servers, broken gangs, slow stops.

    Some jobs are there before the scheduler is, some servers cannot suspend, some queues are not to be sliced.
    """
    servers = servers_of(draw(st.integers(1, 5)), draw(st.sampled_from((1, 3, 4, 8))))
    if draw(st.booleans()):
        servers += servers_of(draw(st.integers(1, 2)), draw(st.sampled_from((2, 4))), "b", "t")
    for number in draw(st.sets(st.integers(0, len(servers) - 1), max_size=2)):
        servers[number] = msgspec.structs.replace(servers[number], can_suspend=False)
    has_queues = draw(st.booleans())
    works = tuple(
        draw(_works(JobId(f"job{number}"), servers, has_queues))
        for number in range(draw(st.integers(1, 16)))
    )
    works += tuple(
        draw(_found(JobId(f"found{number}"), servers, has_queues))
        for number in range(draw(st.sampled_from((0, 0, 1, 4, 12))))
    )
    off = draw(st.sets(st.sampled_from(QUEUES), max_size=1)) if has_queues else set()
    facts: list[e.Event] = list(_queue_limits(servers, off)) if has_queues else []
    for server in draw(st.lists(st.sampled_from(servers), max_size=2, unique=True)):
        at_s = draw(_times)
        facts.append(e.ServerLost(at_s, server.server_id, "power"))
        facts.append(e.ServerJoined(at_s + draw(st.sampled_from((0.0, 40.0, 900.0))), server))
    for work in draw(st.lists(st.sampled_from(works), max_size=2, unique=True)):
        at_s = work.arrival_s + draw(_times)
        is_kill = draw(st.booleans())
        job_id = work.spec.job_id
        facts.append(e.JobKilled(at_s, job_id) if is_kill else e.GangBroken(at_s, job_id))
    return Scenario(
        tuple(servers),
        works,
        tuple(facts),
        stop_s=draw(st.sampled_from((0.0, 0.5))),
        start_s=draw(st.sampled_from((0.0, 0.25))),
        slow_every=draw(st.sampled_from((0, 0, 3))),
        reports_each=draw(st.booleans()),
        refusals=frozenset(draw(st.sets(st.integers(0, 12), max_size=3))),
    )


_times = st.sampled_from((0.0, 30.0, 60.0, 61.5, 250.0, 1000.0))


@st.composite
def _works(draw: st.DrawFn, job_id: JobId, servers: list[Server], has_queues: bool) -> Work:
    partition = draw(st.sampled_from(sorted({server.partition for server in servers})))
    inside = [server.gpus for server in servers if server.partition == partition]
    most = sum(inside)
    if has_queues:
        most = max(1, most // 2)
    gpus = min(most, draw(st.sampled_from(SIZES)))
    per_container = draw(st.sampled_from((1, inside[0])))
    spec = JobSpec(
        job_id,
        workers_of(gpus, per_container),
        queue=QueueName(draw(st.sampled_from(QUEUES)) if has_queues else "root.default"),
        weight=draw(st.sampled_from((1.0, 1.0, 2.0))),
        priority_class=draw(st.sampled_from((0, 0, 0, 1))),
        partition=partition,
    )
    run_s = draw(st.sampled_from((1.0, 45.0, 60.0, 400.0, 1500.0)))
    return Work(draw(_times), spec, run_s)


@st.composite
def _found(draw: st.DrawFn, job_id: JobId, servers: list[Server], has_queues: bool) -> Work:
    """A gang that is somewhere already, each share within its server; heights and limits do not matter."""
    work = draw(_works(job_id, servers, has_queues))
    left = {
        server.server_id: server.gpus
        for server in draw(st.permutations(servers))
        if server.partition == work.spec.partition
    }
    places: list[ServerId] = []
    for worker in work.spec.workers:
        place = next((name for name, gpus in left.items() if gpus >= worker.gpus), None)
        if place is None:
            return work
        left[place] -= worker.gpus
        places.append(place)
    return msgspec.structs.replace(work, arrival_s=0.0, servers=tuple(places))


def _queue_limits(servers: list[Server], off: Collection[str]) -> list[e.Event]:
    """Two queues that may each run a bit more than half of the cluster; those in `off` are not to be sliced."""
    total = sum(server.gpus for server in servers)
    root = QueueName("root")
    limits = [QueueLimit(root, float(total), float(total))]
    limits += [
        QueueLimit(
            QueueName(name),
            1.0,
            total / 2 + 0.5,
            root,
            mechanisms_off=(SLICING,) if name in off else (),
        )
        for name in QUEUES
    ]
    return [e.QueuesConfigured(0.0, tuple(limits))]
