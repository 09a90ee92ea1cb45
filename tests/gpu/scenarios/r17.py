"""R17: AdamW over 1,000 small parameters, one at a time: thousands of tiny kernels per step.
Cured: fused. The rest of the step is one large matrix, so that the cured step keeps the GPU busy.
"""

import torch

from common import Run

run = Run("r17", {"a": ["launch-bound"]})
COUNT, FLOATS = run.size(1000, 8), 3500
parameters = [torch.nn.Parameter(torch.randn(FLOATS, device=run.device)) for _ in range(COUNT)]
gradients = torch.randn(COUNT, FLOATS, device=run.device)
for p, g in zip(parameters, gradients):
    p.grad = g
optimizer = torch.optim.AdamW(parameters, lr=1e-6, **({"fused": True} if run.fixed else {"foreach": False}))
WIDTH = run.pick(8192, 16)
trunk = torch.randn(WIDTH, WIDTH, device=run.device, dtype=torch.bfloat16)


def step(_):
    h = trunk
    for _ in range(16):
        h = h @ trunk
    optimizer.step()


run.loop(step, warm=5)
run.done(parameters=COUNT)
