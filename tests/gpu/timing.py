"""Operations of every class that the sampler times, many of each: kernels of 1 to 300 us,
matrix products, pinned copies of 4 KiB to 64 MiB both ways and on the device, memsets, a
captured graph. The truth file has CUPTI's durations of the same operations.
"""

import torch

from common import DEVICE, referee, setup, show, sync

ROUNDS = 120

setup()
x = torch.randn(1 << 16, device=DEVICE)
big = torch.randn(1 << 24, device=DEVICE)
a = torch.randn(1024, 1024, device=DEVICE, dtype=torch.bfloat16)
b = torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16)
sizes = [1 << n for n in range(12, 27, 2)]
host = {n: torch.ones(n, dtype=torch.uint8).pin_memory() for n in sizes}
device = {n: torch.empty(n, dtype=torch.uint8, device=DEVICE) for n in sizes}
other = {n: torch.empty(n, dtype=torch.uint8, device=DEVICE) for n in sizes}

stream = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
y = x.clone()
with torch.cuda.graph(graph, stream=stream):
    for _ in range(16):
        y = y * 1.0001


def work():
    for _ in range(12):
        x.add_(1.0)
        big.mul_(1.0)
        torch.mm(a, a)
        torch.relu(x)
        torch.mm(b, b)
    for n in sizes:
        device[n].copy_(host[n], non_blocking=True)
        host[n].copy_(device[n], non_blocking=True)
        other[n].copy_(device[n])
        other[n].zero_()
    graph.replay()


for _ in range(600):  # the sampler prepares itself while this runs
    work()
sync()
with referee("timing"):
    for _ in range(ROUNDS):
        work()
show("x", x)
