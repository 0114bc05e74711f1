"""What the bridge remembers: nodes and their servers, applications and their gangs, containers and their jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gandiva_core.model.cluster import Server
from gandiva_core.model.units import JobId, ServerId
from yarn_plugin.bridge.gangs import Application, Gang, GangPhase, Member


@dataclass(slots=True)
class Register:
    """The three tables and the ways between them. Only `Translator` and `OrderDesk` change it."""

    servers: dict[str, Server] = field(default_factory=dict)
    node_of: dict[ServerId, str] = field(default_factory=dict)
    apps: dict[str, Application] = field(default_factory=dict)
    app_of: dict[JobId, str] = field(default_factory=dict)
    job_of: dict[str, JobId] = field(default_factory=dict)

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
        """A node is gone; gangs with a container there have to be asked for again."""
        server = self.servers.pop(node, None)
        if server is None:
            return None
        del self.node_of[server.server_id]
        for gang in self.gangs():
            here = [member for member in gang.members if member.container and member.node == node]
            for member in here:
                self.lose(gang, member)
        return server

    def lose(self, gang: Gang, member: Member) -> None:
        """A container of a gang is gone for a bad reason; its siblings stay until the core releases them."""
        self.job_of.pop(member.container, None)
        member.container = member.node = ""
        gang.phase = GangPhase.RENEWING

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

    def gangs(self) -> Iterator[Gang]:
        """Every gang of every application."""
        for app in self.apps.values():
            yield from app.gangs.values()
