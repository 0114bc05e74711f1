"""The variables of a TensorFlow process, taken out of memory and put back in place (FACTS §6).

Variables are noted as they are made. One gives its memory back by being assigned an empty tensor, with the op that does
not compare shapes; its handle, which traced functions hold, stays. What comes of it is measured: on a GPU TensorFlow's
allocator keeps what is freed (`tensorflow_hook.limits_of`), and on a CPU oneDNN's does, for this process to use again,
unless ``TF_ENABLE_ONEDNN_OPTS=0``.
"""

import ctypes
import mmap
import os
import tempfile
import time
import weakref
from contextlib import suppress
from typing import Any, Dict, List, Optional, Tuple

import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from nodemanager_agent.client.continuity import SAMPLED, digest, is_full
from nodemanager_agent.client.framework import Figures, Refusal

_MIB = 1024.0 * 1024.0
_SHARED = "/dev/shm"


class Variables:
    """Every resource variable of this process, from the moment this is made."""

    def __init__(self) -> None:
        self._known: Dict[int, weakref.ref[Any]] = {}
        original = BaseResourceVariable.__init__
        known = self._known

        def noted(variable: Any, *args: Any, **kwargs: Any) -> None:
            original(variable, *args, **kwargs)
            key = id(variable)
            known[key] = weakref.ref(
                variable, lambda gone: known.get(key) is gone and known.pop(key)
            )

        BaseResourceVariable.__init__ = noted

    def living(self) -> List[Any]:
        """Those that hold a value now, each handle once, oldest first."""
        found: Dict[int, Any] = {}
        for reference in list(self._known.values()):
            variable = reference()
            if variable is not None and _holds(variable):
                found.setdefault(id(variable.handle), variable)
        return list(found.values())


class HostState:
    """What the variables hold, in place or in an unlinked file in shared memory."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._host: Optional[mmap.mmap] = None
        self._held: List[Tuple[Any, Any, Tuple[int, ...], int, int]] = []

    @property
    def is_held(self) -> bool:
        """Whether the host has a copy that nobody has let go."""
        return bool(self._held)

    def offload(self) -> Figures:
        """Copy all of it to the host, then free it.

        Returns:
            As `torch_state.DeviceState.offload`.

        Raises:
            Refusal: HOST_MEMORY.
        """
        _trim()  # what was free before is none of what is freed
        before = _anonymous()
        began_s = time.perf_counter()
        values = self._variables.living()
        size = sum(_size(each) for each in values)
        try:
            self._host = _shared(size)
        except OSError as error:
            raise Refusal("HOST_MEMORY", "{:.0f} MiB: {}".format(size / _MIB, error)) from error
        ready_s = time.perf_counter()
        held, offset, array = [], 0, None
        for variable in values:
            array = variable.read_value().numpy()
            self._host[offset : offset + array.nbytes] = array.reshape(-1).view("uint8").data
            held.append((variable, array.dtype, array.shape, offset, array.nbytes))
            offset += array.nbytes
        del values, array
        copied_s = time.perf_counter()
        self._held = held
        for variable, _, _, _, _ in held:
            _assign(variable, tf.zeros([0], variable.dtype))
        _trim()
        freed = before - _anonymous()
        return {
            "buffer_s": ready_s - began_s,
            "copy_s": copied_s - ready_s,
            "free_s": time.perf_counter() - copied_s,
            "state_mib": size / _MIB,
            "freed_mib": freed / _MIB,
            "kept_mib": max(0, size - freed) / _MIB,
        }

    def reload(self) -> bool:
        """Copy back what the host has; False where that is nothing."""
        numpy = __import__("numpy")  # TensorFlow's own
        for variable, dtype, shape, offset, size in self._held:
            assert self._host is not None
            flat = numpy.frombuffer(self._host, numpy.uint8, size, offset)
            value = tf.convert_to_tensor(flat.view(dtype).reshape(shape))
            _assign(
                variable, tf.raw_ops.DeepCopy(x=value)
            )  # a tensor over the host's buffer would alias it
            del flat, value
        return bool(self._held)

    def let_go(self) -> None:
        """The state is checked: the host's copy is not needed any more."""
        self._held = []
        host, self._host = self._host, None
        if host is not None:
            with suppress(BufferError):  # a tensor over it lives a little longer; so does it
                host.close()

    def checksum(self) -> str:
        """Of the variables in place: shape and sampled bytes, or all of them (`continuity.is_full`)."""
        total = digest()
        for variable in self._variables.living():
            array = variable.read_value().numpy()
            flat = array.reshape(-1).view("uint8") if array.nbytes else array
            step = 1 if is_full() else flat.size // SAMPLED | 1
            total.update("{}{}".format(array.shape, array.dtype).encode())
            total.update(flat[::step].tobytes())
        return total.hexdigest()


def _holds(variable: Any) -> bool:
    try:
        return (
            isinstance(variable.handle, EagerTensor)
            and variable.dtype.size > 0
            and bool(variable.is_initialized())
        )
    except (AttributeError, ValueError, tf.errors.OpError):
        return False


def _size(variable: Any) -> int:
    return int(variable.read_value().numpy().nbytes)


def _assign(variable: Any, value: Any) -> None:
    tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value, validate_shape=False)


def _shared(size: int) -> mmap.mmap:
    folder = _SHARED if os.access(_SHARED, os.W_OK) else tempfile.gettempdir()
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, max(size, 1))
        return mmap.mmap(file.fileno(), max(size, 1))


def _anonymous() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def _trim() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
