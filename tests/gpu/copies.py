"""Pinned copies of 1 to 256 MiB, each size and direction in a range of its own, for GB/s."""

import time

import torch

from common import DEVICE, referee, setup, show, sync

ROUNDS = 12
WARM_S = 2.5

setup()
warm = torch.zeros(1 << 12, device=DEVICE)
cases = []
for mib in (1, 4, 16, 64, 256):
    n = mib << 20
    host = torch.ones(n, dtype=torch.uint8).pin_memory()
    one, two = (torch.empty(n, dtype=torch.uint8, device=DEVICE) for _ in range(2))
    cases += [("H2D_%d" % mib, one, host), ("D2H_%d" % mib, host, one), ("D2D_%d" % mib, two, one)]

begun = time.time()
while time.time() - begun < WARM_S:  # the sampler gets to know every size
    for _, to, source in cases:
        warm.add_(1.0)
        to.copy_(source, non_blocking=True)
    sync()
for name, to, source in cases:
    with referee(name):
        for _ in range(ROUNDS):
            to.copy_(source, non_blocking=True)
show("copies", len(cases) * ROUNDS)
