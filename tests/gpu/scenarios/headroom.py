#!/usr/bin/env python3
"""Does training fit at the batch that the report suggests, and not at 1.3 times that?

    headroom.py [--left GIB] [--batch N]

Another process holds all of the device's memory but some GiB. A small Llama trains at a batch of
N under the preload; the report's batch multiplier is then tried, and 1.3 times it, without the
preload. LIBGPUWAIT and GPUWAIT name the preload and the command. The last line is the verdict;
exit 0 if the first fits and the second does not.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("B", os.path.join(HERE, "..", "..", "..", "build"))
LIBRARY = os.path.abspath(os.environ.get("LIBGPUWAIT", os.path.join(BUILD, "libgpuwait.so")))
COMMAND = os.path.abspath(os.environ.get("GPUWAIT", os.path.join(BUILD, "gpuwait")))
OUT_OF_MEMORY = 7
STEPS = 40


def hold(left_gib):
    """The ballast: says so when it holds the memory, and ends with its input."""
    import torch

    torch.zeros(1, device="cuda")
    ballast = torch.empty(torch.cuda.mem_get_info()[0] - int(left_gib * 2**30), dtype=torch.uint8, device="cuda")
    print("held", ballast.nbytes, flush=True)
    sys.stdin.read()


def train(batch):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32000, hidden_size=1024, intermediate_size=3072, num_hidden_layers=6, num_attention_heads=16, num_key_value_heads=8
    )
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(0, 32000, (batch, 512), device="cuda")
    try:
        for _ in range(STEPS):
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
    except torch.cuda.OutOfMemoryError as error:
        print(str(error).splitlines()[0])
        sys.exit(OUT_OF_MEMORY)
    print("batch %d: peak %d MiB" % (batch, torch.cuda.max_memory_allocated() >> 20))


def child(*arguments, **extra):
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "GPUWAIT")}
    return subprocess.run([sys.executable, os.path.abspath(__file__), *arguments], env={**env, **extra}, check=False, timeout=120).returncode


def figures(folder):
    run = subprocess.run([COMMAND, "report", "--json", folder], stdout=subprocess.PIPE, check=True, timeout=60)
    process = max(json.loads(run.stdout)["processes"], key=lambda p: p["launches"]["kernels"])
    memory = process["devices"][0]["memory"]
    print(memory, flush=True)
    return memory


def outcome(status):
    return {0: "fits", OUT_OF_MEMORY: "does not fit"}.get(status, "fails with %d" % status)


def judge(options):
    """Right or not, and a line that says why."""
    holder = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--hold", str(options.left)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        held = holder.stdout.readline().decode().strip()
        if not held:
            return False, "the ballast was not to be had"
        print(held, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            status = child("--train", str(options.batch), LD_PRELOAD=LIBRARY, GPUWAIT_OUT=os.path.join(folder, "trace"))
            if status:
                return False, "the recorded run at batch %d %s" % (options.batch, outcome(status))
            memory = figures(os.path.join(folder, "trace"))
        times = memory["batch_multiplier"]
        if not times:
            return False, "no batch multiplier"
        if memory["headroom_without_others"]:
            return False, "free memory was not recorded"
        suggested, beyond = int(options.batch * times), math.ceil(options.batch * times * 1.3)
        fits, over = child("--train", str(suggested)), child("--train", str(beyond))
        return fits == 0 and over == OUT_OF_MEMORY, "%.1f GiB left, %.1f seen; batch %d x %.2f: %d %s, %d %s" % (
            options.left, memory["capacity_bytes"] / 2**30, options.batch, times,
            suggested, outcome(fits), beyond, outcome(over))
    finally:
        holder.stdin.close()
        holder.wait(30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--left", type=float, default=24.0)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--hold", type=float)
    parser.add_argument("--train", type=int)
    options = parser.parse_args()
    if options.hold is not None:
        return hold(options.hold)
    if options.train is not None:
        return train(options.train)
    right, verdict = judge(options)
    print("headroom: %s: %s" % ("right" if right else "WRONG", verdict))
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
