"""R19: a large Llama with gradient checkpointing, reentrant in variant b: the GPU is busy, a
quarter of it with recomputation. No idleness may be reported. Cured: without.
"""

import torch
import transformers  # noqa: F401  (imported before the GPU is taken)

from common import Run, adamw, llama

run = Run(
    "r19", {v: ["gpu-bound", "recompute"] for v in "ab"}, fixed_expected={v: ["gpu-bound"] for v in "ab"},
    forbidden={v: ["recompute"] for v in "ab"},
)
model = llama(run, layers=12, hidden=2048)
model.config.use_cache = False
if not run.fixed:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": run.variant == "b"})
    model.enable_input_require_grads()
model.train()
optimizer = adamw(run, model)
ids = torch.randint(0, run.pick(32000, 512), (run.size(16, 2, 2), run.pick(1024, 16)), device=run.device)


def step(_):
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


run.loop(step, warm=3)
run.done(checkpointed_layers=0 if run.fixed else 12)
