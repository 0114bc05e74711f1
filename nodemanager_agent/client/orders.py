"""What an agent may order, carried out on one worker: its command, the tree of processes below, and its ranks."""

import os
import signal
import threading
import time
from typing import Callable, Dict, Generator, Iterator, List, Optional

from nodemanager_agent.client import rendezvous
from nodemanager_agent.client.child import Child, say, with_hook
from nodemanager_agent.client.processes import Tree
from nodemanager_agent.client.ranks import Message, Ranks
from nodemanager_agent.client.wire import LAUNCHER_SOCKET

PROBE_S = 60.0
"""The ladder is probed within the first minute; who has not joined by then is none of ours (DESIGN §5)."""

_POLL_S = 0.02
_STOP_S = 10.0
_RESUME_S = 120.0
_LIMIT_S = 30.0

Figures = Dict[str, float]
Steps = Generator[float, None, Figures]


class Failed(Exception):  # noqa: N818 - it is an answer
    """Why an order was not carried out; the worker is as it was."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Worker:
    """One worker, its state and what it can do.

    Attributes:
        state: as in `WorkerState` of the messages between core and agents, and ``saved``: it stands still with its
            device memory, for a move.
        reason: why it ended, where that was not the command's own doing.
    """

    def __init__(self, command: List[str], tree: Tree, ranks: Ranks) -> None:
        self.state = "waiting"
        self.reason = ""
        self.tree = tree
        self.ranks = ranks
        self.gpus: List[int] = []
        self.devices: List[str] = []
        self.figures: Dict[str, float] = {}
        self.is_plainly_stopped = False
        self._command = command
        self._child: Optional[Child] = None
        self._started_s = 0.0
        self._code: Optional[int] = None
        self._probe = ""
        self._is_probed = False

    # ------------------------------------------------------------------ what it is

    @property
    def exit_code(self) -> Optional[int]:
        """Of the command; None while it runs or has not begun."""
        if self._code is not None:
            return self._code
        return self._child.exit_code if self._child is not None else None

    def standing(self) -> Message:
        """What a new line to the agent begins with."""
        return {"state": self.state, "gpus": self.gpus}

    def progress(self) -> Message:
        """As the wire's ``progress``."""
        limits = self.ranks.limits()
        methods = limits.pop("methods")
        return {
            **self.ranks.progress(),
            **limits,
            **self._method(methods, limits),
            "state": self.state,
        }

    def _method(self, methods: List[str], limits: Message) -> Message:
        """The best rung that works; None before the probe."""
        if self.ranks.joined:
            if not methods:
                return {"method": "none"}
            return {"method": methods[0] if self._is_probed else None}
        if self._child is None or not self.is_past_probe():
            return {"method": None}
        reason = "no rank joined: a plain stop would keep the device memory"
        return {"method": "stop", "reason": limits["reason"] or reason}

    def is_past_probe(self) -> bool:
        """Whether who has not joined by now never will, as far as anyone can say."""
        return time.monotonic() - self._started_s > PROBE_S

    def probe(self) -> None:
        """Once all ranks are there, ask them for a boundary: what answers can be stopped there."""
        if self._is_probed or self.state != "running":
            return
        if not self._probe and self.ranks.joined and self.ranks.are_complete():
            self._probe = self.ranks.ask("probe")
        if self._probe and self.ranks.have_answered(self._probe):
            self._is_probed = not self.ranks.answer(self._probe).failures

    # ------------------------------------------------------------------ its processes

    def start(self, environment: Dict[str, str]) -> None:
        """Start the command; it finds the launcher by the environment.

        Raises:
            Failed: there is no such command.
        """
        try:
            self._child = Child(self._command, with_hook(environment), self.tree)
        except OSError as error:
            self._code, self.reason = 127, str(error)
            raise Failed("NO_COMMAND", str(error)) from error
        self._started_s = time.monotonic()
        self.state = "running"

    def reap(self) -> None:
        """Collect who ended."""
        if self._child is not None:
            self._child.reap()

    def forward(self, number: int) -> None:
        """A signal to the launcher is meant for the command.

        One that ends a suspended job ends it at once: a handler of its own would see tensors without memory, and might
        write them over a good checkpoint.
        """
        if self._child is None:
            self._code, self.reason = 128 + number, "signal {}".format(number)
        elif self.state in ("suspended", "resuming") and number != signal.SIGHUP:
            self._code, self.reason = 128 + number, "signal {} while suspended".format(number)
        else:
            self._child.signal_group(number)

    def release(self) -> None:
        """End the training processes; the job lives elsewhere."""
        self._code, self.reason = 0, "released"

    def close(self) -> None:
        """Leave nothing behind."""
        if self._child is not None:
            self._child.end()


# ---------------------------------------------------------------------- orders


def start(worker: Worker, order: Message) -> Steps:
    """Start the command on its first devices; a gang meets before."""
    if worker.state == "running" and worker.gpus == list(order.get("gpus") or []):
        return {}
    if worker.state != "waiting":
        raise Failed("NOT_WAITING", "this worker is {}".format(worker.state))
    worker.state = "starting"
    worker.gpus = list(order.get("gpus") or [])
    worker.devices = _real(order)
    environment = {**os.environ, **_devices(order), LAUNCHER_SOCKET: worker.ranks.path}
    try:
        if rendezvous.is_gang(environment):
            meeting = _Meeting(environment)
            while meeting.is_alive():
                yield 0.1
            environment.update(meeting.outcome())
    except (Failed, rendezvous.NoRendezvous) as error:
        worker.state = "waiting"
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
    limit_s = float(order.get("limit_s") or _limit_s(worker))
    yield from _all_there(worker, bool(order.get("may_stop")), began_s + limit_s)
    worker.state = "suspending"
    try:
        figures = yield from _at_boundary(worker, began_s + limit_s)
    except Failed:
        worker.state = "running"
        raise
    halted_s = time.monotonic()
    if not (yield from _until(worker.tree.stop, halted_s + _STOP_S)):
        yield from _wake(worker, {})
        raise Failed("NOT_STOPPED", "a process below does not stop")
    now_s = time.monotonic()
    figures.update(switch_s=now_s - began_s, halt_s=now_s - halted_s)
    worker.figures, worker.state = figures, "suspended"
    return figures


def _all_there(worker: Worker, may_stop: bool, ends_s: float) -> Iterator[float]:
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
    devices = _real(order)
    if devices and devices != worker.devices:
        detail = "it runs on {} and cannot go to another".format(", ".join(worker.devices))
        raise Failed("OTHER_DEVICE", detail)
    began_s = time.monotonic()
    figures = yield from _wake(worker, order)
    worker.gpus = list(order.get("gpus") or worker.gpus)
    return {**figures, "switch_s": time.monotonic() - began_s}


def _wake(worker: Worker, order: Message) -> Steps:
    was, worker.state = worker.state, "resuming"
    yield from _until(worker.tree.go_on, time.monotonic() + _STOP_S)
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
        yield from _until(worker.tree.stop, time.monotonic() + _STOP_S)
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
    ends_s = time.monotonic() + float(order.get("limit_s") or _limit_s(worker))
    yield from _all_there(worker, False, ends_s)
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
        except Exception as error:
            self._refusal = error

    def outcome(self) -> Dict[str, str]:
        """What the command needs, or why the gang did not meet."""
        if self._refusal is not None:
            say("no rendezvous: {}".format(self._refusal))
            raise Failed("NO_RENDEZVOUS", str(self._refusal)) from self._refusal
        return self._found


def _until(is_so: Callable[[], bool], ends_s: float) -> Generator[float, None, bool]:
    """Look again and again; whether it came true in time."""
    while not is_so():
        if time.monotonic() > ends_s:
            return False
        yield 0.002
    return True


def _limit_s(worker: Worker) -> float:
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
