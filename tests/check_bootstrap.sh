#!/usr/bin/env bash
# Fails when ./bootstrap does not work in a directory with a blank in its name, or when its check is silent while it
# runs or ends without the line that counts. In a toy tree, with a toy for each program that it calls.
set -euo pipefail
export LC_ALL=C

root=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
toy="$work/a toy"
mkdir -p "$toy/m4" "$work/bin"

# toy_program NAME: its text comes from standard input.
toy_program() {
    { echo '#!/usr/bin/env bash'; cat; } >"$1"
    chmod +x "$1"
}

cp "$root/bootstrap" "$toy/"
touch "$toy/configure.ac" "$toy/Makefile.am"
# As autoconf's: no blank in the path that it is called by.
toy_program "$toy/configure" <<'END'
case $0 in *' '*) echo "unsafe srcdir value: $0"; exit 1 ;; esac
touch config.status
END
toy_program "$work/bin/dpkg-query" <<<'printf installed'
toy_program "$work/bin/dpkg-parsechangelog" <<<'exit 1'
toy_program "$work/bin/autoreconf" <<<'exit 0'
# Builds a daemon that says what it was called with. Two tests pass; the third waits until somebody has been told.
toy_program "$work/bin/make" <<'END'
dir=.
[ "$1" != -C ] || dir=$2
[ "${1-}" != -s ] || dir=$3
case " $* " in
*" check "*)
    [ "${!#}" = check ] || exit 0
    mkdir -p "$dir/tests/unit" "$dir/tests/e2e"
    for name in one two; do
        echo ":test-result: PASS" | tee "$dir/tests/unit/$name.log" >"$dir/tests/unit/$name.trs"
        echo "PASS: tests/unit/$name"
    done
    echo "test_toy.py: 38 passed in 2.00s" >"$dir/tests/e2e/run.log"
    for try in $(seq 300); do
        ! grep -q 'tests: 40 done' "$SAID" || break
        sleep 0.1
    done
    echo ":test-result: PASS" >"$dir/tests/unit/three.trs"
    ;;
*)
    printf '#!/bin/sh\necho "toy $*"\n' >"$dir/holdfastd"
    chmod +x "$dir/holdfastd"
    ;;
esac
END

export PATH="$work/bin:$PATH" SAID="$work/said"
status=0

# expect WHAT REGEX: in what was said.
expect() {
    grep -Eq "$2" "$SAID" && return
    echo "$1: nothing like \"$2\" in:"
    sed 's/^/    /' "$SAID"
    status=1
}

(cd / && "$toy/bootstrap" run --port 7) >"$SAID" 2>&1 || true
expect "run in a directory with a blank" '^toy --dev --port 7$'

HOLDFAST_PROGRESS_S=1 "$toy/bootstrap" check >"$SAID" 2>&1 || true
expect "which step it is" '^bootstrap: step 3 of [0-9]+: tests$'
expect "tests while they run" '^bootstrap: tests: 40 done \([0-9]+ s\), running: tests/e2e/run$'
tail -n 1 "$SAID" >"$work/last"
SAID="$work/last"
expect "the last line" '^[0-9]+ passed, [0-9]+ failed, 0 skipped$'
exit $status
