#!/usr/bin/env bash
# Fails when a C file is not formatted as .clang-format says. Versions of clang-format differ, so only
# 14 counts; exits 77 (skipped) without it. Sees first that a badly formatted file is rejected.
set -euo pipefail
cd "${top_srcdir:-$(dirname "$0")/..}"

format=
for name in clang-format-14 clang-format; do
    if command -v "$name" >/dev/null && "$name" --version | grep -q 'version 14\.'; then
        format=$name
        break
    fi
done
if [ -z "$format" ]; then
    echo 'clang-format 14 is not there'
    exit 77
fi

if printf 'int f(void) {\n  return  1; }\n' |
    "$format" --style=file --assume-filename=src/toy.c --dry-run -Werror 2>/dev/null; then
    echo 'self test: a badly formatted file passed'
    exit 1
fi

find src tests clients/c -name '*.[ch]' -print0 | sort -z | xargs -0 -r "$format" --style=file --dry-run -Werror
