"""A rank's side: what one training process does at each mini-batch boundary, whatever its framework.

No thread: the launcher's line is polled at the boundary, where alone something can be done, so a fork of the job (its
data loaders) never meets a lock of ours. Nothing here raises into the training script.
"""

import os
import tempfile
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional

from nodemanager_agent.client import peers
from nodemanager_agent.client.child import say
from nodemanager_agent.client.continuity import Fingerprint
from nodemanager_agent.client.framework import Figures, Framework, Limits, Message, Refusal
from nodemanager_agent.client.ring import RingReader, StepRing
from nodemanager_agent.client.signals import DeferredSignals
from nodemanager_agent.client.virtual_device import Turns, VirtualDevice

_LOOK_S = 1.0
"""Between two looks at device memory."""

_UNORDERED_S = 10.0
"""A rank that stopped with its gang waits so long for an order of its own."""

_ORDERS = ("suspend", "save")


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
        self._peer: Any = None
        self._inbox: Deque[Message] = deque()
        self._reader: Optional[RingReader] = None
        self._ring: Optional[StepRing] = None
        self._pid = os.getpid()
        self._is_joined = False
        self._is_off = False
        self._order: Optional[Message] = None
        self._limits: Optional[Limits] = None
        self._looked_s = 0.0
        self._device = VirtualDevice(os.environ)
        self._signals = DeferredSignals()

    # ------------------------------------------------------------------ for hooks

    def boundary(self, begin: Callable[[], None] = lambda: None) -> None:
        """A mini-batch is done; `begin` is called first. Returns when the next may begin, which may be hours later."""
        if self._is_off or os.getpid() != self._pid or not peers.is_managed():
            return
        try:
            begin()
            self._boundary()
        except Exception as error:  # a hook's fault is never the job's
            kind = type(error).__name__
            say("{}: {}; this process is left alone from now on".format(kind, error))
            self.leave()
            self._is_off = True
        finally:
            self._signals.deliver()  # what the job's own handlers raise is the job's

    def join(self, is_warm: bool = False) -> None:
        """Find the peer, once; a second call says what has changed since."""
        if not peers.is_managed() or os.getpid() != self._pid:
            return
        if not self._is_joined:
            self._is_joined = True
            try:
                self._peer = peers.dial()
                self._open_ring(self._peer.folder)
            except OSError as error:
                say("nobody to join: {}".format(error))
                self.leave()
                return
        self._limits = self.framework.limits()
        facts = {
            "rank": self.framework.rank,
            "world_size": self.framework.world_size,
            "local_world_size": int(os.environ.get("LOCAL_WORLD_SIZE") or 1),
            "framework": self.framework.name,
            "ring": self._ring.path if self._ring else None,
            "is_warm": is_warm,
        }
        if self._peer is not None and not self._peer.introduce({**facts, **self._limits._asdict()}):
            self.leave()

    def receive(self, ends_s: Optional[float] = None) -> Optional[Message]:
        """Wait for the peer's next message; None after the time on the monotonic clock, or where the peer is gone."""
        while self._peer is not None:
            if self._inbox:
                return self._inbox.popleft()
            left_s = None if ends_s is None else ends_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return None
            self._peer.wait(left_s)
            self._fetch()
        return None

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

    def adopt(self, minibatches: int) -> None:
        """Go on from a mini-batch that another process has done."""
        self.minibatches = minibatches
        if self._ring:
            self._ring.go_on(minibatches)

    def hold(self) -> None:
        """Stand still, with everything in place, until told to resume, or until nobody is there to tell."""
        message = self.receive()
        while message is not None and message["op"] != "resume":
            if message["op"] in (*_ORDERS, "probe", "restore"):
                self.refuse(message, Refusal("BUSY", "it waits for its gang"))
            message = self.receive()
        if message is not None:
            self.answer(message, {})
        if self._ring:
            self._ring.gap()
        self._ended_s = time.monotonic()

    def report(self, step: int, metric: float) -> None:
        """How good the model is by now, in the script's own words."""
        self._send("report", step=step, metric=metric)

    def leave(self) -> None:
        """Close the line; the process goes on by itself."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    # ------------------------------------------------------------------ at a boundary

    def _boundary(self) -> None:
        if not self._is_joined:
            self.join()
        now_s = time.monotonic()
        self.minibatches = self._ring.step(now_s) if self._ring else self.minibatches + 1
        turns = self._device.done(now_s)
        self._look(now_s)
        self._attend()
        if self.framework.agree(self._order is not None):
            turns.put_off(self._hold(), self._device)
        self._pace(turns)
        self._device.begin()

    def _look(self, now_s: float) -> None:
        if self._peer is None or now_s - self._looked_s < _LOOK_S:
            return
        self._looked_s = now_s
        memory = self.framework.memory()
        if self._ring:
            self._ring.note_use(self._device.utilisation_ratio)
            if memory is not None:
                self._ring.remember(memory)
        if self.framework.limits() != self._limits:
            self.join()
        self._peer.report("running", self._reader)

    def _pace(self, turns: Turns) -> None:
        """Sleep out a virtual device's share; a rank that is alone stops meanwhile, and sleeps the rest after."""
        while True:
            now_s = time.monotonic()
            due_s = turns.next_due_s(now_s)
            if due_s is None:
                return
            if due_s <= now_s:
                continue
            if self._peer is None or self.framework.world_size > 1:
                time.sleep(due_s - now_s)
                continue
            self._peer.wait(due_s - now_s)
            self._attend()
            if self._order is not None:
                turns.put_off(self._hold(), self._device)

    def _attend(self) -> None:
        self._fetch()
        while self._inbox:
            self._take(self._inbox.popleft())

    def _fetch(self) -> None:
        messages = self._peer.poll() if self._peer is not None else []
        if messages is None:
            self.leave()
        self._inbox.extend(messages or [])

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
        with self._signals:
            try:
                is_held = self._stand_still(order, began_s)
            except Exception:  # whatever failed: a job without its state would not go on
                self._bring_back()
                raise
        if is_held and self._ring:
            self._ring.gap()
        return time.monotonic() - began_s

    def _stand_still(self, order: Optional[Message], began_s: float) -> bool:
        """Whether all ranks stopped, and have come back."""
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
                self._bring_back()
            if order is not None:
                self.refuse(order, refusal or Refusal("GANG", "another rank could not stop"))
            return False
        figures["stop_s"] = time.monotonic() - began_s
        if order is not None:
            self.answer(order, figures)
        self._report("suspended")
        self._wait(order, figures, is_offloaded)
        self._report("running")
        if is_offloaded:
            self._check(before)
        self.framework.regather()
        return True

    def _bring_back(self) -> None:
        """The state onto the device, as soon as there is room; nothing where it is there."""
        while True:
            try:
                self.framework.reload()
            except Refusal as refusal:
                say("{}: {}".format(refusal.code, refusal.detail))
                time.sleep(1.0)  # nobody else can be asked; the room may come
            else:
                self.framework.let_go()
                return

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
        except Exception as error:  # of the job's own code, such as a `state_dict`: it is told, and the job goes on
            raise Refusal("FAILED", "{}: {}".format(type(error).__name__, error)) from error

    def _wait(self, order: Optional[Message], figures: Figures, is_offloaded: bool) -> None:
        """Until told to go on: by a resume, by the order being cancelled, or by the launcher's end.

        A rank that stopped because its gang did has no order yet. Without one it goes on, as soon as others do.
        """
        ends_s = None if order is not None else time.monotonic() + _UNORDERED_S
        while True:
            message = self.receive() if ends_s is None else self._receive_soon(ends_s)
            op = message["op"] if message is not None else "resume"
            if message is not None and op == "suspend" and is_offloaded:
                order, ends_s = message, None
                self.answer(message, figures)
            elif message is not None and op == "save" and order is None:
                is_offloaded = not self._save_late(message) and is_offloaded
                order, ends_s = message, None
            elif op == "resume" or (
                op == "cancel" and order and message and message.get("id") == order.get("id")
            ):
                if self._go_on(message if op == "resume" else None, is_offloaded):
                    return
            elif message is not None and op in ("suspend", "save", "probe"):
                self.refuse(message, Refusal("BUSY", "this process has stopped for something else"))

    def _save_late(self, message: Message) -> bool:
        """Save after the gang has stopped already; whether the state is in place now."""
        try:
            self.framework.reload()
            self.framework.let_go()
        except Refusal as refusal:
            self.refuse(message, refusal)
            return False
        try:
            self.answer(message, self._handle(message))
        except Refusal as refusal:
            self.refuse(message, refusal)
        return True

    def _receive_soon(self, ends_s: float) -> Optional[Message]:
        while time.monotonic() < ends_s and not self.framework.is_resuming():
            message = self.receive(min(ends_s, time.monotonic() + 0.05))
            if message is not None or self._peer is None:
                return message
        return None

    def _go_on(self, message: Optional[Message], is_offloaded: bool) -> bool:
        if message is not None:
            _adopt(message.get("environment") or {})
            self._device.close()
            self._device = VirtualDevice(os.environ)
        try:
            figures = self.framework.reload() if is_offloaded else {}
        except Refusal as refusal:
            if message is not None:
                self.refuse(message, refusal)
            else:
                time.sleep(1.0)  # nobody was asked; the room may come
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
        if self._peer is not None and not self._peer.send(op, **values):
            say("the launcher is gone")
            self.leave()

    def _report(self, state: str) -> None:
        if self._peer is not None:
            self._peer.report(state, self._reader)

    def _open_ring(self, folder: str) -> None:
        name = "ring-{}".format(self._pid)
        self._ring = StepRing(os.path.join(folder or tempfile.gettempdir(), name))
        if not folder:  # nobody else reads it
            self._reader = RingReader(self._ring.path)
            os.unlink(self._ring.path)


def _adopt(environment: Dict[str, str]) -> None:
    """Take over what may change in a process that runs: our own settings, never the devices it sees."""
    for name, value in environment.items():
        if name.startswith("GANDIVA_"):
            os.environ[name] = str(value)
