#!/bin/sh
# Jobs of two and of eight ranks on hosts with clocks of their own: the report names the rank that is
# late and why, and nobody where none is; its times are the truth's and the clocks are found.
# shellcheck source=tests/sim/lib.sh
. "$(dirname "$0")/lib.sh"
jobs=$here/ranks_jobs.sh
sh "$jobs" 2 400 || failures=1
sh "$jobs" 8 200 none data gc gpu link || failures=1
finish
