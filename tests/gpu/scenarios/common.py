"""What the scenarios share: options, the timed loop, the referee, the truth file, small models.

    python3 r01.py [--fixed] [--variant b] [--scale 0.5|2] [--seconds 5] [--device cpu]

A scenario builds its model, gives its step to Run.loop(), and calls Run.done(). The loop, its
warm-up included, lies in the NVTX range "loop"; a few steps beside torch.profiler follow in the
range "profiled", if GPUWAIT_TRUTH_DIR is set, where NAME.truth.json goes. One JSON line is
printed. --device cpu is a dry run of the logic at toy sizes.
"""

import argparse
import contextlib
import fcntl
import json
import os
import random
import statistics
import sys
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402  (the variable above must come first)

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import truth  # noqa: E402

PROFILED_STEPS = 5
LEAST_STEPS = 12
HARD_LIMIT_S = 20.0
MARK_BYTES = 12347  # a copy on the device of this size separates steps in the referee's trace
WINDOW_MARGIN_S = 0.02  # Kineto drops device rows at the edges of its window


class Run:
    """One run of one scenario.

    expected: variant -> the findings that its report must hold, the first as its verdict.
    fixed_expected: the same for the cured twin; by default nothing is required of it, except
    that it must not name the positive's verdict.
    may_keep: the twin may still name it, with at most half of its time per step.
    """

    def __init__(self, name, expected, fixed_expected=None, may_keep=False, forbidden=None):
        parser = argparse.ArgumentParser(description="scenario " + name)
        parser.add_argument("--fixed", action="store_true", help="the cured twin")
        parser.add_argument("--variant", choices=sorted(expected), default=next(iter(expected)))
        parser.add_argument("--scale", type=float, default=1.0)
        parser.add_argument("--seconds", type=float, default=5.0, help="length of the loop")
        parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
        options = parser.parse_args()
        self.name, self.fixed, self.variant, self.scale = name, options.fixed, options.variant, options.scale
        self.seconds, self.device, self.cpu = options.seconds, options.device, options.device == "cpu"
        self.expected = expected[self.variant]
        self.may_keep = may_keep
        twin = (fixed_expected or {}).get(self.variant, [])
        self.findings = twin if self.fixed else self.expected
        self.forbidden = (forbidden or {}).get(self.variant, self.expected[:1]) if self.fixed else []
        self.random = random.Random("%s %g" % (name, self.scale))
        self.facts, self.marks, self.profile_rows = {}, 0, None
        self.steps = {"warmup": 0, "measured": 0, "profiled": 0}
        self._take_turn()
        if not self.cpu and not torch.cuda.is_available():
            sys.exit("no CUDA device")
        torch.manual_seed(0)
        self.mark_from = torch.zeros(MARK_BYTES, dtype=torch.uint8, device=self.device)
        self.mark_to = torch.empty_like(self.mark_from)

    def _take_turn(self):
        """One scenario at a time on the GPU, while the next one imports its packages."""
        path = os.environ.get("GPUWAIT_SCENARIO_LOCK")
        if path:
            self.lock = open(path, "w", encoding="utf-8")  # pylint: disable=consider-using-with
            fcntl.lockf(self.lock, fcntl.LOCK_EX)
            time.sleep(0.3)  # the process before gives its memory back

    @property
    def label(self):
        scale = "" if self.scale == 1 else "-x%g" % self.scale
        variant = "" if self.variant == "a" else "-" + self.variant
        return self.name + variant + ("-fixed" if self.fixed else "") + scale

    # ---- sizes ---------------------------------------------------------------------

    def expect(self, findings):
        """Of the script with its fault, at this size: what the default size shows is not all."""
        self.expected = findings
        if not self.fixed:
            self.findings = findings

    def pick(self, real, toy):
        return toy if self.cpu else real

    def size(self, real, toy, multiple=1):
        """A size that --scale changes, by a seeded factor near it."""
        if self.cpu:
            return toy
        factor = 1.0 if self.scale == 1 else self.scale * self.random.uniform(0.9, 1.1)
        return max(multiple, int(round(real * factor / multiple)) * multiple)

    # ---- device helpers ------------------------------------------------------------

    def sync(self):
        if not self.cpu:
            torch.cuda.synchronize()

    def pin(self, tensor):
        return tensor if self.cpu else tensor.pin_memory()

    def side_stream(self):
        return contextlib.nullcontext() if self.cpu else torch.cuda.stream(self._side())

    def _side(self):
        if not hasattr(self, "side"):
            self.side = torch.cuda.Stream()
        return self.side

    def wait_side_stream(self):
        if not self.cpu:
            torch.cuda.current_stream().wait_stream(self._side())

    @contextlib.contextmanager
    def _range(self, name):
        if not self.cpu:
            torch.cuda.nvtx.range_push(name)
        try:
            yield
        finally:
            if not self.cpu:
                torch.cuda.nvtx.range_pop()

    # ---- the loop ------------------------------------------------------------------

    @contextlib.contextmanager
    def measured(self, warm):
        """The loop's range; tick() after each step says whether to go on."""
        self.sync()
        before = {}
        if not self.cpu:
            self.facts["setup_peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_stats()
        self.warm, self.stamps, self.limit = warm, [time.perf_counter()], None
        with self._range("loop"):
            yield
            self.sync()
            end = time.perf_counter()
        done = len(self.stamps) - 1
        self.steps["warmup"], self.steps["measured"] = min(warm, done), max(0, done - warm)
        steps = [b - a for a, b in zip(self.stamps[warm:], self.stamps[warm + 1:])] or [0.0]
        self.step_ends_ms = [round((s - self.stamps[0]) * 1e3, 2) for s in self.stamps[1:]]
        self.facts["step_ms"] = {
            "median": round(statistics.median(steps) * 1e3, 4),
            "mean": round((end - self.stamps[min(warm, done)]) / max(1, done - warm) * 1e3, 4),
        }
        if not self.cpu:
            after = torch.cuda.memory_stats()
            self.facts["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
            self.facts["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
            for key in ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free"):
                self.facts[key] = after[key] - before[key]

    def tick(self, count=1):
        """A step (or `count` of them, taken together) is over."""
        now = time.perf_counter()
        begun = self.stamps[-1]
        self.stamps += [begun + (now - begun) * (k + 1) / count for k in range(count)]
        done = len(self.stamps) - 1
        if self.limit and done >= self.limit:
            return False
        seconds = self.pick(self.seconds, 0.0)
        warm_s = self.stamps[min(self.warm, done)] - self.stamps[0]
        until = self.stamps[0] + max(seconds, min(warm_s + seconds / 2, 2 * seconds))
        least = self.warm + self.pick(LEAST_STEPS, 2)
        return (now < until or done < least) and now - self.stamps[0] < HARD_LIMIT_S

    def loop(self, step, warm=10, limit=None, between=None):
        """step(i), from 0, for the run's seconds, or at most `limit` steps; then between(), then
        profiled."""
        with self.measured(warm):
            self.limit = limit
            i, go_on = 0, True
            while go_on:
                step(i)
                i += 1
                go_on = self.tick()
        if between:
            between()
        with self.profiled() as wanted:
            for k in range(wanted):
                self.mark()
                step(i + k)

    # ---- the referee ---------------------------------------------------------------

    def mark(self):
        """In a profiled part: a step begins here."""
        self.sync()
        self.mark_to.copy_(self.mark_from)
        self.sync()
        self.marks += 1

    @contextlib.contextmanager
    def profiled(self, steps=PROFILED_STEPS):
        """Gives the number of steps to run, each after mark(); 0 where no truth is wanted."""
        if not os.environ.get("GPUWAIT_TRUTH_DIR"):
            yield 0
            return
        activity = torch.profiler.ProfilerActivity
        profiler = torch.profiler.profile(activities=[activity.CPU if self.cpu else activity.CUDA])
        profiler.start()
        self.sync()
        time.sleep(WINDOW_MARGIN_S)
        with self._range("profiled"):
            yield steps
            self.mark()
        self.steps["profiled"] = self.marks - 1
        time.sleep(WINDOW_MARGIN_S)
        profiler.stop()
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "trace.json")
            profiler.export_chrome_trace(path)
            with open(path, encoding="utf-8", errors="replace") as f:
                self.profile_rows = json.load(f)["traceEvents"]

    def _per_step(self):
        """Kernels, their time and the copies of each profiled step, by CUPTI."""
        rows = [r for r in self.profile_rows if r.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        steps = []
        for row in sorted(rows, key=lambda r: r["ts"]):
            args = row.get("args", {})
            if row["cat"] == "gpu_memcpy" and args.get("bytes") == MARK_BYTES:
                steps.append({"kernels": 0, "gpu_us": 0.0, "h2d_bytes": 0, "d2h_bytes": 0, "d2h_calls": 0})
            elif row["name"].startswith(truth.OWN_KERNELS) or not steps:
                continue
            else:
                step = steps[-1]
                step["gpu_us"] += row["dur"]
                if row["cat"] == "kernel":
                    step["kernels"] += 1
                elif row["cat"] == "gpu_memcpy":
                    way = {"H2D": "h2d", "D2H": "d2h"}.get(truth.direction(row["name"]))
                    if way:
                        step[way + "_bytes"] += args["bytes"]
                    if way == "d2h":
                        step["d2h_calls"] += 1
        steps = steps[:-1]  # the last mark only ends the step before it
        keys = steps[0] if steps else ()
        return {key: [round(s[key], 3) for s in steps] for key in keys}

    # ---- results -------------------------------------------------------------------

    def guilty(self):
        """file:line of each line of this script that is marked with a comment GUILTY, or
        GUILTY:b for variant b alone."""
        path = os.path.abspath(sys.argv[0])
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        ends = ("# GUILTY", "# GUILTY:" + self.variant)
        return ["%s:%d" % (os.path.basename(path), n) for n, line in enumerate(lines, 1) if line.rstrip().endswith(ends)]

    def done(self, **facts):
        """Facts that the script knows by construction, for example syncs_per_step."""
        result = {
            "scenario": self.name, "variant": self.variant, "fixed": self.fixed, "scale": self.scale,
            "steps": {**self.steps, "loop": self.steps["warmup"] + self.steps["measured"]},
            **self.facts, **facts,
        }
        print(json.dumps(result), flush=True)
        folder = os.environ.get("GPUWAIT_TRUTH_DIR")
        if not folder:
            return
        reduced, dropped = truth.reduce_events(self.profile_rows)
        body = {
            "kind": "scenario", "range": "loop", **result,
            "expected_findings": self.findings, "forbidden_findings": self.forbidden,
            "positive_findings": self.expected, "may_keep_half": self.may_keep and self.fixed,
            "guilty": [] if self.fixed else self.guilty(),
            "per_step": self._per_step(), "step_ends_ms": self.step_ends_ms,
            "profiled": {"range": "profiled", **reduced},
            "how": {
                "script": os.path.basename(sys.argv[0]), "arguments": sys.argv[1:],
                "referee": "torch.profiler, CUDA activities, after the loop",
                "python": sys.version.split()[0], "torch": torch.__version__, "cuda": torch.version.cuda,
                "gpu": None if self.cpu else torch.cuda.get_device_name(),
                "driver": truth.driver_version(), **dropped,
            },
        }
        body["seal"] = truth.seal(body)
        with open(os.path.join(folder, self.label + ".truth.json"), "w", encoding="utf-8") as f:
            json.dump(body, f, indent=1)
            f.write("\n")


# ---- models ------------------------------------------------------------------------


def llama(run, layers, hidden, vocab=32000, heads=None, context=2048):
    """A LlamaForCausalLM with random weights in bf16, built on the device."""
    from transformers import LlamaConfig, LlamaForCausalLM

    if run.cpu:
        layers, hidden, vocab, heads = 2, 64, 512, 4
    heads = heads or max(4, hidden // 64)
    config = LlamaConfig(
        vocab_size=vocab, hidden_size=hidden, intermediate_size=3 * hidden, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=heads // 2, max_position_embeddings=context,
        bos_token_id=1, eos_token_id=None, pad_token_id=0,
    )
    with torch.device(run.device):
        return LlamaForCausalLM(config).to(torch.bfloat16)


def adamw(run, model):
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)


def mlp(run, depth, width, dtype=torch.float32):
    """Linear and ReLU, `depth` times."""
    blocks = [m for _ in range(depth) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(*blocks).to(run.device, dtype)


def spin(seconds):
    """Burn a core, as preprocessing in Python does."""
    end = time.perf_counter() + seconds
    x = 0
    while time.perf_counter() < end:
        x += 1
    return x
