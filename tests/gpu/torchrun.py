"""One rank of a job that torchrun starts: torchrun.py FOLDER [end|killed].

All ranks share one GPU; they meet by gloo, through host memory. Each rank does a step of its own size
(rank + 1 more additions than the first) so that one rank's recording cannot be taken for another's,
and notes in FOLDER/RANK.launches, in shared memory, how many launches it has issued. With `killed`
rank 1 kills itself in the middle of a step, as the kernel would when memory runs out; the others
wait in a collective, or for the device, until torchrun ends them.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist

from common import CPU_ONLY, DEVICE, Noted, referee, setup, show, sync

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
STEPS, ADDITIONS = 50, 40
KILLED_IN = 20


def step(noted, x, y, host, i, killed):
    """One addition is one launch of one kernel; the copies are none."""
    for k in range(ADDITIONS + RANK):
        noted.add(x, y)
        if killed and RANK == 1 and i == KILLED_IN and k == ADDITIONS // 2:
            os.kill(os.getpid(), signal.SIGKILL)
    host.copy_(x)  # waits for the device
    dist.all_reduce(host)
    y.copy_(host / (WORLD * (i + 2)))


def main():
    folder, killed = sys.argv[1], sys.argv[2:] == ["killed"]
    setup(RANK)
    dist.init_process_group("gloo")
    with torch.random.fork_rng(devices=[]):
        host = torch.randn(1 << 12)
    x, y = host.to(DEVICE), host.to(DEVICE)
    sync()
    dist.barrier()
    noted = Noted("%s/%d.launches" % (folder, RANK))
    os.environ["GPUWAIT_TRUTH_DIR"] = "%s/%d" % (folder, RANK)
    os.makedirs(os.environ["GPUWAIT_TRUTH_DIR"])
    with referee("torchrun"):
        for i in range(STEPS):
            step(noted, x, y, host, i, killed)
    if not CPU_ONLY:
        show("device", torch.cuda.get_device_name())
    print("rank %d of %d: %d launches" % (RANK, WORLD, noted.n), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
