#!/usr/bin/env bash
# Fails when a module of src/ includes one that stands above it in the table of src/README.md, in its own room or in
# another one, when a room includes one above it, or when a file belongs to no row. Tries itself on toy trees first.
# usage: check_layers.sh [SRC-DIR]     without one: src
set -euo pipefail
export LC_ALL=C

# check_tree DIR: prints what is wrong; status 1 if anything is.
check_tree() {
    find "$1" -mindepth 1 -name '*.[ch]' | sort | awk -v dir="$1" '
    function complain(text) { print text; bad = 1 }

    # room/table_more belongs to room/table, unless it has a row of its own; what has none at all to the row that is
    # named as its room.
    function module_of(path,    m) {
        m = path
        sub(/\.[ch]$/, "", m)
        while (!(m in rank) && m ~ /_[^\/]*$/)
            sub(/_[^_]*$/, "", m)
        if (!(m in rank)) {
            sub(/\/.*$/, "", m)
            m = m "/" m
        }
        return m
    }

    BEGIN {
        map = dir "/README.md"
        while ((getline line < map) > 0) {
            if (line !~ /^\|/)
                continue
            split(line, cell, "|")
            gsub(/[ \t]/, "", cell[2])
            gsub(/[ \t]/, "", cell[3])
            if (cell[3] == "module" || cell[3] ~ /^-*$/)
                continue
            if (cell[2] != "")
                room = cell[2]
            n = split(cell[3], names, ",")
            for (i = 1; i <= n; i++)
                rank[room "/" names[i]] = ++rows
        }
        if (!rows)
            complain(map ": no table of modules")
    }

    {
        file = $0
        path = substr(file, length(dir) + 2)
        from = module_of(path)
        if (path !~ /^[^\/]+\/[^\/]+$/ || !(from in rank)) {
            complain(file ": not in the table of modules")
            next
        }
        number = 0
        while ((getline line < file) > 0) {
            number++
            if (line !~ /^[ \t]*#[ \t]*include[ \t]*"/)
                continue
            split(line, part, "\"")
            if (part[2] == "config.h" || (part[2] == "redis/script_lua.h" && from == "redis/script"))
                continue
            to = module_of(part[2])
            if (part[2] !~ /\// || !(to in rank))
                complain(file ":" number ": \"" part[2] "\" is not in the table of modules")
            else if (rank[to] < rank[from])
                complain(file ":" number ": " from " includes " to ", which stands above it")
        }
        close(file)
    }

    END { exit bad }'
}

# try EXPECTED-STATUS CONTENT-OF-r/b.c: a toy tree of two rooms: a above b and c in r, above d in s.
try() {
    printf '| room | module | what |\n| --- | --- | --- |\n| r | a | top |\n| | b, c | rest |\n| s | d | below |\n' \
        >"$toy/README.md"
    mkdir -p "$toy/r" "$toy/s"
    : >"$toy/r/a.h" >"$toy/r/a.c" >"$toy/r/b.h" >"$toy/r/c.h" >"$toy/r/b_more.h" >"$toy/s/d.h"
    printf '%b' "$2" >"$toy/r/b.c"
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
try 0 '#include <a.h>\n#include "r/b.h"\n#include "r/c.h"\n#include "r/b_more.h"\n#include "s/d.h"\n'
try 1 '#include "r/c.h"\n#include "r/a.h"\n'
try 1 ' # include "r/a.h"\n'
try 1 '#include "r/unknown.h"\n'
try 1 '#include "c.h"\n'
try 1 '#include "redis/script_lua.h"\n'
for wrong in r/c.c:r/b.h s/d.c:r/c.h; do # upwards in a room, and from room to room
    printf '#include "%s"\n' "${wrong#*:}" >"$toy/${wrong%:*}"
    try 1 ''
    rm "$toy/${wrong%:*}"
done
for stray in r/e.c f.c r/s/d.c; do
    mkdir -p "$toy/$(dirname "$stray")"
    : >"$toy/$stray"
    try 1 ''
    rm "$toy/$stray"
done
rmdir "$toy/r/s"
try 0 ''

src=${top_srcdir:-$(dirname "$0")/..}/src
check_tree "${1:-$src}"
