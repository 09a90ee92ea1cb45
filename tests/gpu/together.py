"""What works on the GPU's clock and its captures beside us, all at once: together.py [SECONDS]

Rounds of a deterministic training step, by itself and compiled; a step captured anew and replayed,
while another thread launches; a Triton kernel and a matrix product that are tuned anew; convolutions
in benchmark mode; each third round under torch.profiler. A line a round with the bits of what is
deterministic, which depends on nothing but the seed; what is tuned may choose another kernel, so of
that it is only checked that it is right. Exit 1 if any of it is wrong or fails.
"""

import hashlib
import sys
import threading
import time

import torch
import torch._inductor.config
import triton
import triton.language as tl

from common import DEVICE, setup, sync

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 300
WIDTH, BATCH = 512, 256
# a choice that was made before is not made again from a file
torch._inductor.config.force_disable_caches = True

setup()
torch.use_deterministic_algorithms(True)


def training():
    model = torch.nn.Sequential(
        *[m for _ in range(4) for m in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.LayerNorm(WIDTH), torch.nn.GELU())]
    ).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True, capturable=True)
    x = torch.randn(BATCH, WIDTH, device=DEVICE)

    def objective():
        return model(x).square().mean()

    return model, optimizer, objective


def step(optimizer, objective):
    optimizer.zero_grad(set_to_none=False)
    loss = objective()
    loss.backward()
    optimizer.step()
    return loss


@triton.autotune(configs=[triton.Config({"SIZE": size}, num_warps=warps) for size in (256, 1024) for warps in (2, 4)], key=["n"])
@triton.jit
def scaled(x, out, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)


class Launching(threading.Thread):
    """Launches on a stream of its own while others capture; no memory is allocated meanwhile."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop, self.tensor, self.error = threading.Event(), torch.ones(1 << 14, device=DEVICE), None

    def run(self):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                while not self.stop.is_set():
                    for _ in range(16):
                        self.tensor.mul_(1.0)
                    time.sleep(0.001)
        except RuntimeError as error:
            self.error = error


def captured(optimizer, objective):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        step(optimizer, objective)
    for _ in range(20):
        graph.replay()


def tuned(number):
    x = torch.randn(4096 + number, device=DEVICE)
    out = torch.empty_like(x)
    scaled[lambda meta: (triton.cdiv(x.numel(), meta["SIZE"]),)](x, out, x.numel())
    assert torch.equal(out, x * 3.0), "Triton's kernel"
    conv = torch.nn.functional.conv2d
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.benchmark = True
    image = torch.randn(4, 16, 24 + number % 64, 32, device=DEVICE)
    weight = torch.randn(32, 16, 3, 3, device=DEVICE)
    y = conv(image, weight, padding=1)
    torch.backends.cudnn.benchmark = False
    assert torch.allclose(y, conv(image, weight, padding=1), atol=1e-2), "a convolution"
    torch.use_deterministic_algorithms(True)


def compiled_product(number):
    torch._dynamo.reset()
    a = torch.randn(256 + 16 * (number % 8), 512, device=DEVICE, dtype=torch.bfloat16)
    b = torch.randn(512, 384, device=DEVICE, dtype=torch.bfloat16)
    best = torch.compile(lambda p, q: (p @ q).relu(), mode="max-autotune")
    for _ in range(3):
        out = best(a, b).clone()
    assert torch.allclose(out, (a @ b).relu(), atol=1, rtol=0.05), "a compiled product"


def bits(models):
    whole = hashlib.sha256()
    for model in models:
        for p in model.parameters():
            whole.update(p.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()[:16]


def main():
    eager, compiled, graphed = training(), training(), training()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # what a capture needs first
        for _ in range(3):
            step(*graphed[1:])
    side.synchronize()
    fused = torch.compile(compiled[2])
    other = Launching()
    other.start()
    until, number, profiled = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < until:
        profiler = None
        if number % 3 == 2:
            profiler = torch.profiler.profile(activities=list(torch.profiler.supported_activities()))
            profiler.start()
        for _ in range(20):
            step(*eager[1:])
            step(compiled[1], fused)
        captured(*graphed[1:])
        state = torch.cuda.get_rng_state(), torch.get_rng_state()
        tuned(number)
        if number % 40 == 20:
            compiled_product(number)
            fused = torch.compile(compiled[2])
        torch.cuda.set_rng_state(state[0])
        torch.set_rng_state(state[1])
        sync()
        if profiler:
            profiler.stop()
            profiled += any(e.device_type == torch.autograd.DeviceType.CUDA for e in profiler.events())
        print("round", number, bits([m[0] for m in (eager, compiled, graphed)]), flush=True)
        if other.error:
            raise other.error
        number += 1
    other.stop.set()
    other.join()
    print("rounds %d, with device events in the profile %d" % (number, profiled), file=sys.stderr)
    assert profiled == number // 3, "a profile without device events"


main()
