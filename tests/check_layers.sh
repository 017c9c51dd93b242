#!/usr/bin/env bash
# Fails when a module of src/ includes one that stands above it in the table of src/README.md, or when
# a file belongs to no row. Tries itself on toy trees first.
# usage: check_layers.sh [SRC-DIR]     without one: src and src/cli
set -euo pipefail
export LC_ALL=C

# check_tree DIR: prints what is wrong; status 1 if anything is.
check_tree() {
    find "$1" -maxdepth 1 -name '*.[ch]' | sort | awk -v dir="$1" '
    function complain(text) { print text; bad = 1 }

    # conf_table belongs to conf, unless it has a row of its own.
    function module_of(file,    m) {
        m = file
        sub(/^.*\//, "", m)
        sub(/\.[ch]$/, "", m)
        while (!(m in rank) && m ~ /_/)
            sub(/_[^_]*$/, "", m)
        return m
    }

    BEGIN {
        map = dir "/README.md"
        while ((getline line < map) > 0) {
            if (line !~ /^\|/)
                continue
            split(line, cell, "|")
            gsub(/[ \t]/, "", cell[3])
            if (cell[3] == "module" || cell[3] ~ /^-*$/)
                continue
            n = split(cell[3], names, ",")
            for (i = 1; i <= n; i++)
                rank[names[i]] = ++rows
        }
        if (!rows)
            complain(map ": no table of modules")
    }

    {
        file = $0
        from = module_of(file)
        if (!(from in rank)) {
            complain(file ": not in the table of modules")
            next
        }
        number = 0
        while ((getline line < file) > 0) {
            number++
            if (line !~ /^[ \t]*#[ \t]*include[ \t]*"/)
                continue
            split(line, part, "\"")
            if (part[2] == "config.h" || (part[2] == "script_lua.h" && from == "script"))
                continue
            to = module_of(part[2])
            if (!(to in rank))
                complain(file ":" number ": \"" part[2] "\" is not in the table of modules")
            else if (rank[to] < rank[from])
                complain(file ":" number ": " from " includes " to ", which stands above it")
        }
        close(file)
    }

    END { exit bad }'
}

# try EXPECTED-STATUS CONTENT-OF-b.c: a toy tree of three modules, a above b above c.
try() {
    printf '| layer | module | what |\n| --- | --- | --- |\n| 1 | a | top |\n| | b, c | rest |\n' >"$toy/README.md"
    : >"$toy/a.h" >"$toy/a.c" >"$toy/b.h" >"$toy/c.h" >"$toy/b_more.h"
    printf '%b' "$2" >"$toy/b.c"
    local status=0
    check_tree "$toy" >"$toy/out" || status=1
    if [ "$status" -ne "$1" ]; then
        printf 'self test: status %s, not %s, for: %s\n' "$status" "$1" "$2"
        cat "$toy/out"
        exit 1
    fi
}

toy=$(mktemp -d)
trap 'rm -rf "$toy"' EXIT
try 0 '#include <a.h>\n#include "b.h"\n#include "c.h"\n#include "b_more.h"\n'
try 1 '#include "c.h"\n#include "a.h"\n'
try 1 ' # include "a.h"\n'
try 1 '#include "unknown.h"\n'
try 1 '#include "script_lua.h"\n'
echo '#include "b.h"' >"$toy/c.c"
try 1 ''
rm "$toy/c.c"
: >"$toy/d.c"
try 1 ''
rm "$toy/d.c"
try 0 ''

src=${top_srcdir:-$(dirname "$0")/..}/src
status=0
[ $# -gt 0 ] || set -- "$src" "$src/cli"
for tree in "$@"; do
    check_tree "$tree" || status=1
done
exit $status
