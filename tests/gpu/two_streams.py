"""Two streams that work at once, for the modes in which events could hold one of them up.
Prints sums that depend on nothing but the work."""

import time

import torch

from common import DEVICE, setup, show, sync

setup()
streams = [torch.cuda.Stream() for _ in range(2)]
tensors = [torch.ones(1 << 16, device=DEVICE) for _ in streams]
sync()
begun = time.time()
rounds = 0
while time.time() - begun < 2.5:
    for stream, tensor in zip(streams, tensors):
        with torch.cuda.stream(stream):
            for _ in range(20):
                tensor.mul_(1.0).add_(1.0).sub_(1.0)
    rounds += 1
    sync()
for tensor in tensors:
    show("sum", float(tensor.sum()))
