"""Data-parallel training on several GPUs, one process each: ddp.py MODE.

Started with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, as torchrun does. The
modes come in pairs, one of which has the fault that a report must find:

    ddp          gradients reduced in buckets beside backward
    accumulate   eight micro-batches a step, all of which reduce; its twin is no_sync
    no_sync      eight micro-batches, of which the last reduces
    fsdp2        fully_shard, layer by layer
    slow_loader  the loader of the last rank takes 160 ms a batch in each of two workers
    loader       the same loader on all ranks
    late         the last rank sleeps for 60 ms before a collective of every step
    punctual     it does not

Each rank warms up beside the profiler and then runs as many steps as every other in its range; the
truth of that range is the rank's own device operations (common.referee), in the folder RANK of
GPUWAIT_TRUTH_DIR.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from common import CPU_ONLY, DEVICE, referee, setup, show, sync

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
# So much that the GPUs, not their hosts, set the pace where nothing is planted: a job whose hosts do
# has ranks that wait for each other by chance. fully_shard's host does more. Gradients that accumulate
# are large for what is computed, or a reduction hides beside it and costs next to nothing, however often;
# and they are few: beside a profiler each launch takes the host 40 us.
WIDE = (12288, 4, 2048)
SIZES = {"fsdp2": (2048, 16, 131072), "accumulate": WIDE, "no_sync": WIDE}
WIDTH, LAYERS, BATCH = (64, 4, 32) if CPU_ONLY else SIZES.get("".join(sys.argv[1:]), (2048, 16, 32768))
PART = 32  # of a batch, that a loader delivers
TYPE = torch.float32 if CPU_ONLY else torch.bfloat16
MICRO = 8
LAST = RANK == WORLD - 1
REGION_S = 1.0
WARM_SHARE = 0.5  # of what a referee asks for: enough to get to know one loop
LOSS_EVERY = 10


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.linear(self.norm(x)))


def blocks():
    torch.manual_seed(0)
    with torch.device(DEVICE):
        return torch.nn.Sequential(*[Block() for _ in range(LAYERS)]).to(TYPE)


class Batches(torch.utils.data.Dataset):
    """A part of a batch as it comes from storage; the model repeats it to its size."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.full((BATCH // PART, WIDTH), float(index % 7), dtype=TYPE)


def batches(mode):
    """An endless source of batches on the device."""
    if mode not in ("slow_loader", "loader"):
        fixed = torch.randn(BATCH, WIDTH, device=DEVICE, dtype=TYPE)
        while True:
            yield fixed
    slow = mode == "slow_loader" and LAST
    loader = torch.utils.data.DataLoader(
        Batches(0.16 if slow else 0), batch_size=None, num_workers=2, prefetch_factor=2, pin_memory=not CPU_ONLY
    )
    for part in loader:
        yield part.to(DEVICE, non_blocking=True).repeat(PART, 1)


def sharded():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = blocks()
    mesh = init_device_mesh(DEVICE, (WORLD,))
    for block in model:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def training(mode):
    """One step, as a function."""
    model = sharded() if mode == "fsdp2" else DistributedDataParallel(blocks())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    source = batches(mode)
    micro = MICRO if mode in ("accumulate", "no_sync") else 1
    state = {"steps": 0}

    def backward(batch):
        loss = model(batch).float().square().mean() / micro
        loss.backward()
        return loss

    def step():
        optimizer.zero_grad(set_to_none=True)
        for i in range(micro):
            batch = next(source)
            if mode == "no_sync" and i < micro - 1:
                with model.no_sync():
                    backward(batch)
            else:
                loss = backward(batch)
        optimizer.step()
        if mode in ("late", "punctual"):
            if mode == "late" and LAST:
                time.sleep(0.06)
            total = loss.detach().clone()
            dist.all_reduce(total)
        state["steps"] += 1
        if state["steps"] % LOSS_EVERY == 0:
            loss.item()

    return step


def start():
    setup()
    torch.use_deterministic_algorithms(False)
    if CPU_ONLY:
        dist.init_process_group("gloo")
        return
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)


def seconds_a_step(step):
    """The same figure on every rank, since they must all make as many steps."""
    for _ in range(5):
        step()
    sync()
    begun = time.perf_counter()
    for _ in range(10):
        step()
    sync()
    slowest = torch.tensor((time.perf_counter() - begun) / 10, device=DEVICE)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


def main():
    mode = sys.argv[1]
    start()
    step = training(mode)
    each = seconds_a_step(step)

    def warm(seconds):
        for _ in range(max(1, int(WARM_SHARE * seconds / each))):
            step()
        dist.barrier()

    folder = os.path.join(os.environ.get("GPUWAIT_TRUTH_DIR", "."), str(RANK))
    os.makedirs(folder, exist_ok=True)
    os.environ["GPUWAIT_TRUTH_DIR"] = folder
    with referee(mode, warm=warm, extra={"mode": mode, "rank": RANK, "ranks": WORLD}):
        for _ in range(max(LOSS_EVERY, int(REGION_S / each))):
            step()
    show("ms a step", round(each * 1e3))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
