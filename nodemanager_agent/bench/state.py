"""The training program of `gandiva bench suspend`: a given amount of state, and little work on it.

It measures what its figures are held against: one plain copy of the same bytes, in the same process. A real program run
as a process of its own; no line of it knows of suspending.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

COPIES = 5
_PARTS = 16


def main(mib: int, steps: int, out: Path) -> None:
    """Train `steps` steps with `mib` MiB of parameters, gradients and two moments; write the times of copies."""
    torch.manual_seed(1)
    words = mib * 2**20 // (4 * 4 * _PARTS)
    parameters = [torch.nn.Parameter(torch.randn(words)) for _ in range(_PARTS)]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for step in range(steps):
        loss = torch.stack([(part * part).mean() for part in parameters]).sum()
        loss.backward()
        optimizer.step()
        if step == 0:
            state = [
                each for part in parameters for each in (part.grad, *_moments(optimizer, part))
            ]
            copies = _copy_s([*[part.data for part in parameters], *state])
            del state
            out.write_text(json.dumps({"copy_s": median(copies)}))
        optimizer.zero_grad(set_to_none=False)


def _moments(optimizer: Any, parameter: Any) -> list[Any]:
    state = optimizer.state[parameter]
    return [state["exp_avg"], state["exp_avg_sq"]]


def _copy_s(tensors: list[Any]) -> list[float]:
    """Seconds of copies to memory that is not there yet, as a restore has to."""
    times = []
    for _ in range(COPIES):
        began_s = time.perf_counter()
        copies = [tensor.clone() for tensor in tensors]
        times.append(time.perf_counter() - began_s)
        del copies
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return times


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
