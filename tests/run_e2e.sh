#!/usr/bin/env bash
# The end-to-end tests as one test of `make check`. Leaves run_e2e.xml (junit) beside its log, from
# which `./bootstrap check` takes the single results. Exits 77 when pytest is not there.
# usage: run_e2e.sh [ARGUMENTS OF PYTEST]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
report=$PWD/tests/run_e2e.xml
export PYTHONDONTWRITEBYTECODE=1

rm -f "$report"
if ! python3 -c 'import pytest, redis'; then
    echo 'python3-pytest or python3-redis is not there'
    exit 77
fi
mkdir -p tests
exec python3 -m pytest -c "$here/e2e/pytest.ini" --rootdir="$here/e2e" --junitxml="$report" -ra "$@" "$here/e2e"
