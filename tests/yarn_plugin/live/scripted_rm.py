"""A ResourceManager that is only a session: nodes, applications, containers, and what can go wrong between."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from yarn_plugin.bridge.gateway import GatewayError

GPUS = 4
SIZE = {"memory_mib": 256, "vcores": 1, "gpus": 1}
Json = dict[str, Any]


@dataclass
class App:
    name: str
    queue: str
    tags: tuple[str, ...]
    kind: str = "YARN"
    asks: Counter[int] = field(default_factory=Counter)
    """Containers by priority."""
    attempt: int = 1

    @property
    def attempt_id(self) -> str:
        return f"{self.name}_attempt_{self.attempt}"

    def table(self) -> list[Json]:
        return [
            {"priority": priority, "allocation_request_id": -1, "count": count, **SIZE}
            for priority, count in sorted(self.asks.items())
            if count > 0
        ]


@dataclass
class Container:
    name: str
    app: str
    node: str
    priority: int

    def plain(self) -> Json:
        return {
            "container": self.name,
            "node": self.node,
            "priority": self.priority,
            "allocation_request_id": -1,
            **SIZE,
        }


class ScriptedRm:
    """Implements `yarn_plugin.live.loop.Session`; `loses_answers` carries out orders and then loses the connection."""

    def __init__(self, nodes: int = 3) -> None:
        self.nodes = {f"n{i}:1": True for i in range(1, nodes + 1)}
        """Whether a node is registered; the containers of one that is not are there all the same."""
        self.apps: dict[str, App] = {}
        self.containers: dict[str, Container] = {}
        self.settings: Json | None = None
        self.heights: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.released: list[str] = []
        self.commits = 0
        self.loses_answers = False
        self.epoch = 0
        self._made = self._submitted = 0
        self._parts = 1
        self._events: list[Json] | None = None
        """None where the next thing told is a snapshot."""
        self._batches: list[list[Json]] = []

    # ------------------------------------------------------------------ what happens

    def submit(self, queue: str = "root.a", *tags: str, kind: str = "YARN") -> App:
        self._submitted += 1
        app = App(f"application_1_{self._submitted:04}", queue, tags, kind)
        self.apps[app.name] = app
        self.tell("app_added", **self._identity(app))
        return app

    def ask(self, app: App, count: int, priority: int = 1) -> None:
        app.asks[priority] = count
        self._tell_asks(app)

    def rest(self, app: App) -> None:
        self.tell("asks_unchanged", app=app.name, attempt=app.attempt_id)

    def allocate(self, app: App, node: str, priority: int = 1) -> Container | None:
        """Stock code serves an ask; the master hears of it and asks for one less."""
        if app.asks[priority] < 1 or not self.nodes[node]:
            return None
        container = self._make(app, node, priority)
        self.tell("container_allocated", app=app.name, attempt=app.attempt_id, **container.plain())
        self._tell_asks(app)
        return container

    def complete(self, name: str, exit_status: int) -> None:
        container = self.containers.pop(name)
        if self.nodes[container.node]:
            self.tell(
                "container_completed",
                app=container.app,
                container=name,
                node=container.node,
                exit_status=exit_status,
            )

    def end(self, app: App, state: str = "FINISHED") -> None:
        for name in [c.name for c in self.containers.values() if c.app == app.name]:
            self.complete(name, -100)
        del self.apps[app.name]
        self.tell("app_removed", app=app.name, attempt=app.attempt_id, final_state=state)

    def lose_node(self, node: str) -> None:
        if self.nodes[node]:
            for name in [c.name for c in self.containers.values() if c.node == node]:
                self.complete(name, -100)
            self.nodes[node] = False
            self.tell("node_removed", node=node)

    def register_node(self, node: str) -> None:
        """A node comes, after a restart with the containers that it kept."""
        if self.nodes[node]:
            return
        self.nodes[node] = True
        self.tell("node_added", **self._node(node))
        for container in self.containers.values():
            if container.node == node and container.app in self.apps:
                attempt = self.apps[container.app].attempt_id
                told = {"app": container.app, "attempt": attempt, **container.plain()}
                self.tell("container_recovered", **told)

    def restart(self) -> None:
        """The ResourceManager is another one: it knows its applications, and no node yet."""
        self.epoch += 1
        self.nodes = dict.fromkeys(self.nodes, False)
        self.heights.clear()
        self.texts.clear()
        self.overflow()

    def overflow(self, parts: int = 1) -> None:
        """Events are dropped; the next thing told is a snapshot."""
        self._events = None
        self._batches = []
        self._parts = parts

    def configure(self, mode: str, queues: tuple[str, ...] = ("root.a", "root.b")) -> None:
        limits = [
            {"queue": "root"},
            *({"queue": q, "parent": "root"} for q in ("root.a", "root.b")),
        ]
        self.settings = {
            "mode": mode,
            "adopted_queues": queues,
            "adopted_partitions": [""],
            "height_max": 4,
            "limits": limits,
        }
        self.tell("settings", **self.settings)

    def reclaim(self, name: str, reason: str = "preemption") -> None:
        container = self.containers[name]
        self.tell("reclaim_asked", app=container.app, container=name, gpus=1, reason=reason)

    def tell(self, kind: str, **fields: Any) -> None:
        if self._events is not None:
            self._events.append({"kind": kind, **fields})

    # ------------------------------------------------------------------ what is asked

    def take_events_text(self, count_max: int, wait_ms: int) -> str:
        if self._batches:
            events = self._batches.pop(0)
        elif self._events is None:
            self._batches = [[part] for part in self._snapshot()]
            events = self._batches.pop(0)
            self._events = []
        else:
            events, self._events = self._events, []
        return json.dumps({"ok": True, "epoch": 1, "events": events})

    @property
    def is_quiet(self) -> bool:
        return self._events == [] and not self._batches

    def apply(self, effects: list[Json]) -> list[Json]:
        answers = [self._apply(effect) for effect in effects]
        if self.loses_answers:
            self.overflow()
            raise GatewayError("BROKEN", "the answer was lost")
        return answers

    def _apply(self, effect: Json) -> Json:
        answer: Json = {"id": effect["id"], "code": "OK"}
        match effect["op"]:
            case "explain":
                self.texts[effect["app"]] = effect["text"]
            case "set_height":
                self.heights[effect["node"]] = effect["height"]
            case "release_gang":
                for name in effect["containers"]:
                    if name in self.containers:
                        self.released.append(name)
                        self.complete(name, -100)
            case _:
                self._commit(effect, answer)
        return answer

    def _commit(self, effect: Json, answer: Json) -> None:
        app = next((a for a in self.apps.values() if a.attempt_id == effect["attempt"]), None)
        wanted = Counter(each["priority"] for each in effect["containers"])
        if app is None or any(app.asks[priority] < n for priority, n in wanted.items()):
            answer["code"] = "ASK_GONE"
        elif not all(self.nodes[each["node"]] for each in effect["containers"]):
            answer["code"] = "NODE_STATE"
        else:
            self.commits += 1
            made = [self._make(app, c["node"], c["priority"]) for c in effect["containers"]]
            answer["containers"] = [container.name for container in made]

    # ------------------------------------------------------------------ how it is told

    def _make(self, app: App, node: str, priority: int) -> Container:
        self._made += 1
        epoch = f"e{self.epoch}_" if self.epoch else ""
        container = Container(f"container_{epoch}1_{self._made:06}", app.name, node, priority)
        self.containers[container.name] = container
        app.asks[priority] -= 1
        return container

    def _tell_asks(self, app: App) -> None:
        self.tell("asks", app=app.name, attempt=app.attempt_id, asks=app.table())

    def _identity(self, app: App) -> Json:
        return {
            "app": app.name,
            "attempt": app.attempt_id,
            "queue": app.queue,
            "tags": app.tags,
            "type": app.kind,
        }

    @staticmethod
    def _node(node: str) -> Json:
        return {"node": node, "memory_mib": 65536, "vcores": 64, "gpus": GPUS}

    def _snapshot(self) -> list[Json]:
        apps = [
            {
                **self._identity(app),
                "asks": app.table(),
                "containers": [
                    container.plain()
                    for container in self.containers.values()
                    if container.app == app.name and self.nodes[container.node]
                ],
            }
            for app in self.apps.values()
        ]
        nodes = [self._node(node) for node, is_there in self.nodes.items() if is_there]
        parts = [{"kind": "resync", "part": 1, "parts": self._parts, "nodes": nodes, "apps": apps}]
        if self.settings is not None:
            parts[0]["settings"] = self.settings
        if self._parts > 1:
            parts[0]["apps"] = []
            parts.append({"kind": "resync", "part": 2, "parts": 2, "apps": apps})
        return parts
