"""torch.compile with default settings: forward and backward through Triton kernels."""

import torch
from torch import nn

from common import DEVICE, pinned, referee, setup, show

setup()
model = nn.Sequential(nn.Linear(256, 512), nn.LayerNorm(512), nn.GELU(), nn.Linear(512, 64)).to(DEVICE)
inputs = [pinned(torch.randn(64, 256)) for _ in range(6)]
targets = [pinned(torch.randint(0, 64, (64,))) for _ in range(6)]


@torch.compile
def objective(x, y):
    logits = model(x)
    return nn.functional.cross_entropy(logits, y) + 0.01 * torch.softmax(logits, -1).square().sum()


def step(i):
    x = inputs[i].to(DEVICE, non_blocking=True)
    y = targets[i].to(DEVICE, non_blocking=True)
    loss = objective(x, y)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    return loss.item()


losses = [step(0), step(1)]
with referee("compile"):
    losses += [step(i) for i in range(2, 6)]
for value in losses:
    show("loss", value)
