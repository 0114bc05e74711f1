"""What the agent's decisions need of the world outside: lines to launchers, the stream to the core, and clocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from gandiva_core.messages.agents import Report


class Launchers(Protocol):
    """Lines to launchers."""

    def send(self, container_id: str, op: str, **values: Any) -> bool:
        """Tell one; False where it is not there."""


class CoreLine(Protocol):
    """Where the core is heard and told: over the network, or in the agent itself."""

    def send(self, report: Report) -> None:
        """Tell it."""

    async def run(self) -> None:
        """Keep it, until cancelled."""


class Ports(msgspec.Struct, frozen=True):
    """All of them.

    Attributes:
        report: to the core; nothing where it is away, since a new stream begins with the state.
        say: a line of the log: level, text, values.
        monotonic, wall: seconds.
    """

    launchers: Launchers
    report: Callable[[Report], None]
    say: Callable[..., None]
    monotonic: Callable[[], float]
    wall: Callable[[], float]


class Registration(msgspec.Struct, frozen=True):
    """A launcher's ``register``, with who it is by the kernel's word.

    Attributes:
        pid, uid: of the peer.
        claimed: its container by its own environment; None where that cannot be read.
        asked: how many devices its container asked for, as it says; only an agent without a core believes it.
    """

    container_id: str
    pid: int
    uid: int
    start_ticks: int | None = None
    claimed: str | None = None
    token: str = ""
    state: str = "waiting"
    gpus: tuple[int, ...] = ()
    role: str = "launcher"
    asked: int | None = None


class Admitted(msgspec.Struct, frozen=True):
    """Let in."""

    token: str
    never: tuple[str, ...] = ()


class Refused(msgspec.Struct, frozen=True):
    """Not let in, and why."""

    code: str
    detail: str


Admission = Admitted | Refused | None
"""None: nobody knows this container yet; the line waits."""
