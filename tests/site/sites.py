"""Small sites: a good one, and each with one thing changed. For unit tests and yarn tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from gandiva_core.site.baseline import CALCULATOR_KEY, DOMINANT_CALCULATOR, SCHEDULER_KEY
from gandiva_core.site.queues import PREFIX as QUEUE
from tests.site.conftest import document

GANDIVA = "org.gandiva.yarn.GandivaScheduler"
OWN = "yarn.scheduler.gandiva."
TYPE = "yarn.resource-types.yarn.io/gpu."
DEFAULT = DOMINANT_CALCULATOR.replace("Dominant", "Default")
AMOUNT = "[memory=1024,vcores=1]"
GPU_AMOUNT = "[memory=1024,vcores=1,yarn.io/gpu=1]"
LABEL = "accessible-node-labels"


class Change(msgspec.Struct, frozen=True):
    """What differs from the good site: keys of each file over the good ones, None takes one away.

    Attributes:
        queues: of capacity-scheduler.xml, without the common prefix.
        yarn: of yarn-site.xml.
        types: the value of yarn.resource-types; empty leaves it out.
        starts: whether a real ResourceManager comes up with it.
    """

    starts: bool
    queues: Mapping[str, str | None] = {}
    yarn: Mapping[str, str] = {}
    types: str = "yarn.io/gpu"


GOOD_QUEUES = {
    CALCULATOR_KEY: DOMINANT_CALCULATOR,
    QUEUE + "root.queues": "a,b",
    QUEUE + "root.a.capacity": "40",
    QUEUE + "root.b.capacity": "60",
}


def write(folder: Path, change: Change) -> Path:
    """The site's files."""
    changed = {**GOOD_QUEUES, **{QUEUE + key: value for key, value in change.queues.items()}}
    queues = {key: value for key, value in changed.items() if value is not None}
    yarn = {SCHEDULER_KEY: GANDIVA, **change.yarn}
    (folder / "capacity-scheduler.xml").write_text(document(queues))
    (folder / "yarn-site.xml").write_text(document(yarn))
    types = {"yarn.resource-types": change.types} if change.types else {}
    (folder / "resource-types.xml").write_text(document(types))
    return folder


def _queues(starts: bool, **keys: str | None) -> Change:
    return Change(starts, {key.replace("__", "."): value for key, value in keys.items()})


def _leaf(key: str, value: str, starts: bool = False) -> Change:
    return Change(starts, {f"root.a.{key}": value})


CHANGES: dict[str, Change] = {
    "good": Change(True),
    # the calculator, as in A02, and the types, as in H03 and H04
    "default calculator, gpus declared": Change(False, {"resource-calculator": DEFAULT}),
    "no calculator, gpus declared": Change(False, {"resource-calculator": None}),
    "default calculator, no gpus": Change(
        True, {"resource-calculator": DEFAULT}, {OWN + "mode": "observe"}, ""
    ),
    "memory declared again": Change(False, types="memory-mb,vcores,yarn.io/gpu"),
    "memory by its old name": Change(False, types="memory,yarn.io/gpu"),
    "a type twice": Change(False, types="yarn.io/gpu,yarn.io/gpu"),
    "a name that is none": Change(False, types="yarn.io/gpu,%x"),
    "other vendors' types": Change(
        True, yarn={OWN + "mode": "observe"}, types="a.com/ve,b.com/cmp"
    ),
    "gpus in another unit": Change(False, yarn={TYPE + "units": "k"}),
    "a maximum of gpus in words": Change(False, yarn={TYPE + "maximum-allocation": "all"}),
    "an increment in words": Change(True, yarn={TYPE + "increment-allocation": "all"}),
    # bounds of containers
    "minimum above maximum": Change(False, yarn={"yarn.scheduler.minimum-allocation-mb": "9000"}),
    "a minimum of nothing": Change(False, yarn={"yarn.scheduler.minimum-allocation-mb": "0"}),
    "a minimum in words": Change(False, yarn={"yarn.scheduler.minimum-allocation-mb": "1g"}),
    "too many vcores": Change(False, yarn={"yarn.scheduler.minimum-allocation-vcores": "5"}),
    "a minimum in hexadecimals": Change(
        True, yarn={"yarn.scheduler.minimum-allocation-mb": "0x80"}
    ),
    "attempts in words": Change(False, yarn={"yarn.resourcemanager.am.max-attempts": "two"}),
    # capacities, as in H06 and H18
    "no queues": Change(False, {"root.queues": None}),
    "MapReduce 1 keys": Change(False, {"root.queues": None}, {"mapred.capacity-scheduler.x": "1"}),
    "an orphan": Change(True, {"root.c.capacity": "5"}),
    "a queue twice": Change(False, {"root.queues": "a,a,b"}),
    "a sum of 90": Change(False, {"root.a.capacity": "30"}),
    "a sum of 100.04": Change(True, {"root.a.capacity": "40.04"}),
    "nothing at all": Change(False, {"root.a.capacity": "0", "root.b.capacity": "0"}),
    "below nothing": Change(False, {"root.a.capacity": "-10", "root.b.capacity": "110"}),
    "capacity in words": _leaf("capacity", "forty"),
    "capacity with a percent sign": _leaf("capacity", "40%"),
    "no capacity": Change(False, {"root.a.capacity": None}),
    "no capacity and all the rest": Change(
        True, {"root.a.capacity": None, "root.b.capacity": "100"}
    ),
    "a weight beside a percentage": _leaf("capacity", "1w"),
    "a weight beside nothing": Change(True, {"root.a.capacity": "0", "root.b.capacity": "1w"}),
    "weights": Change(True, {"root.a.capacity": "1w", "root.b.capacity": "3w"}),
    "an amount beside a percentage": _leaf("capacity", GPU_AMOUNT),
    "an amount beside a weight": Change(
        False, {"root.a.capacity": AMOUNT, "root.b.capacity": "1w"}
    ),
    "mixed where that is allowed": Change(
        True, {"legacy-queue-mode.enabled": "false", "root.a.capacity": "1w"}
    ),
    "any sum where that is allowed": Change(
        True, {"legacy-queue-mode.enabled": "false", "root.a.capacity": "10"}
    ),
    "a maximum below the capacity": _leaf("maximum-capacity", "20", True),
    "a maximum above all": _leaf("maximum-capacity", "120", True),
    "a maximum in words": _leaf("maximum-capacity", "most"),
    "the root says 50": Change(True, {"root.capacity": "50"}),
    # deeper
    "a child of 90": Change(False, {"root.a.queues": "x", "root.a.x.capacity": "90"}),
    "a child of 100": Change(True, {"root.a.queues": "x", "root.a.x.capacity": "100"}),
    "a child of nothing": Change(False, {"root.a.queues": "x", "root.a.x.capacity": "0"}),
    "a child with all of nothing": Change(
        False,
        {
            "root.a.capacity": "0",
            "root.b.capacity": "100",
            "root.a.queues": "x",
            "root.a.x.capacity": "100",
        },
    ),
    "a child with nothing of nothing": Change(
        True,
        {
            "root.a.capacity": "0",
            "root.b.capacity": "100",
            "root.a.queues": "x",
            "root.a.x.capacity": "0",
        },
    ),
    "a percentage of an amount": Change(
        False,
        {
            "root.a.capacity": AMOUNT,
            "root.b.capacity": AMOUNT,
            "root.a.queues": "x",
            "root.a.x.capacity": "100",
        },
    ),
    "an amount of a percentage": Change(False, {"root.a.queues": "x", "root.a.x.capacity": AMOUNT}),
    # labels, as in H01
    "a label of one queue": Change(
        True, {f"root.a.{LABEL}": "g", f"root.a.{LABEL}.g.capacity": "100"}
    ),
    "half a label": Change(False, {f"root.a.{LABEL}": "g", f"root.a.{LABEL}.g.capacity": "50"}),
    "nothing of a label": Change(
        False, {f"root.a.{LABEL}": "g", f"root.a.{LABEL}.g.capacity": "0"}
    ),
    "a label for nobody": Change(False, {f"root.{LABEL}": "g", f"root.{LABEL}.g.capacity": "100"}),
    "a label whose owner cannot reach it": Change(
        False,
        {
            f"root.a.{LABEL}.g.capacity": "100",
            f"root.a.{LABEL}": " ",
            f"root.b.{LABEL}": "g",
            f"root.b.{LABEL}.g.capacity": "100",
        },
    ),
    "a label's child without a share": Change(
        False,
        {
            f"root.a.{LABEL}.g.capacity": "50",
            f"root.b.{LABEL}.g.capacity": "50",
            "root.a.queues": "x",
            "root.a.x.capacity": "100",
        },
    ),
    "a label's child with all of nothing": Change(
        True,
        {
            f"root.b.{LABEL}.g.capacity": "100",
            "root.a.queues": "x",
            "root.a.x.capacity": "100",
            f"root.a.x.{LABEL}.g.capacity": "100",
        },
    ),
    "a default label out of reach": Change(
        False, {f"root.a.{LABEL}": "g", "root.a.default-node-label-expression": "h"}
    ),
    "a default label in reach": Change(
        True,
        {
            f"root.a.{LABEL}": "g",
            f"root.a.{LABEL}.g.capacity": "100",
            "root.a.default-node-label-expression": "g",
        },
    ),
    # words
    "a state that is none": _leaf("state", "RUNING"),
    "a state in small letters": _leaf("state", "running", True),
    "a state of Hadoop's own": _leaf("state", "DRAINING"),
    "an order that is none": _leaf("ordering-policy", "fifoo"),
    "an order in capitals": _leaf("ordering-policy", "FIFO"),
    "an order for leaves": _leaf("ordering-policy", "fifo-with-partitions", True),
    "a parent's order on a leaf": _leaf("ordering-policy", "utilization"),
    "a leaf's order on a parent": Change(False, {"root.ordering-policy": "fair"}),
    "a parent's order": Change(True, {"root.ordering-policy": "priority-utilization"}),
    "a share of masters in words": Change(False, {"maximum-am-resource-percent": "ten"}),
    "a user's factor in words": _leaf("user-limit-factor", "two"),
    "a user's factor below zero": _leaf("user-limit-factor", "-1", True),
    "a priority in words": _leaf("priority", "high"),
    "a lifetime in words": _leaf("maximum-application-lifetime", "long"),
    "a flag that is none": _leaf("disable_preemption", "yes", True),
    "a delay in words": Change(False, {"node-locality-delay": "x"}),
    # mappings
    "mappings": Change(True, {"queue-mappings": "u:joe:a, g:grp:root.b,u:%user:%user"}),
    "a mapping onto nothing": Change(False, {"queue-mappings": "u:joe:nosuch"}),
    "a mapping that is none": Change(False, {"queue-mappings": "joe=a"}),
    "a mapping onto a parent": Change(
        False,
        {"root.a.queues": "x", "root.a.x.capacity": "100", "queue-mappings": "u:joe:a"},
    ),
    # our own keys
    "height 0": Change(False, yarn={OWN + "height.max": "0"}),
    "height in words": Change(False, yarn={OWN + "height.max": "four"}),
    "height with an underscore": Change(False, yarn={OWN + "height.max": "1_0"}),
    "height beyond 32 bits": Change(False, yarn={OWN + "height.max": "99999999999"}),
    "height with a sign": Change(True, yarn={OWN + "height.max": "+4"}),
    "a mode that is none": Change(False, yarn={OWN + "mode": "fulll"}),
    "a mode in capitals": Change(True, yarn={OWN + "mode": "FULL"}),
    "full without declared gpus": Change(False, yarn={OWN + "mode": "full"}, types=""),
    "place without declared gpus": Change(False, yarn={OWN + "mode": "place"}, types="a.com/ve"),
    "a fallback that is none": Change(False, yarn={OWN + "core.fallback": "never"}),
    "an adopted path": Change(True, yarn={OWN + "queues": "root.a"}),
    "an adopted short name": Change(True, yarn={OWN + "queues": " a , b"}),
    "an adopted queue that is none": Change(False, yarn={OWN + "queues": "root.c"}),
    "an adopted name of two queues": Change(
        False,
        {
            "root.a.queues": "x",
            "root.a.x.capacity": "100",
            "root.b.queues": "x",
            "root.b.x.capacity": "100",
        },
        {OWN + "queues": "x"},
    ),
    "an adopted queue that may come": Change(
        True, {"root.a.auto-queue-creation-v2.enabled": "true"}, {OWN + "queues": "root.a.new"}
    ),
    "a partition that no queue knows": Change(True, yarn={OWN + "partitions": "g,DEFAULT"}),
    "a switch": _leaf("gandiva.slicing", "False", True),
    "a switch that is none": _leaf("gandiva.slicng", "false"),
    "a switch in words": _leaf("gandiva.slicing", "off"),
    "a switch of no queue": Change(False, {"root.c.gandiva.slicing": "false"}),
    "a switch by a short name": Change(False, {"a.gandiva.slicing": "false"}),
    "amounts at a height": Change(
        True,
        {"root.a.capacity": GPU_AMOUNT, "root.b.capacity": GPU_AMOUNT},
        {OWN + "mode": "full"},
    ),
    "amounts in a store": Change(
        False,
        {"root.a.capacity": GPU_AMOUNT, "root.b.capacity": GPU_AMOUNT},
        {OWN + "mode": "full", "yarn.scheduler.configuration.store.class": "memory"},
    ),
    "a token file that is not there": Change(
        False, yarn={OWN + "bridge.token-file": "/nonexistent/token"}
    ),
}
