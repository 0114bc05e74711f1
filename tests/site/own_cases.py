"""Area (h) of the cases in small files of our own, each with the trait that the case is about."""

from __future__ import annotations

from collections.abc import Mapping

from gandiva_core.site.baseline import CALCULATOR_KEY, DEFAULT_CALCULATOR, DOMINANT_CALCULATOR
from gandiva_core.site.queues import PREFIX

Files = Mapping[str, str | Mapping[str, str]]
QUEUES = "capacity-scheduler.xml"
SITE = "yarn-site.xml"
TYPES = "resource-types.xml"
GPU = {"yarn.resource-types": "yarn.io/gpu"}
FAIR = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler"
PLUGINS = "yarn.nodemanager.resource-plugins"
INCLUDE = 'xmlns:xi="http://www.w3.org/2001/XInclude"'


def queues(calculator: str = DOMINANT_CALCULATOR, **keys: str) -> dict[str, str]:
    """A queue file's properties; two underlines are a dot, one is a hyphen."""
    named = {
        PREFIX + key.replace("__", ".").replace("_", "-"): value for key, value in keys.items()
    }
    return {CALCULATOR_KEY: calculator} | named


def under(path: str, **keys: str) -> dict[str, str]:
    """Properties of one queue."""
    return {f"{PREFIX}{path}.{key.replace('_', '-')}": value for key, value in keys.items()}


def labelled(path: str, **capacities: str) -> dict[str, str]:
    """A queue that may use these labels, with its capacity in each."""
    prefix = f"{PREFIX}{path}.accessible-node-labels"
    each = {f"{prefix}.{label}.capacity": amount for label, amount in capacities.items()}
    return {prefix: ",".join(capacities)} | each


def prop(name: str, value: str, rest: str = "") -> str:
    """A property, on as many lines as its parts have."""
    return f"<property><name>{name}</name><value>{value}</value>{rest}</property>\n"


def xml(body: str, attributes: str = "") -> str:
    """A configuration of this body."""
    return f"<configuration {attributes}>\n{body}</configuration>\n"


ONE = queues(root__queues="default") | under("root.default", capacity="100")
"""One queue with everything."""

_GPUS, _DEFAULT_QUEUE = "root.gpus", "root.default"
CASES: Mapping[str, Files] = {
    "H01": {
        TYPES: GPU,
        QUEUES: queues(root__queues="gpus,launchers,default,production,essential")
        | under(_GPUS, capacity="2", maximum_capacity="-1")
        | under("root.launchers", capacity="3", maximum_capacity="-1")
        | under(_DEFAULT_QUEUE, capacity="35", acl_submit_applications=" staff")
        | under("root.production", capacity="50", acl_administer_queue="%user admins")
        | under("root.essential", capacity="10")
        | labelled("root", GPU="100")
        | labelled(_GPUS, GPU="100")
        | {"yarn.resourcemanager.scheduler.monitor.enable": "true"},
    },
    "H02": {
        TYPES: GPU,
        SITE: {"yarn.node-labels.enabled": "true", "yarn.nodemanager.aux-service": "shuffle"},
        QUEUES: queues(root__queues="gpu4,gpu1")
        | labelled("root", nvidia2080="100", quadro2000="100")
        | under("root.gpu4", capacity="50", default_node_label_expression="nvidia2080")
        | under("root.gpu1", capacity="50", default_node_label_expression="quadro2000")
        | labelled("root.gpu4", nvidia2080="100")
        | labelled("root.gpu1", quadro2000="100"),
        f"{QUEUES}.bak": xml(
            prop(f"{PREFIX}root.default.maximum-application-lifetime\n    ", "-1")
        ),
    },
    "H03": {
        TYPES: {"yarn.resource-types": "nec.com/ve,cmp.com/cmp"},
        SITE: {"yarn.resourcemanager.scheduler.class": FAIR},
        "node-resources.xml": "<configuration>\n</configuration>",
    },
    "H04": {
        TYPES: {"yarn.resource-types": "memory-mb,vcores"},
        SITE: xml(
            "<property>\n<name>yarn.scheduler.minimum-allocation-mb</name>\n"
            "<name>1536</name></property>\n"
        ),
    },
    "H06": {
        QUEUES: queues(DEFAULT_CALCULATOR, root__queues="a,b,c")
        | under("root.a", capacity="30")
        | under("root.b", capacity="30")
        | under("root.c", capacity="40")
        | under(_DEFAULT_QUEUE, capacity="100", state="RUNNING"),
    },
    "H08": {
        QUEUES: xml(
            f"<property><name>{CALCULATOR_KEY}</name><!-- <value>x</value> -->"
            f"<value>{DOMINANT_CALCULATOR}</value></property>\n"
            + prop(f"{PREFIX}maximum-am-resource-percent", "1")
            + prop(f"{PREFIX}root.queues", "\n      default, vc1, vc2\n    ")
            + prop(f"{PREFIX}root.default.capacity", "60")
            + prop(f"{PREFIX}root.vc1.capacity", "25")
            + prop(f"{PREFIX}root.vc2.capacity", "15")
            + prop(f"{PREFIX}root.vc2.user-limit-factor", "100")
        ),
    },
    "H09": {
        QUEUES: xml(
            "".join(
                prop(PREFIX + key, value, "<final>false</final><source>programmatically</source>")
                for key, value in {
                    "maximum-am-resource-percent": "0.5",
                    "root.queues": "default,users,users2",
                    "root.default.capacity": "20.000",
                    "root.users.capacity": "60.000",
                    "root.users.queues": "u3,u1,u2",
                    "root.users.u1.capacity": "33.333",
                    "root.users.u2.capacity": "33.334",
                    "root.users.u3.capacity": "33.333",
                    "root.users2.capacity": "20.000",
                    "root.users2.queues": "u5,u4",
                    "root.users2.u4.capacity": "50.000",
                    "root.users2.u5.capacity": "50.000",
                }.items()
            )
        ),
        "fair-scheduler.xml": "<allocations><queue name='a'/></allocations>",
    },
    "H10": {
        "fair-scheduler.xml": "<allocations><pool name='a'><minMaps>many</minMaps></pool></allocations>"
    },
    "H11": {
        QUEUES: {f"{PREFIX}maximum-am-resource-percent": "0.25"}
        | ONE
        | {CALCULATOR_KEY: DEFAULT_CALCULATOR},
        SITE: {
            "yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs": "86400",
            "yarn.resourcemanager.am.max-attempts": "10",
            "yarn.resourcemanager.recovery.enabled": "true",
        },
    },
    "H12": {
        QUEUES: xml(
            prop(CALCULATOR_KEY, DEFAULT_CALCULATOR)
            + prop(f"{PREFIX}root.queues", "default")
            + prop(f"{PREFIX}root.default.capacity", "100")
            + prop(CALCULATOR_KEY, DOMINANT_CALCULATOR)
        ),
        SITE: {"yarn.scheduler.minimun-allocation-mb": "500"},
    },
    "H15": {
        QUEUES: queues(DEFAULT_CALCULATOR, root__queues="default,fruit")
        | under(_DEFAULT_QUEUE, capacity="60.0", maximum_capacity="100.0")
        | under("root.fruit", capacity="40.0", maximum_capacity="50.0")
        | {f"{PREFIX}root.fruit.queues": "apples,bananas,oranges"}
        | under("root.fruit.apples", capacity="50.0", maximum_capacity="100.0")
        | under("root.fruit.bananas", capacity="25.0", maximum_capacity="50.0")
        | under("root.fruit.oranges", capacity="25.0", maximum_capacity="60.0"),
        SITE: {
            "yarn.scheduler.increment-allocation-mb": "32",
            "yarn.resource-types.memory-mb.increment-allocation": (
                "${yarn.scheduler.increment-allocation-mb}"
            ),
        },
    },
    "H17": {QUEUES: "../conf.simple/capacity-scheduler.xml"},
    "H18": {
        QUEUES: {
            "mapred.capacity-scheduler.queue.default.capacity": "100",
            "mapred.capacity-scheduler.maximum-system-jobs": "3000",
        }
    },
    "H19": {
        QUEUES: xml(
            prop(CALCULATOR_KEY, DEFAULT_CALCULATOR)
            + prop(f"{PREFIX}root.queues", "default,hive")
            + prop(f"{PREFIX}root.default.capacity", "40")
            + prop(f"{PREFIX}root.hive.capacity", "60")
            + prop(f"{PREFIX}root.default.maximum-capacity ", "60")
            + prop(f"{PREFIX}root.hive.maximum-capacity", "80")
            + prop(f"{PREFIX}root.hive.maximum-application-lifetime\n     ", "-1")
        )
    },
    "H20a": {
        SITE: xml(
            '<xi:include href="sub/gpu-site.xml"/>\n'
            + prop("yarn.scheduler.maximum-allocation-mb", "262144"),
            INCLUDE,
        ),
        "sub/gpu-site.xml": {
            PLUGINS: "yarn.io/gpu",
            f"{PLUGINS}.gpu.allowed-gpu-devices": "0:0,1:1,2:2,3:4",
            "yarn.scheduler.maximum-allocation-mb": "1024",
        },
    },
    "H20b": {
        SITE: xml(
            '<xi:include href="absent.xml"><xi:fallback>\n'
            + prop(PLUGINS, "yarn.io/gpu")
            + "</xi:fallback></xi:include>\n",
            INCLUDE,
        )
    },
    "H21a": {
        TYPES: GPU,
        QUEUES: queues(root__queues="train,batch")
        | under("root.train", capacity="[memory=307200,vcores=48,yarn.io/gpu=12]")
        | under(
            "root.batch",
            capacity="[memory=102400,vcores=16,yarn.io/gpu=4]",
            maximum_capacity="[memory=204800,vcores=32,yarn.io/gpu=8]",
        ),
    },
    "H21d": {
        TYPES: GPU,
        QUEUES: queues(root__queues="train,batch")
        | under("root.train", capacity="[memory=204800,vcores=32]")
        | under("root.batch", capacity="[memory=204800,vcores=32]")
        | labelled("root", gpunode="[memory=409600,vcores=64,yarn.io/gpu=16]")
        | labelled("root.train", gpunode="[memory=307200,vcores=48,yarn.io/gpu=12]")
        | labelled("root.batch", gpunode="[memory=102400,vcores=16,yarn.io/gpu=4]"),
    },
    "H23b": {
        TYPES: GPU
        | {
            "yarn.resource-types.yarn.io/gpu.minimum": "1",
            "yarn.resource-types.yarn.io/gpu.maximum": "4",
        }
    },
    "H23c": {
        TYPES: GPU
        | {
            "yarn.resource-types.yarn.io/gpu.minimum-allocation": "0",
            "yarn.resource-types.yarn.io/gpu.maximum-allocation": "4",
        }
    },
}
