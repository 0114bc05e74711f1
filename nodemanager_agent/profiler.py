"""Looks at devices and processes from outside, in a thread of its own (G-50): apscheduler, never two looks at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import psutil
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from gandiva_core.messages.agents import Device
from nodemanager_agent.devices import Devices
from nodemanager_agent.memory_cycle import cycle_s
from nodemanager_agent.processes import by_container, memory_mib

SAMPLE_S = 1.0
FINE_S = 0.25
_FINE_KEPT = 240


class Seen(msgspec.Struct, frozen=True):
    """A container's processes, from outside.

    Attributes:
        cpu_ratio: of one core, at most 1.
        minibatch_s: by the memory cycle; None where it shows none.
    """

    host_memory_mib: int
    cpu_ratio: float | None = None
    minibatch_s: float | None = None


class Sample(msgspec.Struct, frozen=True):
    """One look.

    Attributes:
        workers: by container, of those whose processes may be read.
        idle_ratio: of this machine's cores, since the look before.
    """

    devices: tuple[Device, ...]
    workers: Mapping[str, Seen]
    idle_ratio: float


class Profiler:
    """Samples until closed.

    Args:
        told: called with each sample, in the sampling thread.
    """

    def __init__(self, devices: Devices, told: Callable[[Sample], None]) -> None:
        self._devices = devices
        self._told = told
        self._processes: dict[str, set[int]] = {}
        self._cpu_s: dict[str, tuple[float, float]] = {}
        self._memory: dict[str, deque[float]] = {}
        # What is late is done once and soon, and never dropped: a clock that jumps loses no look for good (E15).
        once: dict[str, Any] = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        one = {"default": ThreadPoolExecutor(1)}
        self._scheduler = BackgroundScheduler(timezone="UTC", executors=one, job_defaults=once)
        self._scheduler.add_job(self.sample, "interval", seconds=SAMPLE_S)
        self._scheduler.add_job(self.sample_memory, "interval", seconds=FINE_S)

    def start(self) -> None:
        """Begin."""
        psutil.cpu_percent(None)
        self._scheduler.start()

    def close(self) -> None:
        """End; a look under way is finished."""
        self._scheduler.shutdown(wait=True)

    def sample(self) -> None:
        """One look at everything."""
        self._processes = by_container()
        for kept in (self._memory, self._cpu_s):
            for gone in kept.keys() - self._processes.keys():
                del kept[gone]
        now_s = time.monotonic()
        workers = {c: self._seen(c, pids, now_s) for c, pids in self._processes.items()}
        idle_ratio = 1 - psutil.cpu_percent(None) / 100
        self._told(Sample(self._devices.measure(), workers, idle_ratio))

    def sample_memory(self) -> None:
        """One look at the memory of each container, for its cycle."""
        for container_id, pids in list(self._processes.items()):
            kept = self._memory.setdefault(container_id, deque(maxlen=_FINE_KEPT))
            kept.append(float(memory_mib(pids)))

    def _seen(self, container_id: str, pids: set[int], now_s: float) -> Seen:
        used_s = sum(map(_cpu_s, pids))
        before = self._cpu_s.get(container_id)
        self._cpu_s[container_id] = (now_s, used_s)
        ratio = None
        if before is not None and now_s > before[0]:
            ratio = min(1.0, max(0.0, (used_s - before[1]) / (now_s - before[0])))
        cycle = cycle_s(list(self._memory.get(container_id, ())), FINE_S)
        return Seen(memory_mib(pids), ratio, cycle)


def _cpu_s(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
