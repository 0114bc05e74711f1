"""Another number of workers, at a step boundary (SPEC G-80 … G-84).

The gang's next generation warms up beside the present one, takes its state, and goes on where it stood. Until all of it
has done a mini-batch the present one can go on instead.

In each container the launcher starts the command once more, on the devices that it has; added containers start with it.
So for a while a device holds a second model; where there is no room for it, nothing changes.
"""

import os
import shutil
import time
from typing import Callable, Dict

from nodemanager_agent.client import orders
from nodemanager_agent.client.child import say
from nodemanager_agent.client.master_line import RESTORED, SAVED, WARM, MasterLine
from nodemanager_agent.client.ranks import Message
from nodemanager_agent.client.worker import Failed, Figures, Steps, Worker

JOINS = "GANDIVA_JOINS"
"""Environment: this container was added to a gang that runs."""

_POLL_S = 0.05


def resize(worker: Worker, order: Message) -> Steps:
    """A worker of the present generation: warm up its successor, if it has one, and hand over."""
    master = _master(worker)
    is_surplus, began_s = bool(order["is_surplus"]), time.monotonic()
    folder, figures = _folder(int(order["generation"])), {}
    say("shall be one of {} workers".format(order["world_size"]))
    try:
        if not is_surplus:
            successor = worker.begin_successor()
            yield from _alive(worker, _warm_up(worker, successor, order), master)
        yield from _all_come(worker, WARM, master)
        yield from _alive(worker, orders.save(worker, {"folder": folder}), master)
        yield from _all_come(worker, SAVED, master)
        if not is_surplus:
            steps = orders.restore(successor, _handed_over(worker.granted, folder))
            figures = yield from _alive(worker, steps, master)
        waits_s = time.monotonic()
        yield from _all_come(worker, RESTORED, master)
    except Exception as error:  # of any kind: the present generation goes on
        failure = _failed(error)
        yield from _back(worker, failure, master, folder)
        raise failure from error
    master.end()
    if is_surplus:
        say("is not needed any more")
        worker.release()
        return {}
    yield from _go_on(successor, figures, waits_s)
    worker.succeed()
    _tell_environment(order)
    _clear(folder)
    figures["resize_s"] = time.monotonic() - began_s
    say("is one of {} workers; {}".format(order["world_size"], _written(figures)))
    return figures


def start(worker: Worker, order: Message) -> Steps:
    """As `orders.start`; a worker that joins a gang that runs has begun once all of it has."""
    if worker.state != "waiting" or not os.environ.get(JOINS):
        return (yield from orders.start(worker, order))
    master = _master(worker)
    generation = int(os.environ["GANDIVA_GENERATION"])
    folder = _folder(generation)
    master.begin(generation)
    try:
        yield from _alive(worker, orders.warm(worker, order), master)
        yield from _all_come(worker, WARM, master)
        yield from _all_come(worker, SAVED, master)
        steps = orders.restore(worker, _handed_over(order, folder))
        figures = yield from _alive(worker, steps, master)
        waits_s = time.monotonic()
        yield from _all_come(worker, RESTORED, master)
    except Exception as error:  # of any kind: the others go on without it
        failure = _failed(error)
        say("does not join: {}".format(failure))
        master.fail(str(failure))
        master.end()
        worker.release()
        raise failure from error
    yield from _go_on(worker, figures, waits_s)
    master.end()
    os.environ.pop(JOINS)
    return figures


def _master(worker: Worker) -> MasterLine:
    if worker.master is None:
        raise Failed("NO_RENDEZVOUS", "nobody changes the number of its workers")
    return worker.master


def _failed(error: Exception) -> Failed:
    if isinstance(error, Failed):
        return error
    return Failed("FAILED", "{}: {}".format(type(error).__name__, error))


def _go_on(worker: Worker, figures: Figures, waits_s: float) -> Steps:
    """The new generation is the job: its second mini-batch may begin."""
    key = worker.ranks.ask("resume")
    figures["frozen_s"] = figures.get("frozen_s", 0.0) + time.monotonic() - waits_s
    while not worker.ranks.have_answered(key):
        yield _POLL_S
    return figures


def _warm_up(worker: Worker, successor: Worker, order: Message) -> Steps:
    named = {**(worker.granted.get("environment") or {}), **_generation(order)}
    return orders.warm(successor, {**worker.granted, "environment": named})


def _handed_over(granted: Message, folder: str) -> Message:
    """An order to load the state, do one mini-batch, and stand still until all have."""
    return {**granted, "folder": folder, "after": "resize", "holds": True}


def _generation(order: Message) -> Dict[str, str]:
    size = str(order["world_size"])
    return {
        "GANDIVA_GENERATION": str(order["generation"]),
        "GANDIVA_WORLD_SIZE": size,
        "GANDIVA_TASKS": size,
    }


def _tell_environment(order: Message) -> None:
    """What is started here from now on is of the new generation."""
    os.environ.update(_generation(order))


def _alive(worker: Worker, steps: Steps, master: MasterLine) -> Steps:
    """Go on while nobody has called it off and no process has ended."""
    return orders.watched(steps, lambda: _check(worker, master))


def _all_come(worker: Worker, stage: int, master: MasterLine) -> Steps:
    master.reach(stage)
    while not master.has_passed(stage):
        _check(worker, master)
        yield _POLL_S
    return {}


def _check(worker: Worker, master: MasterLine) -> None:
    if master.off:
        raise Failed("CALLED_OFF", master.off)
    for each in (worker, worker.successor):
        if each is not None and each.exit_code is not None:
            raise Failed("ENDED", "the command has ended with {}".format(each.exit_code))


def _back(worker: Worker, failure: Failed, master: MasterLine, folder: str) -> Steps:
    """The present generation goes on."""
    say("stays as it is: {}".format(failure))
    master.fail(str(failure))
    worker.drop_successor()
    if worker.state == "saved":
        yield from orders.resume(worker, {})
    master.end()
    _clear(folder)
    return {}


def _folder(generation: int) -> str:
    """On a disk that all workers see; in memory where they share one node, as those of one server do (G-81)."""
    name = "{}-{}".format(os.environ.get("GANDIVA_JOB_ID") or "job", generation)
    shared = os.environ.get("GANDIVA_CHECKPOINT_DIR")
    return os.path.join(shared, "resize", name) if shared else os.path.join("/dev/shm", name)


def _clear(folder: str) -> None:
    """Whoever comes first; all have read what they need."""
    shutil.rmtree(folder, ignore_errors=True)


def _written(figures: Figures) -> str:
    return ", ".join("{} {:.3f}".format(name, figures[name]) for name in sorted(figures))


ORDERS: Dict[str, Callable[[Worker, Message], Steps]] = {
    **orders.ORDERS,
    "start": start,
    "resize": resize,
}
"""Those, and what changes the number of workers."""
