"""Jobs for gate.sh: short loops of the usual shapes, and each with a change that a gate must notice.

    python3 gate_jobs.py JOB [CHANGE] [--steps 40]

JOB is eager, compiled, graph, lora, generate, dataloader or infer; CHANGE is one of CHANGES, for
the job that it names. Sizes are small: what counts is what a step does.
"""

import argparse
import contextlib
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch import nn
from torch.nn import functional as F

from common import CPU_ONLY, DEVICE, llama, pinned, setup

CHANGES = {
    "item": "eager",  # one more .item() a step
    "two": "eager",  # one kernel becomes two
    "foreach": "eager",  # the optimizer goes tensor by tensor
    "empty": "eager",  # empty_cache() in the loop
    "break": "compiled",  # a graph break inside what was one kernel
    "unpinned": "dataloader",  # pin_memory off
    "unmerged": "infer",  # LoRA beside the weights, no longer in them
}


@contextlib.contextmanager
def step_range():
    if CPU_ONLY:
        yield
        return
    torch.cuda.nvtx.range_push("step")
    yield
    torch.cuda.nvtx.range_pop()


def network():
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 16))


def eager(steps, change):
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=change != "foreach")
    average = [p.detach().clone() for p in model.parameters()]
    # Activations of 16 MiB have segments of their own, which empty_cache() gives back.
    x, y = pinned(torch.randn(8192, 256)), pinned(torch.randn(8192, 16))
    for _ in range(steps):
        with step_range():
            a, b = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)
            loss = F.mse_loss(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for kept, p in zip(average, model.parameters()):
                    if change == "two":
                        kept.mul_(0.9).add_(p, alpha=0.1)
                    else:
                        kept.lerp_(p, 0.1)
            loss.item()
            if change == "item":
                loss.item()
            if change == "empty" and not CPU_ONLY:
                torch.cuda.empty_cache()


def compiled(steps, change):
    model = network().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = pinned(torch.randn(64, 256)), pinned(torch.randn(64, 16))

    @torch.compile
    def objective(a, b):
        z = torch.sin(model(a))
        if change == "break":
            torch._dynamo.graph_break()
        return ((z * 2 + 1 - b) ** 2).mean()

    for _ in range(steps):
        with step_range():
            loss = objective(x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()


def graph(steps, change):
    model = network().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = pinned(torch.randn(64, 256))
    x, y = torch.randn(64, 256, device=DEVICE), torch.randn(64, 16, device=DEVICE)

    def work():
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            work()
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = work()
    for _ in range(steps):
        with step_range():
            x.copy_(batch, non_blocking=True)
            captured.replay()
            loss.item()


def lora_model(train):
    from peft import LoraConfig, get_peft_model

    base = llama()
    base.config.use_cache = False
    if train:
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        base.enable_input_require_grads()
    config = LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj", "up_proj"], task_type="CAUSAL_LM")
    return get_peft_model(base, config).to(DEVICE)


def lora(steps, change):
    model = lora_model(True)
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    batch = pinned(torch.randint(2, 512, (4, 64)))
    for _ in range(steps):
        with step_range():
            ids = batch.to(DEVICE, non_blocking=True)
            loss = model(input_ids=ids, labels=ids).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()


def infer(steps, change):
    model = lora_model(False).eval()
    if change != "unmerged":
        model = model.merge_and_unload()
    batch = pinned(torch.randint(2, 512, (4, 64)))
    with torch.no_grad():
        for _ in range(steps):
            with step_range():
                logits = model(input_ids=batch.to(DEVICE, non_blocking=True)).logits
                logits[:, -1].argmax(-1).tolist()


def generate(steps, change):
    model = llama(layers=3).eval()
    prompt = torch.randint(2, 512, (2, 10)).to(DEVICE)
    mask = torch.ones_like(prompt)
    with torch.no_grad():
        for _ in range(3):
            model.generate(input_ids=prompt, attention_mask=mask, max_new_tokens=steps, do_sample=False,
                           pad_token_id=0)


class Samples(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return torch.full((256,), i / self.count), torch.zeros(16)


def dataloader(steps, change):
    model = network().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = torch.utils.data.DataLoader(
        Samples(64 * steps), batch_size=64, num_workers=2, pin_memory=change != "unpinned" and not CPU_ONLY)
    for x, y in loader:
        with step_range():
            x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()


JOBS = {f.__name__: f for f in (eager, compiled, graph, lora, generate, dataloader, infer)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=sorted(JOBS))
    parser.add_argument("change", nargs="?", choices=sorted(CHANGES))
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    if options.change and CHANGES[options.change] != options.job:
        parser.error("%s is a change of %s" % (options.change, CHANGES[options.change]))
    setup()
    JOBS[options.job](options.steps, options.change)


if __name__ == "__main__":
    main()
