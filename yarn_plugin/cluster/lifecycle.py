"""Bringing a cluster up and taking it down: either whole, or nothing of it is left running.

`up` is idempotent: what runs stays, what is missing is started. A call that fails ends what it started itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from gandiva_core.model.errors import GandivaError, InputError
from gandiva_core.site.http import HttpSession
from yarn_plugin.bridge.jvm import write_token
from yarn_plugin.bridge.status import CONNECTED
from yarn_plugin.cluster import daemons
from yarn_plugin.cluster.configuration import GANDIVA, is_managed, write_all
from yarn_plugin.cluster.processes import ProcessTable
from yarn_plugin.cluster.state import Cluster, Plan, StateFolder, addressed, sockets_of
from yarn_plugin.cluster.status import ClusterUnreachableError, RmReport, ask
from yarn_plugin.replay.rm import last_line

START_S_MAX = 120.0
GRACE_S = 5.0
"""For a daemon that would wait, as for logs that nobody collects here."""

_POLL_S = 0.3

Say = Callable[[str], None]


class ClusterError(GandivaError):
    """The cluster did not come up; nothing that this call started runs on."""


def up(folder: StateFolder, plan: Plan, say: Say, limit_s: float = START_S_MAX) -> Cluster:
    """Bring a cluster up, or make one that is there whole again.

    Args:
        folder: of the cluster.
        plan: what it shall be.
        say: told what is being done, a line each.
        limit_s: to wait until it is complete.

    Raises:
        InputError: another cluster is up in this folder, no JDK, no jars.
        ClusterError: a daemon ended, or did not become ready in time.
    """
    jars = daemons.class_path()
    daemons.java()
    with folder.locked():
        cluster = _chosen(folder, plan, jars)
        jars = daemons.with_copy(folder, jars)
        with HttpSession(tries_max=1) as session:
            starting = _Starting(folder, cluster, jars, say, session)
            try:
                starting.run(time.monotonic() + limit_s)
            except BaseException:
                starting.undo()
                raise
    return cluster


def down(folder: StateFolder, say: Say) -> bool:
    """End every process of the cluster and forget it; logs and journals stay.

    Returns:
        Whether there was one.
    """
    if not folder.path.exists():
        return False
    with folder.locked():
        cluster = folder.load()
        if cluster is None:
            return False
        table = ProcessTable(folder.run, cluster.cluster_id)
        # The nodes first, then the ResourceManager, which ends its core.
        agents = tuple(daemons.agent_of(node) for node in cluster.nodes if cluster.plan.agents)
        for names in (agents, _node_names(cluster), (daemons.RESOURCE_MANAGER,)):
            running = [name for name in names if table.alive(name)]
            if running:
                say(f"stopping {', '.join(running)}")
            table.stop(*names, grace_s=GRACE_S)
        strays = table.stop_strays()
        if strays:
            say(f"stopped {strays} processes that were left")
        folder.clear()
    return True


def _chosen(folder: StateFolder, plan: Plan, jars: str) -> Cluster:
    known = folder.load()
    if known is not None and known.plan != plan:
        found = f"a cluster of another kind ({_described(known.plan)})"
        expected = f"the same as before, or `gandiva cluster down` first ({_described(plan)})"
        raise InputError(str(folder.path), found, expected)
    cluster = known or addressed(plan)
    if known is None:
        folder.clear()
        jars = daemons.with_copy(folder, jars)
        if plan.scheduler == GANDIVA and not is_managed(plan):
            write_token(folder.token)
        if plan.agents and plan.scheduler == GANDIVA:
            write_token(folder.agents_token)
            write_token(folder.operations_token)
        if plan.agents:
            sockets_of(cluster).mkdir(mode=0o755, parents=True, exist_ok=True)
        write_all(folder, cluster, jars)
        folder.yarn.write_text(daemons.yarn_script(folder, jars), encoding="utf-8")
        folder.yarn.chmod(0o700)
        for place in (folder.home, folder.temporary):
            place.mkdir(mode=0o700, exist_ok=True)
        folder.save(cluster)  # last: from now on `down` knows what to look for
    return cluster


def _described(plan: Plan) -> str:
    own = "".join(f", {key}={value}" for key, value in sorted(plan.properties.items()))
    agents = ", agents" * plan.agents
    kind = f"{plan.nodes} nodes with {plan.gpus} GPUs, {plan.scheduler}"
    return f"{kind}, height {plan.height_max}{agents}{own}"


def _node_names(cluster: Cluster) -> tuple[str, ...]:
    return tuple(node.name for node in cluster.nodes)


class _Starting:
    """One `up`: remembers what it started."""

    def __init__(
        self, folder: StateFolder, cluster: Cluster, jars: str, say: Say, session: HttpSession
    ) -> None:
        self._folder = folder
        self._cluster = cluster
        self._jars = jars
        self._say = say
        self._table = ProcessTable(folder.run, cluster.cluster_id)
        self._started_at_ms: dict[str, int] = {}
        self._was_empty = not any(
            self._table.alive(name) for name in (daemons.RESOURCE_MANAGER, *_node_names(cluster))
        )
        self._session = session

    def run(self, deadline_s: float) -> None:
        """Start what is missing and wait until all of it works."""
        self._start(
            daemons.RESOURCE_MANAGER,
            daemons.resource_manager(self._folder, self._jars),
            daemons.resource_manager_environment(os.environ),
        )
        for node in self._cluster.nodes:
            self._start(node.name, daemons.node_manager(self._folder, node, self._jars))
        for node in self._cluster.nodes if self._cluster.plan.agents else ():
            command = daemons.agent(self._folder, self._cluster, node)
            self._start(daemons.agent_of(node), command)
        self._wait("the ResourceManager", deadline_s, lambda report: report.state == "STARTED")
        self._wait("every node", deadline_s, self._has_all_nodes)
        if is_managed(self._cluster.plan):
            self._wait("the core", deadline_s, self._core_is_connected)

    def _has_all_nodes(self, report: RmReport) -> bool:
        return all(
            report.has_running(node.node_id, self._started_at_ms.get(node.name, 0))
            for node in self._cluster.nodes
        )

    def _core_is_connected(self, report: RmReport) -> bool:
        if report.core is not None and report.core.alarm:
            raise ClusterError(f"the core does not start: {report.core.alarm}")
        return report.core is not None and report.core.state == CONNECTED

    def undo(self) -> None:
        """End what this call started; where that was the whole cluster, forget it."""
        self._table.stop(*self._started_at_ms, grace_s=5.0)
        if self._was_empty:
            self._table.stop_strays()
            self._folder.clear()

    def _start(
        self, name: str, command: list[str], environment: Mapping[str, str] | None = None
    ) -> None:
        if self._table.alive(name) is not None:
            return
        self._started_at_ms[name] = int(time.time() * 1000.0)
        self._say(f"starting {name}")
        self._table.start(name, command, self._folder.log(name), environment)

    def _wait(self, what: str, deadline_s: float, is_ready: Callable[[RmReport], bool]) -> None:
        while True:
            self._check_started()
            try:
                if is_ready(ask(self._cluster, self._session)):
                    return
            except ClusterUnreachableError:
                pass  # not yet
            if time.monotonic() > deadline_s:
                raise ClusterError(
                    f"{what} did not become ready in time; logs: {self._folder.logs}"
                )
            time.sleep(_POLL_S)

    def _check_started(self) -> None:
        for name in self._started_at_ms:
            if self._table.alive(name) is None:
                log = self._folder.log(name)
                raise ClusterError(f"{name} ended at once: {last_line(log)} ({log})")
