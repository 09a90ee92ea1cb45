"""DataLoader with four forked workers and pinned memory feeding a small network.

The workers are forked while the device is in use already, but before the profiler
starts: PyTorch warns against forking under it.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from common import CPU_ONLY, DEVICE, referee, setup, show


class Samples(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        draw = torch.Generator().manual_seed(i)
        return torch.randn(3, 32, 32, generator=draw), i % 10


def main():
    setup()
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 128), nn.ReLU(), nn.Linear(128, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(
        Samples(),
        batch_size=8,
        num_workers=4,
        pin_memory=not CPU_ONLY,
        persistent_workers=True,
        multiprocessing_context="fork",
    )

    def epoch():
        total = torch.zeros((), device=DEVICE)
        for x, y in loader:
            x = x.to(DEVICE, non_blocking=True)
            y = y.to(DEVICE, non_blocking=True)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total.item()

    losses = [epoch()]
    with referee("dataloader"):
        losses += [epoch(), epoch()]
    for value in losses:
        show("loss", value)


if __name__ == "__main__":
    main()
