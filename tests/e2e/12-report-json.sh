#!/bin/sh
# report --json: every name of the schema, the right figures, null for what is not measured.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
mkdir t
python3 -c '
from mkdump import training
d = training(pid=4242, **{"env.RANK": "3"})
d.fact("command", "python \"train\".py")
d.write("t/a.gwt")
'
runs "report --json" 0 "$gpuwait" report --json t
is "nothing on stderr" "" "$(cat "$err")"
cat >check.py <<'END'
import json, sys
j = json.load(open(sys.argv[1]))
bad = 0

def is_(what, wanted, got):
    global bad
    if wanted != got:
        bad += 1
        print("%s: wanted %r, got %r" % (what, wanted, got))

def keys(what, wanted, got):  # wanted are there; what a later version adds is no fault
    for key in wanted.split():
        if key not in got:
            is_(what, key, sorted(got))

keys("root", "schema tool version processes verdict verdict_pid findings what_if", j)
is_("schema", 1, j["schema"])
is_("tool", "gpuwait", j["tool"])
p, = j["processes"]
keys("process", "pid host rank command clock quality launches syncs allocations nccl steps devices "
     "verdict findings what_if", p)
keys("quality", "complete recorded dropped holes driver_only_pct own_overhead_pct stuck_in", p["quality"])
keys("launches", "calls kernels captured graph_launches failed by_api api_us host_us_per_launch",
     p["launches"])
keys("api_us", "mean p50 p90 p99", p["launches"]["api_us"])
keys("syncs", "calls waited_ms by_api", p["syncs"])
keys("allocations", "calls failed ms by_api", p["allocations"])
keys("steps", "count median_ms spread_pct launches kernels syncs h2d_bytes micro_batches identical "
     "phases recompute_pct confidence", p["steps"])
keys("phases", "forward_pct backward_pct optimizer_pct", p["steps"]["phases"])
d, = p["devices"]
keys("device", "index name sms memory_bytes pcie window time queue_us met_idle_pct gap_bands gaps "
     "by_phase sites drains kernels copies memsets transfers memory", d)
keys("window", "wall_s excluded_s", d["window"])
keys("time", "compute_pct exposed_comm_pct exposed_copy_pct idle_pct idle busy_interval_pct "
     "provable_idle_pct nvidia_smi_pct sampled_share_pct anchor_residual_pct method", d["time"])
keys("idle", "launch_pct dispatch_pct host_cpu_pct host_blocked_pct sync_pct alloc_pct copy_pct "
     "load_pct comm_pct unknown_pct", d["time"]["idle"])
keys("gap_bands", "over_100us_pct 10_to_100us_pct under_10us_pct", d["gap_bands"])
keys("kernel", "name calls mean_us total_ms busy_pct below_sms_pct", d["kernels"][0])
keys("copies", "H2D D2H D2D", d["copies"])
keys("memsets", "calls bytes", d["memsets"])
keys("transfer", "direction memory calls bytes busy_ms gb_per_s exposed_pct", d["transfers"][0])
keys("memory", "peak_allocated_bytes peak_reserved_bytes activation_bytes headroom_bytes "
     "batch_multiplier alloc_retries growth_bytes_per_step", d["memory"])

# 3 steps of 20 launches, an upload of 1 MiB, a download of 4 bytes, two waits
is_("pid", 4242, p["pid"])
is_("rank", 3, p["rank"])
is_("host", "node7", p["host"])
is_("command", 'python "train".py', p["command"])
is_("clock", "monotonic", p["clock"])
is_("complete", True, p["quality"]["complete"])
is_("recorded", 3 * (2 + 20 + 1 + 4), p["quality"]["recorded"])
is_("dropped", 0, p["quality"]["dropped"])
is_("driver only", 10.0, p["quality"]["driver_only_pct"])
is_("stuck in", None, p["quality"]["stuck_in"])
is_("calls", 60, p["launches"]["calls"])
is_("kernels", 60, p["launches"]["kernels"])
is_("by api", {"cudaLaunchKernel": 54, "cuLaunchKernelEx": 6}, p["launches"]["by_api"])
is_("p50", 4.0, p["launches"]["api_us"]["p50"])
is_("syncs", {"cudaStreamSynchronize": 6}, p["syncs"]["by_api"])
is_("waited", 3 * 0.045, round(p["syncs"]["waited_ms"], 9))
is_("kernel counts", {"gemm_128x128": 30, "void at::native::elementwise_kernel<128>(float*, int)": 30},
    {k["name"]: k["calls"] for k in d["kernels"]})
is_("below SMs", [0.0, 100.0], [k["below_sms_pct"] for k in d["kernels"]])
is_("copies", {"H2D": {"calls": 3, "bytes": 3 << 20}, "D2H": {"calls": 3, "bytes": 12},
               "D2D": {"calls": 0, "bytes": 0}}, d["copies"])
is_("transfer", ("H2D", "pageable", 3, 3 << 20, round(3 * 1048576 / 300e3, 6)),
    tuple(d["transfers"][0][k] for k in ("direction", "memory", "calls", "bytes")) +
    (round(d["transfers"][0]["gb_per_s"], 6),))
is_("no rate where nothing was waited for", None, d["transfers"][1]["gb_per_s"])
is_("peak", (113 << 20, 136 << 20),
    (d["memory"]["peak_allocated_bytes"], d["memory"]["peak_reserved_bytes"]))
is_("sms", 132, d["sms"])
is_("pcie", "gen5 x16", d["pcie"])
is_("method", "bounds", d["time"]["method"])
# from the first copy's entry to the last wait's return: 4661 to 4990 of the third step
is_("wall", round((2 * 2330 + 330 - 1) / 1e6, 9), round(d["window"]["wall_s"], 9))
is_("idle", round(100 * (2 * 2001 + 3 * 10) / 4989, 4), round(d["time"]["provable_idle_pct"], 4))

def not_measured(o, names):
    for name in names.split():
        is_(name + " is not measured", None, o[name])

not_measured(d["time"], "compute_pct exposed_comm_pct exposed_copy_pct idle_pct busy_interval_pct "
             "nvidia_smi_pct sampled_share_pct anchor_residual_pct")
not_measured(d, "met_idle_pct gaps")
not_measured(d["kernels"][0], "mean_us total_ms busy_pct")
is_("steps: none found, or the three there are", True, p["steps"]["count"] in (0, 3))
if not p["steps"]["count"]:
    not_measured(p["steps"], "all median_ms launches micro_batches identical confidence")
is_("speaks for all", (4242, p["verdict"], p["findings"], p["what_if"]),
    (j["verdict_pid"], j["verdict"], j["findings"], j["what_if"]))
sys.exit(bad > 0)
END
python3 check.py "$out" >said 2>&1
is "names and figures" "" "$(cat said)"
finish
