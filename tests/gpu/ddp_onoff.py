"""What the recorder costs data-parallel training: ddp_onoff.py [SECONDS], started like ddp.py.

All ranks together record for 20 steps, or do not, in turn; a rank that is slowed holds up all. For a
model whose launches take the time and for one whose kernels do. Prints, on the first rank, the
median of the ratios of neighbouring blocks and its 95 % interval, by bootstrap, as onoff.py does.
"""

import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from common import CPU_ONLY, DEVICE, ratios, sync
from ddp import RANK, start

BLOCK = 20
# width, layers, batch, type
SHAPES = {
    "launch": (256, 24, 64, torch.float32),
    "gpu": (64, 4, 32, torch.float32) if CPU_ONLY else (4096, 6, 8192, torch.bfloat16),
}


def training(width, layers, batch, dtype):
    torch.manual_seed(0)
    parts = [m for _ in range(layers) for m in (torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.LayerNorm(width))]
    model = DistributedDataParallel(torch.nn.Sequential(*parts).to(DEVICE, dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(batch, width, device=DEVICE, dtype=dtype)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(x).float().square().mean().backward()
        optimizer.step()

    return step


def mark(text):
    if not CPU_ONLY:
        torch.cuda.nvtx.mark(text)


def block(step):
    """ms a step of the slowest rank: the barrier ends for all when the last has come."""
    sync()
    dist.barrier()
    sync()
    begun = time.perf_counter()
    for _ in range(BLOCK):
        step()
    dist.barrier()
    sync()
    return (time.perf_counter() - begun) / BLOCK * 1e3


def agreed(value):
    shared = torch.tensor(float(value), device=DEVICE)
    dist.broadcast(shared, 0)
    return shared.item()


def measure(kind, seconds):
    step = training(*SHAPES[kind])
    begun = time.time()
    while agreed(time.time() - begun) < 3:  # the sampler is at work by then
        block(step)
    pairs = max(10, int(seconds * 1e3 / agreed(block(step)) / BLOCK / 2))
    on, off = [], []
    for pair in range(pairs):
        for state in (0, 1) if pair % 2 else (1, 0):
            mark("gpuwait.recording=%d" % state)
            (on if state else off).append(block(step))
    mark("gpuwait.recording=1")
    if RANK == 0:
        print("ddp %s: on %.4f off %.4f ms/step, %s" % (
            kind, statistics.median(on), statistics.median(off), ratios(on, off)), flush=True)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    start()
    for kind in SHAPES:
        measure(kind, seconds)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
