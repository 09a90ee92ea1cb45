"""R11: transformers.Trainer with LoRA and its defaults, which test each step's loss for nan and
inf on the host. Cured: logging_nan_inf_filter=False.
"""

import tempfile

import torch
from peft import LoraConfig, get_peft_model
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from common import Run, llama

run = Run("r11", {"a": ["sync-per-step"]}, may_keep=True)
BATCH, LENGTH = run.size(32, 2), run.pick(1024, 16)
base = llama(run, layers=2, hidden=512)
base.config.use_cache = False
model = get_peft_model(base, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
rows = torch.randint(2, run.pick(32000, 512), (256, LENGTH))


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        ids = rows[index % len(rows)]
        return {"input_ids": ids, "labels": ids}


class Timing(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = not run.tick()


class Marks(TrainerCallback):
    def on_step_begin(self, args, state, control, **_):
        run.mark()


def train(steps, callback):
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, per_device_train_batch_size=BATCH, max_steps=steps, logging_steps=50, save_strategy="no",
            report_to=[], disable_tqdm=True, use_cpu=run.cpu, logging_nan_inf_filter=not run.fixed,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=Rows(), callbacks=[callback])
        trainer.remove_callback(PrinterCallback)
        trainer.train()


with run.measured(warm=10):
    train(1 << 20, Timing())
with run.profiled() as wanted:
    if wanted:
        train(wanted + 1, Marks())
run.done(filter_reads_per_step=0 if run.fixed else 2)
