"""What the bridge remembers: nodes and their servers, applications and their gangs, containers and their jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from gandiva_core.model.cluster import Server
from gandiva_core.model.units import JobId, ServerId
from yarn_plugin.bridge import wire
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase, Member
from yarn_plugin.bridge.scope import Scope

DECOMMISSIONING = "DECOMMISSIONING"

NodeFacts = wire.NodeAdded | wire.NodeUpdated | wire.ResyncNode


def server_of(event: NodeFacts, known: Server | None) -> Server:
    """A node as a server; `known` has what YARN does not tell of it. One that YARN decommissions is emptied."""
    known = known or Server(ServerId(event.node), 0, 0, 0)
    return msgspec.structs.replace(
        known,
        gpus=event.gpus,
        memory_mib=event.memory_mib,
        vcores=event.vcores,
        rack=event.rack or known.rack,
        partition=known.partition if event.partition is None else event.partition,
        is_draining=not isinstance(event, wire.NodeAdded) and event.state == DECOMMISSIONING,
    )


@dataclass(slots=True)
class Register:
    """The three tables and the ways between them. Only `Translator`, `OrderDesk` and `MoveDesk` change it."""

    servers: dict[str, Server] = field(default_factory=dict)
    node_of: dict[ServerId, str] = field(default_factory=dict)
    apps: dict[str, Application] = field(default_factory=dict)
    app_of: dict[JobId, str] = field(default_factory=dict)
    job_of: dict[str, JobId] = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)
    seconds: dict[str, JobId] = field(default_factory=dict)
    """Second containers of gangs that move: they are nobody's yet, and form no job."""
    unwanted: dict[str, None] = field(default_factory=dict)
    """Second containers of moves that an earlier core began: their masters are to let them go."""
    formed_before: dict[str, int] = field(default_factory=dict)
    """How many jobs applications had that left in a snapshot and may come back: names are never used twice."""

    def find(self, job_id: JobId) -> tuple[Application, Gang] | None:
        """A job's application and gang; None for one that has left."""
        app_id = self.app_of.get(job_id)
        if app_id is None:
            return None
        app = self.apps[app_id]
        return app, app.gangs[job_id]

    def put_server(self, node: str, server: Server) -> None:
        """A node is a server from now on, or changed."""
        self.servers[node] = server
        self.node_of[server.server_id] = node

    def drop_server(self, node: str) -> Server | None:
        """Forget a node, but for what is on it."""
        server = self.servers.pop(node, None)
        if server is not None:
            del self.node_of[server.server_id]
        return server

    def servers_at(self, places: Sequence[str]) -> tuple[ServerId, ...]:
        """Servers on these hosts and racks; where there are none, the first place itself, which is no server."""
        if not places:
            return ()
        found = (
            server.server_id
            for node, server in self.servers.items()
            if node.rpartition(":")[0] in places or server.rack in places
        )
        return tuple(sorted(found)) or (ServerId(places[0]),)

    def lose(self, gang: Gang, member: Member) -> None:
        """A container of a gang is gone for a bad reason; its siblings stay until the core releases them."""
        self.job_of.pop(member.container, None)
        member.drop()
        gang.phase = GangPhase.RENEWING

    def scatter(self, app: Application, gang: Gang) -> None:
        """Take a gang apart without ending its containers: they are nobody's now."""
        app.strays.update((stray.container, stray) for stray in gang.strays)
        self.forget_containers(gang)

    def forget_containers(self, gang: Gang) -> None:
        """All containers of a gang are gone or given back."""
        for member in gang.members:
            self.job_of.pop(member.container, None)
        gang.drop_containers()

    def remove(self, app: Application, gang: Gang) -> None:
        """A job has left."""
        self.forget_containers(gang)
        del app.gangs[gang.job_id]
        del self.app_of[gang.job_id]

    def gangs(self) -> Iterator[tuple[Application, Gang]]:
        """Every gang of every application."""
        for app in self.apps.values():
            for gang in app.gangs.values():
                yield app, gang
