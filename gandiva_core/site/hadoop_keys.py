"""Hadoop's own keys that matter to us: default of 3.4.2, how a value is written, and why we look at it.

Not Hadoop's whole list: what `gandiva config show` tells, what is parsed before a start, and well-known names that a
misspelt key is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

QUEUE_PREFIX = "yarn.scheduler.capacity."


class Form(StrEnum):
    """How a value is written."""

    TEXT = "text"
    WHOLE = "a whole number"
    DECIMAL = "a number"
    FLAG = "true or false"


class HadoopKey(msgspec.Struct, frozen=True):
    """One key.

    Attributes:
        name: in full.
        default: of Hadoop 3.4.2; empty where it has none.
        why: what it means to us; empty for a key that is only known by name.
    """

    name: str
    default: str
    form: Form = Form.TEXT
    why: str = ""


_MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."
_POLICY = "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy"
_STOCK = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
_STORE = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
_CALCULATOR = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
_PROVIDER = "org.apache.hadoop.yarn.LocalConfigurationProvider"

SHOWN: tuple[HadoopKey, ...] = (
    HadoopKey("yarn.resourcemanager.scheduler.class", _STOCK, why="whether Gandiva is in force"),
    HadoopKey("yarn.resource-types", "", why="whether GPUs are counted"),
    HadoopKey(QUEUE_PREFIX + "resource-calculator", _CALCULATOR, why="whether GPUs are counted"),
    HadoopKey(
        QUEUE_PREFIX + "schedule-asynchronously.enable",
        "false",
        Form.FLAG,
        "threads of the scheduler; 3.5.0's default is true",
    ),
    HadoopKey("yarn.scheduler.minimum-allocation-mb", "1024", Form.WHOLE, "asks are rounded up"),
    HadoopKey("yarn.scheduler.maximum-allocation-mb", "8192", Form.WHOLE, "greater asks fail"),
    HadoopKey("yarn.scheduler.minimum-allocation-vcores", "1", Form.WHOLE, "asks are rounded up"),
    HadoopKey("yarn.scheduler.maximum-allocation-vcores", "4", Form.WHOLE, "greater asks fail"),
    HadoopKey(
        "yarn.resourcemanager.recovery.enabled", "false", Form.FLAG, "jobs outlive a restart"
    ),
    HadoopKey("yarn.resourcemanager.store.class", _STORE, why="where the state is kept"),
    HadoopKey("yarn.resourcemanager.ha.enabled", "false", Form.FLAG, "a standby has no core"),
    HadoopKey(
        "yarn.resourcemanager.scheduler.monitor.enable",
        "false",
        Form.FLAG,
        "stock preemption; GPU containers are reclaimed instead",
    ),
    HadoopKey("yarn.resourcemanager.scheduler.monitor.policies", _POLICY, why="stock preemption"),
    HadoopKey(
        "yarn.resourcemanager.placement-constraints.handler",
        "disabled",
        why="who answers SchedulingRequests; GPUs in them are refused by name",
    ),
    HadoopKey(
        "yarn.resourcemanager.opportunistic-container-allocation.enabled",
        "false",
        Form.FLAG,
        "such containers bypass every scheduler",
    ),
    HadoopKey("yarn.node-labels.enabled", "false", Form.FLAG, "partitions"),
    HadoopKey("yarn.resourcemanager.configuration.provider-class", _PROVIDER, why="refreshQueues"),
    HadoopKey("yarn.scheduler.configuration.store.class", "file", why="refreshQueues needs file"),
    HadoopKey("yarn.resourcemanager.am.max-attempts", "2", Form.WHOLE, "restarts of a job"),
    HadoopKey(
        "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs",
        "3600",
        Form.WHOLE,
        "how long a node drains",
    ),
    HadoopKey("yarn.nodemanager.resource-plugins", "", why="must not name yarn.io/gpu"),
    HadoopKey("yarn.nodemanager.resource-type.yarn.io/gpu", "", Form.WHOLE, "GPUs of a node"),
    HadoopKey("yarn.nodemanager.recovery.enabled", "false", Form.FLAG, "containers outlive an NM"),
    HadoopKey("yarn.nodemanager.recovery.supervised", "false", Form.FLAG, "as above"),
    HadoopKey("yarn.nodemanager.address", "${yarn.nodemanager.hostname}:0", why="recovery"),
)
"""What `config show` tells beside our own keys."""

_NUMBERS = {
    "yarn.cluster.max-application-priority": "0",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "600000",
    "yarn.am.liveness-monitor.expiry-interval-ms": "900000",
    "yarn.nodemanager.sleep-delay-before-sigkill.ms": "250",
    "yarn.nodemanager.resource.memory-mb": "-1",
    "yarn.nodemanager.resource.cpu-vcores": "-1",
    "yarn.resourcemanager.max-completed-applications": "1000",
    "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "10000",
    _MONITOR + "monitoring_interval": "3000",
    _MONITOR + "max_wait_before_kill": "15000",
}
_FLAGS = {
    "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
    "yarn.resourcemanager.reservation-system.enable": "false",
    "yarn.nodemanager.pmem-check-enabled": "true",
    "yarn.nodemanager.vmem-check-enabled": "true",
    "yarn.log-aggregation-enable": "false",
    "yarn.acl.enable": "false",
    "yarn.webapp.enable-rest-app-submissions": "true",
    "yarn.webapp.filter-entity-list-by-user": "false",
    "hadoop.http.authentication.simple.anonymous.allowed": "true",
}
_TEXTS = (
    "fs.defaultFS",
    "hadoop.security.authentication",
    "hadoop.zk.address",
    "hadoop.zk.acl",
    "yarn.admin.acl",
    "yarn.application.classpath",
    "yarn.node-labels.fs-store.root-dir",
    "yarn.nodemanager.admin-env",
    "yarn.nodemanager.aux-services",
    "yarn.nodemanager.container-executor.class",
    "yarn.nodemanager.hostname",
    "yarn.nodemanager.local-dirs",
    "yarn.nodemanager.log-dirs",
    "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices",
    "yarn.resourcemanager.address",
    "yarn.resourcemanager.admin.address",
    "yarn.resourcemanager.cluster-id",
    "yarn.resourcemanager.hostname",
    "yarn.resourcemanager.resource-tracker.address",
    "yarn.resourcemanager.scheduler.address",
    "yarn.resourcemanager.webapp.address",
)

HADOOP_KEYS: Mapping[str, HadoopKey] = {
    key.name: key
    for key in (
        *SHOWN,
        *(HadoopKey(name, default, Form.WHOLE) for name, default in _NUMBERS.items()),
        *(HadoopKey(name, default, Form.FLAG) for name, default in _FLAGS.items()),
        *(HadoopKey(name, "") for name in _TEXTS),
        HadoopKey(_MONITOR + "total_preemption_per_round", "0.1", Form.DECIMAL),
        HadoopKey(_MONITOR + "natural_termination_factor", "0.2", Form.DECIMAL),
    )
}
"""All of them by name."""

SCHEDULER_SUFFIXES: Mapping[str, Form] = {
    "resource-calculator": Form.TEXT,
    "maximum-applications": Form.WHOLE,
    "maximum-am-resource-percent": Form.DECIMAL,
    "max-parallel-apps": Form.WHOLE,
    "node-locality-delay": Form.WHOLE,
    "rack-locality-additional-delay": Form.WHOLE,
    "queue-mappings": Form.TEXT,
    "queue-mappings-override.enable": Form.FLAG,
    "legacy-queue-mode.enabled": Form.FLAG,
    "multi-node-placement-enabled": Form.FLAG,
    "per-node-heartbeat.multiple-assignments-enabled": Form.FLAG,
    "per-node-heartbeat.maximum-container-assignments": Form.WHOLE,
    "per-node-heartbeat.maximum-offswitch-assignments": Form.WHOLE,
    "schedule-asynchronously.enable": Form.FLAG,
    "application.fail-fast": Form.FLAG,
}
"""After `yarn.scheduler.capacity.`: of the scheduler as a whole."""

QUEUE_SUFFIXES: Mapping[str, Form] = {
    "queues": Form.TEXT,
    "capacity": Form.TEXT,
    "maximum-capacity": Form.TEXT,
    "state": Form.TEXT,
    "ordering-policy": Form.TEXT,
    "user-limit-factor": Form.DECIMAL,
    "minimum-user-limit-percent": Form.DECIMAL,
    "maximum-am-resource-percent": Form.DECIMAL,
    "maximum-applications": Form.WHOLE,
    "max-parallel-apps": Form.WHOLE,
    "priority": Form.WHOLE,
    "maximum-allocation-mb": Form.WHOLE,
    "maximum-allocation-vcores": Form.WHOLE,
    "maximum-application-lifetime": Form.WHOLE,
    "default-application-lifetime": Form.WHOLE,
    "default-application-priority": Form.WHOLE,
    "accessible-node-labels": Form.TEXT,
    "default-node-label-expression": Form.TEXT,
    "acl_submit_applications": Form.TEXT,
    "acl_administer_queue": Form.TEXT,
    "acl_application_max_priority": Form.TEXT,
    "disable_preemption": Form.FLAG,
    "intra-queue-preemption.disable_preemption": Form.FLAG,
    "auto-create-child-queue.enabled": Form.FLAG,
    "reservable": Form.FLAG,
}
"""After a queue's path."""
