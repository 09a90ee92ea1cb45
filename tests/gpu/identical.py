"""A deterministic training job of some seconds; prints the bits of every loss. Run bare, under
the preload, and with timing off: the output is the same."""

import hashlib
import struct

import torch

from busy import llama_lora
from common import setup, show

STEPS = 120

setup()
step, _ = llama_lora(2)
losses = [step() for _ in range(STEPS)]
show("first", losses[0])
show("last", losses[-1])
show("all", hashlib.sha256(b"".join(struct.pack("d", loss) for loss in losses)).hexdigest())
