"""The training program of `gandiva bench move`: a given amount of state, named, and little work on it."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import torch.distributed as dist

from nodemanager_agent import client

_PARTS = 16


class Parts(torch.nn.Module):  # type: ignore[misc]  # seen without torch
    """So many numbers, and a loss that all of them have a part in."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.parts = torch.nn.ParameterList(torch.randn(words) for _ in range(_PARTS))

    def forward(self) -> torch.Tensor:
        """The loss."""
        return torch.stack([(part * part).mean() for part in self.parts]).sum()


def main(mib: int, steps: int) -> None:
    """Train `steps` steps with `mib` MiB of parameters and two moments; alone, or as one rank of a gang."""
    torch.manual_seed(1)
    model: Any = Parts(mib * 2**20 // (3 * 4 * _PARTS))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = client.Minibatches(range(100), steps)
    client.keep(model=model, optimizer=optimizer, batches=batches)
    for _ in batches:
        loss = model()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
