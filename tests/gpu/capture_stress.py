"""1,000 graph captures in GLOBAL mode on one thread while two others launch without pause
and the sampler times their work and harvests: no capture may be invalidated.

Prints the captures that succeeded and a checksum; exits 1 if any failed.
"""

import sys
import threading
import time

import torch

from common import DEVICE, setup, show, sync

CAPTURES = int(sys.argv[1]) if len(sys.argv) > 1 else 1000

setup()
x = torch.zeros(1 << 12, device=DEVICE)
others = [torch.ones(1 << 14, device=DEVICE) for _ in range(2)]
stop = threading.Event()
errors = []


def launch(tensor):
    """In place, so that this thread allocates nothing, which GLOBAL mode forbids."""
    try:
        with torch.cuda.stream(torch.cuda.Stream()):
            while not stop.is_set():
                for _ in range(64):
                    tensor.mul_(1.0)
    except RuntimeError as error:
        errors.append(str(error).splitlines()[0])


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    x.add_(1.0)
sync()
threads = [threading.Thread(target=launch, args=(t,)) for t in others]
for t in threads:
    t.start()
time.sleep(2.5)  # until the sampler times their work
good = 0
for i in range(CAPTURES):
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(side):
            graph.capture_begin(capture_error_mode="global")
            for _ in range(8):
                x.add_(1.0)
            graph.capture_end()
            graph.replay()
        good += 1
    except RuntimeError as error:
        errors.append(str(error).splitlines()[0])
stop.set()
for t in threads:
    t.join()
sync()
print("captures", good, "of", CAPTURES, "errors", errors[:3])
show("x", float(x[0]))
sys.exit(good != CAPTURES or bool(errors))
