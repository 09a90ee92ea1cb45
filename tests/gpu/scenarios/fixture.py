#!/usr/bin/env python3
"""A scenario's run to a fixture of at most 120 KiB: its dump, cut to the beginning of the loop,
and its truth, of which what the cut makes untrue is taken out.

    fixture.py RUN-FOLDER OUT-FOLDER      (TRIM: the trim program, default build/trim)
"""

import bisect
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, ".."))
import truth as truth_module  # noqa: E402

MOST_BYTES = 120 << 10
TRIM = os.environ.get("TRIM", os.path.join(HERE, "..", "..", "..", "build", "trim"))


def trim(dump, out, ms):
    run = subprocess.run([TRIM, dump, "loop", out] + (["%.3f" % ms] if ms else []), capture_output=True, text=True, check=False)
    return os.path.getsize(out) if run.returncode == 0 else None


def cut(dump, out, whole_ms):
    """The longest beginning that fits, or None for all of it."""
    size = trim(dump, out, None)
    if size is None:
        return False, None
    ms, low = None, 0.0
    high = whole_ms
    while size > MOST_BYTES or (ms and high - low > whole_ms / 64):
        if size > MOST_BYTES:
            high = ms or whole_ms
        else:
            low = ms
        ms = (low + high) / 2
        if high < 1:
            return False, None
        size = trim(dump, out, ms)
    if ms and size > MOST_BYTES:
        ms = low
        trim(dump, out, ms)
    return True, ms


def main():
    folder, out_folder = sys.argv[1:]
    name = os.path.basename(os.path.normpath(folder))
    with open(os.path.join(folder, name + ".truth.json"), encoding="utf-8") as f:
        truth = json.load(f)
    ends = truth.pop("step_ends_ms")
    out = os.path.join(out_folder, name + ".gwt")
    for dump in sorted(glob.glob(os.path.join(folder, "trace", "*.gwt")), key=os.path.getsize, reverse=True):
        made, ms = cut(dump, out, ends[-1] + 1000.0)
        if made:
            break
    else:
        sys.exit("fixture.py: %s: no dump with the range loop" % folder)
    if ms:
        truth["kept_ms"] = round(ms, 3)
        kept = bisect.bisect_right(ends, ms)
        truth["steps"] = {"loop": kept, "warmup": min(kept, truth["steps"]["warmup"])}
        for key in ("peak_allocated_bytes", "peak_reserved_bytes", "num_alloc_retries", "num_device_alloc", "num_device_free"):
            truth.pop(key, None)  # of the whole loop
    truth["profiled"].pop("kernel_us", None)
    truth["seal"] = truth_module.seal(truth)
    with open(os.path.join(out_folder, name + ".truth.json"), "w", encoding="utf-8") as f:
        json.dump(truth, f, indent=1)
        f.write("\n")
    print("%s: %d KiB, %s steps" % (name, os.path.getsize(out) >> 10, truth["steps"]["loop"]))


if __name__ == "__main__":
    main()
