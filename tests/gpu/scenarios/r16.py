"""R16: an error measure is summed over the steps with its graph, so every step's activations
stay. Cured: detached.
"""

import statistics

import torch

from common import Run, mlp

run = Run("r16", {"a": ["mem-growth"]})
WIDTH, ROWS = run.pick(1024, 32), run.size(1024, 16, 64)
model = mlp(run, 2, WIDTH)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, foreach=True)
x = torch.randn(ROWS, WIDTH, device=run.device)
y = torch.randn(ROWS, WIDTH, device=run.device)
total = torch.zeros((), device=run.device)
allocated, EVERY = [], 16


def step(i):
    global total
    (model(x) - y).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    error = (model(x) - y).abs().mean()
    total = total + (error.detach() if run.fixed else error)
    if not run.cpu and i % EVERY == 0:
        allocated.append(torch.cuda.memory_allocated())


run.loop(step, limit=2000)
growth = [(b - a) / EVERY for a, b in zip(allocated[1:], allocated[2:])] or [0]
run.done(
    growth_bytes_per_step=statistics.median(growth),
    growth_by_construction=0 if run.fixed else 3 * x.nbytes,  # two outputs of ReLU and the difference
)
