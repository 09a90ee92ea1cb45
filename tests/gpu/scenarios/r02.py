"""R02: texts are tokenised when a batch is asked for, in the training process; the tokenizer's
own threads are busy too. Cured: tokenised once, before the loop.
"""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "true"

import random  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402,F401  (imported before the GPU is taken)
from tokenizers import Tokenizer, models, pre_tokenizers, trainers  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from common import Run, adamw, llama  # noqa: E402

run = Run("r02", {"a": ["input-cpu"]})
TEXTS, WORDS, LENGTH = run.size(64, 4), 2000, run.pick(256, 16)
rng = random.Random(1)
vocabulary = ["".join(rng.choice("abcdefghijklmnop") for _ in range(rng.randint(2, 9))) for _ in range(3000)]


def text(n):
    return " ".join(rng.choices(vocabulary, k=n))


tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.train_from_iterator(
    (text(200) for _ in range(200)), trainers.BpeTrainer(vocab_size=480, special_tokens=["[UNK]"], show_progress=False)
)
texts = [text(WORDS) for _ in range(4 * TEXTS)]


def collate(lines):
    encoded = tokenizer.encode_batch(lines)  # GUILTY
    return torch.tensor([e.ids[:LENGTH] for e in encoded])


class Endless(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 24

    def __getitem__(self, index):
        return texts[index % len(texts)]


model = llama(run, layers=4, hidden=256, vocab=8192)
optimizer = adamw(run, model)
if run.fixed:
    ready = [run.pin(collate(texts[i:i + TEXTS])) for i in range(0, len(texts), TEXTS)]
else:
    batches = iter(DataLoader(Endless(), batch_size=TEXTS, num_workers=0, collate_fn=collate))


def step(i):
    ids = ready[i % len(ready)] if run.fixed else next(batches)
    ids = ids.to(run.device, non_blocking=run.fixed)
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


run.loop(step)
run.done(texts_per_step=TEXTS, words_per_text=WORDS)
