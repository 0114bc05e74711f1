"""The catalogue of `yarn.scheduler.gandiva.*` keys: name, unit, default and reason, each once.

`conf/gandiva-site.xml`, `docs/CONFIGURATION.md` and the plug-in's own constants are compared with this
list by tests, so that a key cannot mean one thing here and another there.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

PREFIX = "yarn.scheduler.gandiva."
ENVIRONMENT_PREFIX = "GANDIVA_"


class Unit(StrEnum):
    """How the value of a key is written."""

    MILLISECONDS = "milliseconds"
    COUNT = "count"
    QUANTA = "quanta"
    FLAG = "true or false"
    TEXT = "text"


class Reader(StrEnum):
    """Which process reads a key."""

    CORE = "core"
    PLUGIN = "plug-in"
    BOTH = "core and plug-in"
    AGENT = "agent"
    CORE_AND_AGENT = "core and agent"


class Key(msgspec.Struct, frozen=True):
    """One key.

    Attributes:
        name: the full name, as in yarn-site.xml.
        unit: how a value is written.
        default: as it would be written; empty where there is none.
        reason: why it exists and why this default, for the administrator.
        reader: who reads it.
        field: the attribute of `Settings` that it sets; empty where only the plug-in reads it.
        words: the values there are; empty where any will do.
        least: the smallest whole number, of keys that only the plug-in reads; `Settings` bounds the others.
    """

    name: str
    unit: Unit
    default: str
    reason: str
    reader: Reader
    field: str = ""
    words: tuple[str, ...] = ()
    least: int = 0

    @property
    def environment_name(self) -> str:
        """The environment variable that wins over XML: ``GANDIVA_QUANTUM_MS``."""
        short = self.name.removeprefix(PREFIX)
        return ENVIRONMENT_PREFIX + short.upper().replace(".", "_").replace("-", "_")


KEYS: tuple[Key, ...] = (
    Key(
        name=PREFIX + "quantum-ms",
        unit=Unit.MILLISECONDS,
        default="60000",
        reason="Time slice of jobs that share devices. A minute keeps suspend and resume below 2 %.",
        reader=Reader.CORE,
        field="quantum_s",
    ),
    Key(
        name=PREFIX + "height.max",
        unit=Unit.COUNT,
        default="4",
        reason="Jobs per device at most; 1 never over-subscribes. Each level needs host memory.",
        reader=Reader.BOTH,
        field="height_max",
    ),
    Key(
        name=PREFIX + "starving-after-quanta",
        unit=Unit.QUANTA,
        default="10",
        reason="A queue head that waited longer goes wherever it fits, whatever the server's affinity.",
        reader=Reader.CORE,
        field="starving_after_quanta",
    ),
    Key(
        name=PREFIX + "gang.wait-ms",
        unit=Unit.MILLISECONDS,
        default="300000",
        reason="How long an undeclared gang is tried whole before its containers are placed singly.",
        reader=Reader.CORE,
        field="gang_wait_s",
    ),
    Key(
        name=PREFIX + "mode",
        unit=Unit.TEXT,
        default="observe",
        reason="observe: decisions are journalled, stock schedules; place: gangs without sharing; full: all of it.",
        reader=Reader.PLUGIN,
        words=("observe", "place", "full"),
    ),
    Key(
        name=PREFIX + "queues",
        unit=Unit.TEXT,
        default="*",
        reason="Paths of adopted queues, children included, with commas; * for all. GPU asks elsewhere are stock.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "partitions",
        unit=Unit.TEXT,
        default="*",
        reason="Adopted node labels, with commas; DEFAULT for nodes without one, * for all.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "core.managed",
        unit=Unit.FLAG,
        default="true",
        reason="The ResourceManager starts, watches and restarts the core; false where something else does.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "core.python",
        unit=Unit.TEXT,
        default="python3",
        reason="Interpreter of the environment that Gandiva is installed in, for the managed core.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "core.log-dir",
        unit=Unit.TEXT,
        default="",
        reason="Folder for the managed core's output and journal. Not set: gandiva in Hadoop's log folder.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "agent.python",
        unit=Unit.TEXT,
        default="python3",
        reason="Interpreter of the environment that Gandiva is installed in on a node, for its agent.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "agent.log-dir",
        unit=Unit.TEXT,
        default="",
        reason="Folder for the output of a node's agent. Not set: gandiva in Hadoop's log folder.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "core.fallback",
        unit=Unit.TEXT,
        default="wait",
        reason="While the core is silent, GPU asks wait, or (exclusive) stock serves them on physical GPUs.",
        reader=Reader.PLUGIN,
        words=("wait", "exclusive"),
    ),
    Key(
        name=PREFIX + "recovery.hold-ms",
        unit=Unit.MILLISECONDS,
        default="60000",
        reason="After a restart, a node with recovered GPU containers gets none until its agent reports, or this.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "oversubscribe-without-agent",
        unit=Unit.FLAG,
        default="false",
        reason="Dangerous, for tests only: share devices of servers that no agent can suspend a job on.",
        reader=Reader.BOTH,
    ),
    Key(
        name=PREFIX + "bridge.token-file",
        unit=Unit.TEXT,
        default="",
        reason=(
            "File of mode 0600 with the secret of the bridge. "
            "Not set: one is made for the managed core; without that the bridge stays closed."
        ),
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "bridge.port",
        unit=Unit.COUNT,
        default="0",
        reason="Loopback port of the bridge; 0 takes a free one.",
        reader=Reader.PLUGIN,
    ),
    Key(
        name=PREFIX + "bridge.read-timeout-ms",
        unit=Unit.MILLISECONDS,
        default="30000",
        reason="An idle connection of the bridge is closed after this: thirty long polls.",
        reader=Reader.PLUGIN,
        least=1,
    ),
    Key(
        name=PREFIX + "bridge.events.max",
        unit=Unit.COUNT,
        default="100000",
        reason="Events kept for a core that does not fetch them; then all are dropped for one resync. About 50 MB.",
        reader=Reader.PLUGIN,
        least=1,
    ),
    Key(
        name=PREFIX + "agents.port",
        unit=Unit.COUNT,
        default="0",
        reason="Port of the core that agents dial; 0: no agents, so nothing is ever suspended.",
        reader=Reader.CORE_AND_AGENT,
    ),
    Key(
        name=PREFIX + "agents.address",
        unit=Unit.TEXT,
        default="127.0.0.1",
        reason="Where the core listens for agents, and where they dial it. Beyond loopback certificates are needed.",
        reader=Reader.CORE_AND_AGENT,
    ),
    Key(
        name=PREFIX + "agents.token-file",
        unit=Unit.TEXT,
        default="",
        reason="File of mode 0600 with the secret that agents show; the same on all nodes.",
        reader=Reader.CORE_AND_AGENT,
    ),
    Key(
        name=PREFIX + "operations.token-file",
        unit=Unit.TEXT,
        default="",
        reason="File of mode 0600 with the administrators' secret for `gandiva job` and `node`; none: nobody may.",
        reader=Reader.CORE,
    ),
    Key(
        name=PREFIX + "agents.tls.certificate-file",
        unit=Unit.TEXT,
        default="",
        reason="PEM certificate of this host, for mutual TLS between core and agents.",
        reader=Reader.CORE_AND_AGENT,
    ),
    Key(
        name=PREFIX + "agents.tls.key-file",
        unit=Unit.TEXT,
        default="",
        reason="PEM key of that certificate, of mode 0600.",
        reader=Reader.CORE_AND_AGENT,
    ),
    Key(
        name=PREFIX + "agents.tls.authority-file",
        unit=Unit.TEXT,
        default="",
        reason="PEM certificates of the authority that signs all of them.",
        reader=Reader.CORE_AND_AGENT,
    ),
    Key(
        name=PREFIX + "agent.socket",
        unit=Unit.TEXT,
        default="/run/gandiva/agent.sock",
        reason="Unix socket of a node's agent, which launchers dial.",
        reader=Reader.AGENT,
    ),
    Key(
        name=PREFIX + "agent.state-dir",
        unit=Unit.TEXT,
        default="/var/lib/gandiva/agent",
        reason="Folder in which an agent notes who holds which device, for its own restart.",
        reader=Reader.AGENT,
    ),
    Key(
        name=PREFIX + "agent.virtual-gpus",
        unit=Unit.COUNT,
        default="0",
        reason="For machines without GPUs: so many virtual devices, shares of the cores. 0: real ones.",
        reader=Reader.AGENT,
    ),
    Key(
        name=PREFIX + "agent.virtual-step-ms",
        unit=Unit.MILLISECONDS,
        default="0",
        reason="Time that a mini-batch takes on a virtual device at least; 0: what the cores give.",
        reader=Reader.AGENT,
    ),
    Key(
        name=PREFIX + "agent.without-core",
        unit=Unit.FLAG,
        default="false",
        reason="No core: containers get the first free devices as they come up, until they end. For a stock arm.",
        reader=Reader.AGENT,
    ),
    Key(
        name=PREFIX + "agent.unhooked-after-ms",
        unit=Unit.MILLISECONDS,
        default="30000",
        reason="A container that runs and has not registered for so long is none that can be suspended.",
        reader=Reader.AGENT,
    ),
)

BY_NAME = {key.name: key for key in KEYS}
BY_ENVIRONMENT_NAME = {key.environment_name: key for key in KEYS if key.field}
"""Only the core's: an environment variable does not reach the plug-in."""

OTHER_VARIABLES = frozenset(
    ENVIRONMENT_PREFIX + name for name in ("DEBUG", "CLUSTER_ID", "PYTHONPATH")
)
"""Variables of this prefix that are no settings: tracebacks, whose process it is, what a managed core imports from."""
