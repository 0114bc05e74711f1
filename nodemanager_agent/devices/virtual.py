"""Virtual devices on a machine without GPUs (C-8): a memory budget and a nominal speed, held as a token.

Mini-batches on one take no less than a nominal time, so that twelve devices on two cores behave as twelve, as long as
the cores have room: `Headroom` notes whether they had. Workers that are packed on one share it by a file, as
`client/virtual_device.py` says.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gandiva_core.messages.agents import Device
from gandiva_core.model.errors import InputError
from nodemanager_agent.client.virtual_device import BOOK_BYTES, DEVICES, STEP_S

MEMORY_MIB = 16 * 1024
HEADROOM_RATIO_MIN = 0.2
TYPE = "virtual"


class VirtualDevices:
    """So many virtual devices.

    Args:
        count: of devices.
        memory_mib: budget of each.
        step_s: a mini-batch takes at least so long; 0 for whatever the cores give.
        books: path and mode of the devices' files, to which their numbers are added. Files that are there are taken
            over, since jobs that run share them. None: jobs that are packed do not slow each other.

    Raises:
        InputError: such a file cannot be made.
    """

    context_mib = 0

    def __init__(
        self,
        count: int,
        memory_mib: int = MEMORY_MIB,
        step_s: float = 0.0,
        books: tuple[Path, int] | None = None,
    ) -> None:
        self._step_s = step_s
        self._books = [] if books is None else [_book(*books, index) for index in range(count)]
        self._devices = tuple(
            Device(index, f"virtual-{index}", TYPE, memory_mib, is_virtual=True)
            for index in range(count)
        )

    def measure(self) -> tuple[Device, ...]:
        """The same as ever: utilisation and memory are those of the processes, which the profiler knows."""
        return self._devices

    def pids(self, index: int) -> frozenset[int] | None:
        """There is no driver to ask."""
        del index
        return None

    def environment(self, indices: Sequence[int]) -> dict[str, str]:
        """No real device is visible, and mini-batches are paced."""
        pace = {STEP_S: f"{self._step_s:g}"} if indices and self._step_s > 0 else {}
        books = ":".join(self._books[index] for index in indices) if self._books else ""
        return {"CUDA_VISIBLE_DEVICES": "", **pace, **({DEVICES: books} if books else {})}

    def close(self) -> None:
        """Nothing to let go of."""


def _book(path: Path, mode: int, index: int) -> str:
    file = path.with_name(f"{path.name}.device-{index}")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        descriptor = os.open(file, flags, 0o600)
        try:
            os.ftruncate(descriptor, BOOK_BYTES)
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError("virtual device", f"{file}: {error.strerror}", "a file") from error
    return str(file)


class HeadroomRecord(msgspec.Struct, frozen=True):
    """CPU headroom of a run: the share of the cores that was idle while workers ran.

    Attributes:
        samples: how often it was looked at.
        is_valid: the mean is at least 20 %; below, virtual devices slowed each other down (C-8).
    """

    samples: int
    mean_ratio: float
    min_ratio: float
    is_valid: bool


class Headroom:
    """Sums up samples into a file that a run's report reads."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._samples = 0
        self._sum_ratio = 0.0
        self._min_ratio = 1.0

    def add(self, idle_ratio: float) -> HeadroomRecord:
        """A sample taken while at least one worker ran."""
        self._samples += 1
        self._sum_ratio += idle_ratio
        self._min_ratio = min(self._min_ratio, idle_ratio)
        mean_ratio = self._sum_ratio / self._samples
        record = HeadroomRecord(
            self._samples, mean_ratio, self._min_ratio, mean_ratio >= HEADROOM_RATIO_MIN
        )
        self._file.write_bytes(msgspec.json.encode(record))
        return record
