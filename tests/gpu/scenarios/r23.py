"""R23: the weights stay on the host and come to the GPU at each forward pass, by accelerate's
cpu_offload; variant b: the optimizer lives on the host, gradients go there and weights come
back. Cured: all on the GPU.
"""

import torch
from accelerate import cpu_offload

from common import Run, adamw, llama, mlp

run = Run("r23", {"a": ["offload"], "b": ["offload"]})


def forward_only():
    model = llama(run, layers=run.size(14, 2), hidden=3072, heads=24).eval()
    size = sum(p.nbytes for p in model.parameters())
    if not run.fixed:
        model = model.to("cpu")
        if not run.cpu:
            torch.cuda.empty_cache()
        cpu_offload(model, execution_device=torch.device(run.device, 0) if not run.cpu else torch.device("cpu"))
    ids = torch.randint(0, run.pick(32000, 512), (4, run.pick(512, 16)), device=run.device)

    def step(_):
        with torch.no_grad():
            model(input_ids=ids, use_cache=False)

    return step, size, 3


def optimizer_on_host():
    width, depth = run.pick(4096, 32), run.size(6, 2)
    model = mlp(run, depth, width, torch.bfloat16)
    x = torch.randn(run.pick(8192, 16), width, device=run.device, dtype=torch.bfloat16)
    if run.fixed:
        optimizer = adamw(run, model)
    else:
        masters = [torch.nn.Parameter(p.detach().to("cpu", torch.float32)) for p in model.parameters()]
        optimizer = torch.optim.AdamW(masters, lr=1e-6, fused=True)

    def step(_):
        model(x).square().mean().backward()
        if run.fixed:
            optimizer.step()
        else:
            for master, p in zip(masters, model.parameters()):
                master.grad = p.grad.to("cpu").float()
            optimizer.step()
            with torch.no_grad():
                for master, p in zip(masters, model.parameters()):
                    p.copy_(master.to(torch.bfloat16))
        model.zero_grad()

    return step, sum(p.nbytes for p in model.parameters()), 5


step, moved, warm = (forward_only if run.variant == "a" else optimizer_on_host)()
run.loop(step, warm=warm)
run.done(
    h2d_bytes_per_step=0 if run.fixed else moved, d2h_bytes_per_step=moved if run.variant == "b" and not run.fixed else 0, pinned=False
)
