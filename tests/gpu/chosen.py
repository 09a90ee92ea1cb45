"""What autotuners choose: a line per operation, with the kernels that it runs once it is tuned.

    chosen.py               prints what cuDNN's benchmark mode and Inductor's max-autotune chose
    chosen.py RUN BARE...   files with such lines: each choice of the first is one of the others'
"""

import json
import os
import sys
import tempfile


def read(path):
    with open(path, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split("\t", 1) for line in f if "\t" in line)


def compare(run, bare):
    chosen, others = read(run), [read(path) for path in bare]
    strange = [name for name in chosen if chosen[name] not in [other.get(name) for other in others]]
    varied = sum(len({other.get(name) for other in others}) > 1 for name in chosen)
    print("chosen kernels: %d operations, %d of which differ between %d bare runs, %d chosen as in none of them" % (
        len(chosen), varied, len(bare), len(strange)))
    for name in strange:
        print("  %s: %s; bare: %s" % (name, chosen[name], " or ".join(sorted({str(other.get(name)) for other in others}))))
    return bool(strange) or not chosen


def kernels(profile):
    """With their shapes: of one template's kernels those tell which it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8") as f:
            events = [e for e in json.load(f)["traceEvents"] if e.get("cat") == "kernel"]
    parts = ("grid", "block", "registers per thread", "shared memory")
    return ["%s %s" % (e["name"][:160], [e["args"].get(p) for p in parts]) for e in sorted(events, key=lambda e: e["ts"])]


def main():
    import torch
    import torch._inductor.config
    from torch.profiler import ProfilerActivity, profile

    from common import DEVICE, autotuning, sync

    # a choice that was made before is not made again from a file
    torch._inductor.config.force_disable_caches = True
    autotuning()

    def convolution(channels, size):
        conv = torch.nn.Conv2d(channels, 2 * channels, 3, padding=1).to(DEVICE)
        x = torch.randn(8, channels, size, size, device=DEVICE)
        return lambda: conv(x)

    def product(rows, width, half):
        a = torch.randn(rows, width, device=DEVICE, dtype=torch.bfloat16 if half else torch.float32)
        b = torch.randn(width, width, device=DEVICE, dtype=a.dtype)
        f = torch.compile(lambda x, y: torch.relu(x @ y), mode="max-autotune-no-cudagraphs", dynamic=False)
        return lambda: f(a, b)

    todo = {"conv %d %d" % (c, s): convolution(c, s) for c in (16, 64) for s in (24, 48, 96)}
    todo.update({"product %d %d %s" % p: product(*p) for p in ((256, 512, True), (2048, 1024, True), (1024, 1024, False))})
    with torch.no_grad():
        for f in todo.values():
            for _ in range(20):  # tuned at first, then beside samples
                f()
        sync()
        for name, f in todo.items():
            with profile(activities=[ProfilerActivity.CUDA]) as p:
                f()
                sync()
            print("%s\t%s" % (name, " + ".join(kernels(p))))


if __name__ == "__main__":
    sys.exit(compare(sys.argv[1], sys.argv[2:]) if len(sys.argv) > 2 else main())
