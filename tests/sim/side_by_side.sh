#!/bin/sh
# usage: side_by_side.sh PROGRAM SEEDS SECONDS [FIRST]
# Runs SEEDS seeds of check_random from FIRST (1) on, and goes on until SECONDS have passed; as many
# processes as there are processors share them. Ends with the first seed that fails.
program=$1 seeds=$2 seconds=$3 first=${4:-1}
jobs=$(getconf _NPROCESSORS_ONLN)
share=$(((seeds + jobs - 1) / jobs))

pids=
i=0
while [ "$i" -lt "$jobs" ]; do
    SIM_FIRST=$((first + i)) SIM_STEP=$jobs SIM_SEEDS=$share SIM_SECONDS=$seconds "$program" &
    pids="$pids $!"
    i=$((i + 1))
done
trap 'kill $pids 2>/dev/null' INT TERM

status=0
for pid in $pids; do
    wait "$pid" || status=1
done
exit $status
