#!/bin/sh
# Holds drop-in use of the daemon to its model, a redis-server: the same programs, scripts and libraries on both.
# usage: run.sh [options of pytest, such as -k WORD]
# environment: HOLDFASTD, DROPIN_RESULTS (directory for e2e.xml), and what ../e2e/run.sh knows; HOLDFAST_LIBRARIES=all tries the libraries of all
# registries, not only Debian's and npm's; DROPIN_SEED (1) and DROPIN_PROGRAMS (so many of each kind and arrangement).
set -u
E2E_DIR=$(cd "$(dirname "$0")" && pwd)
files="test_same_replies.py test_libraries.py test_mirror.py test_differential.py"
[ "${HOLDFAST_LIBRARIES:-}" != all ] || files="test_more_libraries.py $files test_own_tests.py test_servers.py"
E2E_FILES=${E2E_FILES:-$files}
E2E_RESULTS=${DROPIN_RESULTS:-$PWD}
export E2E_DIR E2E_FILES E2E_RESULTS
exec "$E2E_DIR/../e2e/run.sh" "$@"
