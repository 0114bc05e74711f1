"""The launcher's line to its node's agent: dialled again, with back-off, whenever it is lost."""

import os
import time
from typing import Any, Callable, Dict, List, Optional

from nodemanager_agent.client.child import say
from nodemanager_agent.client.wire import ASKED_GPUS, CONTAINER_ID, Line, WireError, start_ticks

VERSION = "1"
_FIRST_S = 0.2
_LAST_S = 5.0
_REFUSED_S = 10.0
_SEND_S = 2.0
"""An agent that does not read, stopped perhaps, must not hold up the job's end."""


class Attendance:
    """Keeps a line to the agent. Sending to an agent that is gone is nothing: a new line begins with the state.

    Attributes:
        never: what the job's owner forbids, as the agent said.
    """

    def __init__(
        self, path: str, state: Callable[[], Dict[str, Any]], role: str = "launcher"
    ) -> None:
        self.never: List[str] = []
        self._path = path
        self._state = state
        self._role = role
        self._line: Optional[Line] = None
        self._token: Optional[str] = None
        self._is_welcome = False
        self._wait_s = _FIRST_S
        self._due_s = 0.0

    @property
    def line(self) -> Optional[Line]:
        """For `select`; None while there is none."""
        return self._line

    def dial(self) -> float:
        """Dial if it is time; seconds until it is worth trying again."""
        now_s = time.monotonic()
        if self._line is None and now_s >= self._due_s:
            try:
                self._line = Line.dial(self._path)
                self._line.send_s = _SEND_S
                self._register()
            except OSError:
                self._lose()
        return max(0.0, self._due_s - now_s) if self._line is None else _LAST_S

    def poll(self) -> List[Dict[str, Any]]:
        """Commands that have come."""
        if self._line is None:
            return []
        try:
            messages = self._line.poll()
        except WireError as error:
            say("the agent said nonsense: {}".format(error))
            messages = None
        if messages is None:
            self._lose()
            return []
        return [each for each in messages if not self._is_greeting(each)]

    def send(self, op: str, **values: Any) -> None:
        """Tell the agent, if it is there and has let us in."""
        if self._line is None or not self._is_welcome:
            return
        try:
            self._line.send(op, **values)
        except (OSError, WireError):
            self._lose()

    def close(self) -> None:
        """Hang up."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _register(self) -> None:
        if self._line is None:
            return
        self._is_welcome = False
        token = {} if self._token is None else {"token": self._token}
        self._line.send(
            "register",
            container_id=os.environ.get(CONTAINER_ID, ""),
            pid=os.getpid(),
            start_ticks=start_ticks(os.getpid()),
            role=self._role,
            version=VERSION,
            asked=_asked(),
            **token,
            **self._state(),
        )

    def _is_greeting(self, message: Dict[str, Any]) -> bool:
        if message["op"] == "welcome":
            self._token = message.get("token")
            self.never = list(message.get("never") or [])
            self._is_welcome = True
            self._wait_s = _FIRST_S
            return True
        if message["op"] == "refused":
            say(
                "the agent refused: {code}: {detail}".format(
                    **{"code": "", "detail": "", **message}
                )
            )
            self._lose()
            self._token = None
            self._due_s = time.monotonic() + _REFUSED_S
            return True
        return False

    def _lose(self) -> None:
        self.close()
        self._is_welcome = False
        self._due_s = time.monotonic() + self._wait_s
        self._wait_s = min(_LAST_S, self._wait_s * 2)


def _asked() -> Optional[int]:
    """How many devices this container asked for; None where nobody said."""
    text = os.environ.get(ASKED_GPUS, "")
    return int(text) if text.isdecimal() else None
