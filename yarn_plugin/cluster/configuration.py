"""The configuration of a cluster on this machine: Hadoop's files, one folder for each daemon."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from yarn_plugin.cluster.processes import CLUSTER_ID
from yarn_plugin.cluster.state import RM_HOST, Cluster, Node, Plan, StateFolder, sockets_of

CAPACITY = "capacity"
GANDIVA = "gandiva"
SCHEDULERS = {
    CAPACITY: "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
    GANDIVA: "org.gandiva.yarn.GandivaScheduler",
}
AGENT_SOCKET = "GANDIVA_AGENT_SOCKET"
MANAGED = "yarn.scheduler.gandiva.core.managed"
NODE_MEMORY_MIB = 8192
NODE_VCORES = 16
QUICK_JVM = "--add-opens=java.base/java.lang=ALL-UNNAMED -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For application masters: Hadoop 3.4 reflects into java.lang, and they live for seconds."""

_STORE = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
_LOG4J = """log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
_METRICS = "*.period=1\n"
"""Seconds: what `/jmx` shows of Hadoop's own metrics is no older."""

_QUEUES = {
    "yarn.scheduler.capacity.resource-calculator": (
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    ),
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
    "yarn.scheduler.capacity.schedule-asynchronously.enable": "false",
}


def write_all(folder: StateFolder, cluster: Cluster, class_path: str) -> None:
    """Write the files of the ResourceManager (and of clients), and of each node."""
    shared = {
        **_shared(folder, cluster, class_path),
        **_usual(folder, cluster),
        **cluster.plan.properties,
    }
    _write(folder.conf, shared)
    for node in cluster.nodes:
        _write(node_conf(folder, node), {**shared, **_node(folder, cluster, node)})


def node_conf(folder: StateFolder, node: Node) -> Path:
    """The configuration folder of a node."""
    return folder.nodes / node.name / "conf"


def is_managed(plan: Plan) -> bool:
    """Whether the ResourceManager starts a core; else whoever asked for that starts one."""
    return plan.scheduler == GANDIVA and plan.properties.get(MANAGED, "true").strip() == "true"


def scheduler_properties(folder: StateFolder, cluster: Cluster) -> dict[str, str]:
    """What differs between the two schedulers, and cannot be set in another way."""
    plan = cluster.plan
    properties = {"yarn.resourcemanager.scheduler.class": SCHEDULERS[plan.scheduler]}
    if plan.scheduler == GANDIVA:
        properties |= {
            "yarn.scheduler.gandiva.height.max": str(plan.height_max),
            "yarn.scheduler.gandiva.bridge.port": str(cluster.ports["bridge"]),
        }
        if not is_managed(plan):
            properties["yarn.scheduler.gandiva.bridge.token-file"] = str(folder.token)
    return properties


def _usual(folder: StateFolder, cluster: Cluster) -> dict[str, str]:
    """Keys of Gandiva that `--set` can change."""
    devices = _devices(cluster.plan) if cluster.plan.agents else {}
    if cluster.plan.scheduler != GANDIVA:
        return devices
    return {
        **devices,
        "yarn.scheduler.gandiva.mode": "full",
        MANAGED: "true",
        "yarn.scheduler.gandiva.core.python": sys.executable,
        "yarn.scheduler.gandiva.core.log-dir": str(folder.logs),
        # Agents report earlier, where there are some.
        "yarn.scheduler.gandiva.recovery.hold-ms": "5000",
        **(_agents(folder, cluster) if cluster.plan.agents else {}),
    }


def _agents(folder: StateFolder, cluster: Cluster) -> dict[str, str]:
    return {
        "yarn.scheduler.gandiva.agents.port": str(cluster.ports["agents"]),
        "yarn.scheduler.gandiva.agents.address": RM_HOST,
        "yarn.scheduler.gandiva.agents.token-file": str(folder.agents_token),
        "yarn.scheduler.gandiva.operations.token-file": str(folder.operations_token),
    }


def _devices(plan: Plan) -> dict[str, str]:
    """Of agents; under the stock scheduler nobody tells them who shall have which."""
    return {
        "yarn.scheduler.gandiva.agent.virtual-gpus": str(plan.gpus),
        "yarn.scheduler.gandiva.agent.without-core": str(plan.scheduler != GANDIVA).lower(),
    }


def _shared(folder: StateFolder, cluster: Cluster, class_path: str) -> dict[str, str]:
    def at(service: str) -> str:
        return f"{RM_HOST}:{cluster.ports[service]}"

    return {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": str(folder.temporary),
        "yarn.resourcemanager.hostname": RM_HOST,
        "yarn.resourcemanager.bind-host": RM_HOST,
        "yarn.resourcemanager.address": at("client"),
        "yarn.resourcemanager.scheduler.address": at("scheduler"),
        "yarn.resourcemanager.resource-tracker.address": at("tracker"),
        "yarn.resourcemanager.admin.address": at("admin"),
        "yarn.resourcemanager.webapp.address": at("web"),
        # A new start of the ResourceManager, or of a node, finds what ran.
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class": _STORE,
        "yarn.resourcemanager.fs.state-store.uri": folder.rm_state.as_uri(),
        "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
        "yarn.nodemanager.recovery.enabled": "true",
        "yarn.nodemanager.recovery.supervised": "true",
        "yarn.webapp.enable-rest-app-submissions": "false",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "60000",
        # Daemons start together: whoever is first asks again soon.
        "yarn.resourcemanager.connect.retry-interval.ms": "1000",
        "ipc.client.connect.retry.interval": "500",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.maximum-allocation-mb": str(NODE_MEMORY_MIB),
        "yarn.scheduler.maximum-allocation-vcores": str(NODE_VCORES),
        "yarn.application.classpath": ",".join([str(folder.conf), *class_path.split(":")]),
        **scheduler_properties(folder, cluster),
    }


def agent_socket(cluster: Cluster, node: Node) -> Path:
    """Where launchers on a node dial its agent."""
    return sockets_of(cluster) / f"{node.name}.sock"


def _node(folder: StateFolder, cluster: Cluster, node: Node) -> dict[str, str]:
    home = folder.nodes / node.name
    admin = {"JDK_JAVA_OPTIONS": QUICK_JVM, CLUSTER_ID: cluster.cluster_id}
    if cluster.plan.agents:
        admin[AGENT_SOCKET] = str(agent_socket(cluster, node))
    return {
        "yarn.nodemanager.hostname": node.host,
        "yarn.nodemanager.bind-host": node.host,
        "yarn.nodemanager.address": node.node_id,
        "yarn.nodemanager.localizer.address": f"{node.host}:{node.ports['localizer']}",
        "yarn.nodemanager.webapp.address": f"{node.host}:{node.ports['web']}",
        "yarn.nodemanager.recovery.dir": str(home / "recovery"),
        "yarn.nodemanager.local-dirs": str(home / "local"),
        "yarn.nodemanager.log-dirs": str(folder.logs / f"{node.name}-containers"),
        "yarn.nodemanager.resource.memory-mb": str(NODE_MEMORY_MIB),
        "yarn.nodemanager.resource.cpu-vcores": str(NODE_VCORES),
        "yarn.nodemanager.resource-type.yarn.io/gpu": str(cluster.plan.gpus),
        # Other users' full disks, and JVMs that map a lot, are no reason to end a container here.
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        # By the id `down` finds them: a supervised node leaves its containers alone.
        "yarn.nodemanager.admin-env": ",".join(f"{key}={value}" for key, value in admin.items()),
    }


def _write(folder: Path, properties: Mapping[str, str]) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    core = {key: value for key, value in properties.items() if _is_core(key)}
    queues = {key: value for key, value in properties.items() if _is_queue(key)}
    rest = {key: value for key, value in properties.items() if key not in core | queues}
    (folder / "core-site.xml").write_text(as_xml(core), encoding="utf-8")
    (folder / "yarn-site.xml").write_text(as_xml(rest), encoding="utf-8")
    (folder / "capacity-scheduler.xml").write_text(as_xml({**_QUEUES, **queues}), encoding="utf-8")
    (folder / "resource-types.xml").write_text(
        as_xml({"yarn.resource-types": "yarn.io/gpu"}), encoding="utf-8"
    )
    (folder / "log4j.properties").write_text(_LOG4J, encoding="utf-8")
    (folder / "hadoop-metrics2.properties").write_text(_METRICS, encoding="utf-8")


def _is_core(key: str) -> bool:
    return key.startswith(("fs.", "hadoop.", "ipc."))


def _is_queue(key: str) -> bool:
    return key.startswith("yarn.scheduler.capacity.")


def as_xml(properties: Mapping[str, str]) -> str:
    """A Hadoop configuration file."""
    lines = [
        f"  <property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
        for key, value in sorted(properties.items())
    ]
    return "\n".join(['<?xml version="1.0"?>', "<configuration>", *lines, "</configuration>", ""])
