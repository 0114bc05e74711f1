"""The second rung of the ladder: device memory to the host by the driver, whatever the process is doing (DESIGN §5).

For a rank on a GPU that cannot give its memory back itself. The driver waits for what runs on the device; then all
processes are stopped. Nothing is said of freed memory: nobody here measures it. Never yet run on a GPU.
"""

import threading
import time
from typing import Callable, Optional

from nodemanager_agent.client import orders
from nodemanager_agent.client.child import no_reaping
from nodemanager_agent.client.driver import Driver, DriverError
from nodemanager_agent.client.worker import Failed, Figures, Steps, Worker

_POLL_S = 0.02
_STOP_S = 10.0


def suspend(worker: Worker, driver: Driver) -> Steps:
    """Memory to the host, then SIGSTOP; a worker that cannot runs as before."""
    began_s = time.monotonic()
    pid = _pid(worker)
    worker.state = "suspending"
    try:
        yield from _done(lambda: driver.suspend(pid))
        driven_s = time.monotonic()
        if not (yield from orders.until(worker.tree.stop, driven_s + _STOP_S)):
            yield from _back(worker, driver, pid)
            raise Failed("NOT_STOPPED", "a process below does not stop")
    except Failed:
        worker.state = "running"
        raise
    now_s = time.monotonic()
    worker.figures = {
        "driver_s": driven_s - began_s,
        "halt_s": now_s - driven_s,
        "switch_s": now_s - began_s,
    }
    worker.is_driven, worker.state = True, "suspended"
    return worker.figures


def resume(worker: Worker, driver: Driver) -> Steps:
    """SIGCONT, and memory back onto the device; one that does not come back stays suspended."""
    began_s = time.monotonic()
    worker.state = "resuming"
    try:
        yield from _back(worker, driver, _pid(worker))
    except Failed:
        yield from orders.until(worker.tree.stop, time.monotonic() + _STOP_S)
        worker.state = "suspended"
        raise
    worker.is_driven, worker.state = False, "running"
    figures: Figures = {"switch_s": time.monotonic() - began_s}
    return figures


def _back(worker: Worker, driver: Driver, pid: int) -> Steps:
    yield from orders.until(worker.tree.go_on, time.monotonic() + _STOP_S)
    yield from _done(lambda: driver.resume(pid))
    return {}


def _pid(worker: Worker) -> int:
    """Of the one rank."""
    for rank in worker.ranks.joined:
        return int(rank.facts["pid"])
    raise Failed("RANK_LOST", "every rank left")


class _Call(threading.Thread):
    """The driver's tool, beside the loop: the launcher hears its agent and its signals meanwhile."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__(name="gandiva-driver", daemon=True)
        self.problem: Optional[DriverError] = None
        self._call = call
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except DriverError as error:
            self.problem = error


def _done(call: Callable[[], None]) -> Steps:
    with no_reaping():
        under_way = _Call(call)
        while under_way.is_alive():
            yield _POLL_S
    if under_way.problem is not None:
        raise Failed(under_way.problem.code, under_way.problem.detail)
    return {}
