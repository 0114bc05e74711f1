"""Devices of a node: real ones by NVML, or virtual ones on a machine without (C-8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gandiva_core.messages.agents import Device


class Devices(Protocol):
    """What the agent needs of its node's devices. Called from the sampling thread only, `environment` apart."""

    @property
    def context_mib(self) -> int:
        """Memory that each further process on a device costs (G-56)."""

    def measure(self) -> tuple[Device, ...]:
        """All devices as they are now, lost ones included; never raises for one device's sake."""

    def pids(self, index: int) -> frozenset[int] | None:
        """Processes on a device, by the driver; None where it cannot be told."""

    def environment(self, indices: Sequence[int]) -> dict[str, str]:
        """What a job needs in its environment to use these."""

    def close(self) -> None:
        """Let go of the driver."""
