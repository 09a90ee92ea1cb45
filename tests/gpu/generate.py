"""Hugging Face generate, greedy, batch 2."""

import torch

from common import DEVICE, llama, referee, setup, show

setup()
model = llama(layers=3).eval()
prompt = torch.randint(2, 512, (2, 10)).to(DEVICE)
mask = torch.ones_like(prompt)


def answer(tokens):
    return model.generate(input_ids=prompt, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=0)


with torch.no_grad():
    answer(3)
    with referee("generate"):
        tokens = answer(12)
show("tokens", tokens.tolist())
