"""LoRA-like MLP trained with AdamW in eager mode; pinned and pageable inputs, a read per step."""

import torch
from torch import nn

from common import DEVICE, pinned, referee, setup, show


class LoraLinear(nn.Module):
    def __init__(self, n_in, n_out, rank=8):
        super().__init__()
        self.base = nn.Linear(n_in, n_out)
        self.base.requires_grad_(False)
        self.a = nn.Linear(n_in, rank, bias=False)
        self.b = nn.Linear(rank, n_out, bias=False)

    def forward(self, x):
        return self.base(x) + 2.0 * self.b(self.a(x))


setup()
model = nn.Sequential(
    LoraLinear(256, 512), nn.LayerNorm(512), nn.GELU(), LoraLinear(512, 512), nn.GELU(), LoraLinear(512, 16)
).to(DEVICE)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
inputs = [pinned(torch.randn(64, 256)) for _ in range(6)]
targets = [torch.randn(64, 16) for _ in range(6)]


def step(i):
    x = inputs[i].to(DEVICE, non_blocking=True)
    y = targets[i].to(DEVICE)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


losses = [step(0), step(1)]
with referee("eager_mlp"):
    losses += [step(i) for i in range(2, 6)]
    kept = model[0].a.weight.detach().clone()
for value in losses:
    show("loss", value)
show("weight", kept)
