"""Workloads from 3 % to 99 % busy, for the timeline: busy.py NAME.

Each warms up for some seconds, in which the sampler gets to know its kernels, and then runs
its region beside the profiler. The truth file has busy_pct, gap_bands and kernel_us. The
profiler runs during the warm-up too, so that what is learnt there is of the same state.
"""

import sys
import time

import torch

from common import DEVICE, llama, pinned, referee, setup, show, sync


def lora_mlp():
    layers = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(8)).to(DEVICE)
    down = torch.nn.ParameterList(torch.randn(256, 8, device=DEVICE) * 0.02 for _ in range(8))
    up = torch.nn.ParameterList(torch.zeros(8, 256, device=DEVICE) for _ in range(8))
    optimizer = torch.optim.AdamW([*down, *up], lr=1e-3)
    x = torch.randn(64, 256, device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=True)
        y = x
        for layer, a, b in zip(layers, down, up):
            y = torch.relu(layer(y) + (y @ a) @ b)
        loss = y.square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, 60


def llama_lora(batch):
    from peft import LoraConfig, get_peft_model

    model = llama(layers=8, hidden=512, vocab=4096, heads=8)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
    model = get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    ids = torch.randint(0, 4096, (batch, 512), device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, 8


def conv():
    net = torch.nn.Sequential(
        *[m for c in (3, 64, 64, 64) for m in (torch.nn.Conv2d(c, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU())]
    ).to(DEVICE)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.randn(16, 3, 96, 96, device=DEVICE)

    def step():
        optimizer.zero_grad(set_to_none=True)
        net(x).square().mean().backward()
        optimizer.step()

    return step, 60


def generate():
    model = llama(layers=4, hidden=256, vocab=2048).eval()
    ids = torch.randint(0, 2048, (1, 16), device=DEVICE)

    def step():
        with torch.no_grad():
            return model.generate(ids, max_new_tokens=24, do_sample=False)

    return step, 4


def compiled():
    net = torch.nn.Sequential(*[m for _ in range(6) for m in (torch.nn.Linear(512, 512), torch.nn.GELU())]).to(DEVICE)
    fast = torch.compile(net)
    x = torch.randn(256, 512, device=DEVICE)

    def step():
        fast(x).square().mean().backward()

    return step, 60


def graph():
    x = torch.randn(1 << 18, device=DEVICE)
    a = torch.randn(1024, 1024, device=DEVICE, dtype=torch.bfloat16)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.mul_(1.0), torch.mm(a, a)
    sync()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured, stream=side):
        for _ in range(24):
            x.mul_(1.0)
            torch.mm(a, a)

    def step():
        captured.replay()
        time.sleep(0.0005)

    return step, 250


def prefetch():
    net = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(6)]).to(DEVICE)
    host = [pinned(torch.randn(1024, 2048)) for _ in range(2)]
    side = torch.cuda.Stream()
    state = {"i": 0}

    def fetch():
        with torch.cuda.stream(side):
            return host[state["i"] % 2].to(DEVICE, non_blocking=True)

    state["next"] = fetch()

    def step():
        torch.cuda.current_stream().wait_stream(side)
        x = state["next"]
        x.record_stream(torch.cuda.current_stream())
        state["i"] += 1
        state["next"] = fetch()
        with torch.no_grad():
            return net(x)

    return step, 150


def starved():
    net = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).to(DEVICE)

    def step():
        time.sleep(0.004)
        x = pinned(torch.ones(256, 1024)).to(DEVICE, non_blocking=True)
        return net(x).sum().item()

    return step, 60


def saturated():
    a = torch.randn(4096, 4096, device=DEVICE, dtype=torch.bfloat16)

    def step():
        for _ in range(10):
            torch.mm(a, a)

    return step, 100


def host_gap():
    step, _ = llama_lora(4)

    def gapped():
        time.sleep(0.02)
        return step()

    return gapped, 8


WORKLOADS = {
    "lora_mlp": lora_mlp, "conv_net": conv, "generate_tokens": generate, "compiled": compiled,
    "graph_replay": graph, "prefetch": prefetch, "starved": starved, "saturated": saturated,
    "llama_b1": lambda: llama_lora(1), "llama_b4": lambda: llama_lora(4), "llama_b16": lambda: llama_lora(16),
    "host_gap": host_gap,
}

if __name__ == "__main__":
    name = sys.argv[1]
    setup()
    step, rounds = WORKLOADS[name]()
    step()  # compiles, loads, plans
    sync()

    def warm(seconds):
        begun = time.time()
        n = 0
        while time.time() - begun < seconds:
            step()
            n += 1
            if n % 50 == 0:  # not so far ahead that the device is still at it when the time is up
                torch.cuda.current_stream().synchronize()

    with referee(name, warm=warm):
        for _ in range(rounds):
            step()
    show("done", 1)
