"""Collectives of a one-rank NCCL group.

On one rank an in-place all_reduce launches nothing and the others become copies;
the average is a multiplication by 1, which NCCL does run as a kernel.
"""

import os
import re
import tempfile

os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
scratch = tempfile.TemporaryDirectory()
# NCCL's own log of the calls it gets is the referee for them: with one rank, PyTorch answers
# some collectives (reduce_scatter_tensor) without asking NCCL.
LOG = os.path.join(scratch.name, "nccl.log")
os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="COLL", NCCL_DEBUG_FILE=LOG)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from common import CPU_ONLY, DEVICE, referee, setup, show  # noqa: E402

N = 4096  # elements of every collective, float32


def logged():
    """Calls so far by NCCL's log: op -> [calls, bytes]; bytes are count x element size."""
    calls = {}
    if not os.path.exists(LOG):
        return calls
    with open(LOG) as log:
        for op, count in re.findall(r"INFO (\w+): opCount .*? count (\d+) ", log.read()):
            entry = calls.setdefault("nccl" + op, [0, 0])
            entry[0] += 1
            entry[1] += int(count) * 4
    return calls


setup()
if not CPU_ONLY:
    torch.cuda.set_device(0)
dist.init_process_group(
    "gloo" if CPU_ONLY else "nccl",
    init_method="file://%s/store" % scratch.name,
    rank=0,
    world_size=1,
    device_id=None if CPU_ONLY else torch.device("cuda", 0),
)
source = torch.arange(N, dtype=torch.float32).to(DEVICE)
mean = dist.ReduceOp.SUM if CPU_ONLY else dist.ReduceOp.AVG


def collectives():
    summed, averaged = source.clone(), source.clone()
    gathered, scattered = torch.empty_like(source), torch.empty_like(source)
    sent = source * 2
    dist.all_reduce(summed)
    dist.all_reduce(averaged, op=mean)
    dist.all_gather_into_tensor(gathered, source)
    dist.reduce_scatter_tensor(scattered, source)
    dist.broadcast(sent, src=0)
    return summed, averaged, gathered, scattered, sent


collectives()
before = logged()
extra = {}
with referee("nccl", extra=extra):
    for _ in range(3):
        results = collectives()
    extra["nccl"] = [
        {"op": op, "calls": calls - before.get(op, [0, 0])[0], "bytes": size - before.get(op, [0, 0])[1]}
        for op, (calls, size) in sorted(logged().items())
    ]
for tensor in results:
    show("result", tensor)
dist.destroy_process_group()
