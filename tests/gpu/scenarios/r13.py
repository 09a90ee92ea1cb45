"""R13: each step ends with gc.collect() and torch.cuda.empty_cache(), so that each step asks the
driver for its memory anew. Cured: neither.
"""

import gc

import torch
import transformers  # noqa: F401  (imported before the GPU is taken)

from common import Run, adamw, llama

run = Run("r13", {"a": ["alloc-churn"]})
model = llama(run, layers=2, hidden=512)
optimizer = adamw(run, model)
ids = torch.randint(0, run.pick(32000, 512), (run.size(16, 2), run.pick(1024, 16)), device=run.device)
gc.collect()
gc.freeze()  # the collection itself stays short: what the packages made is not walked


def step(_):
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if not run.fixed:
        gc.collect()
        torch.cuda.empty_cache()  # GUILTY


run.loop(step)
run.done()
