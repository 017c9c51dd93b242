#!/bin/sh
# A minute of random valid traffic of all commands against the daemon, over masters that are stopped and killed.
# usage: run.sh [options of traffic.py, such as --seed N]
# environment: HOLDFASTD (the daemon under test), TRAFFIC_SECONDS (60), TRAFFIC_RUNS (3 seeds share them),
# TRAFFIC_RESULTS (where the trace of a failure is left, default the current directory). Exit status: 0 all is
# well, 77 skipped (no redis-server), else failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export HOLDFASTD="${HOLDFASTD:-$PWD/build/holdfastd}" PYTHONDONTWRITEBYTECODE=1
if [ ! -x "$HOLDFASTD" ]; then
    echo "traffic: no daemon at $HOLDFASTD" >&2
    exit 1
fi
exec /usr/bin/python3 "$here/traffic.py" --seconds "${TRAFFIC_SECONDS:-60}" --runs "${TRAFFIC_RUNS:-3}" \
    --results "${TRAFFIC_RESULTS:-.}" "$@"
