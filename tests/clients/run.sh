#!/bin/sh
# Runs the scenarios of clients/scenarios with the agents of all client packages.
# usage: run.sh [options of pytest, such as -k "python and killed"]
# environment: HOLDFASTD, CLIENTS_RESULTS (directory for e2e.xml), CLIENTS_SEED (of what is done at random), and what
# ../e2e/run.sh knows; HOLDFAST_LIBRARIES=all tries the newest libraries and the languages that need much of Debian, too.
set -u
E2E_DIR=$(cd "$(dirname "$0")" && pwd)
E2E_FILES=${E2E_FILES:-$(cd "$E2E_DIR" && ls test_*.py)}
E2E_RESULTS=${CLIENTS_RESULTS:-$PWD}
export E2E_DIR E2E_FILES E2E_RESULTS
exec "$E2E_DIR/../e2e/run.sh" "$@"
