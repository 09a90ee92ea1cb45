#!/usr/bin/env python3
"""How ddp_table.py judges, without a GPU: what is right passes, and each thing that is wrong shows."""

import contextlib
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ddp_table  # noqa: E402


def job(found, late=()):
    return {"findings": [{"id": f} for f in found], "late": [{"rank": r, "cause": c} for r, c in late]}


class Table(unittest.TestCase):
    def setUp(self):
        ddp_table.amiss.clear()

    def judged(self, mode, *args, exposed=20.0):
        truths = [{"time": {"exposed_comm_pct": exposed}} for _ in range(2)]
        with contextlib.redirect_stdout(io.StringIO()):
            ddp_table.judge_job(mode, truths, job(*args))
        return not ddp_table.amiss

    def test_late_rank(self):
        self.assertTrue(self.judged("slow_loader", ["comm-wait", "gpu-bound"], [(1, "host")]))
        for wrong in ([(0, "host")], [(1, "gpu")], []):
            self.setUp()
            self.assertFalse(self.judged("slow_loader", ["comm-wait"], wrong))

    def test_verdict(self):
        self.assertTrue(self.judged("accumulate", ["comm-excess"]))
        self.assertFalse(self.judged("accumulate", ["gpu-bound", "comm-excess"]))

    def test_excess_that_is_hidden(self):
        self.assertFalse(self.judged("accumulate", ["gpu-bound"], exposed=1.0))
        self.assertEqual(len(ddp_table.amiss), 1)  # the recording, not the verdict
        self.setUp()
        self.assertFalse(self.judged("accumulate", ["comm-excess"], exposed=1.0))
        self.assertEqual(len(ddp_table.amiss), 2)

    def test_twins(self):
        self.assertTrue(self.judged("loader", ["gpu-bound"]))
        self.assertFalse(self.judged("loader", ["comm-wait"]))
        self.setUp()
        self.assertFalse(self.judged("loader", ["gpu-bound"], [(1, "host")]))
        self.setUp()
        self.assertFalse(self.judged("loader", []))

    def test_waits(self):
        """Two collectives in 1 ms: rank 1 comes 100 us late to the first, rank 0 50 us to the second."""
        truths = [
            {"span_ms": 1.0, "collectives": [[0, 200000, "n"], [550000, 600000, "n"]]},
            {"span_ms": 1.0, "collectives": [[100000, 200000, "n"], [500000, 600000, "n"]]},
        ]
        self.assertEqual(ddp_table.waits(truths), [10.0, 5.0])
        truths[1]["collectives"].pop()
        self.assertEqual(ddp_table.waits(truths), [None, None])

    def test_rank(self):
        truth = {"kernels": {"f(int)": 3}, "time": {"exposed_comm_pct": 10.0}, "busy_pct": 50.0}
        time = {"exposed_comm_pct": 11.0, "idle_pct": 49.0}
        process = {
            "quality": {"dropped": 0},
            "devices": [{"kernels": [{"name": "f(int)", "calls": 3}], "time": time}],
        }
        changes = [
            (None, None, 0),
            (time, ("exposed_comm_pct", 12.5), 1),
            (time, ("exposed_comm_pct", None), 1),
            (time, ("idle_pct", 53.0), 1),
            (process["quality"], ("dropped", 1), 1),
            (process["devices"][0]["kernels"][0], ("calls", 4), 1),
        ]
        for where, change, wanted in changes:
            self.setUp()
            if where is not None:
                before = where[change[0]]
                where[change[0]] = change[1]
            with contextlib.redirect_stdout(io.StringIO()):
                ddp_table.judge_rank("ddp", 0, truth, process, None)
            self.assertEqual(len(ddp_table.amiss), wanted, (change, ddp_table.amiss))
            if where is not None:
                where[change[0]] = before


if __name__ == "__main__":
    unittest.main()
