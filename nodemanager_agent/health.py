"""`python -m nodemanager_agent.health --state-dir DIR`: a line for the NodeManager's health script.

YARN takes a node out, and loses every container on it, where the script prints a line that begins with ``ERROR``. So
only what leaves nothing to lose is one: all devices gone. An agent that is away is told, and no error: jobs run on
without it (E6).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gandiva_core.messages.agents import Device

STALE_S = 30.0
_NAME = "health.json"


class Health(msgspec.Struct, frozen=True):
    """What the agent wrote last.

    Attributes:
        at_s: when, on the wall clock.
        lost: one sentence a device that is given to nobody.
    """

    at_s: float
    devices: int
    lost: tuple[str, ...] = ()


class HealthFile:
    """Written every beat, in the agent's state folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _NAME

    def write(self, at_s: float, devices: Sequence[Device]) -> None:
        """Note how the devices are; a full disk is somebody else's alarm."""
        lost = tuple(f"device {d.index}: {d.reason}" for d in devices if not d.healthy)
        beside = self._file.with_suffix(".new")
        try:
            beside.write_bytes(msgspec.json.encode(Health(at_s, len(devices), lost)))
            beside.replace(self._file)
        except OSError:
            return


def line(folder: Path, now_s: float) -> str:
    """The line; ``ERROR`` only where no device is left."""
    try:
        health = msgspec.json.decode((folder / _NAME).read_bytes(), type=Health)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return "WARN the agent has written nothing"
    if now_s - health.at_s > STALE_S:
        return f"WARN the agent has been silent for {now_s - health.at_s:.0f} s"
    told = "; ".join(health.lost)
    if health.devices and len(health.lost) == health.devices:
        return f"ERROR no device is left: {told}"
    return f"WARN {told}" if told else "OK"


def main(arguments: Sequence[str]) -> int:
    """Print the line; 0 always: YARN takes any other code for a script that failed."""
    words = list(arguments)
    folder = Path(words[1]) if words[:1] == ["--state-dir"] and len(words) > 1 else None
    text = "WARN usage: --state-dir DIR" if folder is None else line(folder, time.time())
    sys.stdout.write(" ".join(text.split()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
