"""Real devices, by NVIDIA's management library. What a device does not tell is None; one that is lost says so."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pynvml

from gandiva_core.messages.agents import Device
from gandiva_core.model.errors import InputError

MIB = 1024 * 1024
FATAL_XIDS = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})
"""Errors after which a GPU is good for nothing before a reset: double-bit ECC, halted controllers, off the bus."""

_LOST = (
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_UNKNOWN,
    pynvml.NVML_ERROR_RESET_REQUIRED,
)


@dataclass(slots=True)
class _Gpu:
    handle: Any
    index: int
    uuid: str
    name: str
    memory_mib: int
    ecc_errors: int
    lost: str = ""


class NvmlDevices:
    """The GPUs of this machine, or those of an allowed list.

    Args:
        allowed: the driver's numbers of those that may be given away; None for all. The first is device 0.

    Raises:
        InputError: no driver, or a number that is not there.
    """

    context_mib = 512

    def __init__(self, allowed: Sequence[int] | None = None) -> None:
        try:
            pynvml.nvmlInit()
            count = int(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError as error:
            raise InputError("NVML", str(error), "a driver, or --virtual-gpus N") from error
        numbers = list(range(count)) if allowed is None else list(dict.fromkeys(allowed))
        beyond = [number for number in numbers if not 0 <= number < count]
        if beyond:
            raise InputError("allowed devices", f"{beyond[0]} of {count} devices", "one below it")
        self._gpus = [_opened(index, number) for index, number in enumerate(numbers)]
        self._events = _events(self._gpus)

    def measure(self) -> tuple[Device, ...]:
        """All of them as they are now."""
        self._hear_events()
        return tuple(self._measured(gpu) for gpu in self._gpus)

    def pids(self, index: int) -> frozenset[int] | None:
        """Processes with a context on a device."""
        handle = self._gpus[index].handle
        running = _told(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
        return None if running is None else frozenset(int(each.pid) for each in running)

    def environment(self, indices: Sequence[int]) -> dict[str, str]:
        """Just these are visible; for none, none."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(self._gpus[index].uuid for index in indices)}

    def close(self) -> None:
        """Let go of the driver."""
        if self._events is not None:
            _told(lambda: pynvml.nvmlEventSetFree(self._events))
        _told(pynvml.nvmlShutdown)

    def _measured(self, gpu: _Gpu) -> Device:
        handle = gpu.handle
        rates = self._asked(gpu, lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
        memory = self._asked(gpu, lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
        ecc_errors = self._asked(gpu, lambda: _ecc_errors(handle))
        if ecc_errors is not None and ecc_errors > gpu.ecc_errors:
            gpu.lost = gpu.lost or "uncorrectable ECC error"
        return Device(
            gpu.index,
            gpu.uuid,
            gpu.name,
            gpu.memory_mib,
            healthy=not gpu.lost,
            reason=gpu.lost,
            utilisation_ratio=None if rates is None else rates.gpu / 100,
            memory_used_mib=None if memory is None else int(memory.used) // MIB,
        )

    def _asked(self, gpu: _Gpu, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except pynvml.NVMLError as error:
            if error.value in _LOST:
                gpu.lost = gpu.lost or f"lost: {error}"
            return None

    def _hear_events(self) -> None:
        while self._events is not None:
            event = _told(lambda: pynvml.nvmlEventSetWait_v2(self._events, 0))
            if event is None:
                return
            if event.eventType & pynvml.nvmlEventTypeXidCriticalError:
                self._note_xid(event.device, int(event.eventData))

    def _note_xid(self, handle: Any, xid: int) -> None:
        """One that fell off the bus does not tell its name any more: it is known by its handle then."""
        uuid = _told(lambda: _text(pynvml.nvmlDeviceGetUUID(handle)))
        for gpu in self._gpus:
            is_it = _address(gpu.handle) == _address(handle) if uuid is None else gpu.uuid == uuid
            if is_it and xid in FATAL_XIDS:
                gpu.lost = gpu.lost or f"fatal error XID {xid}"


def _opened(index: int, number: int) -> _Gpu:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(number)
        uuid = _text(pynvml.nvmlDeviceGetUUID(handle))
    except pynvml.NVMLError as error:
        raise InputError(f"NVML device {number}", str(error), "a device that answers") from error
    name = _told(lambda: _text(pynvml.nvmlDeviceGetName(handle))) or "unknown"
    memory = _told(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    memory_mib = 0 if memory is None else int(memory.total) // MIB
    return _Gpu(handle, index, uuid, name, memory_mib, _told(lambda: _ecc_errors(handle)) or 0)


def _ecc_errors(handle: Any) -> int:
    return int(
        pynvml.nvmlDeviceGetTotalEccErrors(
            handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        )
    )


def _events(gpus: Sequence[_Gpu]) -> Any:
    """A set that hears of critical errors; None where the driver has none."""
    events = _told(pynvml.nvmlEventSetCreate)
    if events is None:
        return None
    wanted = pynvml.nvmlEventTypeXidCriticalError
    for gpu in gpus:
        _told(partial(pynvml.nvmlDeviceRegisterEvents, gpu.handle, wanted, events))
    return events


def _told(question: Callable[[], Any]) -> Any:
    """The answer, or None where the library has none."""
    try:
        return question()
    except pynvml.NVMLError:
        return None


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
