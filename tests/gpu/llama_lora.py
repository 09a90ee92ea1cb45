"""Hugging Face Llama with peft LoRA adapters, gradient checkpointing and AdamW."""

import torch
from peft import LoraConfig, get_peft_model

from common import DEVICE, llama, pinned, referee, setup, show

setup()
base = llama()
base.config.use_cache = False
base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
base.enable_input_require_grads()
targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
config = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05, target_modules=targets, task_type="CAUSAL_LM")
model = get_peft_model(base, config).to(DEVICE)
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
batches = [pinned(torch.randint(2, 512, (4, 64))) for _ in range(5)]


def step(i):
    ids = batches[i].to(DEVICE, non_blocking=True)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


losses = [step(0), step(1)]
with referee("llama_lora"):
    losses += [step(i) for i in range(2, 5)]
for value in losses:
    show("loss", value)
