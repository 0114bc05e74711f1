"""Old names of keys, as Hadoop 3.4.2 translates them while it reads a file."""

from __future__ import annotations

NEW_NAMES: dict[str, tuple[str, ...]] = {
    "fs.default.name": ("fs.defaultFS",),
    "hadoop.configured.node.mapping": ("net.topology.configured.node.mapping",),
    "topology.node.switch.mapping.impl": ("net.topology.node.switch.mapping.impl",),
    "topology.script.file.name": ("net.topology.script.file.name",),
    "topology.script.number.args": ("net.topology.script.number.args",),
    "hadoop.http.rmwebapp.scheduler.page.class": ("yarn.http.rmwebapp.scheduler.page.class",),
    "yarn.client.max-nodemanagers-proxies": ("yarn.client.max-cached-nodemanagers-proxies",),
    "yarn.resourcemanager.display.per-user-apps": ("yarn.webapp.filter-entity-list-by-user",),
    "yarn.resourcemanager.system-metrics-publisher.enabled": (
        "yarn.system-metrics-publisher.enabled",
    ),
    "yarn.resourcemanager.zk-acl": ("hadoop.zk.acl",),
    "yarn.resourcemanager.zk-address": ("hadoop.zk.address",),
    "yarn.resourcemanager.zk-auth": ("hadoop.zk.auth",),
    "yarn.resourcemanager.zk-num-retries": ("hadoop.zk.num-retries",),
    "yarn.resourcemanager.zk-retry-interval-ms": ("hadoop.zk.retry-interval-ms",),
    "yarn.resourcemanager.zk-timeout-ms": ("hadoop.zk.timeout-ms",),
}
"""Those that a ResourceManager knows; MapReduce's and HDFS' own are theirs. A yarn test compares each with Hadoop."""


def new_names(key: str) -> tuple[str, ...]:
    """What a deprecated key sets; empty for a key that is not deprecated."""
    return NEW_NAMES.get(key, ())
