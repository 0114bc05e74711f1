"""What a cluster on this machine is doing: its processes, and what its ResourceManager says over REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gandiva_core.model.errors import GandivaError
from gandiva_core.site.http import HttpError, HttpSession
from yarn_plugin.bridge.status import BEAN_PAGE, NEVER_SEEN
from yarn_plugin.cluster.configuration import GANDIVA
from yarn_plugin.cluster.state import Cluster

GPU = "yarn.io/gpu"


class ClusterUnreachableError(GandivaError):
    """There is no cluster, or its ResourceManager does not answer."""


class NodeReport(msgspec.Struct, frozen=True):
    """A node as the ResourceManager sees it; GPUs are physical.

    Attributes:
        seen_at_ms: when the node last looked after its health, by its own clock; never before its daemon started.
            A node that was killed counts as running until it has been silent for long, so this tells an old one.
    """

    node_id: str
    state: str
    containers: int
    gpus_used: int
    gpus: int
    seen_at_ms: int = 0


class CoreReport(msgspec.Struct, frozen=True):
    """The core as the ResourceManager's plug-in sees it.

    Attributes:
        state: ``NEVER_SEEN``, ``CONNECTED`` or ``SILENT``.
        epoch: of its session; each hello begins another.
        alarm: why the ResourceManager does not start it for now; empty where it does.
    """

    state: str
    epoch: int
    alarm: str


class RmReport(msgspec.Struct, frozen=True):
    """The ResourceManager's own view."""

    state: str
    hadoop_version: str
    scheduler: str
    nodes: tuple[NodeReport, ...]
    apps_running: int
    apps_pending: int
    core: CoreReport | None = None

    def has_running(self, node_id: str, since_ms: int = 0) -> bool:
        """Whether a node can take containers, by a daemon that started after `since_ms`."""
        return any(
            node.node_id == node_id and node.state == "RUNNING" and node.seen_at_ms >= since_ms
            for node in self.nodes
        )


def ask(cluster: Cluster, session: HttpSession) -> RmReport:
    """Ask the ResourceManager over REST.

    Raises:
        ClusterUnreachableError: it does not answer, or not as a ResourceManager does.
    """
    base = f"{cluster.web}/ws/v1/cluster"
    is_ours = cluster.plan.scheduler == GANDIVA
    try:
        info = session.get_json(f"{base}/info")["clusterInfo"]
        metrics = session.get_json(f"{base}/metrics")["clusterMetrics"]
        listed = session.get_json(f"{base}/nodes")["nodes"]
        nodes = (listed or {}).get("node", [])
        return RmReport(
            state=str(info["state"]),
            hadoop_version=str(info["hadoopVersion"]),
            scheduler=cluster.plan.scheduler,
            nodes=tuple(sorted(map(node_report, nodes), key=lambda node: node.node_id)),
            apps_running=int(metrics["appsRunning"]),
            apps_pending=int(metrics["appsPending"]),
            core=_core(session.get_json(f"{cluster.web}{BEAN_PAGE}")) if is_ours else None,
        )
    except HttpError as error:
        raise ClusterUnreachableError(f"the ResourceManager is not reachable: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        found = f"{type(error).__name__}: {error}"
        raise ClusterUnreachableError(f"{base}: no answer of a ResourceManager: {found}") from error


def _core(found: Mapping[str, Any]) -> CoreReport:
    # Until the scheduler has started there is no such bean.
    bean: Mapping[str, Any] = next(iter(found["beans"]), {})
    return CoreReport(
        state=str(bean.get("CoreState", NEVER_SEEN)),
        epoch=int(bean.get("CoreEpoch", 0)),
        alarm=str(bean.get("CoreDownReason", "")),
    )


def node_report(found: Mapping[str, Any]) -> NodeReport:
    """A node, from an entry of the REST interface's list."""
    used, free = _gpus(found.get("usedResource")), _gpus(found.get("availableResource"))
    return NodeReport(
        node_id=str(found["id"]),
        state=str(found["state"]),
        containers=int(found.get("numContainers", 0)),
        gpus_used=used,
        gpus=_gpus(found.get("totalResource")) or used + free,
        seen_at_ms=int(found.get("lastHealthUpdate", 0)),
    )


def _gpus(resource: Mapping[str, Any] | None) -> int:
    listed = ((resource or {}).get("resourceInformations") or {}).get("resourceInformation", [])
    return next((int(each["value"]) for each in listed if each.get("name") == GPU), 0)
