"""A loop that uploads 256 MiB per step and multiplies: R04 and R05 share it."""

import torch

ROWS, COLUMNS = 8192, 16384  # of bf16: 256 MiB


def upload_loop(run, upload):
    """upload(host tensor) gives the device tensor; cured, one pinned copy runs ahead."""
    rows, columns = run.size(ROWS, 8, 128), run.pick(COLUMNS, 32)
    first = torch.randn(rows, columns).to(torch.bfloat16)
    host = [first, first.clone()]
    weight = torch.randn(columns, columns, device=run.device, dtype=torch.bfloat16)
    if run.fixed:
        host = [run.pin(h) for h in host]
    ahead = {}

    def fetch(i):
        with run.side_stream():
            ahead[i] = host[i % 2].to(run.device, non_blocking=True)

    def work(x):
        for _ in range(2):
            x = x @ weight
        return x

    def step(i):
        if not run.fixed:
            work(upload(host[i % 2]))
            return
        if i not in ahead:
            fetch(i)
        run.wait_side_stream()
        x = ahead.pop(i)
        if not run.cpu:
            x.record_stream(torch.cuda.current_stream())
        fetch(i + 1)
        work(x)

    run.loop(step, warm=5)
    run.done(h2d_bytes_per_step=host[0].nbytes, pinned=run.fixed)
