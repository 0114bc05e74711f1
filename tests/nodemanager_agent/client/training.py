"""A training program as a user would write one: it knows nothing of us. Run by tests as a process of its own."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(nn.Module):  # type: ignore[misc]
    """Batch norm, dropout and a tied weight: state of all kinds."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.wide = nn.Linear(4 * 64, width)
        self.narrow = nn.Linear(width, 4 * 64)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(4 * 64, 2)

    def forward(self, images: Any) -> Any:
        hidden = torch.relu(self.norm(self.convolution(images))).flatten(1)
        deep = self.narrow(torch.relu(self.wide(hidden)))
        tied = nn.functional.linear(deep, self.convolution.weight.flatten()[:1].expand(256, 256))
        return self.head(self.drop(deep + 0.001 * tied))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--loader-limit-s", type=float, default=0)
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--ballast-ratio", type=float, default=0.0)
    parser.add_argument("--group-limit-s", type=float, default=5.0)
    parser.add_argument("--graph", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    rank = int(os.environ.get("RANK", "0"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    model: Any = Model(options.width).to(options.device)
    if options.ballast_ratio:
        size = int(torch.cuda.mem_get_info()[1] * options.ballast_ratio)
        model.register_buffer("ballast", torch.ones(size, dtype=torch.uint8, device=options.device))
    if world > 1:
        from datetime import timedelta

        dist.init_process_group("gloo", timeout=timedelta(seconds=options.group_limit_s))
        if options.shard:
            from torch.distributed.fsdp import fully_shard

            fully_shard(model)
        else:
            model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    graph = captured() if options.graph else None  # kept: it holds addresses
    torch.manual_seed(2 + rank)
    images = torch.randn(256, 1, 8, 8)
    data = TensorDataset(images, (images.mean((1, 2, 3)) > 0).long())
    loader = DataLoader(
        data,
        batch_size=16,
        shuffle=True,
        num_workers=options.workers,
        timeout=options.loader_limit_s if options.workers else 0,
        persistent_workers=options.workers > 0,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.9)
    out = options.out.with_suffix(f".{rank}") if world > 1 else options.out
    with out.open("w", buffering=1) as losses:
        train(options, model, loader, optimizer, schedule, losses)
    del graph
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
        os._exit(0)  # gloo's threads, now and then, end in an abort of the interpreter


def captured() -> Any:
    """A CUDA graph of little."""
    graph = torch.cuda.CUDAGraph()
    numbers = torch.ones(8, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        numbers.add_(1)
    graph.replay()
    return graph


def train(
    options: Any, model: Any, loader: Any, optimizer: Any, schedule: Any, losses: Any
) -> None:
    """Steps over as many epochs as they take; each step's loss in every bit."""
    step = parts = 0
    while True:
        for inputs, labels in loader:
            outputs = model(inputs.to(options.device))
            loss = nn.functional.cross_entropy(outputs, labels.to(options.device))
            (loss / options.accumulate).backward()
            parts += 1
            if parts % options.accumulate:
                continue
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.write(f"{step} {loss.item().hex()}\n")
            step += 1
            if step == options.steps:
                return


if __name__ == "__main__":
    main()
