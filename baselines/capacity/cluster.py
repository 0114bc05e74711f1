"""The scheduler over all nodes: heartbeats in host order, and what happens when a job comes or ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from baselines.capacity.applications import AM_MEMORY_MIB, AM_VCORES, Application
from baselines.capacity.nodes import Node
from baselines.capacity.queues import Given, LeafQueue, OrderingPolicy, Usage
from gandiva_core.model.cluster import Cluster, QueueLimit, Server
from gandiva_core.model.errors import InputError
from gandiva_core.model.job import JobSpec, Worker
from gandiva_core.model.units import QueueName, ServerId

ROUNDS_MAX = 1000
MASTER = Worker(0, AM_MEMORY_MIB, AM_VCORES)
MASTERS_MAX = 1 << 14
DEFAULT_QUEUE = QueueName("root.default")

Heard = Callable[[Application], None]
"""Told of every application whose master hears of new containers, in order of submission."""


class CapacityCluster:
    """Nodes, queues and applications of one cluster under the model.

    Args:
        cluster: its servers; nodes send heartbeats in the order of their names, a host for masters first.
        order: of applications in every leaf queue.
        heard: see `Heard`.

    Raises:
        InputError: a queue whose parent does not exist.
    """

    def __init__(self, cluster: Cluster, order: OrderingPolicy, heard: Heard) -> None:
        self._heard = heard
        host = Server(ServerId(""), 0, MASTERS_MAX * AM_MEMORY_MIB, MASTERS_MAX * AM_VCORES)
        servers = sorted(cluster.servers, key=lambda server: str(server.server_id))
        self._nodes = [Node(host), *map(Node, servers)]
        gpus = Counter({"": 0})
        for server in cluster.servers:
            gpus[server.partition] += server.gpus
        self._leaves = _leaves(cluster.queues, gpus, order)
        self._queue_of: dict[Application, LeafQueue] = {}
        self._submitted = 0

    def queue(self, name: QueueName) -> LeafQueue | None:
        """A leaf queue, or None where there is none of that name."""
        return self._leaves.get(name)

    def submit(self, jobs: Sequence[JobSpec]) -> list[Application]:
        """Take jobs in, each in an existing leaf queue; `settle` serves them."""
        apps = []
        for job in jobs:
            app = Application(job, self._submitted)
            self._submitted += 1
            queue = self._leaves[job.queue]
            self._queue_of[app] = queue
            queue.admit(app)
            apps.append(app)
        return apps

    def end(self, app: Application) -> None:
        """A job's containers end, node by node, each serving others at once; then its master."""
        self.release(app)
        queue = self._queue_of.pop(app)
        if app.master_node is not None:
            node, app.master_node = app.master_node, None
            queue.release(app, MASTER, node)
            self._heartbeat(node)

    def release(self, app: Application) -> None:
        """All workers of an application end; their nodes send heartbeats in the order of their names."""
        queue = self._queue_of[app]
        by_node: dict[Node, list[Worker]] = {}
        for ask, node in app.given.values():
            by_node.setdefault(node, []).append(ask.worker)
        app.given = {}
        for node in self._nodes:
            if node in by_node:
                for worker in by_node[node]:
                    queue.release(app, worker, node)
                self._heartbeat(node)
        self._hear()

    def ask_again(self, app: Application) -> None:
        """A job without containers asks for its whole gang."""
        app.ask_for_gang()
        self._queue_of[app].wait(app)

    def settle(self) -> None:
        """Heartbeats of all nodes, round after round, until a round gives nothing and reserves nothing."""
        self._hear()
        for _ in range(ROUNDS_MAX):
            if not any(queue.is_waiting() for queue in self._leaves.values()):
                return
            before = self._progress()
            for node in self._nodes:
                self._heartbeat(node)
            self._hear()
            if self._progress() == before:
                return

    def _progress(self) -> tuple[int, int]:
        queues = self._leaves.values()
        return sum(queue.allocated for queue in queues), sum(
            len(queue.reserved) for queue in queues
        )

    def _heartbeat(self, node: Node) -> None:
        """Serve a node's reservation, or offer it until nobody takes anything or somebody reserves it."""
        if node.is_reserved:
            for queue in self._leaves.values():
                queue.fulfil(node)
        else:
            while not node.is_full() and self._offer(node) is Given.CONTAINER:
                pass
        self._start_masters()

    def _offer(self, node: Node) -> Given:
        queues = list(self._leaves.values())
        if len(queues) > 1:
            queues.sort(key=lambda queue: queue.usage.turn(node.partition))
        given = Given.NOTHING
        for queue in queues:
            given = queue.offer(node)
            if given not in (Given.NOTHING, Given.BLOCKED):
                break
        for queue in queues:
            queue.usage.unblock()
        return given

    def _start_masters(self) -> None:
        """A master that got its container runs at once and asks for its gang."""
        for queue in self._leaves.values():
            for app in queue.news:
                if app.asks[0].ranks == [-1]:
                    app.ask_for_gang()
                    queue.wait(app)

    def _hear(self) -> None:
        """Masters fetch what they were given."""
        news = [app for queue in self._leaves.values() for app in queue.news]
        for queue in self._leaves.values():
            queue.news.clear()
        for app in sorted(news, key=lambda app: app.sequence):
            if app.given:
                self._heard(app)


def _leaves(
    limits: Sequence[QueueLimit], gpus: Counter[str], order: OrderingPolicy
) -> dict[QueueName, LeafQueue]:
    """Leaf queues by name; their GPUs are theirs in every partition in proportion."""
    root = Usage("root", gpus, gpus, 1.0, None)
    if not limits:
        usage = Usage(DEFAULT_QUEUE, gpus, gpus, 1.0, root)
        return {DEFAULT_QUEUE: LeafQueue(usage, order)}
    usages: dict[str, Usage] = {"": root, "root": root}
    parents = {limit.parent for limit in limits} | {"root"}
    leaves = {}
    waiting = [limit for limit in limits if limit.name != "root"]
    while waiting:
        ready = [limit for limit in waiting if limit.parent in usages]
        if not ready:
            limit = waiting[0]
            found = f"parent {limit.parent}"
            raise InputError(f"queue {limit.name}", found, "a parent that is a queue as well")
        for limit in ready:
            waiting.remove(limit)
            most = max(limit.guaranteed_gpus, limit.max_gpus)
            usage = usages[limit.name] = Usage(
                limit.name,
                _share(gpus, limit.guaranteed_gpus),
                _share(gpus, most),
                most / max(1, sum(gpus.values())),
                usages[limit.parent],
            )
            if limit.name not in parents:
                leaves[limit.name] = LeafQueue(usage, order)
    return leaves


def _share(gpus: Counter[str], part: float) -> Counter[str]:
    """`part` GPUs of the whole cluster, by partition, in whole GPUs as YARN counts."""
    total = max(1, sum(gpus.values()))
    return Counter({name: int(count * part / total + 1e-6) for name, count in gpus.items()})
