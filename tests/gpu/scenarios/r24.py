"""R24: every tenth step saves the model and the optimizer to disk, and the GPU waits. Cured: a
copy to pinned memory beside the training, written by a thread.
"""

import os
import tempfile
import threading

import torch

from common import Run, adamw, mlp

run = Run("r24", {"a": ["save-stall"]})
run.seconds = max(run.seconds, 8.0)  # several periods
WIDTH, PERIOD = run.pick(2048, 32), 10
model = mlp(run, run.size(8, 2), WIDTH)
optimizer = adamw(run, model)
x = torch.randn(run.pick(4096, 16), WIDTH, device=run.device)
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "checkpoint.pt")
pinned, writers = {}, []


def save():
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)  # GUILTY


def tensors():
    yield from model.state_dict().items()
    for n, state in enumerate(optimizer.state.values()):
        for key, value in state.items():
            yield "%d.%s" % (n, key), value


def write(ready):
    if ready:
        ready.synchronize()
    torch.save(pinned, path)


def save_beside():
    if writers and writers[-1].is_alive():
        return  # the last one is still being written
    if not run.cpu:
        run._side().wait_stream(torch.cuda.current_stream())
    with run.side_stream():
        for name, value in tensors():
            if name not in pinned:
                pinned[name] = run.pin(torch.empty(value.shape, dtype=value.dtype))
            pinned[name].copy_(value, non_blocking=True)
        ready = None if run.cpu else torch.cuda.current_stream().record_event()
    run.wait_side_stream()
    writers.append(threading.Thread(target=write, args=(ready,)))
    writers[-1].start()


def step(i):
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if i % PERIOD == PERIOD - 1:
        (save_beside if run.fixed else save)()


run.loop(step)
for writer in writers:
    writer.join()
moved = sum(p.nbytes for p in model.parameters()) * 3
run.done(period=PERIOD, d2h_bytes_per_save=moved)
folder.cleanup()
