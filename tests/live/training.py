"""A training script as users write them: it knows nothing of who schedules it. Prints each tenth step."""

import sys
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters())
for step in range(int(sys.argv[1])):
    loss = model(torch.randn(16, 32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        sys.stdout.write(f"{step} {time.time():.3f} {loss.item():.6f}\n")
        sys.stdout.flush()
