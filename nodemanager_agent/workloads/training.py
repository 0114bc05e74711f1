"""A small training run of one of four kinds, on data that it makes itself; a plain script.

A step takes at least `--step-s`: the rest is slept, as a host waits for its device, so that many runs on few cores go
as fast as on devices of their own. Its begin is printed, and each tenth step and the last: step, time, loss.
"""

import argparse
import sys
import tempfile
import time

BEGUN_S = time.time()  # before the framework is read: that is a part of every job's start

import torch  # noqa: E402
from torch import nn  # noqa: E402


class Recurrent(nn.Module):  # type: ignore[misc]  # seen without torch
    """An LSTM over short sequences, and a guess at the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.lstm = nn.LSTM(16, 24, batch_first=True)
        self.head = nn.Linear(24, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens to scores of the next one."""
        states, _ = self.lstm(self.embed(tokens))
        return self.head(states[:, -1])


class Attentive(nn.Module):  # type: ignore[misc]  # seen without torch
    """One layer of a transformer's encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens to scores of the next one."""
        return self.head(self.layer(self.embed(tokens)).mean(dim=1))


def convolutional() -> nn.Module:
    """Two convolutions and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(128, 64),
    )


MODELS = {"cnn": convolutional, "lstm": Recurrent, "transformer": Attentive, "io": convolutional}


def batch(kind: str, file: "tempfile._TemporaryFileWrapper[bytes]") -> "tuple[torch.Tensor, ...]":
    """Inputs and targets; the I/O-bound kind writes its batch to a file and reads it again."""
    targets = torch.randint(0, 64, (8,))
    if kind in ("lstm", "transformer"):
        return torch.randint(0, 64, (8, 12)), targets
    images = torch.randn(8, 1, 8, 8)
    if kind == "io":
        file.seek(0)
        file.write(images.numpy().tobytes())
        file.flush()
        file.seek(0)
        data = bytearray(file.read())
        images = torch.frombuffer(data, dtype=torch.float32).reshape(8, 1, 8, 8)
    return images, targets


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(MODELS), default="cnn")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--step-s", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.stdout.write(f"begin {BEGUN_S:.3f}\n")
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    model = MODELS[options.model]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    with tempfile.NamedTemporaryFile() as file:
        for step in range(options.steps):
            began_s = time.monotonic()
            inputs, targets = batch(options.model, file)
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            time.sleep(max(0.0, options.step_s - (time.monotonic() - began_s)))
            optimizer.step()
            if step % 10 == 0 or step == options.steps - 1:
                sys.stdout.write(f"{step} {time.time():.3f} {loss.item():.6f}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
