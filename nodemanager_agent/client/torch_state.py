"""The live tensors of a training process, taken out of device memory and put back in place (FACTS §5).

Tensors are found by the garbage collector's lists; those of the first look are remembered by weak reference and frozen,
which makes every later look a matter of a millisecond. They are grouped by storage, and a storage keeps its identity:
parameters, gradients, optimizer state, buffers, views and tied weights need no patching.

Not seen: tensors that live in C++ only (docs/CLIENT.md).
"""

import atexit
import ctypes
import gc
import time
import weakref
from typing import Any, Dict, Iterator, List, Tuple

import torch

from nodemanager_agent.client.continuity import SAMPLED, digest, is_full
from nodemanager_agent.client.framework import Figures, Refusal
from nodemanager_agent.client.ring import Memory
from nodemanager_agent.client.torch_device import CpuDevice, HostBuffer, copy_view

SHARDED = {
    "DTensor",
    "FlatParameter",
    "FullyShardedDataParallel",
    "ZeroRedundancyOptimizer",
    "ZeROOptimizer",
}
"""Classes by name, of torch and of DeepSpeed, whose presence means that a rank holds a part only."""

_ALIGNED = 64
_MIB = 1024.0 * 1024.0


class LiveTensors:
    """Finds every tensor of this process that Python knows.

    `has_graphs` and `sharded` are of what was ever seen.

    Attributes:
        loaders: weak set of the data loaders' iterators that were seen.
        has_graphs: CUDA graphs: they hold addresses, which a suspend would change.
        sharded: what splits the state over the ranks, so that none has all of it; empty for nothing.
    """

    def __init__(self) -> None:
        self.loaders: weakref.WeakSet[Any] = weakref.WeakSet()
        self.has_graphs = False
        self.sharded = ""
        self._seen: Dict[int, weakref.ref[Any]] = {}
        self._kinds: Dict[type, str] = {}
        self._is_frozen = False

    def storages(self, device: CpuDevice) -> List[Any]:
        """Storages in this device's memory, each once."""
        found: Dict[int, Any] = {}
        for tensor in self._tensors():
            try:
                storage = tensor.untyped_storage()
                if device.holds(storage):
                    found[storage._cdata] = storage
            except RuntimeError:  # sparse and wrapper tensors own no storage
                continue
        return list(found.values())

    def _tensors(self) -> Iterator[Any]:
        self._collect()
        for reference in list(self._seen.values()):
            tensor = reference()
            if tensor is None:
                continue
            if hasattr(tensor, "_fix_weakref"):
                tensor._fix_weakref()
            yield tensor
            if tensor.is_leaf and tensor.requires_grad and tensor.grad is not None:
                yield tensor.grad

    def _collect(self) -> None:
        if not self._is_frozen:
            gc.collect()
        for thing in gc.get_objects():
            kind = self._kind(type(thing))
            if kind == "tensor":
                self._note(thing)
            elif kind == "loader":
                self.loaders.add(thing)
            elif kind == "graph":
                self.has_graphs = True
            elif kind:
                self.sharded = kind
        if not self._is_frozen:
            self._is_frozen = True
            gc.freeze()
            atexit.register(gc.unfreeze)  # the last collection is as it would have been

    def _note(self, tensor: Any) -> None:
        key = id(tensor)
        known = self._seen.get(key)
        if known is None or known() is not tensor:
            seen = self._seen
            self._seen[key] = weakref.ref(
                tensor, lambda gone: seen.get(key) is gone and seen.pop(key)
            )

    def _kind(self, of: type) -> str:
        kind = self._kinds.get(of)
        if kind is None:
            names = {base.__name__ for base in of.__mro__}
            sharded = names & SHARDED
            if torch.Tensor in of.__mro__:
                kind = "tensor"
                self.sharded = self.sharded or min(sharded, default="")
            elif "_BaseDataLoaderIter" in names:
                kind = "loader"
            elif "_CUDAGraph" in names:
                kind = "graph"
            else:
                kind = min(sharded, default="")
            self._kinds[of] = kind
        return kind


class DeviceState:
    """What this process has in device memory, in place or on the host."""

    def __init__(self, device: CpuDevice, tensors: LiveTensors) -> None:
        self._device = device
        self._tensors = tensors
        self._buffer = HostBuffer(device)
        self._held: List[Tuple[Any, int, int]] = []
        self._storages = tensors.storages(device)

    def prepare(self) -> None:
        """Get the host's buffer ready in the background."""
        size = sum(_aligned(storage.nbytes()) for storage in self._storages)
        self._buffer.prepare(size + size // 16)

    def look(self) -> int:
        """Find the storages anew; their bytes."""
        self._storages = self._tensors.storages(self._device)
        return sum(storage.nbytes() for storage in self._storages)

    def memory(self) -> Memory:
        """Device memory now, by live tensors or the allocator's statistics."""
        return self._device.memory(self.look())

    @property
    def is_held(self) -> bool:
        """Whether the host has a copy that nobody has let go."""
        return bool(self._held)

    def forget(self) -> None:
        """Let go of what `look` found, so that a tensor that dies gives its memory back."""
        self._storages = []

    def offload(self) -> Figures:
        """Copy all of it to the host, then free it. Call `look` before.

        Returns:
            ``buffer_s`` (the host's buffer: large at a first suspend only), ``copy_s``, ``free_s``, and memory in MiB:
            ``state_mib``, ``freed_mib`` as measured, ``kept_mib`` of the state that was not freed.

        Raises:
            Refusal: HOST_MEMORY.
        """
        self._device.synchronize()
        used = self._device.used()
        began_s = time.perf_counter()
        held, size = [], 0
        for storage in self._storages:
            held.append((storage, size, storage.nbytes()))
            size += _aligned(storage.nbytes())
        try:
            host = self._buffer.room(size)
        except (OSError, RuntimeError) as error:
            raise Refusal("HOST_MEMORY", "{:.0f} MiB: {}".format(size / _MIB, error)) from error
        ready_s = time.perf_counter()
        for storage, offset, length in held:
            host[offset : offset + length].copy_(copy_view(storage), non_blocking=True)
        self._device.synchronize()
        copied_s = time.perf_counter()
        self._held = held
        self._storages = []
        for storage, _, _ in held:
            storage.resize_(0)
        self._device.empty()
        freed_s = time.perf_counter()
        state = sum(length for _, _, length in held)
        freed = used - self._device.used()
        return {
            "buffer_s": ready_s - began_s,
            "copy_s": copied_s - ready_s,
            "free_s": freed_s - copied_s,
            "state_mib": state / _MIB,
            "freed_mib": freed / _MIB,
            "kept_mib": max(0, state - freed) / _MIB,
        }

    def reload(self) -> Figures:
        """Allocate and copy back; a second call copies again what the host still has.

        Raises:
            Refusal: DEVICE_MEMORY: nothing of it is on the device.
        """
        began_s = time.perf_counter()
        try:
            self.copy_back()
        except RuntimeError as error:
            for storage, _, _ in self._held:
                storage.resize_(0)
            self._device.empty()
            raise Refusal("DEVICE_MEMORY", str(error)) from error
        self._device.synchronize()
        return {"copy_s": time.perf_counter() - began_s}

    def copy_back(self) -> bool:
        """From the host to the device; False where nothing is held there."""
        host = self._buffer.room(0)
        for storage, offset, length in self._held:
            if storage.nbytes() != length:
                storage.resize_(length)
            copy_view(storage).copy_(host[offset : offset + length], non_blocking=True)
        return bool(self._held)

    def let_go(self) -> None:
        """The state is checked: the host's copy is not needed any more."""
        self._held = []

    def checksum(self) -> str:
        """Of the state in place: size and sampled bytes of every storage, or all of them (`continuity.is_full`)."""
        total = digest()
        for storage in [each[0] for each in self._held] or self._storages:
            words = _words(copy_view(storage))
            total.update(str(storage.nbytes()).encode())
            total.update(ctypes.string_at(words.data_ptr(), words.numel()))
        return total.hexdigest()


def _words(flat: Any) -> Any:
    """Bytes at an odd distance, so that all places within a number come up."""
    step = 1 if is_full() else flat.numel() // SAMPLED | 1
    return flat[::step].cpu().contiguous()


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
