"""Pinned copies of 1 to 256 MiB, each size and direction in a range of its own, for GB/s."""

import time

import torch

from common import DEVICE, referee, setup, show, sync

IN_A_ROW = 12  # in the warm-up, as in the range: what a copy finds in the cache is the same
RANGE_MIB = 512  # at least, so that how the range begins and ends does not matter
WARM_S = 2.5

setup()
warm = torch.zeros(1 << 12, device=DEVICE)
cases = []
for mib in (1, 4, 16, 64, 256):
    n = mib << 20
    host = torch.ones(n, dtype=torch.uint8).pin_memory()
    one, two = (torch.empty(n, dtype=torch.uint8, device=DEVICE) for _ in range(2))
    rounds = max(IN_A_ROW, RANGE_MIB // mib)
    cases += [(way + "_%d" % mib, rounds, *ends) for way, ends in (("H2D", (one, host)), ("D2H", (host, one)), ("D2D", (two, one)))]

begun = time.time()
while time.time() - begun < WARM_S:  # the sampler gets to know every size
    for _, _, to, source in cases:
        warm.add_(1.0)
        for _ in range(IN_A_ROW):
            to.copy_(source, non_blocking=True)
        sync()
for name, rounds, to, source in cases:
    with referee(name):
        for _ in range(rounds):
            to.copy_(source, non_blocking=True)
show("copies", sum(rounds for _, rounds, _, _ in cases))
