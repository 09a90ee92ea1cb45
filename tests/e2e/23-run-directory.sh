#!/bin/sh
# run: what becomes of a recording that is there already, and who joins whom.
# shellcheck disable=SC1091,SC2154,SC2016  # from lib.sh; and for the shells inside
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
unset RANK LOCAL_RANK WORLD_SIZE SLURM_PROCID SLURM_STEP_ID SLURM_JOB_ID OMPI_COMM_WORLD_RANK PMI_RANK

# A command that leaves a dump named by its argument, as the preload would.
cat >rec.py <<'END'
import os, struct, sys
from mkdump import training
out, name = os.environ["GPUWAIT_OUT"], sys.argv[1]
pid = int(sys.argv[2]) if len(sys.argv) > 2 else os.getpid()
start, boot = 0, bytes(16)
if len(sys.argv) > 2:  # as if that process were recording
    start = int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[19])
    boot = bytes.fromhex(open("/proc/sys/kernel/random/boot_id").read().strip().replace("-", ""))
training(pid, process_start=start, boot=boot).write(os.path.join(out, name + ".gwt"))
END
rec() { "$gpuwait" run -- python3 rec.py "$@" >"$out" 2>"$err"; }
files() { (cd "$1" 2>/dev/null && echo *); }

rec first
is "recorded" "first.gwt" "$(files gpuwait.trace)"
has "the summary names kernels" "$err" "^gpuwait: process [0-9]*: 60 kernels by 60 launch calls"
has "and a bound of idle" "$err" "^gpuwait: GPU 0: idle at least"
has "and how to go on" "$err" "read them with: gpuwait report$"
is "in 12 lines at most" 1 "$(($(wc -l <"$err") <= 12))"
rec second
is "the new one" "second.gwt" "$(files gpuwait.trace)"
is "the old one moved" "first.gwt" "$(files gpuwait.trace.old)"
rec third
is "the newest" "third.gwt" "$(files gpuwait.trace)"
is "the one before" "second.gwt" "$(files gpuwait.trace.old)"
"$gpuwait" run -- true 2>/dev/null
is "without a recording there is none" "" "$(ls gpuwait.trace 2>/dev/null)"
is "but the last one is kept" "third.gwt" "$(files gpuwait.trace.old)"

# what is not ours stays where it is
rec one
echo mine >gpuwait.trace/notes.txt
echo mine >gpuwait.trace/fake.gwt
echo mine >gpuwait.trace.old/keep.txt
ln -s /etc/passwd gpuwait.trace/link.gwt
rec two
is "other files stay" "fake.gwt link.gwt notes.txt two.gwt" "$(files gpuwait.trace)"
is "in the old one too" "keep.txt one.gwt" "$(files gpuwait.trace.old)"
rm -r gpuwait.trace gpuwait.trace.old
mkdir results
echo mine >results/model.bin
"$gpuwait" run --no-report -o results -- python3 rec.py a
is "a directory in use is used as it is" "a.gwt model.bin" "$(files results)"
is "and not renamed" "" "$(ls -d results.old 2>/dev/null)"
"$gpuwait" run --no-report -o results/ -- python3 rec.py b
is "a slash at its end does not matter" "a.gwt" "$(files results.old)"
"$gpuwait" run --no-report -o deep/er/dir -- python3 rec.py c
is "parents are made" "c.gwt" "$(files deep/er/dir)"
ln -s /etc linked.old
mkdir linked
GPUWAIT_OUT=$work/linked python3 rec.py x
runs "an .old that is a link" 125 "$gpuwait" run -o linked -- true
has "is not written through" "$err" "linked.old"
is "and the recording stays" "x.gwt" "$(files linked)"

# ring files that an old dump names go with it, if they are what they claim to be
python3 - <<'END'
import os, struct
from mkdump import training
def ring(path, pid, start, magic=b"GWTRING\0"):
    head = struct.pack("<8sHHIIIQ", magic, 1, 0, 4096, pid, 2, start)
    open(path, "wb").write(head + bytes(4096 - len(head)))
os.mkdir("rings"), os.mkdir("rings.old"), os.mkdir("elsewhere")
ring("elsewhere/its.ring", 4000001, 5)
ring("elsewhere/others.ring", 4000002, 6)
ring("elsewhere/notmagic.ring", 4000001, 5, b"precious")
for name, target in (("a", "its"), ("b", "others"), ("c", "notmagic")):
    d = training(4000001, ring=os.path.abspath("elsewhere/%s.ring" % target), process_start=5)
    d.write("rings.old/%s.gwt" % name)
ring("rings/x.ring", 4000003, 7)
training(4000003).write("rings/x.gwt")
ring("elsewhere/y.ring", 4000004, 8)
ring("elsewhere/z.ring", 4000004, 9)
for name, target in (("y", "y"), ("z", "z")):
    d = training(4000004, ring=os.path.abspath("elsewhere/%s.ring" % target), process_start=8)
    d.write("rings/%s.gwt" % name)
END
"$gpuwait" run --no-report -o rings -- true
is "its own goes, others stay" "notmagic.ring others.ring z.ring" "$(files elsewhere)"
is "a ring moves along with its dump" "x.gwt x.ring y.gwt y.ring z.gwt" "$(files rings.old)"

# somebody is alive in it
sleep 100 &
sleeper=$!
GPUWAIT_OUT=$work/live
export GPUWAIT_OUT
mkdir live
python3 rec.py alive $sleeper
unset GPUWAIT_OUT
"$gpuwait" run --no-report -o live -- python3 rec.py joined
is "a live recording is joined" "alive.gwt joined.gwt" "$(files live)"
kill $sleeper
wait $sleeper 2>/dev/null
"$gpuwait" run --no-report -o live -- python3 rec.py after
is "a dead one moves" "alive.gwt joined.gwt" "$(files live.old)"
mkfifo go
"$gpuwait" run --no-report -o both -- sh -c 'python3 rec.py early; read x <go' &
first=$!
until [ -e both/early.gwt ]; do sleep 0.1; done
"$gpuwait" run --no-report -o both -- python3 rec.py late
echo >go
wait $first
is "a run that still goes on is joined" "early.gwt late.gwt" "$(files both)"

# tasks of one job join, those of the next do not
task() { # JOB RANK
    env SLURM_JOB_ID="$1" SLURM_STEP_ID=0 SLURM_PROCID="$2" SLURM_STEP_NUM_TASKS=2 \
        "$gpuwait" run --no-report -o job -- python3 rec.py "job$1-rank$2"
}
task 1 0
task 1 1
is "two tasks of a job" "job1-rank0.gwt job1-rank1.gwt" "$(files job)"
task 2 1
task 2 0
is "the next job" "job2-rank0.gwt job2-rank1.gwt" "$(files job)"
is "the job before" "job1-rank0.gwt job1-rank1.gwt" "$(files job.old)"
env RANK=0 WORLD_SIZE=1 "$gpuwait" run --no-report -o job -- python3 rec.py alone
is "a job of one task is none" "alone.gwt" "$(files job)"
for rank in 0 1; do
    env RANK=$rank WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500 "$gpuwait" run --no-report \
        -o torch -- python3 rec.py rank$rank
done
is "torchrun's" "rank0.gwt rank1.gwt" "$(files torch)"

# many at once, into one directory
i=0
while [ $i -lt 8 ]; do
    env OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=8 PMIX_NAMESPACE=n1 "$gpuwait" run --no-report \
        -o crowd -- python3 rec.py rank$i &
    i=$((i + 1))
done
wait
is "eight at once" "rank0.gwt rank1.gwt rank2.gwt rank3.gwt rank4.gwt rank5.gwt rank6.gwt rank7.gwt" \
    "$(files crowd)"
if [ "$(id -u)" -ne 0 ]; then
    mkdir ro && chmod 555 ro
    runs "a directory that cannot be written" 125 "$gpuwait" run -o ro -- true
    has "said" "$err" "cannot write into"
fi
finish
