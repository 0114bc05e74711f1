"""A rank's side: what one training process does at each mini-batch boundary, whatever its framework.

No thread: the launcher's line is polled at the boundary, where alone something can be done, so a fork of the job (its
data loaders) never meets a lock of ours. Nothing here raises into the training script.
"""

import os
import select
import sys
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from nodemanager_agent.client.continuity import Fingerprint
from nodemanager_agent.client.ring import Memory, StepRing
from nodemanager_agent.client.signals import DeferredSignals
from nodemanager_agent.client.wire import LAUNCHER_SOCKET, Line, WireError, start_ticks

VIRTUAL_STEP_S = "GANDIVA_VIRTUAL_STEP_S"
"""Environment: a mini-batch takes no less than this, so that many jobs share few cores as they would devices (C-8)."""

_LOOK_S = 1.0
"""Between two looks at device memory."""

_ORDERS = ("suspend", "save")
Message = Dict[str, Any]
Figures = Dict[str, float]


class Refusal(Exception):  # noqa: N818 - it is an answer
    """Why something was not done: a code and a sentence. The rank is as it was before."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Limits(NamedTuple):
    """What a rank can do; `reason` says why not."""

    methods: List[str]
    can_pack: bool = True
    can_move: bool = False
    can_resize: bool = False
    reason: str = ""


class Framework:
    """What a framework's hook does for `Rank`; this one has no device memory and is alone."""

    name = "none"
    rank = 0
    world_size = 1

    def limits(self) -> Limits:
        """What can be done with this process; asked again after each mini-batch that may have changed it."""
        return Limits([])

    def offload(self) -> Figures:
        """Copy what lies in device memory to the host and give the memory back.

        Raises:
            Refusal: it could not be done; everything is on the device as before.
        """
        raise Refusal("NOT_SUSPENDABLE", "no framework")

    def reload(self) -> Figures:
        """Bring it back, at the same identities.

        Raises:
            Refusal: there is no room on the device; the state stays on the host.
        """
        return {}

    def fingerprint(self, minibatches: int) -> Fingerprint:
        """Where this process stands now."""
        return Fingerprint(minibatches, "", "", "")

    def repair(self) -> bool:
        """Put back what the last `offload` recorded; False where it is not there any more."""
        return False

    def let_go(self) -> None:
        """What came back is checked: the host's copy may go."""

    def memory(self) -> Optional[Memory]:
        """Device memory at this boundary; None for not known."""
        return None

    def agree(self, is_wanted: bool) -> bool:
        """Called once a boundary by every rank of a gang: whether all of them stop at this one."""
        return is_wanted

    def settle(self, is_stopped: bool) -> bool:
        """All ranks have come to this stop: whether every one of them could."""
        return is_stopped

    def regather(self) -> None:
        """Wait until all ranks have resumed."""


class Rank:
    """One training process and its line to the launcher.

    Attributes:
        minibatches: done so far.
        handlers: of ``save`` and ``restore``: called at a boundary with the message, answer with figures.
    """

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self.minibatches = 0
        self.handlers: Dict[str, Callable[[Message], Figures]] = {}
        self._line: Optional[Line] = None
        self._ring: Optional[StepRing] = None
        self._pid = os.getpid()
        self._is_joined = False
        self._is_off = False
        self._order: Optional[Message] = None
        self._limits: Optional[Limits] = None
        self._looked_s = 0.0
        self._ended_s = time.monotonic()
        self._step_s = _step_s()

    # ------------------------------------------------------------------ for hooks

    def boundary(self, begin: Callable[[], None] = lambda: None) -> None:
        """A mini-batch is done; `begin` is called first. Returns when the next may begin, which may be hours later."""
        if os.getpid() != self._pid or not os.environ.get(LAUNCHER_SOCKET):
            return
        if self._is_off:
            return
        try:
            begin()
            self._boundary()
        except Exception as error:  # a hook's fault is never the job's
            _complain(
                "{}: {}; this process is left alone from now on".format(type(error).__name__, error)
            )
            self.leave()
            self._is_off = True

    def join(self, is_warm: bool = False) -> None:
        """Dial the launcher, once; a second call says what has changed since."""
        path = os.environ.get(LAUNCHER_SOCKET)
        if not path or os.getpid() != self._pid:
            return
        if not self._is_joined:
            self._is_joined = True
            try:
                self._ring = StepRing(
                    os.path.join(os.path.dirname(path), "ring-{}".format(self._pid))
                )
                self._line = Line.dial(path)
            except OSError as error:
                _complain("no launcher at {}: {}".format(path, error))
                return
        self._limits = self.framework.limits()
        self._send(
            "join",
            pid=self._pid,
            start_ticks=start_ticks(self._pid),
            rank=self.framework.rank,
            world_size=self.framework.world_size,
            local_world_size=int(os.environ.get("LOCAL_WORLD_SIZE") or 1),
            framework=self.framework.name,
            ring=self._ring.path if self._ring else None,
            is_warm=is_warm,
            **self._limits._asdict(),
        )

    def receive(self) -> Optional[Message]:
        """Wait for the launcher's next message; None where it is gone. For a process that warmed up."""
        if self._line is None:
            return None
        try:
            message = self._line.read()
        except (OSError, WireError):
            message = None
        if message is None:
            self.leave()
        return message

    def answer(self, message: Message, figures: Figures) -> None:
        """Say that something asked for is done."""
        self._send(
            "done",
            id=message.get("id"),
            at_s=time.time(),
            figures=figures,
            minibatches=self.minibatches,
        )

    def refuse(self, message: Message, refusal: Refusal) -> None:
        """Say why it is not."""
        self._send("failed", id=message.get("id"), code=refusal.code, detail=refusal.detail)

    def prove(self, after: str, before: Fingerprint, now: Fingerprint, note: str = "") -> bool:
        """Report whether the process goes on where it was (`continuity.py`)."""
        differences = before.differences(now)
        detail = ", ".join(differences) + note
        self._send(
            "continuity",
            after=after,
            is_same=not differences,
            minibatches=now.minibatches,
            detail=detail,
        )
        return not differences

    def leave(self) -> None:
        """Close the line; the process goes on by itself."""
        if self._line is not None:
            self._line.close()
            self._line = None

    # ------------------------------------------------------------------ at a boundary

    def _boundary(self) -> None:
        if not self._is_joined:
            self.join()
        now_s = time.monotonic()
        self.minibatches = self._ring.step(now_s) if self._ring else self.minibatches + 1
        self._look(now_s)
        self._attend()
        due_s = self._ended_s + self._step_s
        if self.framework.agree(self._order is not None):
            due_s += self._hold()
        self._pace(due_s)
        self._ended_s = time.monotonic()

    def _look(self, now_s: float) -> None:
        if self._line is None or now_s - self._looked_s < _LOOK_S:
            return
        self._looked_s = now_s
        memory = self.framework.memory()
        if memory is not None and self._ring:
            self._ring.remember(memory)
        if self.framework.limits() != self._limits:
            self.join()

    def _pace(self, due_s: float) -> None:
        """Sleep out a virtual device's step; a rank that is alone stops meanwhile, and sleeps the rest after."""
        while True:
            left_s = due_s - time.monotonic()
            if left_s <= 0:
                return
            if self._line is None or self.framework.world_size > 1:
                time.sleep(left_s)
            elif select.select([self._line], [], [], left_s)[0]:
                self._attend()
                if self._order is not None:
                    due_s += self._hold()

    def _attend(self) -> None:
        messages = self._line.poll() if self._line else []
        if messages is None:
            self.leave()
        for message in messages or []:
            self._take(message)

    def _take(self, message: Message) -> None:
        """A message that came while running."""
        op = message["op"]
        if op in _ORDERS:
            if self._order is not None:
                self.refuse(message, Refusal("BUSY", "another stop is under way"))
            else:
                self._order = message
        elif op == "cancel":
            if self._order is not None and self._order.get("id") == message.get("id"):
                self._order = None
        elif op in ("probe", "resume"):
            self.answer(message, {})
        elif op != "joined":
            self.refuse(message, Refusal("NOT_NOW", "{} of a process that runs".format(op)))

    # ------------------------------------------------------------------ stopped

    def _hold(self) -> float:
        """Stop, wait, go on; how long that took."""
        began_s = time.monotonic()
        order, self._order = self._order, None
        with DeferredSignals():
            before = self.framework.fingerprint(self.minibatches)
            refusal: Optional[Refusal] = None
            figures: Figures = {}
            is_offloaded = order is None or order["op"] == "suspend"
            try:
                figures = self._stop(order)
            except Refusal as error:
                refusal = error
            if not self.framework.settle(refusal is None):
                if refusal is None and is_offloaded:
                    self.framework.reload()
                    self.framework.let_go()
                if order is not None:
                    self.refuse(order, refusal or Refusal("GANG", "another rank could not stop"))
                return time.monotonic() - began_s
            figures["stop_s"] = time.monotonic() - began_s
            if order is not None:
                self.answer(order, figures)
            self._wait(order, figures, is_offloaded)
            if is_offloaded:
                self._check(before)
            self.framework.regather()
        if self._ring:
            self._ring.gap()
        return time.monotonic() - began_s

    def _stop(self, order: Optional[Message]) -> Figures:
        if order is None or order["op"] == "suspend":
            return self.framework.offload()
        return self._handle(order)

    def _handle(self, message: Message) -> Figures:
        handler = self.handlers.get(message["op"])
        if handler is None:
            raise Refusal("NOT_SUPPORTED", "nothing here can {}".format(message["op"]))
        try:
            return handler(message)
        except Refusal:
            raise
        except Exception as error:
            raise Refusal("FAILED", "{}: {}".format(type(error).__name__, error)) from error

    def _wait(self, order: Optional[Message], figures: Figures, is_offloaded: bool) -> None:
        """Until told to go on: by a resume, by the order being cancelled, or by the launcher's end.

        A rank that stopped because its gang did has no order yet; without one in its limit it goes on.
        """
        ends_s = None if order is not None else time.monotonic() + 30.0
        while True:
            message = self._next(ends_s)
            op = message["op"] if message is not None else "resume"
            if message is not None and op == "suspend" and is_offloaded:
                order, ends_s = message, None
                self.answer(message, figures)
            elif op == "resume" or (
                op == "cancel" and order and message and message.get("id") == order.get("id")
            ):
                if self._go_on(message if op == "resume" else None, is_offloaded):
                    return
            elif message is not None and op in ("suspend", "save", "probe"):
                self.refuse(message, Refusal("BUSY", "this process has stopped for something else"))

    def _next(self, ends_s: Optional[float]) -> Optional[Message]:
        if self._line is None:
            return None
        if ends_s is not None and not self._line.has_message():
            left_s = max(0.0, ends_s - time.monotonic())
            if not select.select([self._line], [], [], left_s)[0]:
                return None
        return self.receive()

    def _go_on(self, message: Optional[Message], is_offloaded: bool) -> bool:
        if message is not None:
            _adopt(message.get("environment") or {})
            self._step_s = _step_s()
        try:
            figures = self.framework.reload() if is_offloaded else {}
        except Refusal as refusal:
            if message is not None:
                self.refuse(message, refusal)
            if self._line is None:
                time.sleep(1.0)  # nobody is left to ask; the room may come
            return False
        if message is not None:
            self.answer(message, figures)
        return True

    def _check(self, before: Fingerprint) -> None:
        now = self.framework.fingerprint(self.minibatches)
        differences = before.differences(now)
        note = ""
        if differences and self.framework.repair():
            now = self.framework.fingerprint(self.minibatches)
            note = " rolled back after {}".format(", ".join(differences)).lstrip()
        self.prove("suspend", before, now, note)
        self.framework.let_go()

    def _send(self, op: str, **values: Any) -> None:
        if self._line is None:
            return
        try:
            self._line.send(op, **values)
        except (OSError, WireError) as error:
            _complain("the launcher is gone: {}".format(error))
            self.leave()


def _adopt(environment: Dict[str, str]) -> None:
    """Take over what may change in a process that runs: our own settings, never the devices it sees."""
    for name, value in environment.items():
        if name.startswith("GANDIVA_"):
            os.environ[name] = str(value)


def _step_s() -> float:
    try:
        return float(os.environ.get(VIRTUAL_STEP_S) or 0)
    except ValueError:
        return 0.0


def _complain(text: str) -> None:
    print("gandiva: {}".format(text), file=sys.stderr, flush=True)
