"""From the ResourceManager's events to the core's. Pure: what comes out follows from the events alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gandiva_core.messages.events import (
    Event,
    JobFailed,
    JobFinished,
    JobKilled,
    JobMoved,
    JobSubmitted,
    ReclaimAsked,
    ServerJoined,
)
from gandiva_core.model.cluster import Server
from gandiva_core.model.units import QueueName
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.adoption import adopt, spec_of
from yarn_plugin.bridge.asks import AskKey, stray_of
from yarn_plugin.bridge.drained import Drained
from yarn_plugin.bridge.endings import (
    application_ended,
    container_completed,
    new_attempt,
    node_removed,
    nodes_missing,
    prioritised,
    vanished,
    withdrawn,
)
from yarn_plugin.bridge.gangs import (
    Application,
    Gang,
    GangPhase,
    GangRule,
    gang_rule,
    owners_limits,
)
from yarn_plugin.bridge.register import NodeFacts, Register, server_of
from yarn_plugin.bridge.scope import Scope

_NODE_LEFT = frozenset({"LOST", "DECOMMISSIONED", "SHUTDOWN", "UNHEALTHY"})
REST_S = 3.0
"""After a snapshot nobody says whether asks rest: taken for granted when they did not change for so long.

Masters ask once a second.
"""


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
    _touched: dict[str, None] = field(default_factory=dict)
    """Applications whose strays are adopted at the end of a batch: what comes together belongs together."""
    _ended: frozenset[str] = frozenset()
    """Containers of this batch that ended because their node did: told by the node's event, whichever comes first."""
    _resting: dict[str, float] = field(default_factory=dict)
    """Applications whose asks are taken to rest at a time, unless they change."""
    _drained: Drained = field(default_factory=Drained)

    @property
    def is_reading_snapshot(self) -> bool:
        """Whether parts of a snapshot are still to come; until then nothing may change behind its back."""
        return bool(self._parts)

    def translate(self, events: Sequence[wire.RmEvent], now_s: float | None = None) -> list[Event]:
        """What a batch of events means, in order.

        Args:
            events: as the gateway gave them.
            now_s: the time of all of them; None takes each one's own stamp.
        """
        leaving = {event.node for event in events if isinstance(event, wire.NodeRemoved)}
        self._ended = frozenset(
            event.container
            for event in events
            if isinstance(event, wire.ContainerCompleted) and event.node in leaving
        )
        out: list[Event] = []
        at_s = 0.0 if now_s is None else now_s
        for event in events:
            at_s = event.at_ms / 1000.0 if now_s is None else now_s
            if not isinstance(event, wire.ContainerCompleted) or event.container not in self._ended:
                out.extend(self._one(event, at_s))
        for app_id in list(self._touched):
            out.extend(self._adopt(app_id, at_s))
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
            case wire.Settings():
                return self._settings(event.adoption, at_s)
            case wire.ForeignGpuRefused():
                self.foreign_refused = event.count
                return iter(())
            case _:
                app = self.register.apps.get(event.app)
                return iter(()) if app is None else self._of_app(event, app, at_s)

    def _of_app(self, event: _AppEvent, app: Application, at_s: float) -> Iterator[Event]:
        match event:
            case wire.Asks(attempt=app.attempt):
                return self._asks(event, app, at_s)
            case wire.AsksUnchanged(attempt=app.attempt):
                return self._form(event.app, app, at_s, settled=True)
            case wire.ContainerFound():
                return self._found(event, app)
            case wire.ContainerCompleted():
                return self._completed(event, app, at_s)
            case wire.ReclaimAsked():
                return self._reclaim(event, at_s)
            case wire.AppMoved():
                return self._moved(event, app, at_s)
            case wire.AppRemoved():
                return application_ended(self.register, event.app, event.final_state, at_s)
            case _:
                return iter(())  # a message of an older attempt

    # ------------------------------------------------------------------ servers

    def _node(self, event: NodeFacts, at_s: float) -> Iterator[Event]:
        if getattr(event, "state", "") in _NODE_LEFT:
            yield from self._node_removed(event.node, at_s)
            return
        before = self.register.servers.get(event.node)
        if before is None and event.gpus <= 0:
            return  # a node for masters and CPU work
        server = server_of(event, before or self.known_servers.get(event.node))
        if server != before:
            self.register.put_server(event.node, server)
            yield ServerJoined(at_s, server)
        if before is None:
            yield from self._room_for(event.node, at_s)

    def _node_removed(self, node: str, at_s: float) -> Iterator[Event]:
        yield from node_removed(self.register, node, self._ended, at_s)
        self._touched.update((key, None) for key, app in self.register.apps.items() if app.strays)

    def _room_for(self, node: str, at_s: float) -> Iterator[Event]:
        """A node is new: containers may have waited for it, and asks that insist on it."""
        for app_id, app in self.register.apps.items():
            if any(stray.node == node for stray in app.strays.values()):
                self._touched[app_id] = None
            if not any(pending.site.places for pending in app.asks.values()):
                continue
            stale = [
                gang
                for gang in app.gangs.values()
                if gang.phase is GangPhase.WAITING
                and gang.only_on != self.register.servers_at(gang.site.places)
            ]
            for gang in stale:
                self.register.remove(app, gang)
                yield JobKilled(at_s, gang.job_id)
            if stale:
                yield from self._form(app_id, app, at_s, settled=True)

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
                never=owners_limits(event.tags),
                scope=self.register.scope,
                formed=self.register.formed_before.pop(event.app, 0),
            )
        elif known.attempt != event.attempt:
            yield from new_attempt(self.register, known, event.attempt, at_s)

    def _asks(self, event: wire.Asks, app: Application, at_s: float) -> Iterator[Event]:
        yield from self._adopt(event.app, at_s)  # what was served is no ask that was withdrawn
        is_other = event.app_priority is not None and event.app_priority != app.priority
        if event.app_priority is not None:
            yield from prioritised(self.register, app, event.app_priority, at_s)
        app.replace_asks(event.asks)
        yield from self._reconcile(event.app, app, at_s, settled=is_other)

    def _reconcile(
        self, app_id: str, app: Application, at_s: float, *, settled: bool = False
    ) -> Iterator[Event]:
        yield from withdrawn(self.register, app, at_s)
        app.renewed()
        yield from self._form(app_id, app, at_s, settled=settled)

    def _form(
        self, app_id: str, app: Application, at_s: float, *, settled: bool
    ) -> Iterator[Event]:
        self._resting.pop(app_id, None)
        formed = app.form(settled=settled, now_s=at_s)
        if formed:
            yield from self._superseded(app, at_s)
        for gang in formed:
            self.register.app_of[gang.job_id] = app_id
            gang.only_on = self.register.servers_at(gang.site.places)
            if app.rule is GangRule.SOFT and len(gang.members) > 1:
                self._soft.append((app_id, gang))
            yield JobSubmitted(at_s, spec_of(app, gang, gang.site.label, gang.only_on))

    def _superseded(self, app: Application, at_s: float) -> Iterator[Event]:
        """It asks again: gangs are over whose workers it let go, or whose workers went on as another job."""
        if app.rule is GangRule.INDEPENDENT:
            return  # the end of its one container is the end of each of its jobs
        for gang in list(app.gangs.values()):
            if gang.is_drained:
                self.register.remove(app, gang)
                yield JobFinished(at_s, gang.job_id)
            elif gang.phase is GangPhase.RENEWING and any(
                member.former in self.register.job_of for member in gang.members
            ):
                self.register.remove(app, gang)
                yield JobFailed(at_s, gang.job_id, "it lost a worker and the others went on")

    def _moved(self, event: wire.AppMoved, app: Application, at_s: float) -> Iterator[Event]:
        app.queue = event.queue
        for job_id in app.gangs:
            yield JobMoved(at_s, job_id, QueueName(event.queue))
        yield from self._rescoped(event.app, app, at_s)

    # ------------------------------------------------------------------ containers that are there

    def _found(self, event: wire.ContainerFound, app: Application) -> Iterator[Event]:
        if self._is_nobodys(event.container) and event.container not in app.strays:
            self._stray(event.app, app, event)
            if isinstance(event, wire.ContainerAllocated):
                app.take(AskKey(event.priority, event.allocation_request_id))
        return iter(())

    def _is_nobodys(self, container: str) -> bool:
        return container not in self.register.job_of and container not in self.register.seconds

    def _stray(
        self, app_id: str, app: Application, seen: wire.LiveContainer | wire.ContainerFound
    ) -> None:
        app.strays[seen.container] = stray_of(seen)
        self._touched[app_id] = None

    def _adopt(self, app_id: str, at_s: float) -> Iterator[Event]:
        """Take in an application's strays; asks that they were served for are no longer waited for."""
        if app_id not in self._touched:
            return
        del self._touched[app_id]
        app = self.register.apps.get(app_id)
        if app is not None:
            yield from adopt(self.register, app_id, at_s)
            yield from withdrawn(self.register, app, at_s)

    def _completed(
        self, event: wire.ContainerCompleted, app: Application, at_s: float
    ) -> Iterator[Event]:
        job_id = self.register.job_of.get(event.container)
        yield from container_completed(self.register, event, app, at_s)
        self._drained.note(event.app, app, job_id, at_s)

    def _reclaim(self, event: wire.ReclaimAsked, at_s: float) -> Iterator[Event]:
        job_id = self.register.job_of.get(event.container)
        if job_id is not None and "nonkillable" not in event.reason.lower():
            yield ReclaimAsked(at_s, job_id, event.gpus)

    # ------------------------------------------------------------------ what is ours

    def _settings(self, adoption: wire.Adoption, at_s: float) -> Iterator[Event]:
        """Another mode, or other queues: jobs that wait come or go, those that run stay."""
        scope = Scope.of(adoption)
        if scope == self.register.scope:
            return
        self.register.scope = scope
        for app_id, app in self.register.apps.items():
            app.scope = scope
            yield from self._rescoped(app_id, app, at_s)

    def _rescoped(self, app_id: str, app: Application, at_s: float) -> Iterator[Event]:
        yield from adopt(self.register, app_id, at_s, regroups=True)
        if not self.register.scope.has_queue(app.queue):
            renewing = [g for g in app.gangs.values() if g.phase is GangPhase.RENEWING]
            for gang in renewing:
                self.register.remove(app, gang)
                yield JobKilled(at_s, gang.job_id)
        yield from self._reconcile(app_id, app, at_s, settled=True)

    # ------------------------------------------------------------------ what only time brings

    def next_at_s(self) -> float | None:
        """When `due` has something to say, unless events come before; None for never.

        Asks are taken to rest, the oldest soft gang has been tried whole for long enough, a drained gang is over.
        """
        times = [*self._resting.values(), self._soft_until_s(), self._drained.next_at_s()]
        return min((at_s for at_s in times if at_s is not None), default=None)

    def _soft_until_s(self) -> float | None:
        while self._soft:
            gang = self._soft[0][1]
            if gang.phase is GangPhase.WAITING and gang.job_id in self.register.app_of:
                return gang.formed_at_s + self.gang_wait_s
            self._soft.popleft()  # it was placed, or has left
        return None

    def due(self, now_s: float) -> list[Event]:
        """Form gangs of asks that rest by now, break up soft ones that waited too long, end drained ones.

        The containers of a soft one are placed singly from now on (DESIGN §6).
        """
        out: list[Event] = [*self._drained.due(self.register, now_s)]
        for app_id in [app_id for app_id, at_s in self._resting.items() if at_s <= now_s]:
            del self._resting[app_id]
            app = self.register.apps.get(app_id)
            if app is not None:
                out.extend(self._form(app_id, app, now_s, settled=True))
        while (due_s := self._soft_until_s()) is not None and due_s <= now_s:
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
        apps = {seen.app: seen for part in parts for seen in part.apps}
        for part in parts:
            if part.settings is not None:
                yield from self._settings(part.settings, at_s)
        yield from nodes_missing(self.register, nodes, at_s)
        for node in nodes.values():
            yield from self._node(node, at_s)
        for left in [app_id for app_id in self.register.apps if app_id not in apps]:
            self.register.formed_before[left] = self.register.apps[left].formed
            yield from application_ended(self.register, left, "while events were lost", at_s)
        for seen in apps.values():
            yield from self._resync_containers(seen, at_s)
        for app_id in apps:  # once everybody who is there has his place
            app = self.register.apps[app_id]
            yield from self._reconcile(app_id, app, at_s)
            if any(count > 0 for count in app.free().values()):
                self._resting[app_id] = at_s + REST_S

    def _resync_containers(self, seen: wire.ResyncApp, at_s: float) -> Iterator[Event]:
        yield from self._app_added(seen.added, at_s)
        app = self.register.apps[seen.app]
        is_moved = seen.queue != app.queue
        if is_moved:
            app.queue = seen.queue
            for job_id in app.gangs:
                yield JobMoved(at_s, job_id, QueueName(seen.queue))
        app.replace_asks(seen.asks)
        live = frozenset(container.container for container in seen.containers)
        for gang in list(app.gangs.values()):
            yield from vanished(self.register, app, gang, live, at_s)
        app.strays.clear()
        for container in seen.containers:
            if self._is_nobodys(container.container):
                self._stray(seen.app, app, container)
        self._touched.pop(seen.app, None)
        yield from adopt(self.register, seen.app, at_s, regroups=is_moved)
        yield from prioritised(self.register, app, seen.priority, at_s)


_AppEvent = (
    wire.AppRemoved
    | wire.Asks
    | wire.AsksUnchanged
    | wire.ContainerFound
    | wire.ContainerCompleted
    | wire.ReclaimAsked
    | wire.AppMoved
)
