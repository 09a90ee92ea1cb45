#!/usr/bin/env python3
"""The simulation's rule for collectives, held against what it wrote: collectives.py DIR

DIR has the truth of each rank, RANK.json. Of each collective all ranks say the same about the start
of the last; nobody ends before it; and all end within the jitter of their ends."""
import glob
import json
import os
import sys

JITTER_NS = 1200


def main():
    ranks = {}
    for path in glob.glob(os.path.join(sys.argv[1], "*.json")):
        with open(path, encoding="utf-8") as f:
            ranks[int(os.path.basename(path)[:-5])] = json.load(f)["collectives"]
    met = {}
    for rank, rows in ranks.items():
        for row in rows:
            if row["peer"] < 0:
                met.setdefault((row["communicator"], row["index"]), {})[rank] = row
    assert len(ranks) > 1 and len(met) > 10, "nothing to judge"
    for key, rows in met.items():
        assert len(rows) == len(ranks), "%s: only on %s" % (key, sorted(rows))
        starts = [r["start_ns"] for r in rows.values()]
        ends = [r["end_ns"] for r in rows.values()]
        assert {r["latest_ns"] for r in rows.values()} == {max(starts)}, "%s: the last is another" % (key,)
        assert min(ends) > max(starts), "%s: ends before the last has started" % (key,)
        assert max(ends) - min(ends) <= JITTER_NS, "%s: ends are %d ns apart" % (key, max(ends) - min(ends))
    late = {}
    for rows in met.values():
        last = max(rows, key=lambda r: rows[r]["start_ns"])
        late[last] = late.get(last, 0) + 1
    print("%d collectives of %d ranks; last to come:" % (len(met), len(ranks)), dict(sorted(late.items())))


main()
