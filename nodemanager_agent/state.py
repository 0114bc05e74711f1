"""What an agent notes on disk, so that one started again knows who holds which device (FAULTS E6)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from gandiva_core.messages.agents import RotationTable, WorkerState
from gandiva_core.model.errors import InputError
from nodemanager_agent.binding import Claim
from nodemanager_agent.workers import Worker

FORMAT_VERSION = 1


class KnownWorker(msgspec.Struct, frozen=True, omit_defaults=True):
    """One worker, by its launcher's process."""

    container_id: str
    state: WorkerState
    pid: int
    start_ticks: int | None
    uid: int
    token: str


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that is kept.

    Attributes:
        epoch, message_id: of the last command.
        table: of the rotation while the core is silent, with its quantum.
    """

    format_version: int = FORMAT_VERSION
    epoch: int = 0
    message_id: int = 0
    workers: tuple[KnownWorker, ...] = ()
    claims: tuple[Claim, ...] = ()
    table: RotationTable | None = None
    quantum_s: float = 60.0
    silent_s: float = 180.0


class StateFile:
    """The file; written whole, or not at all.

    Args:
        folder: of this agent's own, made of mode 0700.

    Raises:
        InputError: the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError("--state-dir", f"{folder}: {error.strerror}", "a folder") from error
        self._file = folder / "state.json"

    def read(self) -> tuple[Known, str]:
        """What was kept, and what is wrong with it: a file that cannot be read counts as none."""
        try:
            known = msgspec.json.decode(self._file.read_bytes(), type=Known)
        except FileNotFoundError:
            return Known(), ""
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return Known(), f"{self._file}: {error}"
        if known.format_version != FORMAT_VERSION:
            return Known(), f"{self._file}: of format {known.format_version}"
        return known, ""

    def write(self, known: Known) -> None:
        """Replace it.

        Raises:
            OSError: it cannot be written.
        """
        beside = self._file.with_suffix(".new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(known))
        beside.replace(self._file)


def noted(workers: Iterable[Worker], claims: Mapping[str, Claim], rest: Known) -> Known:
    """`rest` with the workers as they are."""
    kept = tuple(
        KnownWorker(w.container_id, w.state, w.pid, w.start_ticks, w.uid, w.token)
        for w in workers
        if w.token or w.state is WorkerState.UNHOOKED
    )
    return msgspec.structs.replace(rest, workers=kept, claims=tuple(claims.values()))
