"""Which device is free from when on: a job told to stop keeps its devices until its copy is made (G-40)."""

from __future__ import annotations

from gandiva_core.model.errors import InvariantError
from gandiva_core.model.placement import Binding
from gandiva_core.model.units import JobId, ServerId
from gandiva_core.sim.progress import NEVER

Device = tuple[ServerId, int]


class Devices:
    """Holders of devices, by time. A device nobody ever held is free from the start."""

    def __init__(self) -> None:
        self._holder: dict[Device, JobId] = {}
        self._free_s: dict[Device, float] = {}
        self._switch: dict[Device, int] = {}
        self._reported_s: dict[int, float] = {}

    def take(
        self, job_id: JobId, bindings: tuple[Binding, ...], now_s: float, number: int
    ) -> tuple[float, float]:
        """Promise devices to a job from when the last of them is free.

        Args:
            job_id: who gets them.
            bindings: which.
            now_s: when the order came; they are not its before.
            number: the switch that gives them.

        Returns:
            (when they are free, when the last switch that frees one of them reports): a start on a device is never
            reported before the stop on it.

        Raises:
            InvariantError: a device is kept by a job that nobody told to stop.
        """
        free_s = reported_s = now_s
        for binding in bindings:
            for gpu in binding.gpus:
                device = (binding.server_id, gpu)
                device_free_s = self._free_s.get(device, 0.0)
                if device_free_s == NEVER:
                    holder = self._holder[device]
                    raise InvariantError(f"job {job_id} was to start on {device}, kept by {holder}")
                free_s = max(free_s, device_free_s)
                switch = self._switch.get(device, number)
                if switch != number:
                    reported_s = max(reported_s, self._reported_s.get(switch, now_s))
                self._holder[device] = job_id
                self._free_s[device] = NEVER
        return free_s, reported_s

    def free(self, bindings: tuple[Binding, ...], at_s: float, number: int) -> None:
        """A job will leave its devices at `at_s`, as switch `number` will report."""
        for binding in bindings:
            for gpu in binding.gpus:
                device = (binding.server_id, gpu)
                self._free_s[device] = at_s
                self._switch[device] = number

    def give_back(self, job_id: JobId, bindings: tuple[Binding, ...], at_s: float) -> None:
        """A job ended or crashed: devices that are still its own are free from `at_s` on."""
        for binding in bindings:
            for gpu in binding.gpus:
                device = (binding.server_id, gpu)
                if self._holder.get(device) == job_id:
                    self._free_s[device] = at_s

    def promise(self, number: int, at_s: float) -> None:
        """Say when a switch will report."""
        self._reported_s[number] = at_s

    def reported(self, number: int) -> None:
        """A switch has reported."""
        del self._reported_s[number]
