"""What a part of the recorder costs, switched on and off every 20 steps inside one process.

    onoff.py recording|timing launch|gpu [BLOCKS]

recording: calls are recorded, or pass through; timing: operations are timed on the device, or
not. launch: a step whose kernels are tiny; gpu: one that keeps the device busy. Prints the
median of the ratios of neighbouring blocks and its 95 % interval, by bootstrap.
"""

import statistics
import sys
import time

import torch

from common import DEVICE, ratios, setup, sync, until_sampled

BLOCK = 20


def launch_bound():
    layers = [m for _ in range(12) for m in (torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))]
    net = torch.nn.Sequential(*layers).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    x = torch.randn(64, 256, device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=True)
        net(x).square().mean().backward()
        optimizer.step()

    return step


def gpu_bound():
    net = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(4096, 4096), torch.nn.GELU())])
    net = net.to(DEVICE, torch.bfloat16)
    x = torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16)

    def step():
        net(x).square().mean().backward()

    return step


def block(step, steps=BLOCK):
    """ms a step"""
    sync()
    begun = time.perf_counter()
    for _ in range(steps):
        step()
    sync()
    return (time.perf_counter() - begun) / steps * 1e3


def main():
    what, kind = sys.argv[1], sys.argv[2]
    blocks = int(sys.argv[3]) if len(sys.argv) > 3 else 160
    setup()
    torch.use_deterministic_algorithms(False)
    step = {"launch": launch_bound, "gpu": gpu_bound}[kind]()
    until_sampled(step)
    on, off = [], []
    for pair in range(blocks // 2):
        for state in (0, 1) if pair % 2 else (1, 0):
            torch.cuda.nvtx.mark("gpuwait.%s=%d" % (what, state))
            (on if state else off).append(block(step))
    torch.cuda.nvtx.mark("gpuwait.%s=1" % what)
    print("%s %s: on %.4f off %.4f ms/step, %s" % (
        what, kind, statistics.median(on), statistics.median(off), ratios(on, off)), flush=True)


if __name__ == "__main__":
    main()
