"""What replaying one captured graph per step really gains, beside the bound that the report
gives: a small training step (a), a decoding step (b). The loop launches; afterwards the very
same step is captured and timed. Has no twin.
"""

import statistics
import time

import torch
import transformers  # noqa: F401  (imported before the GPU is taken)

from common import Run, llama, mlp
from decode import GraphedDecoder

TEXT = 1000  # tokens, before the next begins
run = Run("whatif", {"a": ["launch-bound"], "b": ["launch-bound"]})


def training():
    width = run.pick(512, 16)
    model = mlp(run, run.size(24, 2), width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True, capturable=not run.cpu)
    x = torch.randn(256, width, device=run.device)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    return step, lambda _: None


def decoding():
    model = llama(run, layers=run.size(12, 2), hidden=1024)
    prompt = torch.randint(2, run.pick(32000, 512), (1, 32), device=run.device)
    decoder = GraphedDecoder(run, model, prompt, room=TEXT + 200, capture=False)
    return decoder.step, lambda i: decoder.restart() if i % TEXT == 0 else None


def capture(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def mean_ms(step, seconds=1.5):
    run.sync()
    begun, n = time.perf_counter(), 0
    while n < 20 or time.perf_counter() - begun < seconds:
        step(n)
        n += 1
        if n % 20 == 0:
            run.sync()
    run.sync()
    return (time.perf_counter() - begun) / n * 1e3


def measure_graph():
    if run.cpu:
        return
    replay = capture(step)

    def replayed(i):
        refresh(i)
        replay()

    graphed = run.facts["graphed_ms"] = statistics.median(mean_ms(replayed) for _ in range(3))
    run.facts["graphed_gain_pct"] = 100.0 * (1.0 - graphed / run.facts["step_ms"]["mean"])


step, refresh = {"a": training, "b": decoding}[run.variant]()


def launched(i):
    refresh(i)
    step()


run.loop(launched, limit=3000, between=measure_graph)
run.done()
