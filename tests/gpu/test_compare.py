#!/usr/bin/env python3
"""The comparison itself, on made-up data: equal passes, any one changed number fails."""

import copy
import json
import os
import sys
import tempfile
import unittest

import compare
import truth

NAMES = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char*, 3ul> >(int)": 7,
    "void at::native::vectorized_elementwise_kernel<8, at::native::AddFunctor<float>, std::array<char*, 3ul> >(int)": 2,
    "nvjet_tst_64x8_64x16_4x1_v_bz_TNN": 12,
    "triton_poi_fused_add_0": 3,
}


def make_truth():
    made = {
        "kernels": dict(NAMES),
        "kernel_us": {name: 1.5 * count for name, count in NAMES.items()},
        "copies": {"H2D": {"calls": 3, "bytes": 4096}, "D2H": {"calls": 2, "bytes": 8}, "D2D": {"calls": 1, "bytes": 64}},
        "memset_calls": 5,
        "span_ms": 1.25,
        "busy_pct": 50.0,
        "gap_bands": {"over_100us_pct": 30.0, "10_to_100us_pct": 15.0, "under_10us_pct": 5.0},
        "peak_allocated_bytes": 118838272,
        "nccl": [{"op": "ncclAllReduce", "calls": 4, "bytes": 1024}],
        "range": "made_up",
        "how": {"script": "none"},
    }
    made["seal"] = truth.seal(made)
    return made


def make_report():
    names = list(NAMES)
    devices = [
        {
            "index": index,
            "kernels": [{"name": n, "calls": NAMES[n]} for n in part],
            "copies": copies,
            "memsets": {"calls": memsets, "bytes": 1},
            "memory": {"peak_allocated_bytes": peak},
        }
        for index, (part, copies, memsets, peak) in enumerate(
            [
                (names[:2], {"H2D": {"calls": 3, "bytes": 4096}, "D2H": {"calls": 1, "bytes": 4}}, 2, 118838272),
                (names[2:], {"D2H": {"calls": 1, "bytes": 4}, "D2D": {"calls": 1, "bytes": 64}}, 3, None),
            ]
        )
    ]
    quality = {"holes": 0, "dropped": 0, "driver_only_pct": 17.2}
    return {
        "schema": 1,
        "processes": [
            {"pid": 1, "quality": quality, "devices": devices, "nccl": [
                {"op": "all_reduce", "calls": 4, "bytes": 1024}, {"op": "GroupStart", "calls": 1, "bytes": 0}]},
            {"pid": 2, "quality": {"holes": 0, "dropped": 0}, "devices": []},
        ],
    }


def numbers(node, path=()):
    """Every path to a number in a JSON value."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers(value, path + (key,))
    elif isinstance(node, list):
        for key, value in enumerate(node):
            yield from numbers(value, path + (key,))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield path


def change(document, path):
    changed = copy.deepcopy(document)
    node = changed
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] += 1
    return changed


# Report figures that the truth has no counterpart for.
UNCOMPARED = {"index", "pid", "driver_only_pct"}


class Compare(unittest.TestCase):
    def assertEqualNames(self, a, b):
        self.assertEqual(compare.normalise(a), compare.normalise(b))

    def test_equal(self):
        lines, result = compare.compare(make_truth(), make_report())
        self.assertEqual(lines, [])
        self.assertEqual((result["kernels"], result["names"], result["driver_only_pct"]), (24, 4, 17.2))

    def test_every_truth_number(self):
        for path in numbers(make_truth()):
            self.assertTrue(compare.compare(change(make_truth(), path), make_report())[0], path)

    def test_compared_truth_numbers_without_seal(self):
        unsealed = make_truth()
        del unsealed["seal"]
        for path in numbers(unsealed):
            if path[0] in ("kernel_us", "span_ms", "busy_pct", "gap_bands"):
                continue
            self.assertTrue(compare.compare(change(unsealed, path), make_report())[0], path)

    def test_every_report_number(self):
        tested = 0
        for path in numbers(make_report()):
            if path[-1] in UNCOMPARED or "memsets" in path and path[-1] == "bytes" or path[-3:-1] == ("nccl", 1):
                continue
            tested += 1
            self.assertTrue(compare.compare(make_truth(), change(make_report(), path))[0], path)
        self.assertGreater(tested, 20)

    def test_kernel_missing_extra_renamed(self):
        for edit in ("missing", "extra", "renamed"):
            report = make_report()
            rows = report["processes"][0]["devices"][0]["kernels"]
            if edit == "missing":
                rows.pop()
            elif edit == "extra":
                rows.append({"name": "gpuwait_spacer", "calls": 1})
            else:
                rows[0]["name"] += "x"
            self.assertTrue(compare.compare(make_truth(), report)[0], edit)

    def test_peak_null(self):
        want = make_truth()
        del want["seal"]
        want["peak_allocated_bytes"] = None
        self.assertTrue(compare.compare(want, make_report())[0])
        report = make_report()
        report["processes"][0]["devices"][0]["memory"]["peak_allocated_bytes"] = None
        self.assertEqual(compare.compare(want, report)[0], [])

    def test_quality_must_be_there(self):
        report = make_report()
        report["processes"][0]["quality"]["holes"] = None
        self.assertTrue(compare.compare(make_truth(), report)[0])

    def test_empty_truth(self):
        empty = {"kernels": {}, "copies": {}, "memset_calls": 0, "peak_allocated_bytes": None}
        report = {"schema": 1, "processes": [{"quality": {"holes": 0, "dropped": 0}, "devices": []}]}
        self.assertTrue(compare.compare(empty, report)[0])
        self.assertEqual(compare.compare(empty, report, allow_empty=True)[0], [])

    def test_normaliser(self):
        self.assertEqualNames("f<std::array<char*, 3ul> >(int)", "f<std::array<char *,3UL>>( int )")
        self.assertEqualNames("f<(bool)1, (int)4, (unsigned int)2>()", "f<true, 4, 2u>()")
        self.assertEqualNames("(anonymous namespace)::f(int)", "<unnamed>::f(int)")
        self.assertEqualNames("f(int) [clone .isra.0] [clone .cold]", "f(int)")
        self.assertEqualNames(
            "g<h()::'lambda0'(float (*)(int), int)>(int)", "g<h()::{lambda(float (*)(int), int)#2}>(int)"
        )
        self.assertEqualNames("g<h()::'lambda'()::operator()() const::'lambda'(int)>()",
                              "g<h()::{lambda()#1}::operator()() const::{lambda(int)#1}>()")
        self.assertEqualNames("f<'unnamed1'>()", "f<{unnamed type#3}>()")

    def test_normaliser_keeps_apart(self):
        pairs = [
            ("f<4>()", "f<4u>()"), ("f<4u>()", "f<4ul>()"), ("f<true>()", "f<false>()"), ("f<1>()", "f<true>()"),
            ("f<{lambda()#1}>()", "f<{lambda()#2}>()"), ("f<(char)1>()", "f<1>()"), ("f(int)", "f(long)"),
            ("f<-1>()", "f<1>()"), ("f<unsigned int>()", "f<unsigned long>()"), ("f(int const*)", "f(int*)"),
            ("f<1, 23>()", "f<12, 3>()"),
        ]
        for a, b in pairs:
            self.assertNotEqual(compare.normalise(a), compare.normalise(b))

    def test_collisions_are_not_merged(self):
        lines, normalised, collisions = compare.match_kernels({"f<(int)4>()": 1, "f< 4>()": 2}, {"f<4>()": 3})
        self.assertEqual((len(lines), normalised, collisions), (1, 0, 1))
        lines, normalised, collisions = compare.match_kernels({"f<4>()": 1, "f<(int)4>()": 2}, {"f<4>()": 1})
        self.assertEqual((len(lines), collisions), (1, 1))
        lines, normalised, collisions = compare.match_kernels({"f<(int)4>()": 2}, {"f<4>()": 2})
        self.assertEqual((lines, normalised, collisions), ([], 1, 0))

    def test_command(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("truth.json", "report.json", "result.json")]
            for path, document in zip(paths, (make_truth(), make_report())):
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(document, f)
            quiet, sys.stdout = sys.stdout, open(os.devnull, "w", encoding="utf-8")
            errors, sys.stderr = sys.stderr, sys.stdout
            try:
                self.assertEqual(compare.main(paths[:2] + ["--result", paths[2]]), 0)
                with open(paths[1], "w", encoding="utf-8") as f:
                    json.dump(change(make_report(), ("processes", 0, "quality", "holes")), f)
                self.assertEqual(compare.main(paths[:2]), 1)
                self.assertEqual(compare.main([paths[0], folder + "/none"]), 2)
            finally:
                sys.stdout.close()
                sys.stdout, sys.stderr = quiet, errors
            with open(paths[2], encoding="utf-8") as f:
                self.assertEqual(json.load(f)["mismatches"], 0)


class Reduce(unittest.TestCase):
    @staticmethod
    def row(cat, name, ts, dur, **args):
        return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}

    def test_rows(self):
        rows = [
            self.row("kernel", "_Z1fPfi", 1000.0, 10.0, device=0),
            self.row("kernel", "f(float*, int)", 1005.0, 10.0, device=0),  # overlaps: union 15
            self.row("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1020.0, 5.0, bytes=100),  # gap 5
            self.row("gpu_memcpy", "Memcpy DtoA (Device -> Array)", 1075.0, 5.0, bytes=30),  # gap 50
            self.row("gpu_memset", "Memset (Device)", 1280.0, 20.0, bytes=7),  # gap 200
            self.row("kernel", "gpuwait_spacer", 1100.0, 30.0),
            self.row("cuda_runtime", "cudaMemcpyAsync", 1.0, 1.0),
            {"ph": "M", "name": "process_name"},
        ]
        made, facts = truth.reduce_events(rows)
        self.assertEqual(made["kernels"], {"f(float*, int)": 2})
        self.assertEqual(made["kernel_us"], {"f(float*, int)": 20.0})
        self.assertEqual(made["copies"]["H2D"], {"calls": 1, "bytes": 100})
        self.assertEqual(made["copies"]["D2D"], {"calls": 1, "bytes": 30})
        self.assertEqual(made["memset_calls"], 1)
        self.assertEqual(made["span_ms"], 0.3)
        self.assertEqual(made["busy_pct"], 15.0)
        bands = {"over_100us_pct": 66.6667, "10_to_100us_pct": 16.6667, "under_10us_pct": 1.6667}
        self.assertEqual(made["gap_bands"], bands)
        self.assertEqual(facts["own_kernels_dropped"], 1)
        self.assertNotIn("collectives", made)

    def test_communication(self):
        rows = [
            self.row("kernel", "f(int)", 0.0, 100.0),
            self.row("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 80.0, 60.0),  # 40 of it alone
            self.row("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 130.0, 30.0, bytes=1),  # 20 of it alone
            self.row("kernel", "f(int)", 180.0, 20.0),
        ]
        made, _ = truth.reduce_events(rows, base_ns=10**18)
        time = {"compute_pct": 60.0, "exposed_comm_pct": 20.0, "exposed_copy_pct": 10.0, "idle_pct": 10.0}
        self.assertEqual(made["time"], time)
        self.assertEqual([row[:2] for row in made["collectives"]], [[10**18 + 80000, 10**18 + 140000]])

    def test_unknown_copy_shows(self):
        made, _ = truth.reduce_events([self.row("gpu_memcpy", "Memcpy ??? (Host -> Device)", 1.0, 1.0, bytes=9)])
        self.assertEqual(made["copies"]["unknown"], {"calls": 1, "bytes": 9})

    def test_nothing(self):
        made, _ = truth.reduce_events([])
        self.assertEqual((made["kernels"], made["span_ms"], made["busy_pct"]), ({}, None, None))

    def test_nested_span(self):
        self.assertEqual(truth.gap_bands([(0, 100), (10, 20), (50, 60)])["busy_pct"], 100.0)


if __name__ == "__main__":
    unittest.main()
