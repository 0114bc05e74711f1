"""What an agent may order, carried out on one worker: its command, the tree of processes below, and its ranks."""

import os
import threading
import time
from typing import Callable, Dict, Generator, Iterator, List, Optional

from nodemanager_agent.client import rendezvous
from nodemanager_agent.client.child import say
from nodemanager_agent.client.ranks import Message
from nodemanager_agent.client.wire import LAUNCHER_SOCKET
from nodemanager_agent.client.worker import Failed, Figures, Steps, Worker

_POLL_S = 0.02
_STOP_S = 10.0
_RESUME_S = 120.0
_LIMIT_S = 30.0


def start(worker: Worker, order: Message) -> Steps:
    """Start the command on its first devices; a gang meets before."""
    if worker.state == "running" and worker.gpus == list(order.get("gpus") or []):
        return {}
    if worker.state != "waiting":
        raise Failed("NOT_WAITING", "this worker is {}".format(worker.state))
    worker.state = "starting"
    worker.gpus = list(order.get("gpus") or [])
    worker.devices = _real(order)
    worker.granted = order
    environment = {**os.environ, **_devices(order), LAUNCHER_SOCKET: worker.ranks.path}
    try:
        if rendezvous.is_gang(environment):
            meeting = _Meeting(environment)
            while meeting.is_alive():
                yield 0.1
            environment.update(meeting.outcome())
    except (Failed, rendezvous.NoRendezvous) as error:
        worker.state = "waiting"
        worker.gpus, worker.devices = [], []  # a new line to the agent must not claim them
        raise Failed("NO_RENDEZVOUS", str(error)) from error
    worker.start(environment)
    return {}


def warm(worker: Worker, order: Message) -> Steps:
    """Start the command up to where state would be loaded; done when all ranks wait there."""
    yield from start(worker, {**order, "environment": {**_environment(order), "GANDIVA_WARM": "1"}})
    worker.state = "starting"
    while not worker.ranks.are_warm():
        yield _POLL_S
    return {}


def suspend(worker: Worker, order: Message) -> Steps:
    """The ladder: the hook at the boundary; a plain stop only where it was allowed, and never as freed memory."""
    if worker.state == "suspended":
        return worker.figures
    if worker.state != "running":
        raise Failed("NOT_RUNNING", "this worker is {}".format(worker.state))
    began_s = time.monotonic()
    ends_s = began_s + float(order.get("limit_s") or limit_s(worker))
    yield from all_there(worker, bool(order.get("may_stop")), ends_s)
    worker.state = "suspending"
    try:
        figures = yield from _at_boundary(worker, ends_s)
    except Failed:
        worker.state = "running"
        raise
    halted_s = time.monotonic()
    if not (yield from until(worker.tree.stop, halted_s + _STOP_S)):
        yield from _wake(worker, {})
        raise Failed("NOT_STOPPED", "a process below does not stop")
    now_s = time.monotonic()
    figures.update(switch_s=now_s - began_s, halt_s=now_s - halted_s)
    worker.figures, worker.state = figures, "suspended"
    return figures


def all_there(worker: Worker, may_stop: bool, ends_s: float) -> Iterator[float]:
    """Wait for all ranks to have joined, while they still may."""
    while not worker.ranks.joined or not worker.ranks.are_complete():
        is_hopeless = time.monotonic() > ends_s or worker.is_past_probe()
        if is_hopeless and not worker.ranks.joined and may_stop:
            return
        if is_hopeless:
            raise Failed("NOT_SUSPENDABLE", "no rank of it joined, or not all of them")
        yield _POLL_S


def _at_boundary(worker: Worker, ends_s: float) -> Steps:
    """All ranks stop at a boundary, or none does."""
    worker.is_plainly_stopped = not worker.ranks.joined
    if worker.is_plainly_stopped:
        return {"freed_mib": 0.0}
    began_s = time.monotonic()
    key = worker.ranks.ask("suspend")
    while not worker.ranks.have_answered(key):
        if time.monotonic() > ends_s:
            worker.ranks.cancel(key)
            raise Failed("NO_BOUNDARY", "a rank did not come to a mini-batch boundary in time")
        yield _POLL_S
    answer = worker.ranks.answer(key)
    if answer.failures or not answer.done:
        worker.ranks.cancel(key)
        raise _first(answer.failures, "every rank left")
    return {**answer.figures(), "boundary_s": time.monotonic() - began_s}


def resume(worker: Worker, order: Message) -> Steps:
    """Continue the processes, and have the ranks bring their state back."""
    if worker.state == "running":
        return {}
    if worker.state not in ("suspended", "saved"):
        raise Failed("NOT_SUSPENDED", "this worker is {}".format(worker.state))
    check_devices(worker, order)
    began_s = time.monotonic()
    figures = yield from _wake(worker, order)
    worker.gpus = list(order.get("gpus") or worker.gpus)
    worker.granted = {**worker.granted, **order}
    return {**figures, "switch_s": time.monotonic() - began_s}


def check_devices(worker: Worker, order: Message) -> None:
    """A process that has begun stays on its devices.

    Raises:
        Failed: OTHER_DEVICE.
    """
    devices = _real(order)
    if devices and devices != worker.devices:
        detail = "it runs on {} and cannot go to another".format(", ".join(worker.devices))
        raise Failed("OTHER_DEVICE", detail)


def _wake(worker: Worker, order: Message) -> Steps:
    was, worker.state = worker.state, "resuming"
    yield from until(worker.tree.go_on, time.monotonic() + _STOP_S)
    if worker.is_plainly_stopped:
        worker.is_plainly_stopped = False
        worker.state = "running"
        return {}
    key = worker.ranks.ask("resume", environment=_environment(order), uuids=order.get("uuids"))
    ends_s = time.monotonic() + _RESUME_S
    while not worker.ranks.have_answered(key) and time.monotonic() < ends_s:
        yield _POLL_S
    answer = worker.ranks.answer(key)
    if answer.failures:
        yield from until(worker.tree.stop, time.monotonic() + _STOP_S)
        worker.state = was
        raise _first(answer.failures, "")
    worker.state = "running"
    if not answer.done:
        raise Failed("RANK_LOST", "no rank answered")
    return answer.figures()


def save(worker: Worker, order: Message) -> Steps:
    """All ranks stop at a boundary and the state of one replica is written; they go on by resume, or are released."""
    if worker.state == "saved":
        return worker.figures
    if worker.state != "running":
        raise Failed("NOT_RUNNING", "this worker is {}".format(worker.state))
    ends_s = time.monotonic() + float(order.get("limit_s") or limit_s(worker))
    yield from all_there(worker, False, ends_s)
    worker.figures = yield from _asked(worker, "save", order, ends_s)
    worker.state = "saved"
    return worker.figures


def restore(worker: Worker, order: Message) -> Steps:
    """Ranks that warmed up load what was saved and do one mini-batch."""
    if worker.state != "starting":
        raise Failed("NOT_WARM", "this worker is {}".format(worker.state))
    worker.gpus = list(order.get("gpus") or worker.gpus)
    figures = yield from _asked(worker, "restore", order, time.monotonic() + _RESUME_S)
    worker.state = "running"
    return figures


def _asked(worker: Worker, op: str, order: Message, ends_s: float) -> Steps:
    values = {name: value for name, value in order.items() if name not in ("op", "id")}
    key = worker.ranks.ask(op, **values)
    while not worker.ranks.have_answered(key):
        if time.monotonic() > ends_s:
            worker.ranks.cancel(key)
            raise Failed("NO_BOUNDARY", "a rank did not {} in time".format(op))
        yield _POLL_S
    answer = worker.ranks.answer(key)
    if answer.failures or not answer.done:
        worker.ranks.cancel(key)
        raise _first(answer.failures, "every rank left")
    return answer.figures()


def release(worker: Worker, order: Message) -> Steps:
    """The state is confirmed elsewhere: end quietly."""
    del order
    yield 0.0
    rendezvous.tell_moved(os.environ)
    worker.release()
    return {}


def put_right(worker: Worker) -> None:
    """After an order that broke off: processes go on, and ranks that stopped come back."""
    if worker.away is not None:
        worker.state = "suspended"
        return
    if worker.is_driven:
        worker.state = "suspended"
    elif worker.state in ("suspending", "resuming"):
        worker.tree.go_on()
        worker.ranks.ask("resume")
        worker.state = "running"


ORDERS: Dict[str, Callable[[Worker, Message], Steps]] = {
    "start": start,
    "warm": warm,
    "suspend": suspend,
    "resume": resume,
    "save": save,
    "restore": restore,
    "release": release,
}


class _Meeting(threading.Thread):
    """A gang's rendezvous, beside the loop: the launcher hears its agent and its signals meanwhile."""

    def __init__(self, environment: Dict[str, str]) -> None:
        super().__init__(name="gandiva-rendezvous", daemon=True)
        self._environment = environment
        self._found: Dict[str, str] = {}
        self._refusal: Optional[Exception] = None
        self.start()

    def run(self) -> None:
        try:
            self._found = rendezvous.meet(self._environment)
        except Exception as error:  # told by `outcome`, in the launcher's own thread
            self._refusal = error

    def outcome(self) -> Dict[str, str]:
        """What the command needs, or why the gang did not meet."""
        if self._refusal is not None:
            say("no rendezvous: {}".format(self._refusal))
            raise Failed("NO_RENDEZVOUS", str(self._refusal)) from self._refusal
        return self._found


def until(is_so: Callable[[], bool], ends_s: float) -> Generator[float, None, bool]:
    """Look again and again; whether it came true in time."""
    while not is_so():
        if time.monotonic() > ends_s:
            return False
        yield 0.002
    return True


def watched(steps: Steps, check: Callable[[], None]) -> Steps:
    """Go on while `check` raises nothing; it is asked after each step but the last."""
    while True:
        try:
            wait_s = next(steps)
        except StopIteration as ended:
            figures: Figures = ended.value
            return figures
        check()
        yield wait_s


def limit_s(worker: Worker) -> float:
    """Ten mini-batches, at least 30 s (G-12)."""
    return max(_LIMIT_S, 10 * (worker.ranks.progress()["minibatch_s"] or 0.0))


def _first(failures: List[Message], otherwise: str) -> Failed:
    if not failures:
        return Failed("RANK_LOST", otherwise)
    return Failed(str(failures[0].get("code")), str(failures[0].get("detail")))


def _environment(order: Message) -> Dict[str, str]:
    return {str(name): str(value) for name, value in (order.get("environment") or {}).items()}


def _real(order: Message) -> List[str]:
    """The devices of an order that a driver knows; a process that has begun cannot change them."""
    uuids = [str(each) for each in order.get("uuids") or []]
    return sorted(each for each in uuids if each.startswith(("GPU-", "MIG-")))


def _devices(order: Message) -> Dict[str, str]:
    """CUDA_VISIBLE_DEVICES is always set: without devices it is empty, and nobody takes what is not theirs.

    On the CPU torch's large allocations are to be huge pages: it halves the time of a resume, whose cost is new pages.
    """
    visible = ",".join(_real(order))
    huge = {} if visible else {"THP_MEM_ALLOC_ENABLE": "1"}
    return {"CUDA_VISIBLE_DEVICES": visible, **huge, **_environment(order)}
