"""What the PyTorch workloads share: determinism, output, small models, the referee.

A workload warms up, runs its measured region inside `with referee(NAME):`, and
prints results that depend on nothing but the seed.  Environment:

    GPUWAIT_REFEREE=0     no profiler and no truth file; the NVTX range stays
    GPUWAIT_TRUTH_DIR     where NAME.truth.json goes (default: here)
    GPUWAIT_KEEP_TRACE=1  also keep the profiler's NAME.trace.json.gz
    GPUWAIT_TEST_CPU=1    dry run of a script's logic on a machine without a GPU
"""

import contextlib
import gzip
import hashlib
import mmap
import os
import random
import shutil
import statistics
import struct
import sys
import tempfile
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch  # noqa: E402  (the variables above must come first)

import truth  # noqa: E402

CPU_ONLY = os.environ.get("GPUWAIT_TEST_CPU") == "1"
DEVICE = "cpu" if CPU_ONLY else "cuda"
# Kineto drops device rows that begin before its window or end after it, by a
# clock converted from the GPU's: keep clear of both edges.
WINDOW_MARGIN_S = 0.02
WARM_S = 4.0


def setup(seed=0):
    if not CPU_ONLY and not torch.cuda.is_available():
        sys.exit("no CUDA device")
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = False
    # Flash and plain attention have deterministic backward passes.
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)


def until_sampled(step):
    """Steps for so long that the sampler is at work by then."""
    begun = time.time()
    while time.time() - begun < 3:
        step()


def ratios(on, off):
    """Of neighbours: "median ratio R, 95 % interval [LOW, HIGH], N pairs", the interval by bootstrap."""
    each = [a / b for a, b in zip(on, off)]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(each, k=len(each))) for _ in range(2000))
    return "median ratio %.4f, 95 %% interval [%.4f, %.4f], %d pairs" % (
        statistics.median(each), medians[50], medians[1949], len(each))


def autotuning():
    """What an autotuner is to be watched at: a tensor that was at work until samples are taken, and
    choices of cuDNN's by trying."""
    setup()
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.benchmark = True
    warm = torch.randn(1 << 16, device=DEVICE)
    until_sampled(lambda: warm.mul_(1.0))
    sync()
    return warm


def sync():
    if not CPU_ONLY:
        torch.cuda.synchronize()


def show(label, value):
    """Print a number exactly, or a tensor as a hash of its bits."""
    if isinstance(value, torch.Tensor):
        bits = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        value = "%s %s" % (list(value.shape), hashlib.sha256(bits.numpy().tobytes()).hexdigest()[:16])
    elif isinstance(value, float):
        value = value.hex()
    print(label, value, flush=True)


class Noted:
    """Launches that have been issued, where they outlive the process."""

    def __init__(self, path):
        with open(path, "w+b") as f:
            f.truncate(8)
            self.map = mmap.mmap(f.fileno(), 8)
        self.n = 0

    def add(self, x, y):
        x.add_(y)
        self.n += 1
        struct.pack_into("<Q", self.map, 0, self.n)


def pinned(tensor):
    return tensor if CPU_ONLY else tensor.pin_memory()


def llama(layers=2, hidden=128, vocab=512, heads=4):
    """A LlamaForCausalLM with random weights in bf16."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    with torch.device(DEVICE):
        return LlamaForCausalLM(config).to(torch.bfloat16)


def how():
    gpu = None if CPU_ONLY else torch.cuda.get_device_name()
    return {
        "script": os.path.basename(sys.argv[0]),
        "referee": "torch.profiler, CUDA activities, exported trace",
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "gpu": gpu,
    }


@contextlib.contextmanager
def referee(name, extra=None, warm=None):
    """Range NAME, and a truth file of exactly the device work inside it.

    The device is idle where the range begins and where it ends, and the profiler
    starts before and stops after, so the recorder (which sees calls) and CUPTI
    (which sees executions) have the same set of operations.  `extra` adds keys to
    the truth that the script itself knows, such as its NCCL calls.

    `warm` runs before, with CUPTI at work already: it changes what it watches (calls last
    longer, kernels lie further apart), and a device that has rested runs faster for a while.
    Its last work belongs to the trace, and is told from the range's by the time between.
    """
    on = os.environ.get("GPUWAIT_REFEREE", "1") != "0"
    profiler = begin_ns = None
    sync()
    if on:
        activity = torch.profiler.ProfilerActivity
        profiler = torch.profiler.profile(
            activities=[activity.CPU if CPU_ONLY else activity.CUDA],
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=1) if warm else None,
        )
        profiler.start()
        sync()
        time.sleep(WINDOW_MARGIN_S)
    if warm:
        warm(WARM_S)
        if on:
            sync()
            profiler.step()  # from here on the trace keeps what it sees
            warm(4 * WINDOW_MARGIN_S)
        sync()
        time.sleep(0.002)
        begin_ns = time.time_ns()
        time.sleep(0.002)
    if not CPU_ONLY:
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.nvtx.range_push(name)
    yield
    sync()
    peak = None if CPU_ONLY else torch.cuda.max_memory_allocated()
    if not CPU_ONLY:
        torch.cuda.nvtx.range_pop()
    if not on:
        return
    time.sleep(WINDOW_MARGIN_S)
    profiler.stop()
    folder = os.environ.get("GPUWAIT_TRUTH_DIR", ".")
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "trace.json")
        profiler.export_chrome_trace(trace)
        truth.write(trace, os.path.join(folder, name + ".truth.json"), name, how(), peak, extra, begin_ns)
        if os.environ.get("GPUWAIT_KEEP_TRACE") == "1":
            kept = os.path.join(folder, name + ".trace.json.gz")
            with open(trace, "rb") as source, gzip.open(kept, "wb") as target:
                shutil.copyfileobj(source, target)
