"""R12: debugging left on: a timer that synchronises the device around every module (a), launches
that block (b), autograd's anomaly detection (c). The twin of all three is the script without.
"""

import os
import sys

BLOCKING = "--variant b" in " ".join(sys.argv).replace("=", " ") and "--fixed" not in sys.argv
if BLOCKING and os.environ.get("CUDA_LAUNCH_BLOCKING") != "1":
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    os.execv(sys.executable, [sys.executable] + sys.argv)

import time  # noqa: E402

import torch  # noqa: E402

from common import Run, mlp  # noqa: E402

run = Run(
    "r12", {"a": ["device-sync"], "b": ["blocking-mode"], "c": ["sync-storm"]},
    forbidden={v: ["device-sync", "blocking-mode", "sync-storm"] for v in "abc"},
)
WIDTH = run.pick(2048, 32)
model = mlp(run, run.pick(30, 4), WIDTH, torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, foreach=True)
x = torch.randn(run.size(4096, 16, 64), WIDTH, device=run.device, dtype=torch.bfloat16)
times = {}


def begin(module, _):
    times[module] = time.perf_counter()


def end(module, _, __):
    run.sync()
    times[module] = time.perf_counter() - times[module]


modules = [m for m in model if not run.fixed and run.variant == "a"]
for m in modules:
    m.register_forward_pre_hook(begin)
    m.register_forward_hook(end)


def step(_):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


if run.variant == "c" and not run.fixed:
    with torch.autograd.detect_anomaly(check_nan=True):
        run.loop(step)
else:
    run.loop(step)
run.done(device_syncs_per_step=len(modules), launch_blocking=os.environ.get("CUDA_LAUNCH_BLOCKING"))
