"""How many events a second cross the bridge from a real ResourceManager, by batch, undecoded and decoded."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

import msgspec

from yarn_plugin.bridge.gateway import Gateway
from yarn_plugin.bridge.jvm import PLUGIN_DIR, ReplayJvm
from yarn_plugin.bridge.wire import decode_batch

Row = Mapping[str, float | int | str]

SCHEDULER_CLASS = "org.gandiva.yarn.GandivaScheduler"
HEAP_MIB = 2048
JIT_FLAGS = ("-XX:TieredStopAtLevel=4",)
"""All compilers, as a ResourceManager that runs for months has; a replay makes do with the quick one."""

_LAST = '"more":false}'


class Plan(msgspec.Struct, frozen=True):
    """What is measured.

    Attributes:
        batches: events asked for in one call.
        events_max: events fetched for a batch size at most; the plug-in keeps 100,000 before it drops them.
        calls_max: calls for a batch size at most, so that batches of one do not take minutes.
        applications: each changes its asks and repeats them, which is two events each.
        warm_ups: rounds of `events_max` before anything counts, so that the JVM has compiled what it runs.
    """

    batches: tuple[int, ...] = (1, 10, 100, 1000, 10_000)
    events_max: int = 60_000
    calls_max: int = 2000
    applications: int = 100
    warm_ups: int = 3


QUICK = Plan(batches=(1, 10), events_max=40, calls_max=4, applications=5, warm_ups=1)


def run(*, is_quick: bool, say: Callable[[str], None]) -> Sequence[Row]:
    """Events fetched from the plug-in in a ResourceManager's JVM, by the number asked for in one call.

    The events are real ones: applications that change their GPU asks, and repeat them once. `undecoded` is the text
    as it comes, `decoded` the typed messages that the core works on; a call's time is from asking to having the
    text, in ms. `undecoded_median` is what the median call comes to: other work on the machine hardly changes it.
    """
    plan = QUICK if is_quick else Plan()
    with ReplayJvm(heap_mib=HEAP_MIB, flags=JIT_FLAGS) as jvm, jvm.connect() as gateway:
        source = _Source(gateway, plan.applications)
        say("bridge: warming up")
        for _ in range(plan.warm_ups):
            _fetch_decoded(source, 1000, plan.events_max)
        return [_row(source, batch, plan, say) for batch in plan.batches]


class _Source:
    """A ResourceManager that makes events on demand."""

    def __init__(self, gateway: Gateway, applications: int) -> None:
        self.gateway = gateway
        self._keys = [f"job-{number}" for number in range(applications)]
        self._clock = count(1)
        self._containers = 1
        gateway.replay_start(
            PLUGIN_DIR / "conf", {"yarn.resourcemanager.scheduler.class": SCHEDULER_CLASS}
        )
        gateway.hello("gandiva-bench")
        self.drop()
        self._step([_node("a-masters", 0), *(_node(f"server-{n}", 4) for n in range(25))])
        self._step([_submission(key) for key in self._keys])
        self.drop()

    def fill(self, events: int) -> None:
        """Let at least so many events wait in the plug-in."""
        for _ in range(-(-events // (2 * len(self._keys)))):
            self._containers = 3 - self._containers
            self._step([_ask(key, self._containers) for key in self._keys])
            self._step([{"do": "beat_all", "keys": self._keys}])

    def texts(self, batch: int) -> Iterator[str]:
        """Batches until none is left."""
        while True:
            text = self.gateway.take_events_text(batch, 0)
            yield text
            if text.endswith(_LAST):
                return

    def drop(self) -> None:
        """Leave nothing waiting."""
        for _ in self.texts(10_000):
            pass

    def _step(self, actions: list[dict[str, object]]) -> None:
        self.gateway.replay_step(float(next(self._clock)), actions)


def _row(source: _Source, batch: int, plan: Plan, say: Callable[[str], None]) -> Row:
    say(f"bridge: batches of {batch}")
    wanted = min(plan.events_max, batch * plan.calls_max)
    calls_ms, events, undecoded_s, size = _fetch(source, batch, wanted)
    decoded, decoded_s = _fetch_decoded(source, batch, wanted)
    return {
        "batch": batch,
        "events": events,
        "bytes_per_event": size / events,
        "undecoded_events_per_s": events / undecoded_s,
        "undecoded_median_events_per_s": batch / _percentile(calls_ms, 0.50) * 1000,
        "decoded_events_per_s": decoded / decoded_s,
        "call_p50_ms": _percentile(calls_ms, 0.50),
        "call_p99_ms": _percentile(calls_ms, 0.99),
    }


def _fetch(source: _Source, batch: int, wanted: int) -> tuple[list[float], int, float, int]:
    """Time of each call in ms, events, time of all calls, characters."""
    source.fill(wanted)
    texts: list[str] = []
    calls_ms: list[float] = []
    started_s = call_s = time.perf_counter()
    for text in source.texts(batch):
        now_s = time.perf_counter()
        calls_ms.append((now_s - call_s) * 1000)
        call_s = now_s
        texts.append(text)
    took_s = call_s - started_s
    events = sum(len(decode_batch(text).events) for text in texts)
    return calls_ms, events, took_s, sum(map(len, texts))


def _fetch_decoded(source: _Source, batch: int, wanted: int) -> tuple[int, float]:
    """Events, and the time to have all of them as typed messages."""
    source.fill(wanted)
    started_s = time.perf_counter()
    events = sum(len(decode_batch(text).events) for text in source.texts(batch))
    return events, time.perf_counter() - started_s


def _percentile(values: Sequence[float], ratio: float) -> float:
    """The smallest value that at least this part of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(ratio * len(ordered)) - 1)]


def _node(host: str, gpus: int) -> dict[str, object]:
    size: dict[str, object] = {"memory_mib": 1 << 19, "vcores": 1 << 10, "gpus": gpus}
    return {"do": "add_node", "host": host, "port": 1, "rack": "/rack"} | size


def _submission(key: str) -> dict[str, object]:
    who: dict[str, object] = {"key": key, "name": key, "queue": "root.default", "user": "user"}
    return {"do": "submit", "tags": [], "am_memory_mib": 1024, "am_vcores": 1} | who


def _ask(key: str, containers: int) -> dict[str, object]:
    size = {"memory_mib": 8192, "vcores": 4, "gpus": 1}
    return {"do": "ask", "key": key, "asks": [{"priority": 1, "count": containers} | size]}
