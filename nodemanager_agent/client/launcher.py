"""The launcher: one loop that carries out the agent's commands, one at a time, on the training processes below it.

A command is a generator that yields how long the loop may wait before it is looked at again. Whatever happens meanwhile
(a rank's answer, the command's end, an agent that comes back) wakes the loop earlier. Nothing here kills a job that
cannot stop: it runs on, and the agent hears why (G-12).
"""

import os
import signal
import socket
import time
from collections import deque
from types import FrameType
from typing import Any, Deque, Iterator, List, Optional

from nodemanager_agent.client.attendance import Attendance
from nodemanager_agent.client.child import say
from nodemanager_agent.client.leaving import ORDERS
from nodemanager_agent.client.master_line import master_of
from nodemanager_agent.client.orders import put_right
from nodemanager_agent.client.processes import Tree, adopt_orphans
from nodemanager_agent.client.ranks import Message, Ranks
from nodemanager_agent.client.wire import wait_readable
from nodemanager_agent.client.worker import Failed, Worker

_IDLE_S = 0.25
_PROGRESS_S = 1.0
_FORWARDED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")


class Launcher:
    """A worker's launcher."""

    def __init__(self, command: List[str], agent_path: str) -> None:
        ranks = Ranks(self._changed, self._continuity)
        self._worker = Worker(command, Tree(), ranks)
        self._master = self._worker.master = master_of(os.environ)
        self._agent = Attendance(agent_path, self._worker.standing)
        self._waiting: Deque[Message] = deque()
        self._order: Optional[Message] = None
        self._steps: Optional[Iterator[float]] = None
        self._reported: Message = {}
        self._report_due_s = 0.0
        self._fault = ""
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)

    def run(self) -> int:
        """Until the command has ended; its exit code."""
        adopt_orphans()
        self._listen()
        try:
            while True:
                try:
                    wait_s = self._turn()
                except Exception as error:  # whatever it is, it is no reason to end the job
                    self._complain("{}: {}".format(type(error).__name__, error))
                    wait_s = _IDLE_S
                code = self._worker.exit_code
                if code is not None:
                    return self._end(code)
                self._sleep(wait_s)
        finally:
            self._worker.close()
            self._agent.close()

    def _complain(self, text: str) -> None:
        if text != self._fault:  # once, and not in every turn
            self._fault = text
            say(text)

    def _turn(self) -> float:
        self._hear_signals()
        self._worker.reap()
        for ranks in self._worker.all_ranks():
            ranks.poll()
        self._waiting.extend(self._agent.poll())
        self._hear_master()
        wait_s = min(_IDLE_S, self._agent.dial(), self._advance())
        self._report()
        return wait_s

    def _sleep(self, wait_s: float) -> None:
        readers: List[Any] = [self._woken]
        for ranks in self._worker.all_ranks():
            readers += ranks.readers()
        if self._agent.line is not None:
            readers.append(self._agent.line)
        wait_readable(readers, wait_s)

    # ------------------------------------------------------------------ commands

    def _hear_master(self) -> None:
        """Another number of workers may be wanted; while it is made, nothing can be stopped."""
        if self._master is None:
            return
        limits = self._worker.ranks.limits()
        wish = self._master.wish(bool(limits["can_resize"]), str(limits["reason"]))
        if wish is not None and self._worker.state == "running":
            self._master.begin(int(wish["generation"]))
            self._waiting.append({"op": "resize", **wish})
        if self._order is None or self._order["op"] != "resize":
            return
        while self._waiting:
            why = Failed("RESIZING", "the number of its workers is being changed")
            self._tell(self._waiting.popleft(), why)

    def _advance(self) -> float:
        """Go on with the command at hand, or take the next."""
        if self._steps is None:
            if not self._waiting:
                self._worker.probe()
                return _IDLE_S
            self._order = self._waiting.popleft()
            carry_out = ORDERS.get(self._order["op"])
            if carry_out is None:
                self._answer(Failed("UNKNOWN", "no command {}".format(self._order["op"])))
                return 0.0
            self._steps = carry_out(self._worker, self._order)
        try:
            return next(self._steps)
        except StopIteration as ended:
            self._answer(ended.value)
        except Failed as failure:
            self._answer(failure)
        except Exception as error:  # a fault of ours ends no job, and the agent hears why
            say("{} broke off: {}: {}".format(self._name(), type(error).__name__, error))
            put_right(self._worker)
            self._answer(Failed("FAILED", "{}: {}".format(type(error).__name__, error)))
        self._changed()
        return 0.0

    def _name(self) -> str:
        return str((self._order or {}).get("op"))

    def _answer(self, outcome: Any) -> None:
        order, self._order, self._steps = self._order or {}, None, None
        self._tell(order, outcome)

    def _tell(self, order: Message, outcome: Any) -> None:
        if order.get("id") is None:
            return
        if isinstance(outcome, Failed):
            self._agent.send("failed", id=order["id"], code=outcome.code, detail=outcome.detail)
        else:
            minibatches = self._worker.minibatches()
            self._agent.send(
                "done",
                id=order["id"],
                at_s=time.time(),
                figures=outcome or {},
                minibatches=minibatches,
            )

    # ------------------------------------------------------------------ reports

    def _changed(self) -> None:
        self._report_due_s = 0.0

    def _report(self) -> None:
        """About once a second, and at once where something other than the counts has changed."""
        now_s = time.monotonic()
        if now_s < self._report_due_s:
            return
        self._report_due_s = now_s + _PROGRESS_S
        self._agent.send("progress", **self._worker.progress())

    def _continuity(self, message: Message) -> None:
        if not message.get("is_same"):
            say("not as it was before: {}".format(message.get("detail")))
        self._agent.send(
            "continuity",
            **{name: value for name, value in message.items() if name not in ("op", "id")},
        )

    def _end(self, code: int) -> int:
        if self._order is not None:
            self._answer(Failed("ENDED", "the training command has ended"))
        self._agent.dial()
        self._agent.send("ended", exit_code=code, reason=self._worker.reason)
        return code

    # ------------------------------------------------------------------ signals

    def _listen(self) -> None:
        for name in (*_FORWARDED, "SIGTSTP", "SIGCONT", "SIGCHLD"):
            signal.signal(getattr(signal, name), self._noted)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)

    def _noted(self, number: int, frame: Optional[FrameType]) -> None:
        """The number is in the wake-up socket; the loop takes it from there."""

    def _hear_signals(self) -> None:
        try:
            numbers = self._woken.recv(256)
        except BlockingIOError:
            return
        for number in numbers:
            if number == signal.SIGTSTP:  # as in the paper: a stop at the boundary, not at once
                self._waiting.append({"op": "suspend"})
            elif number == signal.SIGCONT:
                self._waiting.append({"op": "resume"})
            elif number != signal.SIGCHLD:
                self._worker.forward(number)
