#!/bin/sh
# Jobs of two ranks that wait for their devices so seldom that launch queues fill: nobody is late where
# none is, nor where devices slow down for a while, each at times of its own; one whose device is slower
# throughout is.
exec sh "$(dirname "$0")/ranks_jobs.sh" 2 1000 queue slower heat
