"""One ResourceManager under load: nodes that beat in turn, masters that ask a few containers at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import count, cycle, islice
from typing import Any

import msgspec

from gandiva_core.config.settings import Settings
from gandiva_core.model.errors import InvariantError
from yarn_plugin.bench.core import Core, opened_core
from yarn_plugin.bridge.gateway import Gateway
from yarn_plugin.bridge.jvm import PLUGIN_DIR, ReplayJvm

HEAP_MIB = 2048
JIT_FLAGS = ("-XX:TieredStopAtLevel=4", "-Xms1024m", "-Xmn640m")
"""All compilers, as a ResourceManager that runs for months has; a young generation that is not resized under way."""

MASTERS_HOST = "a-masters"
NODE_GPUS = 4
PACE_PER_S = 1000.0


class Kind(msgspec.Struct, frozen=True):
    """What a container asks for.

    Attributes:
        gang: containers that its master asks for at once, and that come together or not at all under Gandiva.
    """

    memory_mib: int
    vcores: int
    gpus: int
    gang: int = 1


CPU_ONLY = Kind(memory_mib=2048, vcores=1, gpus=0)
GPU = Kind(memory_mib=16384, vcores=4, gpus=1)
GPU_GANG = Kind(memory_mib=16384, vcores=4, gpus=1, gang=4)
GANGS = (1, GPU_GANG.gang)


class Shape(msgspec.Struct, frozen=True):
    """The load: every arm gets the same.

    Attributes:
        nodes: servers of four GPUs.
        masters: applications that ask, of each size of gang, all in one queue.
        burst: containers asked for at one instant.
    """

    nodes: int
    masters: int
    burst: int

    @property
    def heartbeats(self) -> int:
        """Of nodes, behind a burst: each node's one a second where `PACE_PER_S` containers a second are asked for.

        At least one a container, since Hadoop gives a heartbeat one container of an ask that names no node.
        """
        return max(self.burst, round(self.burst * self.nodes / PACE_PER_S))


class Spent(msgspec.Struct, frozen=True):
    """What a run cost, or the time so far.

    Attributes:
        rm_cpu_s: of the thread that is the ResourceManager; nodes' and masters' own work is in it.
        jvm_cpu_s: of its whole process: with the garbage collector, the compiler and the bridge's JSON.
        core_cpu_s: of the core's thread, in a process of its own.
        rm_s: wall time of that first thread's work.
        elapsed_s: wall time from the first ask to the last container in its master's hands, this driver's work too.
    """

    rm_cpu_s: float
    jvm_cpu_s: float
    core_cpu_s: float
    rm_s: float
    elapsed_s: float

    def since(self, before: Spent) -> Spent:
        """The difference."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(before), strict=True)
        return Spent(*(now - then for now, then in pairs))


class Ran(msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        allocations: containers that masters were given.
        spent: on it.
        decisions_s: for each container that the core placed, see `Core`.
    """

    allocations: int
    spent: Spent
    decisions_s: tuple[float, ...]


class LoadedRm:
    """A ResourceManager with its nodes and masters, and the core where the scheduler is ours."""

    def __init__(self, gateway: Gateway, shape: Shape, core: Core | None) -> None:
        self._gateway = gateway
        self._shape = shape
        self._core = core
        self._clock = count(1)
        self._keys = {
            gang: [f"app-{gang}-{number:03}" for number in range(shape.masters)] for gang in GANGS
        }
        self._turn = {gang: cycle(keys) for gang, keys in self._keys.items()}
        self._ask_ids = count()
        self._open = 0
        self._held: dict[str, list[str]] = {}
        self._hold_nothing()

    def fill(self) -> None:
        """Let nodes and masters join."""
        nodes = [_node(MASTERS_HOST, 0)]
        nodes += [_node(f"server-{number:05}", NODE_GPUS) for number in range(self._shape.nodes)]
        for start in range(0, len(nodes), 500):
            self._step(nodes[start : start + 500])
        self._step([_submission(key, gang) for gang, keys in self._keys.items() for key in keys])
        self._decide()
        self._decided()

    def run(self, kind: Kind, containers: int) -> Ran:
        """Ask for so many containers, burst by burst, until masters have all of them; then give them back."""
        before = self._spent()
        decided = 0 if self._core is None else len(self._core.decisions_s)
        for start in range(0, containers, self._shape.burst):
            self._burst(kind, min(self._shape.burst, containers - start))
        self._wait()
        self._decided()
        spent = self._spent().since(before)
        decisions_s = () if self._core is None else tuple(self._core.decisions_s[decided:])
        self._release()
        return Ran(containers, spent, decisions_s)

    def _wait(self) -> None:
        """Until masters have all that they asked for."""
        for _ in range(100 + self._shape.nodes):
            if not self._open:
                return
            self._decided()
            self._step([{"do": "beat_nodes", "count": self._shape.burst}])
            self._decide()
        raise InvariantError(f"{self._open} containers of a benchmark are never allocated")

    def _burst(self, kind: Kind, containers: int) -> None:
        asks = [
            self._ask(key, kind) for key in islice(self._turn[kind.gang], containers // kind.gang)
        ]
        self._step([*asks, {"do": "beat_nodes", "count": self._shape.heartbeats}])
        self._decide()

    def _ask(self, key: str, kind: Kind) -> dict[str, object]:
        """One gang more; a number of its own, since a count would race with what was not fetched yet."""
        self._open += kind.gang
        line: dict[str, object] = {"priority": 1, "allocation_request_id": next(self._ask_ids)}
        line |= msgspec.to_builtins(kind)
        line["count"] = line.pop("gang")
        return {"do": "ask", "key": key, "asks": [line]}

    def _release(self) -> None:
        releases: list[dict[str, object]] = [
            {"do": "release", "key": key, "containers": held}
            for key, held in self._held.items()
            if held
        ]
        self._hold_nothing()
        self._step([*releases, {"do": "settle", "rounds": 1}, {"do": "settle", "rounds": 1}])
        self._decide()
        self._decided()
        if self._core is not None:
            self._core.skip()

    def _hold_nothing(self) -> None:
        self._held = {key: [] for keys in self._keys.values() for key in keys}

    def _step(self, actions: list[dict[str, object]]) -> None:
        reply = self._gateway.replay_step(float(next(self._clock)), actions, rounds=0)
        for event in reply["events"]:
            if event["kind"] == "allocated" and event["key"] in self._held:
                given = [container["container"] for container in event["containers"]]
                self._held[event["key"]] += given
                self._open -= len(given)

    def _decide(self) -> None:
        """Let the core answer what waits while nodes and masters go on: a burst behind, as a busy live one may be."""
        if self._core is not None:
            self._core.decide()

    def _decided(self) -> None:
        """Wait for the core's answer."""
        if self._core is not None:
            self._core.wait()

    def _spent(self) -> Spent:
        found: Mapping[str, Any] = self._gateway.replay_query(spent=True)
        return Spent(
            rm_cpu_s=found["steps_cpu_s"],
            jvm_cpu_s=found["jvm_cpu_s"],
            core_cpu_s=0.0 if self._core is None else self._core.cpu_s,
            rm_s=found["steps_wall_s"],
            elapsed_s=time.perf_counter(),
        )


@contextmanager
def loaded(scheduler_class: str, properties: Mapping[str, str], shape: Shape) -> Iterator[LoadedRm]:
    """A ResourceManager in a JVM of its own; with a core where its scheduler has a gateway."""
    with ExitStack() as stack:
        jvm = stack.enter_context(ReplayJvm(heap_mib=HEAP_MIB, flags=JIT_FLAGS))
        gateway = stack.enter_context(jvm.connect())
        gateway.replay_start(
            PLUGIN_DIR / "conf",
            {
                **_HADOOPS_OWN,
                **properties,
                "yarn.resourcemanager.scheduler.class": scheduler_class,
            },
        )
        is_ours = scheduler_class.startswith("org.gandiva.")
        opened = opened_core(jvm.port, jvm.token_file, Settings()) if is_ours else nullcontext()
        core = stack.enter_context(opened)
        rm = LoadedRm(gateway, shape, core)
        rm.fill()
        yield rm


_HADOOPS_OWN = {
    "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments": "1",
}
"""What a replay's queue file sets otherwise."""


def _node(host: str, gpus: int) -> dict[str, object]:
    return {
        "do": "add_node",
        "host": host,
        "memory_mib": 262144,
        "vcores": 1024 if gpus == 0 else 64,
        "gpus": gpus,
    }


def _submission(key: str, gang: int) -> dict[str, object]:
    return {
        "do": "submit",
        "key": key,
        "user": "bench",
        "tags": [f"gandiva.gang={gang}"],
        "am_memory_mib": 256,
        "am_vcores": 1,
    }
