"""Command lines of a cluster's processes, and the `yarn` script that its users call."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from gandiva_core.model.errors import InputError
from yarn_plugin.bridge.gateway import GatewayError
from yarn_plugin.bridge.jvm import TARGET_DIR, java_program
from yarn_plugin.cluster.configuration import agent_socket, node_conf
from yarn_plugin.cluster.state import Cluster, Node, StateFolder

RESOURCE_MANAGER = "resourcemanager"
CORE = "core"
LISTING = "cluster.classpath"

_FLAGS = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "-XX:TieredStopAtLevel=1",  # a quarter of the CPU time of a start
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
)
_RM_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE_CLASS = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
RUN_JAR = "org.apache.hadoop.util.RunJar"
_TOOLS = {
    "application": "org.apache.hadoop.yarn.client.cli.ApplicationCLI application",
    "app": "org.apache.hadoop.yarn.client.cli.ApplicationCLI application",
    "container": "org.apache.hadoop.yarn.client.cli.ApplicationCLI container",
    "node": "org.apache.hadoop.yarn.client.cli.NodeCLI",
    "queue": "org.apache.hadoop.yarn.client.cli.QueueCLI",
    "logs": "org.apache.hadoop.yarn.client.cli.LogsCLI",
    "rmadmin": "org.apache.hadoop.yarn.client.cli.RMAdminCLI",
    "jar": RUN_JAR,
}
_RM_HEAP_MIB = 512
_NODE_HEAP_MIB = 256
_TOOL_HEAP_MIB = 256
TOOL_FLAGS = (*_FLAGS, f"-Xmx{_TOOL_HEAP_MIB}m")
"""For a command of Hadoop's without its scripts."""


def class_path(target: Path = TARGET_DIR) -> str:
    """The plug-in's jar and all of Hadoop's that daemons and clients need.

    Raises:
        InputError: they are not there yet, with what brings them.
    """
    jars = sorted(jar for jar in target.glob("gandiva-yarn-*.jar") if "sources" not in jar.name)
    listing = target / LISTING
    missing = "the plug-in's jar" if len(jars) != 1 else f"no {LISTING}"
    if len(jars) == 1 and listing.is_file():
        hadoop = listing.read_text(encoding="utf-8").strip()
        gone = [jar for jar in hadoop.split(os.pathsep) if not Path(jar).is_file()]
        if not gone:
            return os.pathsep.join([str(jars[0]), hadoop])
        missing = f"no {gone[0]}"
    raise InputError(str(target), missing, "Hadoop's jars: run `make cluster-jars`")


def with_copy(folder: StateFolder, jars: str) -> str:
    """The class path with the cluster's own copy of the plug-in: a build must not change what a JVM has open."""
    plugin, *hadoop = jars.split(os.pathsep)
    copy = folder.lib / Path(plugin).name
    if not copy.exists():
        folder.lib.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(plugin, copy)
    return os.pathsep.join([str(copy), *hadoop])


def distributed_shell(target: Path = TARGET_DIR) -> Path:
    """Hadoop's stock example of an application.

    Raises:
        InputError: as `class_path`.
    """
    names = (Path(jar) for jar in class_path(target).split(os.pathsep))
    for jar in names:
        if jar.name.startswith("hadoop-yarn-applications-distributedshell"):
            return jar
    raise InputError(str(target), "no distributed shell", "run `make cluster-jars`")


def java() -> str:
    """The `java` to run.

    Raises:
        InputError: there is none.
    """
    try:
        return str(java_program())
    except GatewayError as error:
        raise InputError("java", str(error), "a JDK 17 in JAVA_HOME or on PATH") from error


def resource_manager(folder: StateFolder, jars: str) -> list[str]:
    """The command line of the ResourceManager."""
    return [*_jvm(folder, folder.conf, jars, _RM_HEAP_MIB), _RM_CLASS]


def node_manager(folder: StateFolder, node: Node, jars: str) -> list[str]:
    """The command line of a NodeManager."""
    return [*_jvm(folder, node_conf(folder, node), jars, _NODE_HEAP_MIB), _NODE_CLASS]


def agent(folder: StateFolder, cluster: Cluster, node: Node) -> list[str]:
    """The command line of a node's agent."""
    home = folder.nodes / node.name
    options = {
        "--node": node.node_id,
        "--conf-dir": str(node_conf(folder, node)),
        "--socket": str(agent_socket(cluster, node)),
        "--state-dir": str(home / "agent"),
    }
    words = [word for pair in options.items() for word in pair]
    return [sys.executable, "-m", "nodemanager_agent", *words]


def agent_of(node: Node) -> str:
    """What its process is called."""
    return node.name.replace("node", "agent")


def resource_manager_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What its core imports from, where that is not what its interpreter finds by itself.

    The plug-in hands no PYTHONPATH on to the core: one there is usually meant for somebody else.
    """
    path = environment.get("PYTHONPATH")
    return {} if path is None else {"GANDIVA_PYTHONPATH": path}


def yarn_script(folder: StateFolder, jars: str) -> str:
    """A `yarn` for this cluster: the commands of Hadoop's own that a user or administrator needs."""
    home = f"-Duser.home={folder.home}"
    start = shlex.join([*_jvm(folder, folder.conf, jars, _TOOL_HEAP_MIB), home])
    cases = [f'  {name}) shift; set -- {tool} "$@" ;;' for name, tool in _TOOLS.items()]
    lines = [
        "#!/bin/sh",
        f"# Hadoop's yarn command for this cluster: {', '.join(_TOOLS)}.",
        'case "${1-}" in',
        *cases,
        f'  *) echo "usage: $0 {"|".join(_TOOLS)} ..." >&2; exit 2 ;;',
        "esac",
        f'exec {start} "$@"',
        "",
    ]
    return "\n".join(lines)


def _jvm(folder: StateFolder, conf: Path, jars: str, heap_mib: int) -> list[str]:
    places = [f"-Djava.io.tmpdir={folder.temporary}", f"-Xmx{heap_mib}m"]
    return [java(), *_FLAGS, *places, "-cp", os.pathsep.join([str(conf), jars])]
