"""R14: other memory leaves 3 GiB of the device. Steps alternate between two kinds of work, on a
stream each, with activations of different sizes: what one kind leaves in the cache cannot serve
the other, so the allocator fails, gives its cache back and tries again. Cured: the device is
not nearly full.
"""

import time

import torch

from common import Run

run = Run("r14", {"a": ["alloc-retry"]})
MIB = 1 << 20
FREE = run.size(3072, 64)  # MiB; either kind fits, both do not
KINDS = [[int(FREE * 0.26)] * 3, [int(FREE * 0.36)] * 2]
a = torch.randn(4096, 4096, device=run.device, dtype=torch.bfloat16) if not run.cpu else torch.ones(8, 8)
(a @ a).sum().item()  # the matrix library's own memory comes first
streams = [None, None] if run.cpu else [torch.cuda.Stream(), torch.cuda.Stream()]
for stream in streams:
    if stream:
        with torch.cuda.stream(stream):
            (a @ a).sum().item()


def ballast():
    free, before = 0, -1
    while free != before:  # another process may still be giving memory back
        time.sleep(0.2)
        before, free = free, torch.cuda.mem_get_info()[0]
    return torch.empty(free - FREE * MIB, dtype=torch.uint8, device=run.device)


held = None if run.fixed or run.cpu else ballast()


def work(sizes):
    kept = []
    for mib in sizes:
        t = torch.empty(mib * MIB // 2, dtype=torch.bfloat16, device=run.device)
        t.fill_(1.0)
        kept.append(t)
    for t in kept:
        t.mul_(0.5)
    return a @ a


def step(i):
    if run.cpu:
        work(KINDS[i % 2])
        return
    with torch.cuda.stream(streams[i % 2]):
        work(KINDS[i % 2])
    streams[(i + 1) % 2].wait_stream(streams[i % 2])


run.loop(step)
run.done(retries_per_step=0 if run.fixed else 1, free_mib=None if run.fixed else FREE)
