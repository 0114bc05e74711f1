"""Whom a rank answers to: the launcher above it, or the node's agent itself where the command is not ours.

An unmodified ApplicationMaster starts its own command. There ``yarn.nodemanager.admin-env`` puts the hook on
PYTHONPATH; the first process of the container that imports a framework registers with the agent as a lone rank and
waits for its devices before the framework looks for any (DESIGN §5). Processes below it find ``GANDIVA_BOUND`` and
leave it at that.
"""

import os
import time
from typing import Any, Dict, List, Optional

from nodemanager_agent.client.attendance import Attendance
from nodemanager_agent.client.ring import RingReader
from nodemanager_agent.client.wire import (
    AGENT_SOCKET,
    CONTAINER_ID,
    LAUNCHER_SOCKET,
    Line,
    WireError,
    start_ticks,
    wait_readable,
)

BOUND = "GANDIVA_BOUND"
"""Environment: the process of this container that is bound to its devices."""

Message = Dict[str, Any]


class LauncherPeer:
    """The launcher. Once gone, it is gone: its guard ends the job.

    Raises:
        OSError: there is none.
    """

    def __init__(self) -> None:
        path = os.environ[LAUNCHER_SOCKET]
        self.folder = os.path.dirname(path)
        self._line = Line.dial(path)

    def poll(self) -> Optional[List[Message]]:
        """Messages that are there; None once the launcher is gone."""
        try:
            return self._line.poll()
        except WireError:
            return None

    def wait(self, limit_s: Optional[float]) -> None:
        """Until there may be a message."""
        wait_readable([self._line], limit_s)

    def send(self, op: str, **values: Any) -> bool:
        """False where the launcher is gone."""
        try:
            self._line.send(op, **values)
        except (OSError, WireError):
            return False
        return True

    def introduce(self, facts: Message) -> bool:
        """Say who this rank is and what it can do."""
        return self.send("join", pid=os.getpid(), start_ticks=start_ticks(os.getpid()), **facts)

    def report(self, state: str, ring: Optional[RingReader]) -> None:
        """Nothing: the launcher reads the ring itself."""

    def close(self) -> None:
        """Hang up."""
        self._line.close()


class AgentPeer:
    """The node's agent: dialled again whenever it is lost, and told what a launcher would tell it."""

    folder = ""

    def __init__(self, path: str) -> None:
        self._state = "waiting"
        self._gpus: List[int] = []
        self._facts: Message = {}
        self._agent = Attendance(path, self._standing, role="rank")

    def bind(self) -> Message:
        """Wait for this container's first devices; the order that grants them."""
        while True:
            self.wait(None)
            for message in self.poll():
                if message["op"] == "start":
                    self._state = "running"
                    self._gpus = list(message.get("gpus") or [])
                    return message
                self.send(
                    "failed",
                    id=message.get("id"),
                    code="NOT_RUNNING",
                    detail="it waits for a device",
                )

    def poll(self) -> List[Message]:
        """Messages that are there."""
        self._agent.dial()
        return self._agent.poll()

    def wait(self, limit_s: Optional[float]) -> None:
        """Until there may be a message, or it is time to dial again."""
        wait_s = self._agent.dial()
        line = self._agent.line
        wait_s = wait_s if limit_s is None else min(limit_s, wait_s)
        if line is None:
            time.sleep(wait_s)
        else:
            wait_readable([line], wait_s)

    def send(self, op: str, **values: Any) -> bool:
        """Always True: an agent that is away comes back."""
        self._agent.send(op, **values)
        return True

    def introduce(self, facts: Message) -> bool:
        """What this rank can do is in its next report."""
        self._facts = facts
        return True

    def report(self, state: str, ring: Optional[RingReader]) -> None:
        """As the launcher's ``progress``."""
        self._state = state
        methods = self._facts.get("methods") or ["none"]
        memory = ring.memory if ring is not None else None
        used, peak, minimum = [each >> 20 for each in memory] if memory else [None, None, None]
        self._agent.send(
            "progress",
            minibatches=ring.minibatches if ring is not None else 0,
            minibatch_s=ring.minibatch_s() if ring is not None else None,
            memory_mib=used,
            memory_peak_mib=peak,
            memory_min_mib=minimum,
            utilisation_ratio=ring.utilisation_ratio if ring is not None else None,
            ranks=1,
            method=methods[0],
            state=state,
            **{
                name: self._facts.get(name)
                for name in ("can_pack", "can_move", "can_resize", "reason")
            },
        )

    def close(self) -> None:
        """Hang up."""
        self._agent.close()

    def _standing(self) -> Message:
        return {"state": self._state, "gpus": self._gpus}


_bound: Optional[AgentPeer] = None


def bind() -> None:
    """Called when a framework is loaded: wait for devices where no launcher does that for this container."""
    global _bound  # noqa: PLW0603 - a process is bound once
    path = os.environ.get(AGENT_SOCKET)
    is_ours = path and os.environ.get(CONTAINER_ID) and not os.environ.get(LAUNCHER_SOCKET)
    if not path or not is_ours or os.environ.get(BOUND):
        return
    peer = AgentPeer(path)
    order = peer.bind()
    environment = {
        "CUDA_VISIBLE_DEVICES": "",
        BOUND: str(os.getpid()),
        **(order.get("environment") or {}),
    }
    os.environ.update({str(name): str(value) for name, value in environment.items()})
    peer.send("done", id=order.get("id"), at_s=time.time(), figures={}, minibatches=0)
    _bound = peer


def is_managed() -> bool:
    """Whether there is anyone whom a rank of this process could answer to."""
    return bool(os.environ.get(LAUNCHER_SOCKET)) or _bound is not None


def dial() -> Any:
    """The peer of this process.

    Raises:
        OSError: nobody is there.
    """
    return _bound if _bound is not None else LauncherPeer()
