"""What differs between a GPU and the CPU that stands in for one: where state goes, and how memory is given back.

On a GPU state goes to pinned host memory, and the allocator's pool is emptied. On the CPU "device memory" is anonymous
memory, and the host is an anonymous shared-memory file (FACTS §5): resident memory really falls.
"""

import ctypes
import mmap
import os
import sys
import threading
from typing import Any, List, Optional

import torch

from nodemanager_agent.client.ring import Memory

_PAGE = mmap.PAGESIZE
_POPULATE = 23
"""MADV_POPULATE_WRITE: map all pages now."""


class HostBuffer:
    """Room on the host for a rank's state; allocated early and kept, since its first use costs as much as the copy.

    Attributes:
        bytes: of the buffer as it is.
    """

    def __init__(self, device: "CpuDevice") -> None:
        self.bytes = 0
        self._device = device
        self._tensor: Any = None
        self._making: Optional[threading.Thread] = None

    def prepare(self, size: int) -> None:
        """Allocate in the background, so that the first suspend need not (DESIGN §5)."""
        self._making = threading.Thread(
            target=self._make, args=(size,), name="gandiva-host", daemon=True
        )
        self._making.start()

    def room(self, size: int) -> Any:
        """A uint8 tensor of at least so many bytes.

        Raises:
            OSError, RuntimeError: the host has no room.
        """
        if self._making is not None:
            self._making.join()
            self._making = None
        if self.bytes < size:
            self._tensor, self.bytes = None, 0
            self._make(size)
        return self._tensor

    def _make(self, size: int) -> None:
        rounded = -(-size // _PAGE) * _PAGE
        try:
            self._tensor = self._device.host_memory(rounded)
            self.bytes = rounded
        except (OSError, RuntimeError):
            if self._making is None:
                raise


class CpuDevice:
    """The stand-in: anonymous memory of this process."""

    name = "cpu"

    def __init__(self) -> None:
        try:
            self._libc: Any = ctypes.CDLL("libc.so.6")
        except OSError:  # another libc: nothing to trim
            self._libc = None

    def holds(self, storage: Any) -> bool:
        """Whether a storage is device memory that can be given back."""
        return bool(
            storage.device.type == "cpu"
            and storage.nbytes() > 0
            and storage.resizable()
            and not storage.is_shared()
            and storage.data_ptr() != 0  # a wrapper such as DTensor says a size and owns nothing
        )

    def host_memory(self, size: int) -> Any:
        """Pages that are there already: a file without name in shared memory."""
        file = os.memfd_create("gandiva-host", os.MFD_CLOEXEC)
        try:
            os.posix_fallocate(file, 0, size)  # no room is an error here, not a SIGBUS later
            pages = mmap.mmap(file, size)
        finally:
            os.close(file)
        host = torch.frombuffer(pages, dtype=torch.uint8)
        if (
            self._libc is not None
        ):  # without the interpreter's lock; an older kernel does it at the first copy
            self._libc.madvise(ctypes.c_void_p(host.data_ptr()), ctypes.c_size_t(size), _POPULATE)
        return host

    def synchronize(self) -> None:
        """Wait for the device."""

    def empty(self) -> None:
        """Give the allocator's pool back."""
        if self._libc is not None:
            self._libc.malloc_trim(0)

    def used(self) -> int:
        """Bytes of memory that are taken, as measured, by tensors or not."""
        return _status("RssAnon")

    def memory(self, live: int) -> Memory:
        """Device memory at a boundary, of which `live` bytes are tensors; the peak is since the call before."""
        resident = _status("VmRSS")
        peak = live + max(0, _status("VmHWM") - resident)
        try:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")  # the kernel's high-water mark starts anew
        except OSError:
            peak = live
        return Memory(live, peak, live)


class CudaDevice(CpuDevice):
    """A GPU, by torch's allocator."""

    name = "cuda"

    def holds(self, storage: Any) -> bool:
        """Whether a storage lies on a GPU."""
        return bool(
            storage.device.type == "cuda" and storage.nbytes() > 0 and storage.data_ptr() != 0
        )

    def host_memory(self, size: int) -> Any:
        """Pinned memory, so that copies run at the bus's speed."""
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def synchronize(self) -> None:
        """Wait for the GPUs that this process uses."""
        for index in _used():
            torch.cuda.synchronize(index)

    def empty(self) -> None:
        """Give the caching allocator's pool back to the driver."""
        torch.cuda.empty_cache()

    def used(self) -> int:
        """Bytes that the allocator holds of the driver; the context is not among them."""
        return sum(torch.cuda.memory_reserved(index) for index in _used())

    def memory(self, live: int) -> Memory:
        """By the allocator's statistics; NVML would see the reserved pool only (FACTS §7)."""
        del live
        used = sum(torch.cuda.memory_allocated(index) for index in _used())
        return Memory(used, sum(torch.cuda.max_memory_allocated(index) for index in _used()), used)


def _used() -> List[int]:
    """GPUs on which the allocator holds memory: to ask another for anything would make a context there."""
    return [each for each in range(torch.cuda.device_count()) if torch.cuda.memory_reserved(each)]


def device_of(tensor: Any) -> CpuDevice:
    """The adapter for where a parameter lies."""
    return CudaDevice() if tensor.device.type == "cuda" else CpuDevice()


def copy_view(storage: Any) -> Any:
    """A flat uint8 tensor over a whole storage."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _status(name: str) -> int:
    """A line of /proc/self/status in bytes; 0 where there is none."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
    except OSError as error:
        print("gandiva: {}".format(error), file=sys.stderr)
    return 0
