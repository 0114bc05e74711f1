"""What callers want of the core: answered from its books, ordered through events. Runs in the core's thread.

Requests come from the gRPC server's thread and wait in a queue of limited length; nothing else is shared.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

import msgspec

from gandiva_core.messages import operations as o
from gandiva_core.messages.agents import WorkerReport
from gandiva_core.messages.effects import WorldEffect
from gandiva_core.messages.events import Event, JobHeld, JobReleased, MoveAsked
from gandiva_core.model.job import DEVICE_PHASES, JobPhase
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.model.view import ClusterView, JobView
from gandiva_core.runtime.ports import World, WorldStep
from yarn_plugin.agents.nodes import NodeSide
from yarn_plugin.bridge.register import Register
from yarn_plugin.bridge.resizes import ResizeDesk, ResizeRefusedError
from yarn_plugin.operate.callers import Caller

WAITING_MAX = 100

Answer = Future[o.OperationReply]


class Asked(msgspec.Struct, frozen=True):
    """A request on its way."""

    caller: Caller
    operation: o.Operation
    answer: Answer


class Rules(Protocol):
    """What servers may do besides what YARN says."""

    def drain(self, server_id: ServerId, at_s: float, *, is_draining: bool) -> Iterator[Event]:
        """Close a server to newcomers, or open it."""


class Operations:
    """Implements `gandiva_core.runtime.ports.World` around another one, so that orders enter as all facts do.

    Args:
        world: the one that is carried on.
        view: the engine's.
        register, rules: the core's.
        nodes: agents, by node.
        resizes: where resizes are ordered.
    """

    def __init__(
        self,
        world: World,
        view: ClusterView,
        register: Register,
        rules: Rules,
        nodes: Mapping[str, NodeSide],
        resizes: ResizeDesk,
    ) -> None:
        self._world = world
        self._view = view
        self._register = register
        self._rules = rules
        self._nodes = nodes
        self._resizes = resizes
        self._asked: queue.Queue[Asked] = queue.Queue(WAITING_MAX)

    def ask(self, caller: Caller, operation: o.Operation) -> Answer:
        """From any thread: what will be answered in the core's next turn.

        Raises:
            queue.Full: too many wait already.
        """
        asked = Asked(caller, operation, Future())
        self._asked.put_nowait(asked)
        return asked.answer

    # ------------------------------------------------------------------ the port

    def next_at_s(self) -> float | None:
        """As the world's; requests are looked at in every turn."""
        return self._world.next_at_s()

    def advance(self, now_s: float) -> WorldStep:
        """What was asked for, then the world's own step."""
        events: list[Event] = []
        while True:
            try:
                asked = self._asked.get_nowait()
            except queue.Empty:
                break
            if not asked.answer.set_running_or_notify_cancel():
                continue  # whoever asked was told that nothing comes of it
            reply, ordered = self._answer(asked, now_s)
            events += ordered
            asked.answer.set_result(reply)
        step = self._world.advance(now_s)
        return msgspec.structs.replace(step, events=(*events, *step.events))

    def apply(self, now_s: float, effects: Sequence[WorldEffect]) -> None:
        """The world's."""
        self._world.apply(now_s, effects)

    # ------------------------------------------------------------------ requests

    def _answer(self, asked: Asked, now_s: float) -> tuple[o.OperationReply, Sequence[Event]]:
        caller, operation = asked.caller, asked.operation
        match operation:
            case o.ShowJobs(name=name):
                return self._show(caller, name), ()
            case o.HoldJobs(name=name):
                return self._order(caller, name, now_s, JobHeld)
            case o.ReleaseJobs(name=name):
                return self._order(caller, name, now_s, JobReleased)
            case o.MigrateJobs(name=name, node=node):
                return self._migrate(caller, name, node, now_s)
            case o.ResizeJob(name=name, gpus=gpus):
                return self._resize(caller, name, gpus, now_s), ()
        if not caller.is_administrator:
            return o.Refused("FORBIDDEN", "nodes are for administrators"), ()
        if isinstance(operation, o.DrainNode):
            return self._drain(operation, now_s)
        return o.Nodes(tuple(map(self._node, self._view.servers))), ()

    def _show(self, caller: Caller, name: str) -> o.OperationReply:
        jobs = self._named(caller, name)
        if name and not jobs:
            return _unknown(name)
        return o.Jobs(tuple(map(self._job, jobs)))

    def _order(
        self, caller: Caller, name: str, now_s: float, kind: Callable[[float, JobId, str], Event]
    ) -> tuple[o.OperationReply, Sequence[Event]]:
        jobs = self._named(caller, name)
        if not name or not jobs:
            return _unknown(name), ()
        if kind is JobHeld:
            for job in jobs:
                why = self._view.why_kept(job.spec.job_id)
                if why is not None:
                    return o.Refused("UNABLE", f"{job.spec.job_id} is not suspended: {why}"), ()
        events = [kind(now_s, job.spec.job_id, _who(caller)) for job in jobs]
        return o.Jobs(tuple(map(self._job, jobs))), events

    def _migrate(
        self, caller: Caller, name: str, node: str, now_s: float
    ) -> tuple[o.OperationReply, Sequence[Event]]:
        jobs = self._named(caller, name)
        if not name or not jobs:
            return _unknown(name), ()
        if node and ServerId(node) not in self._view.servers:
            return o.Refused("UNKNOWN", f"no server {node}"), ()
        for job in jobs:
            why = self._view.why_fixed(job.spec.job_id)
            if why is not None:
                return o.Refused("UNABLE", f"{job.spec.job_id} is not moved: {why}"), ()
        events = []
        for job in jobs:
            servers = (ServerId(node),) * len(job.spec.workers) if node else ()
            events.append(MoveAsked(now_s, job.spec.job_id, servers, _who(caller)))
        return o.Jobs(tuple(map(self._job, jobs))), events

    def _resize(self, caller: Caller, name: str, gpus: int, now_s: float) -> o.OperationReply:
        jobs = self._named(caller, name)
        if not name or not jobs:
            return _unknown(name)
        # Workers that are added are a job of the same application, for a while.
        jobs = [job for job in jobs if job.spec.job_id == name] or jobs
        job = jobs[0]
        job_id = job.spec.job_id
        why = (
            "it has several gangs: name one" if len(jobs) > 1 else self._why_not_resized(job, gpus)
        )
        if not why:
            try:
                self._resizes.begin(job_id, gpus // job.spec.workers[0].gpus, now_s)
            except ResizeRefusedError as error:
                why = str(error)
        return o.Refused("UNABLE", f"{job_id}: {why}") if why else o.Jobs((self._job(job),))

    def _why_not_resized(self, job: JobView, gpus: int) -> str:
        """Why a job does not get so many devices; what its gang says is for the desk."""
        spec = job.spec
        each, *others = {worker.gpus for worker in spec.workers}
        if others or gpus < each or gpus % each or gpus == spec.gpus:
            return f"it has {spec.gpus} GPUs, {each} a worker"
        if job.phase is not JobPhase.RUNNING or job.is_held:
            return f"it is {job.phase}"
        if "resize" in spec.never:
            return "its owner forbids it"
        reports = list(self._workers(spec.job_id))
        if len(reports) < len(spec.workers):
            return "not all of its workers have an agent"
        unable = next((report for report in reports if not report.can_resize), None)
        if unable is not None:
            return unable.reason or "its order of the data is none for another number of workers"
        server = self._view.servers[job.servers[0]]
        pairs = zip(server.holders, server.claims, strict=True)
        free = sum(holder is None and claim is None for holder, claim in pairs)
        if gpus - spec.gpus > free or server.server.is_draining:
            return f"{job.servers[0]} has {free} free GPUs"
        return ""

    def _drain(
        self, operation: o.DrainNode, now_s: float
    ) -> tuple[o.OperationReply, Sequence[Event]]:
        node = ServerId(operation.node)
        if node not in self._view.servers:
            return o.Refused("UNKNOWN", f"no server {operation.node}"), ()
        events = tuple(self._rules.drain(node, now_s, is_draining=operation.is_draining))
        line = msgspec.structs.replace(self._node(node), is_draining=operation.is_draining)
        return o.Nodes((line,)), events

    # ------------------------------------------------------------------ lines

    def _named(self, caller: Caller, name: str) -> list[JobView]:
        """Jobs of that name; who may not see one is not told that it is there."""
        return [
            job
            for job_id, job in self._view.jobs.items()
            if name in ("", job_id, self._register.app_of.get(job_id)) and caller.may(job.spec.user)
        ]

    def _job(self, job: JobView) -> o.JobLine:
        spec = job.spec
        since_s = job.run_since_s
        return o.JobLine(
            job_id=spec.job_id,
            application=self._register.app_of.get(spec.job_id, ""),
            name=spec.name,
            user=spec.user,
            queue=spec.queue,
            phase=str(job.phase),
            gpus=spec.gpus,
            servers=tuple(dict.fromkeys(job.servers)),
            devices=tuple(f"{b.server_id}/{gpu}" for b in job.bindings for gpu in b.gpus),
            is_held=job.is_held,
            unsuspendable=self._view.why_kept(spec.job_id) or "",
            fixed=self._view.why_fixed(spec.job_id) or "",
            resizing=self._resizes.standing(spec.job_id),
            is_resizing=self._resizes.is_under_way(spec.job_id),
            ran_s=job.held_s + (0.0 if since_s is None else self._view.now_s - since_s),
            workers=tuple(self._workers(spec.job_id)),
        )

    def _workers(self, job_id: JobId) -> Iterator[WorkerReport]:
        found = self._register.find(job_id)
        for member in () if found is None else found[1].members:
            side = self._nodes.get(member.node)
            report = None if side is None else side.workers.get(member.container)
            if report is not None:
                yield report

    def _node(self, server_id: ServerId) -> o.NodeLine:
        server = self._view.servers[server_id]
        side = self._nodes.get(self._register.node_of.get(server_id, ""))
        jobs = self._view.jobs
        running = sum(n for j, n in server.residents.items() if jobs[j].phase in DEVICE_PHASES)
        return o.NodeLine(
            node=server_id,
            gpus=server.server.gpus,
            running=running,
            residents=tuple(server.residents),
            agent="none" if side is None else "there" if side.is_there else "gone",
            can_suspend=server.server.can_suspend,
            is_draining=server.server.is_draining,
        )


def _who(caller: Caller) -> str:
    return caller.user or "an administrator"


def _unknown(name: str) -> o.Refused:
    return o.Refused("UNKNOWN", f"no job or application {name!r} of yours")
