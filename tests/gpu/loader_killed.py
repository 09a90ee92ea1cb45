"""A DataLoader with persistent workers, one of which is killed: loader_killed.py FOLDER reading|computing.

`reading`: forked workers that only make samples. `computing`: spawned ones that make them on the
device, each noting in FOLDER/PID.launches how many launches it has issued. Worker 1 kills itself in
the middle of its second epoch, as the kernel would when memory runs out; PyTorch tells the main
process by an exception, wherever that is by then. It does something else, and ends by it.
"""

import os
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

from common import CPU_ONLY, DEVICE, Noted, referee, setup, show, sync

WORKERS, BATCH, BATCHES = 2, 8, 6
KILLED_AT = BATCH * (BATCHES // WORKERS) + BATCH // 2  # samples that worker 1 has made by then
ADDITIONS = 4  # launches of a sample that is made on the device


class Samples(Dataset):
    def __init__(self, folder, computing):
        self.folder, self.computing = folder, computing
        self.made = 0
        self.noted = None

    def __len__(self):
        return BATCH * BATCHES

    def on_device(self, x):
        """One addition is one launch of one kernel; the copies are none."""
        if not self.noted:
            self.noted = Noted("%s/%d.launches" % (self.folder, os.getpid()))
        x = x.to(DEVICE)
        for _ in range(ADDITIONS):
            self.noted.add(x, x)
        return x.cpu()

    def __getitem__(self, i):
        if get_worker_info().id == 1 and self.made == KILLED_AT:
            with open(self.folder + "/killed", "w") as f:
                f.write("%d\n" % os.getpid())
            os.kill(os.getpid(), signal.SIGKILL)
        self.made += 1
        time.sleep(0.005)  # the main process waits for batches, not they for it
        x = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(i))
        return self.on_device(x) if self.computing else x, i % 10


def main():
    folder, computing = sys.argv[1], sys.argv[2] == "computing"
    setup()
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 128), nn.ReLU(), nn.Linear(128, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = DataLoader(
        Samples(folder, computing),
        batch_size=BATCH,
        num_workers=WORKERS,
        pin_memory=not CPU_ONLY,
        persistent_workers=True,
        multiprocessing_context="spawn" if computing else "fork",
    )

    def epoch():
        total = torch.zeros((), device=DEVICE)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.to(DEVICE)), y.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total.item()

    show("loss", epoch())
    ended = None
    with referee("loader_killed"):
        try:
            epoch()
        except RuntimeError as e:
            ended = e
        x = torch.ones(64, device=DEVICE)
        for _ in range(10):
            x.add_(x)
        sync()
    show("afterwards", x)
    print("worker killed:", type(ended).__name__, "DataLoader worker" in str(ended), flush=True)
    raise ended


if __name__ == "__main__":
    main()
