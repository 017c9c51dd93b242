#!/usr/bin/env bash
# Holds doc/ to the tree. Fails when src, tests or man cite a rule (R4) or a promise (P4, promise 4) that doc/rules.md
# does not have; when a rule there names no test, a test that does not exist, or a name that is not in that test; when
# a page names a module that is not in the table of src/README.md, or links to nothing; when a word of the glossary is
# used nowhere, or a word that rules.md sets in italics is not in the glossary; when a comment of src names a file that is
# not there. Tries itself on toy trees first.
set -euo pipefail
export LC_ALL=C

# rules ROOT: R1, P1 ...: the headings of doc/rules.md.
rules() {
    sed -nE 's/^### ([RP][0-9]+) .*/\1/p' "$1/doc/rules.md"
}

# Prints "FILE:LINE:R4" for each rule that is cited; of "promises 3 and 4" both.
citations() {
    (cd "$1" && grep -rnoE --include='*.[ch1578]' --include='*.lua' --include='*.py' --include='*.sh' --include='*.pml' \
        --include='*.md' --exclude=check_rules.sh -e '\b[RP][0-9]+\b' -e '\b[Pp]romises? [0-9]+( and [0-9]+)?' \
        src tests man doc || true) |
        awk -F: '{ n = split($3, word, /[^RP0-9]+/)
            for (i = 1; i <= n; i++)
                if (word[i] ~ /^[RP]?[0-9]+$/)
                    print $1 ":" $2 ":" (word[i] ~ /^[0-9]/ ? "P" : "") word[i] }'
}

# Those that limits of doc/rules.md keep a number for are not there, and only doc/ may speak of them.
check_cited() {
    local root=$1 file line rule known kept bad=0 found=0
    known=$(rules "$root")
    kept=$(sed -nE '/^## Limits/,$s/^- (R[0-9]+), .*/\1/p' "$root/doc/rules.md")
    while IFS=: read -r file line rule; do
        found=$((found + 1))
        if grep -qx "$rule" <<<"$known" || { [[ $file == doc/* ]] && grep -qx "$rule" <<<"$kept"; }; then
            continue
        fi
        echo "$file:$line: $rule is not in doc/rules.md"
        bad=1
    done < <(citations "$root")
    if [ $found -eq 0 ]; then
        echo 'src: no rule is cited'
        bad=1
    fi
    return $bad
}

# Prints "R4|FILE|NAME" for each name in brackets behind a test, "R4|FILE|" for each test, and "R4||" for each rule.
named_tests() {
    awk '/^### / { rule = $2; print rule "||"; text = "" }
    /^##? / { rule = "" }
    rule { text = text " " $0 }
    rule && /^$/ {
        while (match(text, /`tests\/[^`]*`( \([^)]*\))?/)) {
            one = substr(text, RSTART + 1, RLENGTH - 1)
            text = substr(text, RSTART + RLENGTH)
            file = substr(one, 1, index(one, "`") - 1)
            print rule "|" file "|"
            if (!sub(/^[^(]*\(/, "", one))
                continue
            sub(/\)$/, "", one)
            n = split(one, names, /, +/)
            for (i = 1; i <= n; i++)
                print rule "|" file "|" names[i]
        }
        text = ""
    }' "$1/doc/rules.md"
}

check_tests() {
    local root=$1 rule file name last='' tested=1 bad=0
    while IFS='|' read -r rule file name; do
        if [ -z "$file" ]; then
            if [ $tested -eq 0 ]; then
                echo "doc/rules.md: $last names no test"
                bad=1
            fi
            last=$rule tested=0
        elif ! [ -f "$root/$file" ]; then
            echo "doc/rules.md: $rule: there is no $file"
            bad=1
        elif [ -n "$name" ] && ! grep -qF -e "$name" "$root/$file"; then
            echo "doc/rules.md: $rule: $file has no $name"
            bad=1
        else
            tested=1
        fi
    done < <(named_tests "$root" && echo 'end||')
    return $bad
}

# Prints the modules of the table in src/README.md, as room/module.
modules() {
    awk -F'|' '/^\|/ {
        gsub(/[ \t]/, "", $2)
        gsub(/[ \t]/, "", $3)
        if ($3 == "module" || $3 ~ /^-*$/)
            next
        if ($2 != "")
            room = $2
        n = split($3, names, ",")
        for (i = 1; i <= n; i++)
            print room "/" names[i]
    }' "$1/src/README.md"
}

# Words like `room/module` or `redis/lua/x.lua`.
check_modules() {
    local root=$1 table name rule bad=0
    table=$(modules "$root")
    while read -r name; do
        if [[ $name == *.lua ]] && [ -f "$root/src/$name" ]; then
            continue
        elif ! grep -qx -e "$name" <<<"$table"; then
            echo "doc: $name is no module of src/README.md"
            bad=1
        fi
    done < <(grep -hoE '`[a-z]+/[a-z_./]+`' "$root"/doc/*.md | tr -d '`' | grep -v '^tests/' | sort -u)
    for rule in $(rules "$root" | grep R); do
        if ! RULE=$rule awk '/^##/ { here = $2 == ENVIRON["RULE"] }
            here && /^\*Where:\* `/ { found = 1 }
            END { exit !found }' "$root/doc/rules.md"; then
            echo "doc/rules.md: $rule does not say where it is"
            bad=1
        fi
    done
    return $bad
}

# [words](file), and [words](#heading) of the same page.
check_links() {
    local root=$1 page target bad=0
    while IFS=: read -r page target; do
        if [[ $target == \#* ]]; then
            grep -qiE -e "^#+ ${target#\#}\$" "$root/doc/$page" && continue
        elif [ -e "$root/doc/${target%#*}" ]; then
            continue
        fi
        echo "doc/$page: $target is not there"
        bad=1
    done < <(cd "$root/doc" && grep -HoE '\]\([^):]*\)' ./*.md | sed -E 's/^\.\///; s/:\]\(/:/; s/\)$//')
    return $bad
}

terms() {
    sed -nE 's/^- \*\*([^*]*)\*\*: .*/\1/p' "$1/doc/glossary.md"
}

# A word in italics may have an ending: *planted*, *calls*.
check_glossary() {
    local root=$1 term word found rows=0 bad=0
    while read -r term; do
        rows=$((rows + 1))
        if ! grep -rqiE -e "\b${term// /[ -]}" "$root/src" "$root/man" "$root/doc/rules.md" "$root/doc/states.md"; then
            echo "doc/glossary.md: nobody says $term"
            bad=1
        fi
    done < <(terms "$root")
    if [ $rows -eq 0 ]; then
        echo 'doc/glossary.md: no terms'
        bad=1
    fi
    while read -r word; do
        found=0
        while read -r term; do
            [[ ${word,,} != "${term,,}"* ]] || found=1
        done < <(terms "$root")
        if [ $found -eq 0 ]; then
            echo "doc/glossary.md: no $word, which doc/rules.md has in italics"
            bad=1
        fi
    done < <(sed 's/\*\*[^*]*\*\*//g; s/`[^`]*`//g' "$root/doc/rules.md" | grep -oE '\*[A-Za-z][a-z -]*\*' | tr -d '*' | sort -u)
    return $bad
}

# Comments say table.c, conf/table.c or acquire.lua.
check_files() {
    local root=$1 files place name bad=0
    files=$(cd "$root" && find src tests -name '*.[ch]' -o -name '*.lua')
    while IFS=' ' read -r place name; do
        if ! grep -qE -e "(^|/)${name//./\\.}\$" <<<"$files"; then
            echo "$place: there is no $name"
            bad=1
        fi
    done < <(cd "$root" && grep -rnE --include='*.[ch]' --include='*.lua' '\.(c|h|lua)\b' src | grep -v ':#include' |
        awk '{ place = $1
            sub(/:[^0-9:]*$/, "", place)
            split(place, part, ":")
            text = $0
            while (match(text, /[a-z0-9_\/<]*[a-z0-9_]\.(lua|[ch])([^a-z0-9_(.]|$)/)) {
                name = substr(text, RSTART, RLENGTH)
                text = substr(text, RSTART + RLENGTH - 1)
                sub(/[^a-z]$/, "", name)
                if (name !~ /^<|_lua\.h$/)
                    print part[1] ":" part[2], name
            }
        }')
    return $bad
}

check_all() {
    local status=0 check
    for check in check_cited check_tests check_modules check_links check_glossary check_files; do
        "$check" "$1" || status=1
    done
    return $status
}

# --- self test -----------------------------------------------------------------------------------

toy=$(mktemp -d)
trap 'rm -rf "$toy"' EXIT

toy_tree() {
    rm -rf "${toy:?}"/*
    mkdir -p "$toy/src/lock/lua" "$toy/tests/sim" "$toy/man" "$toy/doc"
    printf '| room | module | what |\n| --- | --- | --- |\n| lock | hold, claim | top |\n| | line | below |\n' >"$toy/src/README.md"
    printf '/* Planted (safety R3); promises 1 and 2. */\n' >"$toy/src/lock/hold.c"
    printf -- '-- plant: a hold where it is missing\n' >"$toy/src/lock/lua/plant.lua"
    printf '/* P2 */ START_TEST(one) START_TEST(two)\n' >"$toy/tests/sim/check_a.c"
    : >"$toy/tests/sim/check_b.c"
    echo '.Sh PROMISES' >"$toy/man/x.8"
    printf '# Rules\n[words](glossary.md), [end](#limits)\n### P1 One\nx\n\n*Test:* `tests/sim/check_a.c`.\n
### P2 Two\n*Test:* `tests/sim/check_b.c`.\n\n### R3 Three\nA *hold* is *planted*. R14 comes later.\n
*Where:* `lock/claim`,\n`lock/lua/plant.lua`.\n\n*Test:* `tests/sim/check_b.c`; `tests/sim/check_a.c` (one,\ntwo).\n
## Limits\n- R14, later: not yet.\n' >"$toy/doc/rules.md"
    printf -- '- **hold**: a thing; `lock/hold`.\n- **plant**: to put; `lock/line`.\n' >"$toy/doc/glossary.md"
    : >"$toy/doc/states.md"
}

# try SAID FILE SED-SCRIPT: the toy tree passes, and no longer after the change: the check then says that.
try() {
    toy_tree
    if ! check_all "$toy"; then
        echo 'self test: a good tree is rejected'
        exit 1
    fi
    sed -i "$3" "$toy/$2"
    if check_all "$toy" >"$toy/said"; then
        echo "self test: $2 is taken after $3"
        exit 1
    fi
    if ! grep -qE -e "$1" "$toy/said"; then
        echo "self test: $2 after $3: not \"$1\" but:"
        cat "$toy/said"
        exit 1
    fi
}

try 'hold.c:1: R4 is not' src/lock/hold.c 's/R3/R4/'
try 'hold.c:1: P7 is not' src/lock/hold.c 's/and 2/and 7/'
try 'check_a.c:1: P9 is not' tests/sim/check_a.c 's/P2/P9/'
try 'hold.c:1: R14 is not' src/lock/hold.c 's/R3/R14/'
try 'x.8:1: P5 is not' man/x.8 's/PROMISES/P5/'
try 'R3 is not' doc/rules.md 's/^### R3 Three/### R2 Three/'
try 'P2 names no test' doc/rules.md '/^### P2/,/^### R3/s/^\*Test.*//'
try 'R3 names no test' doc/rules.md '/^### R3/,$s/^\*Test.*//;s/^two.*//'
try 'no tests/sim/check_c.c' doc/rules.md 's/check_b/check_c/'
try 'check_a.c has no two' tests/sim/check_a.c 's/two/three/'
try 'lock/claim is no module' src/README.md 's/, claim//'
try 'lock/line is no module' src/README.md '/line/d'
try 'lock/lua/seed.lua is no module' doc/rules.md 's/plant.lua/seed.lua/'
try 'R3 does not say where' doc/rules.md 's/^\*Where.*//'
try 'gloss.md is not there' doc/rules.md 's/(glossary.md)/(gloss.md)/'
try '#limits is not there' doc/rules.md 's/## Limits/## Bounds/'
try 'nobody says tree' doc/glossary.md 's/\*\*plant/**tree/'
try 'no planted' doc/glossary.md '/plant/d'
try 'no terms' doc/glossary.md d
try 'hold.c:1: there is no lock/claim.c' src/lock/hold.c 's/Planted/Of lock\/claim.c, not <time.h>/'
try 'plant.lua:1: there is no seed.lua' src/lock/lua/plant.lua 's/missing/missing (seed.lua)/'

# --- the tree ------------------------------------------------------------------------------------

check_all "${top_srcdir:-$(dirname "$0")/..}"
