"""R01: samples are prepared one by one in Python, 4 to 8 ms each, by the training process itself
(a), by two worker processes that cannot keep up (b), or by four that are slow and finish
together, so that every fourth batch is late (c). Cured: 12 workers and pinned memory.
"""

import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from common import Run

run = Run("r01", {"a": ["input-cpu"], "b": ["input-wait"], "c": ["input-periodic"]})
ITEM_S = {"a": 0.004, "b": 0.006, "c": 0.008}[run.variant] * run.pick(run.scale, 0.1)
WORKERS = 12 if run.fixed else {"a": 0, "b": 2, "c": 4}[run.variant]
BATCH, SIDE = 8, run.pick(int(288 * run.scale**0.5) // 8 * 8, 16)


class Images(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        values = np.full(4096, index % 251, dtype=np.float32)
        end = time.perf_counter() + ITEM_S
        while time.perf_counter() < end:  # GUILTY:a
            values = np.sqrt(values * values + 1.0)  # GUILTY:a
        return torch.full((3, SIDE, SIDE), float(values[0]))


def start_together(_):
    """Workers that read the same storage run in step: each waits for the same moment."""
    torch.set_num_threads(1)
    if run.variant == "c" and not run.fixed:
        time.sleep(max(0.0, start - time.time()))


start = time.time() + 1.5
loader = DataLoader(
    Images(), batch_size=BATCH, num_workers=WORKERS, pin_memory=run.fixed and not run.cpu,
    worker_init_fn=start_together, multiprocessing_context="fork" if WORKERS else None,
)
channels = [3] + [64] * 9
net = torch.nn.Sequential(
    *[m for a, b in zip(channels, channels[1:]) for m in (torch.nn.Conv2d(a, b, 3, padding=1), torch.nn.ReLU())]
).to(run.device, memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6, foreach=True)
batches = iter(loader)


def step(_):
    x = next(batches)  # GUILTY
    x = x.to(run.device, non_blocking=run.fixed, memory_format=torch.channels_last)
    with torch.autocast(run.device, torch.bfloat16):
        loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


run.loop(step)
run.done(h2d_bytes_per_step=BATCH * 3 * SIDE * SIDE * 4, input_ms_per_batch=BATCH * ITEM_S * 1e3, workers=WORKERS)
