"""R06: a Llama training step reads its loss twice, for a progress line, and uploads a small
table that never changes. Each read drains the queue, so the forward pass, many small kernels,
starts on an idle GPU. Variant big: the same reads in a model so large that they do not matter.
Cured: the line is written every 20 steps, the table stays on the GPU.
"""

import torch
import transformers  # noqa: F401  (imported before the GPU is taken)

from common import Run, adamw, llama

run = Run(
    "r06", {"a": ["sync-per-step"], "big": ["gpu-bound"]}, fixed_expected={"big": ["gpu-bound"]}, forbidden={"big": ["sync-per-step"]}
)
if run.variant == "big":
    model, batch = llama(run, layers=8, hidden=2048), run.size(8, 2)
else:
    model, batch = llama(run, layers=2, hidden=512), run.size(16, 2)
length = run.pick(1024, 16)
optimizer = adamw(run, model)
ids = torch.randint(0, run.pick(32000, 512), (batch, length), device=run.device)
table = torch.linspace(0.5, 1.5, 1024)  # 4 KiB
if run.fixed:
    table = table.to(run.device)
line = ""


def step(i):
    global line
    weights = table.to(run.device)
    loss = model(input_ids=ids, labels=ids).loss * weights.mean()
    if not run.fixed:
        line = "loss %.3f" % loss.item()  # GUILTY:a
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if not run.fixed or i % 20 == 0:
        line += " step %d, %.4f" % (i, loss.item())  # GUILTY:a


run.loop(step)
run.done(d2h_reads_per_step=0.05 if run.fixed else 2, h2d_bytes_per_step=0 if run.fixed else table.nbytes)
