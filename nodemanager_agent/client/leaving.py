"""The third rung of the ladder: save, end the process, and start the command again later (DESIGN §5).

For ranks that can save their state and cannot give their device's memory back while they live (C09): at a mini-batch
boundary they write it to a folder in memory, as for a move, and the command is ended. A resume starts the command anew,
up to the top of its first mini-batch, and loads what was saved; on another device, if need be. Whatever fails in that
leaves the state in its folder and the worker suspended. One process a worker, and one worker a job: others would have
to meet anew.
"""

import time
from typing import Callable, Dict, Iterator

from nodemanager_agent.client import driving, orders, resizing
from nodemanager_agent.client.ram_folder import RamFolder
from nodemanager_agent.client.ranks import Message
from nodemanager_agent.client.wire import start_ticks
from nodemanager_agent.client.worker import Failed, Figures, Steps, Worker

_POLL_S = 0.02
_END_S = 10.0
_RESTART_S = 120.0


def suspend(worker: Worker, order: Message) -> Steps:
    """In place where that works, by the hook or the driver; else save, and end."""
    if worker.state != "running":
        return (yield from orders.suspend(worker, order))
    began_s = time.monotonic()
    limit_s = float(order.get("limit_s") or orders.limit_s(worker))
    yield from orders.all_there(worker, bool(order.get("may_stop")), began_s + limit_s)
    if worker.rung == "driver":
        return (yield from driving.suspend(worker, worker.driver))
    if worker.rung != "checkpoint":
        return (yield from orders.suspend(worker, {**order, "limit_s": limit_s}))
    folder = RamFolder(worker.tree)
    try:
        saved = yield from orders.save(worker, {"folder": folder.path, "limit_s": limit_s})
    except Failed:
        folder.remove()
        raise
    ended_s = time.monotonic()
    worker.state = "suspending"
    yield from _put_away(worker, folder)
    worker.state = "suspended"
    now_s = time.monotonic()
    worker.figures = {**saved, "end_s": now_s - ended_s, "switch_s": now_s - began_s}
    return worker.figures


def resume(worker: Worker, order: Message) -> Steps:
    """Start the command again, where it was ended."""
    if worker.is_driven and worker.state == "suspended":
        orders.check_devices(worker, order)
        return (yield from driving.resume(worker, worker.driver))
    if worker.away is None or worker.state != "suspended":
        return (yield from orders.resume(worker, order))
    began_s = time.monotonic()
    folder = worker.away
    granted = {**worker.granted, **order}
    worker.state = "waiting"  # as before its first start
    try:
        steps = _started(worker, granted, folder.path)
        figures: Figures = yield from orders.watched(steps, _lives(worker, began_s + _RESTART_S))
    except (
        Exception
    ):  # whatever failed: the state stays in its folder, and who ordered it hears why
        worker.state = "suspending"
        yield from _put_away(worker, folder)
        worker.state = "suspended"
        raise
    worker.come_back()
    return {**figures, "switch_s": time.monotonic() - began_s}


def _started(worker: Worker, order: Message, folder: str) -> Steps:
    yield from orders.warm(worker, order)
    return (yield from orders.restore(worker, {**order, "folder": folder, "after": "suspend"}))


def _lives(worker: Worker, ends_s: float) -> Callable[[], None]:
    def check() -> None:
        if worker.exit_code is not None:
            raise Failed("NOT_STARTED", "the command ended with {}".format(worker.exit_code))
        if time.monotonic() > ends_s:
            raise Failed("NOT_STARTED", "it did not come to its first mini-batch in time")

    return check


def _put_away(worker: Worker, folder: RamFolder) -> Iterator[float]:
    """End the command; done once none of its processes is there: then the driver has its devices' memory back."""
    left = worker.put_away(folder)
    ends_s = time.monotonic() + _END_S
    while time.monotonic() < ends_s and any(start_ticks(p) == born for p, born in left.items()):
        yield _POLL_S


ORDERS: Dict[str, Callable[[Worker, Message], Steps]] = {
    **resizing.ORDERS,
    "suspend": suspend,
    "resume": resume,
}
"""All that a launcher carries out."""
