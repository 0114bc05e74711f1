"""Signals that arrive while a rank's state is out of device memory wait until it is back.

A Python handler runs in the main thread between any two instructions. One that raises (a dead loader worker, Ctrl-C)
or saves a checkpoint would find tensors without memory.
"""

import signal
import threading
from types import FrameType
from typing import Any, Dict, List, Optional


class DeferredSignals:
    """While entered, Python handlers are put off; `deliver` runs each one that was due, in order.

    What a handler raises is the job's own, so it is delivered where nothing of ours would catch it. Default
    dispositions stay: SIGTERM still ends a process that did not say otherwise.
    """

    def __init__(self) -> None:
        self._handlers: Dict[int, Any] = {}
        self._due: List[int] = []

    def __enter__(self) -> "DeferredSignals":
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def deliver(self) -> None:
        """Raise what came meanwhile; where one handler raises, the others wait for the next call."""
        while self._due:
            signal.raise_signal(self._due.pop(0))

    def _note(self, number: int, _: Optional[FrameType]) -> None:
        if number not in self._due:
            self._due.append(number)
