"""Short builders for what most tests need: servers, clusters, jobs, events, a scripted policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gandiva_core.messages.decisions import Decision, Verdict
from gandiva_core.messages.events import Event, JobSubmitted, ServerJoined
from gandiva_core.messages.policy import Decisions
from gandiva_core.model.cluster import Cluster, Server
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import AcceleratorType, JobId, QueueName, ServerId
from gandiva_core.model.view import ClusterView


def server(
    name: str = "s1",
    gpus: int = 4,
    *,
    memory_mib: int = 448 * 1024,
    vcores: int = 64,
    accelerator_type: str = "P100",
    rack: str = "/default-rack",
    partition: str = "",
    can_suspend: bool = True,
) -> Server:
    """One server, as the paper's testbed has them (4 GPUs, 448 GB)."""
    return Server(
        ServerId(name),
        gpus,
        memory_mib,
        vcores,
        AcceleratorType(accelerator_type),
        rack,
        partition,
        can_suspend,
    )


def cluster(servers: int = 4, gpus: int = 4, name: str = "test") -> Cluster:
    """Equal servers `s01`, `s02`, … ."""
    return Cluster(name, tuple(server(f"s{i:02d}", gpus) for i in range(1, servers + 1)))


def job(
    name: str = "j1",
    gpus: int = 1,
    *,
    workers: Sequence[int] = (),
    memory_mib: int = 1024,
    vcores: int = 1,
    queue: str = "root.default",
    weight: float = 1.0,
    priority_class: int = 0,
    partition: str = "",
) -> JobSpec:
    """One job of `gpus` one-GPU workers, or of `workers` with as many GPUs each; memory and vcores per GPU."""
    shape = workers or (1,) * gpus
    return JobSpec(
        JobId(name),
        tuple(Worker(n, memory_mib * n, vcores * n) for n in shape),
        queue=QueueName(queue),
        weight=weight,
        priority_class=priority_class,
        partition=partition,
    )


def joined(*servers: Server, at_s: float = 0.0) -> tuple[ServerJoined, ...]:
    """Servers as events."""
    return tuple(ServerJoined(at_s, each) for each in servers)


def submitted(*jobs: JobSpec, at_s: float = 0.0) -> tuple[JobSubmitted, ...]:
    """Jobs as events."""
    return tuple(JobSubmitted(at_s, each) for each in jobs)


def on(server_name: str, *gpus: int) -> Binding:
    """Devices of one server."""
    return Binding(ServerId(server_name), gpus)


def places(name: str, gpus: int) -> tuple[ServerId, ...]:
    """One server for each of `gpus` one-GPU workers."""
    return (ServerId(name),) * gpus


Wish = Decision | Callable[[ClusterView], Decision]


class ScriptedPolicy:
    """Says what the test put into `wishes` at the next event, then forgets it; keeps the verdicts."""

    name = "scripted"
    mechanisms: tuple[str, ...] = ()

    def __init__(self, script: Mapping[type[Event], Sequence[Wish]] | None = None) -> None:
        self.script = dict(script or {})
        self.wishes: list[Wish] = []
        self.verdicts: list[Verdict] = []
        self.asked: list[Event] = []

    def decide(self, event: Event, view: ClusterView) -> Decisions:
        self.asked.append(event)
        wishes, self.wishes = self.wishes, []
        for wish in (*self.script.get(type(event), ()), *wishes):
            verdict = yield wish(view) if callable(wish) else wish
            self.verdicts.append(verdict)

    def reasons(self) -> Iterator[str]:
        """Reasons of the refusals so far."""
        return (verdict.reason for verdict in self.verdicts if not verdict.accepted)
