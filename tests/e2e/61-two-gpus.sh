#!/bin/sh
# Jobs of two ranks recorded on two H200s (tests/gpu/two_gpus.sh), cut to the ranges that CUPTI
# watched: kernels per name, busy and exposed communication, and who is late, against its figures.
here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
GPUWAIT=$B/gpuwait exec python3 "$here/../gpu/ddp_table.py" "$here/../fixtures/ranks" late punctual slow_loader ddp fsdp2
