"""R21: torch.compile(mode="reduce-overhead") over 20 lengths, ten steps each: every new length
is captured as a graph of its own. Cured: padded to one length.
"""

import os
import tempfile

os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.mkdtemp(prefix="inductor"))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch._inductor.config  # noqa: E402,F401  (imported before the GPU is taken)

from common import Run, mlp  # noqa: E402

run = Run("r21", {"a": ["graph-rerecord"]})
LENGTHS, EACH, WIDTH = run.size(20, 3), 10, run.pick(512, 16)
net = mlp(run, 6, WIDTH)
fast = torch.compile(net, mode="reduce-overhead", dynamic=True) if not run.cpu else net
buffer = torch.randn(64 + 32 * (LENGTHS + 2), WIDTH, device=run.device)


if not run.cpu:
    with torch.no_grad():
        fast(buffer[:48].clone())  # compiles; a length seen once is not captured


def length(i):
    return 64 + 32 * (LENGTHS if run.fixed else min(i // EACH, LENGTHS - 1) + 1)


def step(i):
    x = buffer[: length(i)].clone()
    with torch.no_grad():
        fast(x)


run.loop(step, warm=EACH, limit=None if run.fixed else LENGTHS * EACH)
run.done(lengths=1 if run.fixed else LENGTHS)
