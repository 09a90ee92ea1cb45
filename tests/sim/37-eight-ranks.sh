#!/bin/sh
# The same of eight ranks, for the faults that come with the number.
exec sh "$(dirname "$0")/ranks_jobs.sh" 8 200 none data gc gpu link
