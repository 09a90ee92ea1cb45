"""R10: generate(), greedy, batch 1: hundreds of small kernels a token, and a read or two.
Cured: a static cache and one captured graph per token, nothing read back.
"""

import torch
import transformers  # noqa: F401  (imported before the GPU is taken)

from common import Run, llama
from decode import generate_loop, graphed_loop

run = Run("r10", {"a": ["launch-bound"]})
model = llama(run, layers=run.size(16, 2), hidden=1024)
prompt = torch.randint(2, run.pick(32000, 512), (1, 32), device=run.device)
TOKENS = run.pick(64, 8)
(graphed_loop if run.fixed else generate_loop)(run, model, prompt, TOKENS)
run.done(tokens_per_call=TOKENS)
