"""R18: generation with an unmerged LoRA adapter on every linear layer: three times the kernels a
token. Variant b: instead, weights of 4 bits that are looked up before every product. Variant
merged: merged weights, still launched one by one, to count the difference. Cured: plain weights
and one captured graph per token.
"""

import torch
from peft import LoraConfig, get_peft_model

from common import Run, llama
from decode import generate_loop, graphed_loop

run = Run("r18", {"a": ["launch-bound"], "b": ["launch-bound"], "merged": ["launch-bound"]})
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Fake4Bit(torch.nn.Module):
    """Two weights a byte, each an index into 16 values; turned into bf16 at every use."""

    def __init__(self, linear):
        super().__init__()
        weight = linear.weight.data
        self.shape, self.scale = weight.shape, float(weight.abs().max()) / 8
        level = (weight / self.scale).round().clamp(-8, 7).to(torch.int16) + 8
        level = level.reshape(-1, 2).to(torch.uint8)
        self.register_buffer("packed", level[:, 0] * 16 + level[:, 1])
        self.register_buffer("values", (torch.arange(16, device=weight.device) - 8).to(torch.bfloat16) * self.scale)

    def weight(self):
        high, low = self.packed >> 4, self.packed & 15
        return self.values[torch.stack((high, low), -1).int()].reshape(self.shape)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight())


def quantise(model, back):
    for parent in model.modules():
        for name, child in list(parent.named_children()):
            if name in TARGETS:
                packed = Fake4Bit(child)
                if back:
                    child.weight.data = packed.weight()
                else:
                    setattr(parent, name, packed)


model = llama(run, layers=run.size(8, 2), hidden=1024)
if run.variant == "b":
    quantise(model, back=run.fixed)
else:
    model = get_peft_model(model, LoraConfig(r=8, target_modules=TARGETS, task_type="CAUSAL_LM")).to(torch.bfloat16)
    if run.fixed or run.variant == "merged":
        model = model.merge_and_unload()
prompt = torch.randint(2, run.pick(32000, 512), (1, 32), device=run.device)
TOKENS = run.pick(50, 8)
(graphed_loop if run.fixed else generate_loop)(run, model, prompt, TOKENS)
run.done(tokens_per_call=TOKENS)
