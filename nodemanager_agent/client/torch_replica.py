"""PyTorch: values and generators to files and back, for `replica.py`."""

import ctypes
import os
from typing import Any, Dict, Iterator

import torch

from nodemanager_agent.client.continuity import SAMPLED, is_full
from nodemanager_agent.client.framework import Refusal
from nodemanager_agent.client.generators import set_states, states

SAFE_TORCH = (2, 10)
"""The first torch whose `torch.load(weights_only=True)` has no known hole."""


class TorchCodec:
    """As `replica.Codec`."""

    name = "torch"
    suffix = ".pt"

    def dump(self, value: Any, file: Any) -> None:
        """By `torch.save`."""
        torch.save(value, file)

    def load(self, path: str) -> Any:
        """As `load`."""
        return load(path)

    def generators(self) -> Dict[str, Any]:
        """As `generators`."""
        return generators()

    def set_generators(self, state: Dict[str, Any]) -> None:
        """As `set_generators`."""
        set_generators(state)

    def parts(self, value: Any) -> Iterator[bytes]:
        """Of a large tensor bytes at an odd distance, as in `continuity`."""
        return _parts(value)


def obstacle() -> str:
    """Why this torch cannot take a state over; empty where it can."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < SAFE_TORCH:
        return "torch {} reads what was saved unsafely; 2.10 does not".format(torch.__version__)
    return ""


def load(path: str) -> Any:
    """What `torch.save` wrote: tensors and plain values; anything else is not run but refused (E14).

    Raises:
        Refusal: UNSAFE.
    """
    reason = obstacle()
    if reason:
        raise Refusal("UNSAFE", reason)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever torch makes of a file that is not what it wrote
        first = str(error).strip().splitlines()[0] if str(error).strip() else ""
        raise Refusal("UNSAFE", "{}: {}".format(os.path.basename(path), first)) from error


def generators() -> Dict[str, Any]:
    """States of Python's, numpy's (where loaded) and torch's random generators, as plain values and tensors."""
    state: Dict[str, Any] = {**states(), "torch": torch.get_rng_state(), "cuda": []}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_generators(state: Dict[str, Any]) -> None:
    """Put them to where they were."""
    set_states(state)
    torch.set_rng_state(state["torch"])
    for number, each in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(each, number)


def _parts(value: Any) -> Iterator[bytes]:
    """Bytes that stand for a nested value; of a large tensor bytes at an odd distance, as in `continuity`."""
    if isinstance(value, torch.Tensor):
        yield "{}{}".format(tuple(value.shape), value.dtype).encode()
        flat = value.detach().contiguous().flatten().view(torch.uint8)
        step = 1 if is_full() else flat.numel() // SAMPLED | 1
        words = flat[::step].cpu().contiguous()
        yield ctypes.string_at(words.data_ptr(), words.numel()) if words.numel() else b""
    elif isinstance(value, dict):
        for key in value:
            yield repr(key).encode()
            yield from _parts(value[key])
    elif isinstance(value, (list, tuple)):
        yield "[{}]".format(len(value)).encode()
        for each in value:
            yield from _parts(each)
    else:
        yield repr(value).encode()
