"""A training program that names its state and where its mini-batches begin: three lines more than any other."""

from __future__ import annotations

import argparse
import os
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from nodemanager_agent import client


class Noisy(TensorDataset):  # type: ignore[misc]
    """Augmented by torch's generator in the loader, and by Python's in the loop."""

    def __getitem__(self, index: int) -> Any:
        inputs, label = super().__getitem__(index)
        return inputs + 0.01 * torch.randn(inputs.shape), label


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--bomb", type=Path)
    parser.add_argument("--last", type=Path, help="file with a step that is the last one")
    options = parser.parse_args()
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(1)
    random.seed(5)  # noqa: TID251 - the generator that scripts use
    model: Any = nn.Sequential(
        nn.Linear(16, options.width),
        nn.BatchNorm1d(options.width),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(options.width, options.width),
        nn.Linear(options.width, 2),
    )
    if world > 1:
        dist.init_process_group("gloo", timeout=timedelta(seconds=30))
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    torch.manual_seed(2 + rank)
    inputs = torch.randn(160, 16)
    loader = DataLoader(
        Noisy(inputs, (inputs.mean(1) > 0).long()),
        batch_size=16,
        shuffle=True,
        num_workers=options.workers,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.9)
    batches = client.Minibatches(loader, options.steps)
    client.keep(model=model, optimizer=optimizer, schedule=schedule, batches=batches)
    if options.bomb:
        client.checkpoint(lambda: Bomb(options.bomb), lambda _: None)
    with options.out.with_suffix(f".{rank}").open("a", buffering=1) as losses:
        for step, (images, labels) in batches:
            outputs = model(images * (1 + 0.01 * random.random()))  # noqa: TID251
            loss = nn.functional.cross_entropy(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.write(f"{step} {loss.item().hex()} {schedule.get_last_lr()[0].hex()}\n")
            client.report(step, loss.item())
            if options.last and options.last.exists() and step >= int(options.last.read_text()):
                break
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
        os._exit(0)  # gloo's threads, now and then, end in an abort of the interpreter


class Bomb:
    """Runs a command where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


if __name__ == "__main__":
    main()
