"""A small QLoRA-like fine-tuning loop for `make demo`: needs PyTorch and a GPU, nothing else.

It is written the way such loops often are, so that the report has something to say: the
"tokenizer" runs in the loop, batches are pageable and small, int8 base weights are
dequantised at every use, activations are recomputed in backward, and .item() ends each step.
"""

import random
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

LAYERS, WIDTH, HEADS, RANK, VOCAB = 8, 512, 8, 8, 4096
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
BATCH, LENGTH = 2, 256


class QuantisedLoRA(nn.Module):
    """A frozen int8 weight, dequantised at each use, plus a trained low-rank update."""

    def __init__(self, inputs, outputs):
        super().__init__()
        weight = torch.randn(outputs, inputs) / inputs**0.5
        scale = weight.abs().amax(dim=1, keepdim=True) / 127
        self.register_buffer("weight", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.down = nn.Parameter(torch.randn(RANK, inputs) / inputs**0.5)
        self.up = nn.Parameter(torch.zeros(outputs, RANK))

    def forward(self, x):
        base = F.linear(x, self.weight.to(x.dtype) * self.scale)
        return base + F.linear(F.linear(x, self.down), self.up)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = QuantisedLoRA(WIDTH, 3 * WIDTH), QuantisedLoRA(WIDTH, WIDTH)
        self.wide, self.narrow = QuantisedLoRA(WIDTH, 4 * WIDTH), QuantisedLoRA(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH).requires_grad_(False)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


def tokenize(rng):
    """Stands for a tokenizer that runs in the training loop."""
    words = [" ".join(rng.choice("abcdefgh") * rng.randint(1, 4) for _ in range(LENGTH + 1))
             for _ in range(BATCH)]
    return torch.tensor([[sum(map(ord, w)) * 31 % VOCAB for w in line.split()] for line in words])


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    model = Model().cuda()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3)
    begin = time.monotonic()
    for step in range(1, STEPS + 1):
        batch = tokenize(rng).cuda()
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, VOCAB).float(), batch[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        if step % 20 == 0 or step == STEPS:
            ms = (time.monotonic() - begin) / step * 1e3
            print(f"step {step}: loss {value:.3f}, {ms:.1f} ms/step")


if __name__ == "__main__":
    main()
