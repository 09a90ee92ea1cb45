"""cuDNN's benchmark mode and Triton's benchmark loop: both time kernels with events of their
own, between which nothing of the sampler's may lie. Prints what was chosen.
"""

import torch

from common import DEVICE, autotuning, show, sync

warm = autotuning()
convs = [torch.nn.Conv2d(c, 2 * c, 3, padding=1).to(DEVICE) for c in (16, 32, 64)]
for size in (24, 32, 48):
    for conv in convs:
        y = conv(torch.randn(8, conv.in_channels, size, size, device=DEVICE))
sync()
for _ in range(100):
    warm.mul_(1.0)
sync()
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
times = []
for _ in range(200):
    begin.record()
    warm.mul_(1.0)
    end.record()
    end.synchronize()
    times.append(begin.elapsed_time(end))
print("events", begin.cuda_event, end.cuda_event)
print("timed", len(times), "never negative", min(times) >= 0)
show("y", y.shape.numel())
