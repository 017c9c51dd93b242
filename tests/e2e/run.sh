#!/bin/sh
# Runs the end-to-end tests: real daemon, real redis-servers, real clients.
# usage: run.sh [options of pytest, such as -k WORD]
# environment: HOLDFASTD (the daemon under test, default build/holdfastd), E2E_FILES (test files, default
# all), E2E_DIR (where they are, default here), E2E_JOBS (files at a time, default 2: they mostly wait),
# E2E_RESULTS (directory for the junit report e2e.xml, default the current one). Exit status: 0 all passed,
# 77 nothing failed but something was skipped (no redis-server, say; each with its reason), else failed.
set -u
here=${E2E_DIR:-$(cd "$(dirname "$0")" && pwd)}
HOLDFASTD=${HOLDFASTD:-$PWD/build/holdfastd}
results=${E2E_RESULTS:-$PWD}
export HOLDFASTD PYTHONDONTWRITEBYTECODE=1 here

if ! command -v redis-server >/dev/null; then
    echo "e2e: redis-server is not installed" >&2
    exit 77
fi
if ! /usr/bin/python3 -c 'import pytest' 2>/dev/null; then
    echo "e2e: python3-pytest is not installed" >&2
    exit 77
fi
if [ ! -x "$HOLDFASTD" ]; then
    echo "e2e: no daemon at $HOLDFASTD" >&2
    exit 1
fi
mkdir -p "$results"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export work

# The longest first, so that the last job is a short one.
files=${E2E_FILES:-"test_find.py test_cli.py test_faults.py test_overload.py test_scenarios.py test_http.py test_takeback.py test_soak.py test_watchdog.py
    test_quorum.py test_waiting.py test_process.py test_locks.py test_admin.py test_protocol.py test_clients.py test_chaosproxy.py"}
for file in "$here"/test_*.py; do
    case "${E2E_FILES:-$files}" in
    *"${file##*/}"*) ;;
    *) [ -n "${E2E_FILES:-}" ] || files="$files ${file##*/}" ;;
    esac
done

# 5: the options chose no test of that file.
# shellcheck disable=SC2016,SC2086
printf '%s\n' $files | xargs -P "${E2E_JOBS:-2}" -I '{}' sh -c '
    file=$1; shift
    /usr/bin/python3 -m pytest -q --tb=short --junit-xml="$work/$file.xml" "$@" "$here/$file" \
        >"$work/$file.log" 2>&1
    status=$?
    [ $status -eq 0 ] || [ $status -eq 5 ] || { cat "$work/$file.log"; exit 1; }
    tail -n 1 "$work/$file.log" | sed "s/^/$file: /"
' sh '{}' "$@"
status=$?

/usr/bin/python3 - "$work" "$results/e2e.xml" <<'END'
import glob
import sys
import xml.etree.ElementTree as tree

total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
report = tree.Element("testsuites")
slow = []
for path in sorted(glob.glob(sys.argv[1] + "/test_*.xml")):
    suite = tree.parse(path).getroot().find("testsuite")
    report.append(suite)
    for key in total:
        total[key] += int(suite.get(key))
    for case in suite.iter("testcase"):
        name = "%s.%s" % (case.get("classname"), case.get("name"))
        slow.append((float(case.get("time")), name))
        for kind in ("failure", "error", "skipped"):
            if case.find(kind) is not None:
                print("%s: %s: %s" % (kind, name, case.find(kind).get("message", "").partition("\n")[0][:200]))
tree.ElementTree(report).write(sys.argv[2])
for seconds, name in sorted(slow, reverse=True)[:5]:
    print("slow: %5.1f s %s" % (seconds, name))
print("e2e: %(tests)d tests, %(failures)d failures, %(errors)d errors, %(skipped)d skipped" % total)
failed = total["tests"] == 0 or total["failures"] + total["errors"] > 0
sys.exit(1 if failed else 77 if total["skipped"] else 0)
END
summary=$?
[ "$status" -eq 0 ] || exit 1
exit "$summary"
