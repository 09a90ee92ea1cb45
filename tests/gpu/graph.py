"""A training step captured by torch.cuda.graph and replayed; a second capture inside the region."""

import torch
from torch import nn

from common import CPU_ONLY, pinned, referee, setup, show

if CPU_ONLY:
    raise SystemExit("graph: needs a GPU")
setup()
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = [pinned(torch.randn(32, 128)) for _ in range(5)]
x = torch.randn(32, 128).cuda()
y = torch.randn(32, 8).cuda()


def step():
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        step()
torch.cuda.current_stream().wait_stream(side)
optimizer.zero_grad(set_to_none=True)
training = torch.cuda.CUDAGraph()
with torch.cuda.graph(training):
    loss = step()
training.replay()

losses = []
with referee("graph"):
    for batch in inputs:
        x.copy_(batch, non_blocking=True)
        training.replay()
        losses.append(loss.item())
    late = torch.cuda.CUDAGraph()
    with torch.cuda.graph(late):
        total = torch.relu(x * 2).sum() + torch.zeros(64, device="cuda").sum()
    late.replay()
    late.replay()
    losses.append(total.item())
for value in losses:
    show("loss", value)
