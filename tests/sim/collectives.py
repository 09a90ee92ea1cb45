#!/usr/bin/env python3
"""The simulation's rule for collectives, held against what it wrote: collectives.py DIR

DIR has the truth of each rank, RANK.json. Of each collective, and of each message, all that take part
say the same about the start of the last; nobody ends before it; and all end within the jitter of their
ends, unless one kernel does several such things."""
import glob
import json
import os
import sys

JITTER_NS = 1200


def main():
    met, members = {}, {}
    for path in glob.glob(os.path.join(sys.argv[1], "*.json")):
        rank = int(os.path.basename(path)[:-5])
        with open(path, encoding="utf-8") as f:
            rows = json.load(f)["collectives"]
        alone = {}  # how many such things its kernel does
        for row in rows:
            at = (row["start_ns"], row["end_ns"])
            alone[at] = alone.get(at, 0) + 1
        for row in rows:
            comm, index, peer = row["communicator"], row["index"], row["peer"]
            row["alone"] = alone[row["start_ns"], row["end_ns"]] == 1
            if peer < 0:
                met.setdefault((comm, index), {})[rank] = row
                members.setdefault(comm, set()).add(rank)
            else:
                ends = (rank, peer) if row["op"] == "Send" else (peer, rank)
                met.setdefault((comm, ends, index), {})[rank] = row
    assert len(met) > 10, "nothing to judge"
    late, apart = {}, 0
    for key, rows in met.items():
        wanted = members[key[0]] if len(key) == 2 else set(key[1])
        assert set(rows) == wanted and len(rows) > 1, "%s: on %s" % (key, sorted(rows))
        starts = [r["start_ns"] for r in rows.values()]
        ends = [r["end_ns"] for r in rows.values()]
        assert {r["latest_ns"] for r in rows.values()} == {max(starts)}, "%s: the last is another" % (key,)
        assert min(ends) > max(starts), "%s: ends before the last has started" % (key,)
        if all(r["alone"] for r in rows.values()):
            apart = max(apart, max(ends) - min(ends))
        last = max(rows, key=lambda r: rows[r]["start_ns"])
        late[last] = late.get(last, 0) + 1
    assert 0 < apart <= JITTER_NS, "ends are up to %d ns apart" % apart
    print("%d met; last to come:" % len(met), dict(sorted(late.items())))


main()
