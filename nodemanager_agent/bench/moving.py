"""The training program of `gandiva bench move`: a given amount of state, named, and little work on it."""

from __future__ import annotations

import sys

import torch

from nodemanager_agent import client

_PARTS = 16


def main(mib: int, steps: int) -> None:
    """Train `steps` steps with `mib` MiB of parameters and two moments."""
    torch.manual_seed(1)
    words = mib * 2**20 // (3 * 4 * _PARTS)
    model = torch.nn.ParameterList(torch.randn(words) for _ in range(_PARTS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = client.Minibatches(range(100), steps)
    client.keep(model=model, optimizer=optimizer, batches=batches)
    for _ in batches:
        loss = torch.stack([(part * part).mean() for part in model]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
