"""The node's devices as they are known: those that were lost, and those that somebody does not let go of."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gandiva_core.messages.agents import Device, DeviceLost
from nodemanager_agent.binding import Binding
from nodemanager_agent.ports import Ports


class Inventory:
    """Devices; what is not healthy is closed in the binding, and told once.

    Args:
        changed: called where a device's health did.
    """

    def __init__(self, binding: Binding, ports: Ports, changed: Callable[[], None]) -> None:
        self._binding = binding
        self._ports = ports
        self._changed = changed
        self._measured: tuple[Device, ...] = ()
        self._lost: dict[int, str] = {}
        self._quarantined: dict[int, str] = {}

    def measured(self, devices: tuple[Device, ...]) -> None:
        """A look at all of them; one that is lost stays so, and its holders run on."""
        self._measured = devices
        for device in devices:
            if not device.healthy and device.index not in self._lost:
                self._lost[device.index] = device.reason
                self._tell(device.index, device.reason)

    def quarantine(self, gpu: int, reason: str) -> None:
        """Somebody who ended stays on it."""
        self._quarantined[gpu] = reason
        self._tell(gpu, reason)

    def lift(self, gpu: int) -> None:
        """Nobody does any more."""
        self._quarantined.pop(gpu, None)
        if gpu not in self._lost:
            self._binding.open(gpu)
            self._ports.say("info", "a device is free again", device=gpu)
            self._changed()

    def devices(self) -> tuple[Device, ...]:
        """As the core hears of them."""
        return tuple(self._marked(device) for device in self._measured)

    def utilisation_ratio(
        self, gpus: tuple[int, ...], told_ratio: float | None, cpu_ratio: float | None
    ) -> float | None:
        """Of these, by the driver; a virtual one's by what its worker's client told, or as busy as its process."""
        mine = [device for device in self._measured if device.index in gpus]
        ratios = [d.utilisation_ratio for d in mine if d.utilisation_ratio is not None]
        if ratios:
            return sum(ratios) / len(ratios)
        if not mine or not all(device.is_virtual for device in mine):
            return None
        return cpu_ratio if told_ratio is None else told_ratio

    def _tell(self, gpu: int, reason: str) -> None:
        self._binding.close(gpu, reason)
        self._ports.say("error", "a device is given to nobody", device=gpu, reason=reason)
        self._ports.report(DeviceLost(self._ports.wall(), gpu, reason))
        self._changed()

    def _marked(self, device: Device) -> Device:
        reason = self._lost.get(device.index, self._quarantined.get(device.index))
        if reason is None:
            return device
        return msgspec.structs.replace(device, healthy=False, reason=reason)
