"""What goes on inside a ResourceManager while something is broken: stacks of threads, heartbeats of nodes."""

from __future__ import annotations

import re
import threading
import time
from types import TracebackType
from typing import Self

import msgspec

from gandiva_core.site.http import HttpError, HttpSession
from tests.live.shells import Live

OURS = "org.gandiva.yarn."
QUANTILES_S = 5
"""Window of the ResourceManager's percentiles (`rpc.metrics.percentiles.intervals`)."""

PROPERTIES = (
    "rpc.metrics.quantile.enable=true",
    f"rpc.metrics.percentiles.intervals={QUANTILES_S}",
)

_SAMPLE_S = 0.2
_THREAD = re.compile(r"^Thread (\d+) \((.*)\):$", re.MULTILINE)
_COUNTS = re.compile(r"(?:Blocked|Waited) count: (\d+)")
_OWN_THREADS = ("gandiva-",)
_BRIDGE = "org.gandiva.yarn.shaded.py4j"


class Standing(msgspec.Struct, frozen=True):
    """A thread of the ResourceManager that waits or is blocked with code of ours on its stack.

    Attributes:
        counts: how often it was blocked and has waited so far: the same as long as one wait lasts.
    """

    thread: int
    name: str
    counts: tuple[str, ...]
    frame: str


def standing(dump: str) -> set[Standing]:
    """Out of a thread dump; threads of the plug-in's own and of the bridge may wait as they like."""
    found: set[Standing] = set()
    heads = list(_THREAD.finditer(dump))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        body = dump[head.end() : following.start() if following else len(dump)]
        frames = [line.strip() for line in body.splitlines() if OURS in line]
        is_own = head.group(2).startswith(_OWN_THREADS) or _BRIDGE in body
        if frames and not is_own and "State: RUNNABLE" not in body:
            counts = tuple(_COUNTS.findall(body))
            found.add(Standing(int(head.group(1)), head.group(2), counts, frames[0]))
    return found


class ThreadSampler:
    """Takes a dump of the ResourceManager's threads again and again, as jstack would, from its `/stacks` page.

    Attributes:
        samples: dumps taken.
        longest_s: for which one of its threads stood in one wait inside our code, as far as samples show.
        where: which, and in what.
        gaps_s: between two dumps: the page itself is served by the process that is looked at.
    """

    def __init__(self, live: Live) -> None:
        self._page = f"{live.cluster.web}/stacks"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._since_s: dict[Standing, float] = {}
        self.samples = 0
        self.longest_s = 0.0
        self.where: Standing | None = None
        self.gaps_s: list[float] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(30.0)

    def _sample(self) -> None:
        before_s = time.monotonic()
        with HttpSession(tries_max=1) as session:
            while not self._stop.wait(_SAMPLE_S):
                try:
                    dump = session.get(self._page).text
                except HttpError:
                    continue
                now_s = time.monotonic()
                self.gaps_s.append(now_s - before_s)
                before_s = now_s
                self._note(standing(dump), now_s)

    def _note(self, found: set[Standing], now_s: float) -> None:
        self.samples += 1
        self._since_s = {each: self._since_s.get(each, now_s) for each in found}
        for each, since_s in self._since_s.items():
            if now_s - since_s > self.longest_s:
                self.longest_s, self.where = now_s - since_s, each


class Heartbeats(msgspec.Struct, frozen=True):
    """Of NodeManagers, as the ResourceManager's metrics have them.

    Attributes:
        count: since its start.
        p99_ms: to serve one, in the last whole window; queueing too.
    """

    count: int
    p99_ms: float


def heartbeats(live: Live) -> Heartbeats:
    """Now."""
    port = live.cluster.ports["tracker"]
    place = "/jmx?qry=Hadoop:service=ResourceManager,name=Rpc"
    (detailed,) = live.get(f"{place}DetailedActivityForPort{port}")["beans"]
    (activity,) = live.get(f"{place}ActivityForPort{port}")["beans"]
    times = (
        activity[f"{name}{QUANTILES_S}s99thPercentileLatency"]
        for name in ("RpcQueueTime", "RpcProcessingTime")
    )
    return Heartbeats(int(detailed["NodeHeartbeatNumOps"]), float(sum(times)))
