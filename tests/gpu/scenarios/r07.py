"""R07: after backward, the norm and the finiteness of each of 300 gradients are read one by one.
Cured: one norm over all of them, read once.
"""

import torch

from common import Run, mlp

run = Run("r07", {"a": ["sync-storm"]})
WIDTH = 256
model = mlp(run, run.size(150, 4), WIDTH)
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters, lr=1e-6, foreach=True)
x = torch.randn(256, WIDTH, device=run.device)


def check_each():
    total = 0.0
    for p in parameters:
        total += p.grad.norm().item() ** 2
        if not torch.isfinite(p.grad).all():
            raise FloatingPointError
    return total**0.5


def check_once():
    norm = torch.stack(torch._foreach_norm([p.grad for p in parameters])).norm()
    value = norm.item()
    if value != value:
        raise FloatingPointError
    return value


def step(_):
    model(x).square().mean().backward()
    (check_once if run.fixed else check_each)()
    optimizer.step()
    optimizer.zero_grad()


run.loop(step)
run.done(d2h_reads_per_step=1 if run.fixed else 2 * len(parameters), parameters=len(parameters))
