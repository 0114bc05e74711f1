"""Training on any number of workers, in which every sum is exact: its losses depend on nothing but the data's order.

Inputs are whole numbers, the loss is linear, batches and learning rate are powers of two: no rounding, so averaging
over one, two or four workers gives the same bits. Each rank appends one line a step to one file: step, rank, workers,
loss over the whole batch, and the samples that were its own. A lone worker ends once there is a file to end it.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from nodemanager_agent import client
from nodemanager_agent.client.data_order import DataOrder

GLOBAL_BATCH = 16


def main() -> None:
    out, steps, end = sys.argv[1], int(sys.argv[2]), Path(*sys.argv[3:4] or ["never"])
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    data = torch.randint(-8, 9, (96, 8)).double()
    model: Any = nn.Linear(8, 1, bias=False).double()
    with torch.no_grad():
        model.weight.zero_()
    if world > 1:
        dist.init_process_group("gloo", timeout=timedelta(seconds=60))
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    order = DataOrder(len(data), GLOBAL_BATCH, 4, rank, world, seed=3)
    client.keep(model=model, optimizer=optimizer, order=order)
    with open(out, "a", buffering=1) as log:  # noqa: PTH123 - as scripts do
        while order.samples_done < steps * GLOBAL_BATCH and not end.exists():
            client.minibatch()
            samples = [number for batch in order.step() for number in batch]
            step = order.samples_done // GLOBAL_BATCH
            order.samples_done += GLOBAL_BATCH
            loss = model(data[samples]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            whole = loss.detach() / world
            if world > 1:
                dist.all_reduce(whole)
            log.write(f"{step} {rank} {world} {whole.item().hex()} {samples}\n")
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
        os._exit(0)  # gloo's threads, now and then, end in an abort of the interpreter


if __name__ == "__main__":
    main()
