"""R08: tokens are picked by a boolean mask, twice per layer; the size of the result is only known
to the GPU, so the host waits each time. Cured: torch.where, whose shapes are fixed.
"""

import torch

from common import Run

run = Run("r08", {"a": ["shape-sync"]})
LAYERS, WIDTH, TOKENS = 8, run.pick(2048, 32), run.size(16384, 64, 64)
layers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)).to(run.device, torch.bfloat16)
x = torch.randn(TOKENS, WIDTH, device=run.device, dtype=torch.bfloat16)
score = torch.rand(TOKENS, device=run.device)


def picked(h, mask):
    return h[mask].mean(0)


def masked(h, mask):
    return torch.where(mask[:, None], h, 0).sum(0) / mask.sum()


average = masked if run.fixed else picked


def step(i):
    h = x
    with torch.no_grad():
        for n, layer in enumerate(layers):
            mask = score > 0.05 * (n + 1)
            h = layer(h) + average(h, mask)
            h = torch.tanh(h - average(h, ~mask))
    return h


run.loop(step)
run.done(d2h_reads_per_step=0 if run.fixed else 2 * LAYERS)
