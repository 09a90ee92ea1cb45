"""Convolutions (cuDNN) with BatchNorm, trained in fp32 and once under bf16 autocast."""

import torch
from torch import nn

from common import DEVICE, pinned, referee, setup, show

setup()


def block(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, stride=2, padding=1), nn.BatchNorm2d(n_out), nn.ReLU())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(block(3, 32), block(32, 64), nn.Conv2d(64, 64, 3, padding=1, groups=64), block(64, 128))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=(2, 3)))


model = Net().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
images = [pinned(torch.randn(16, 3, 32, 32)) for _ in range(6)]
labels = [pinned(torch.randint(0, 10, (16,))) for _ in range(6)]


def step(i, autocast):
    x = images[i].to(DEVICE, non_blocking=True)
    y = labels[i].to(DEVICE, non_blocking=True)
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=autocast):
        loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


losses = [step(0, False), step(1, True)]
with referee("conv"):
    losses += [step(2, False), step(3, False), step(4, True), step(5, True)]
for value in losses:
    show("loss", value)
show("mean", model.body[0][1].running_mean)
