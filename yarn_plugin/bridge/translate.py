"""From the ResourceManager's events to the core's. Pure: what comes out follows from the events alone.

A container that ends is judged by how it ended: an AM that lets its workers go is finishing, anything else breaks the
gang (G-13).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gandiva_core.messages.events import (
    Event,
    GangBroken,
    JobFailed,
    JobFinished,
    JobKilled,
    JobMoved,
    JobSubmitted,
    ServerJoined,
    ServerLost,
)
from gandiva_core.model.cluster import Server
from gandiva_core.model.job import JobSpec
from gandiva_core.model.units import QueueName, ServerId
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase, GangRule, Member, gang_rule
from yarn_plugin.bridge.register import Register

_SUCCESS = 0
_LET_GO = frozenset({_SUCCESS, -100, -105, -107})
"""Exit statuses of workers that were let go: done, released by the AM (-100, -105), or their application ended (-107).

YARN says -100 for a lost node too; those are taken out by the node's own event.
"""
_FINISHED = frozenset({"FINISHED", "SUCCEEDED", "ENDED"})
_NODE_LEFT = frozenset({"LOST", "DECOMMISSIONED", "SHUTDOWN", "UNHEALTHY"})

_NodeFacts = wire.NodeAdded | wire.NodeUpdated | wire.ResyncNode


def application_id(app: wire.AppAdded) -> str:
    """Jobs are called by the application's id: the live cluster's rule."""
    return app.app


def application_name(app: wire.AppAdded) -> str:
    """Jobs are called by the application's name: a replay's rule, where names are the trace's ids."""
    return app.name or app.app


@dataclass(slots=True)
class Translator:
    """Forms jobs of asks and follows them to their end.

    Attributes:
        register: shared with the `OrderDesk`.
        gang_wait_s: how long a soft gang is tried whole (DESIGN §6).
        job_name: what an application's first job is called; a further one has ``#2``, ``#3``, … behind it.
        known_servers: what YARN does not tell of a server (its id, accelerator type, topology), by node.
        foreign_refused: GPU containers that the guard refused because the core had not ordered them.
    """

    register: Register = field(default_factory=Register)
    gang_wait_s: float = 300.0
    job_name: Callable[[wire.AppAdded], str] = application_id
    known_servers: Mapping[str, Server] = field(default_factory=dict)
    foreign_refused: int = 0
    _parts: list[wire.Resync] = field(default_factory=list)
    _soft: deque[tuple[str, Gang]] = field(default_factory=deque)

    def translate(self, events: Sequence[wire.RmEvent], now_s: float | None = None) -> list[Event]:
        """What a batch of events means, in order.

        Args:
            events: as the gateway gave them.
            now_s: the time of all of them; None takes each one's own stamp.
        """
        leaving = {event.node for event in events if isinstance(event, wire.NodeRemoved)}
        out: list[Event] = []
        for event in events:
            if isinstance(event, wire.ContainerCompleted) and event.node in leaving:
                continue  # told by the node's own event, whichever comes first
            out.extend(self._one(event, event.at_ms / 1000.0 if now_s is None else now_s))
        return out

    def _one(self, event: wire.RmEvent, at_s: float) -> Iterator[Event]:
        match event:
            case wire.AppAdded():
                return self._app_added(event, at_s)
            case wire.NodeAdded() | wire.NodeUpdated():
                return self._node(event, at_s)
            case wire.NodeRemoved():
                return self._node_removed(event.node, at_s)
            case wire.Resync():
                return self._resync(event, at_s)
            case wire.ForeignGpuRefused():
                self.foreign_refused = event.count
                return iter(())
            case _:
                app = self.register.apps.get(event.app)
                return iter(()) if app is None else self._of_app(event, app, at_s)

    def _of_app(self, event: _AppEvent, app: Application, at_s: float) -> Iterator[Event]:
        match event:
            case wire.Asks(attempt=app.attempt):
                app.replace_asks(event.asks)
                return self._reconcile(event.app, app, at_s)
            case wire.AsksUnchanged(attempt=app.attempt):
                return self._form(event.app, app, at_s, settled=True)
            case wire.ContainerCompleted():
                return self._completed(event, app, at_s)
            case wire.AppMoved():
                return self._moved(event, app, at_s)
            case wire.AppRemoved():
                return self._app_removed(event.app, event.final_state, at_s)
            case _:
                return iter(())  # a message of an older attempt

    # ------------------------------------------------------------------ servers

    def _node(self, event: _NodeFacts, at_s: float) -> Iterator[Event]:
        if getattr(event, "state", "") in _NODE_LEFT:
            yield from self._node_removed(event.node, at_s)
            return
        before = self.register.servers.get(event.node)
        if before is None and event.gpus <= 0:
            return  # a node for masters and CPU work
        server = self._server(event, before or self.known_servers.get(event.node))
        if server != before:
            self.register.put_server(event.node, server)
            yield ServerJoined(at_s, server)

    @staticmethod
    def _server(event: _NodeFacts, before: Server | None) -> Server:
        known = before or Server(ServerId(event.node), 0, 0, 0)
        return msgspec.structs.replace(
            known,
            gpus=event.gpus,
            memory_mib=event.memory_mib,
            vcores=event.vcores,
            rack=getattr(event, "rack", "") or known.rack,
            partition=getattr(event, "partition", known.partition),
        )

    def _node_removed(self, node: str, at_s: float) -> Iterator[Event]:
        server = self.register.drop_server(node)
        if server is not None:
            yield ServerLost(at_s, server.server_id, "its NodeManager is gone")

    # ------------------------------------------------------------------ applications and their asks

    def _app_added(self, event: wire.AppAdded, at_s: float) -> Iterator[Event]:
        known = self.register.apps.get(event.app)
        if known is None:
            rule, size = gang_rule(event.tags, event.type)
            self.register.apps[event.app] = Application(
                first_job=self.job_name(event),
                attempt=event.attempt,
                queue=event.queue,
                user=event.user,
                name=event.name,
                priority=event.priority,
                rule=rule,
                size=size,
            )
        elif known.attempt != event.attempt:
            known.attempt = event.attempt
            known.asks = {}
            for gang in known.gangs.values():
                yield from self._break(gang, at_s, "its application master was started again")

    def _break(self, gang: Gang, at_s: float, reason: str) -> Iterator[Event]:
        was_held = gang.phase is GangPhase.HELD
        gang.phase = GangPhase.RENEWING
        if was_held:
            yield GangBroken(at_s, gang.job_id, reason)

    def _reconcile(self, app_id: str, app: Application, at_s: float) -> Iterator[Event]:
        for gang in app.withdrawn():
            del self.register.app_of[gang.job_id]
            yield JobKilled(at_s, gang.job_id)
        app.renewed()
        yield from self._form(app_id, app, at_s, settled=False)

    def _form(
        self, app_id: str, app: Application, at_s: float, *, settled: bool
    ) -> Iterator[Event]:
        formed = app.form(settled=settled, now_s=at_s)
        if formed:  # it asks again, so a gang whose workers it let go was done
            for gang in [gang for gang in app.gangs.values() if gang.is_drained]:
                self.register.remove(app, gang)
                yield JobFinished(at_s, gang.job_id)
        for gang in formed:
            self.register.app_of[gang.job_id] = app_id
            if app.rule is GangRule.SOFT and len(gang.members) > 1:
                self._soft.append((app_id, gang))
            yield JobSubmitted(at_s, _spec(app, gang))

    def _moved(self, event: wire.AppMoved, app: Application, at_s: float) -> Iterator[Event]:
        app.queue = event.queue
        for job_id in app.gangs:
            yield JobMoved(at_s, job_id, QueueName(event.queue))

    def _app_removed(self, app_id: str, final_state: str, at_s: float) -> Iterator[Event]:
        app = self.register.apps[app_id]
        for gang in list(app.gangs.values()):
            self.register.remove(app, gang)
            if final_state in _FINISHED:
                yield JobFinished(at_s, gang.job_id)
            elif final_state == "KILLED":
                yield JobKilled(at_s, gang.job_id)
            else:
                yield JobFailed(at_s, gang.job_id, f"application {final_state or 'gone'}")
        del self.register.apps[app_id]

    # ------------------------------------------------------------------ containers

    def _completed(
        self, event: wire.ContainerCompleted, app: Application, at_s: float
    ) -> Iterator[Event]:
        job_id = self.register.job_of.get(event.container)
        if job_id is None:
            return
        gang = app.gangs[job_id]
        member = next(m for m in gang.members if m.container == event.container)
        if app.rule is GangRule.INDEPENDENT:
            self.register.remove(app, gang)
            yield _single_end(gang, event.exit_status, at_s)
        elif event.exit_status in _LET_GO and gang.phase is GangPhase.HELD:
            member.exit_status = event.exit_status
            if all(m.exit_status == _SUCCESS for m in gang.members):
                self.register.remove(app, gang)
                yield JobFinished(at_s, job_id)
        else:
            yield from self._worker_lost(gang, member, event.exit_status, at_s)

    def _worker_lost(
        self, gang: Gang, member: Member, exit_status: int, at_s: float
    ) -> Iterator[Event]:
        reason = f"{member.container} on {member.node} ended with status {exit_status}"
        yield from self._break(gang, at_s, reason)
        self.register.lose(gang, member)

    # ------------------------------------------------------------------ soft gangs

    def next_at_s(self) -> float | None:
        """When the oldest soft gang has been tried whole for long enough; None where none waits."""
        while self._soft:
            gang = self._soft[0][1]
            if gang.phase is GangPhase.WAITING and gang.job_id in self.register.app_of:
                return gang.formed_at_s + self.gang_wait_s
            self._soft.popleft()  # it was placed, or has left
        return None

    def due(self, now_s: float) -> list[Event]:
        """Break up soft gangs that waited too long: their containers are placed singly from now on (DESIGN §6)."""
        out: list[Event] = []
        while (due_s := self.next_at_s()) is not None and due_s <= now_s:
            app_id, gang = self._soft.popleft()
            app = self.register.apps[app_id]
            app.is_single = True
            self.register.remove(app, gang)
            out.append(JobKilled(now_s, gang.job_id))
            out.extend(self._form(app_id, app, now_s, settled=True))
        return out

    # ------------------------------------------------------------------ resync

    def _resync(self, event: wire.Resync, at_s: float) -> Iterator[Event]:
        """Take a snapshot once all of its parts are there: what is missing in it has left."""
        self._parts = [*self._parts, event] if event.part > 1 else [event]
        if event.part < event.parts:
            return
        parts, self._parts = self._parts, []
        nodes = {node.node: node for part in parts for node in part.nodes}
        apps = {app.app: app for part in parts for app in part.apps}
        for gone in [node for node in self.register.servers if node not in nodes]:
            yield from self._node_removed(gone, at_s)
        for node in nodes.values():
            yield from self._node(node, at_s)
        for left in [app_id for app_id in self.register.apps if app_id not in apps]:
            yield from self._app_removed(left, "while events were lost", at_s)
        for app in apps.values():
            yield from self._resync_app(app, at_s)

    def _resync_app(self, seen: wire.ResyncApp, at_s: float) -> Iterator[Event]:
        yield from self._app_added(_added(seen), at_s)
        app = self.register.apps[seen.app]
        live = {container.container for container in seen.containers}
        for gang in list(app.gangs.values()):
            lost = [m for m in gang.members if m.container and m.container not in live]
            for member in lost:
                if member.exit_status is None:
                    yield from self._worker_lost(gang, member, _LOST_SIGHT, at_s)
        if seen.queue != app.queue:
            yield from self._moved(wire.AppMoved(app=seen.app, queue=seen.queue), app, at_s)
        app.replace_asks(seen.asks)
        yield from self._reconcile(seen.app, app, at_s)


_AppEvent = (
    wire.AppRemoved | wire.Asks | wire.AsksUnchanged | wire.ContainerCompleted | wire.AppMoved
)
_LOST_SIGHT = -1000
"""YARN's INVALID: how it ended is not known."""


def _added(app: wire.ResyncApp) -> wire.AppAdded:
    return wire.AppAdded(
        app=app.app,
        attempt=app.attempt,
        queue=app.queue,
        user=app.user,
        name=app.name,
        tags=app.tags,
        priority=app.priority,
        type=app.type,
    )


def _spec(app: Application, gang: Gang) -> JobSpec:
    return JobSpec(
        job_id=gang.job_id,
        workers=tuple(member.worker for member in gang.members),
        name=app.name,
        queue=QueueName(app.queue),
        user=app.user,
        priority=app.priority,
        partition=app.asks[gang.members[0].key].label,
    )


def _single_end(gang: Gang, exit_status: int, at_s: float) -> Event:
    if exit_status in _LET_GO:
        return JobFinished(at_s, gang.job_id)
    return JobFailed(at_s, gang.job_id, f"container ended with status {exit_status}")
