"""A deterministic training job of some seconds; prints the bits of every loss. Run bare, under
the preload, and with timing off: the output is the same."""

import hashlib
import struct

import torch

from busy import llama_lora
from common import setup, show

STEPS = 120

setup()
# No warning but an error for what is not deterministic; flash attention's backward is so
# only when it is asked for.
torch.use_deterministic_algorithms(True)
torch.backends.cuda.enable_flash_sdp(False)
step, _ = llama_lora(2)
losses = [step() for _ in range(STEPS)]
show("first", losses[0])
show("last", losses[-1])
show("all", hashlib.sha256(b"".join(struct.pack("d", loss) for loss in losses)).hexdigest())
