"""Builders for tests of the translation: a cluster of applications, told event by event."""

from __future__ import annotations

from collections.abc import Iterable

from gandiva_core.messages.effects import CommitGang
from gandiva_core.messages.events import (
    Event,
    JobSubmitted,
)
from gandiva_core.model.job import Worker
from gandiva_core.model.units import JobId, ServerId
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.orders import OrderDesk
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.translate import Translator

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
