"""Which processes a worker left behind on its devices after its end (FAULTS E19)."""

from __future__ import annotations

import os
from collections.abc import Callable

from nodemanager_agent.devices import Devices
from nodemanager_agent.processes import ancestors, by_container, container_of
from nodemanager_agent.workers import Worker


def left_behind(
    devices: Devices,
    live_launchers: Callable[[], frozenset[int]],
    worker: Worker,
    gpus: tuple[int, ...],
) -> frozenset[int]:
    """By the driver where it tells, else by the container's name in the processes' environments.

    A process that the driver names and whose environment cannot be read is a living worker's, or one of these.
    """
    if not gpus:
        return frozenset()
    told = [devices.pids(gpu) for gpu in gpus]
    if all(each is not None for each in told):
        on_devices = frozenset[int]().union(*(each for each in told if each is not None))
        launchers = live_launchers()
        return frozenset(p for p in on_devices if _is_left(p, worker, launchers))
    own = by_container().get(worker.container_id, set())
    # The script that YARN wrapped around the launcher ends after it, and holds no device.
    return frozenset(own - worker.ancestors - {os.getpid()})


def _is_left(pid: int, worker: Worker, launchers: frozenset[int]) -> bool:
    container_id = container_of(pid)
    if container_id is not None:
        return container_id == worker.container_id
    return launchers.isdisjoint(ancestors(pid))
