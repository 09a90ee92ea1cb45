"""The founding story: QLoRA on layers of a 7B model. Weights of 4 bits (nf4), LoRA on every
linear layer, 8-bit AdamW, gradient checkpointing, batch 1, the tokenizer in the loop, no
workers, pageable copies, the loss read at each step. Cured: batch 32, tokenised before, pinned,
no checkpointing. Needs bitsandbytes.
"""

import random

import bitsandbytes as bnb
import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaForCausalLM

from common import Run

run = Run("qlora", {"a": ["launch-bound", "small-batch", "recompute"]}, may_keep=True)
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LAYERS, HIDDEN, INNER, HEADS = run.pick((4, 4096, 11008, 32), (2, 128, 256, 4))
LENGTH, WORDS = run.size(512, 16, 16), 4000
BATCH = run.pick(32, 2) if run.fixed else 1
rng = random.Random(1)


def text(n):
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(n))


tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.train_from_iterator(
    (text(200) for _ in range(100)), trainers.BpeTrainer(vocab_size=2000, special_tokens=["[UNK]"], show_progress=False)
)
documents = [text(WORDS) for _ in range(64)]


def encode(document):
    return torch.tensor(tokenizer.encode(document).ids[:LENGTH])


class Documents(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return encode(documents[index % len(documents)])


def quantised():
    """A Llama of random weights whose linear layers, but for the head, hold 4 bits a weight."""
    config = LlamaConfig(
        vocab_size=32000, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS, bos_token_id=1, eos_token_id=None, pad_token_id=0, use_cache=False,
    )
    with torch.device(run.device):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if name in TARGETS:
                layer = bnb.nn.Linear4bit(
                    child.in_features, child.out_features, bias=False, compute_dtype=torch.bfloat16, compress_statistics=True,
                    quant_type="nf4", device="meta",
                )
                layer.weight = bnb.nn.Params4bit(child.weight.data, requires_grad=False, compress_statistics=True, quant_type="nf4")
                setattr(parent, name, layer.to(run.device))
    model.is_loaded_in_4bit = True
    for p in model.parameters():
        p.requires_grad_(False)
    return model


model = quantised()
if not run.fixed:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=16, lora_dropout=0.05, target_modules=TARGETS, task_type="CAUSAL_LM"))
model.train()
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = bnb.optim.AdamW8bit(trained, lr=1e-4)
if run.fixed:
    encoded = torch.stack([encode(d) for d in documents])
    ready = [run.pin(encoded[i:i + BATCH]) for i in range(0, len(encoded), BATCH)]
else:
    batches = iter(DataLoader(Documents(), batch_size=BATCH, num_workers=0))


def step(i):
    ids = ready[i % len(ready)] if run.fixed else next(batches)
    ids = ids.to(run.device, non_blocking=run.fixed)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if not run.fixed or i % 20 == 0:
        loss.item()


run.loop(step, warm=5)
run.done(batch=BATCH, length=LENGTH, lora_tensors=len(trained))
