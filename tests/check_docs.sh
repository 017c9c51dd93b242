#!/usr/bin/env bash
# Fails when the manual or the sample configuration does not know an option, a command, or a switch
# of the daemon, when the sample shows another default than the code has, when the help of holdfast,
# its manual page and its completions do not have the same options, when CONTRIBUTING.md names what is not
# there, or when mandoc complains.
# Reads CONF_ROW(section, key, TYPE, field, "default", ...) in src/conf/table.c, CMD_ROW("NAME", ...)
# in src/command/*.c, and what `holdfastd -h` and `holdfast COMMAND -h` print; asks bash for its completions.
# Tries itself on a toy tree first. Exits 77 without mandoc.
set -euo pipefail
export LC_ALL=C

# has_item PAGE WORD: the page has a list item or a heading with this word in it.
has_item() {
    WORD=$2 awk '/^\.(It|Ss|Sh) / {
        line = $0
        gsub(/\\&|\\-|"/, "", line)
        n = split(line, words, /[ ,]+/)
        for (i = 2; i <= n; i++)
            if (words[i] == ENVIRON["WORD"])
                found = 1
    }
    END { exit !found }' "$1"
}

# Prints "section key default", one option a line.
conf_rows() {
    awk '/^ *CONF_(ROW|NAMED)\(/ {
        row = $0
        while (split(row, part, "\"") < 3 && (getline line) > 0)
            row = row line
        sub(/^ *CONF_[A-Z]*\(/, "", row)
        split(row, part, "\"")
        split(row, word, /, */)
        print word[1], word[2], part[2]
    }' "$1/src/conf/table.c"
}

check_conf() {
    local root=$1 section key default rows=0 bad=0
    while read -r section key default; do
        rows=$((rows + 1))
        if ! has_item "$root/man/holdfast.ini.5" "$key"; then
            echo "man/holdfast.ini.5: no item for $section.$key"
            bad=1
        fi
        if ! SECTION=$section KEY=$key DEFAULT=$default awk '
            /^\[/ { here = $0 == "[" ENVIRON["SECTION"] "]" }
            here {
                line = $0
                sub(/^[#;] */, "", line)
                if (index(line, ENVIRON["KEY"]) != 1)
                    next
                line = substr(line, length(ENVIRON["KEY"]) + 1)
                if (sub(/^ *= */, "", line) && line == ENVIRON["DEFAULT"])
                    found = 1
            }
            END { exit !found }' "$root/etc/holdfast.ini"; then
            echo "etc/holdfast.ini: no line \"$key = $default\" in [$section]"
            bad=1
        fi
    done < <(conf_rows "$root")
    if [ $rows -eq 0 ]; then
        echo "src/conf/table.c: no CONF_ROW"
        bad=1
    fi
    return $bad
}

check_commands() {
    local root=$1 name rows=0 bad=0
    while read -r name; do
        rows=$((rows + 1))
        if ! has_item "$root/man/holdfast-protocol.7" "$name" && ! has_item "$root/man/holdfast-drop-in.7" "$name"; then
            echo "man/holdfast-protocol.7, man/holdfast-drop-in.7: no item for $name"
            bad=1
        fi
    done < <(sed -nE 's/^ *CMD_ROW(_[A-Z]+)?(\("([^"]*)".*)/\3/p' "$root"/src/command/*.c)
    if [ $rows -eq 0 ]; then
        echo "src/command/*.c: no CMD_ROW"
        bad=1
    fi
    return $bad
}

# check_switches ROOT TEXT-OF-USAGE
check_switches() {
    local root=$1 word rows=0 bad=0
    while read -r word; do
        rows=$((rows + 1))
        # In mdoc -c is "Fl c" and --dev "Fl -dev", often with more after it on the line.
        if ! sed -n '/^\.It /{s/\\-/-/g;p}' "$root/man/holdfastd.8" |
            grep -qE -- "Fl ${word#-}([^a-z]|$)"; then
            echo "man/holdfastd.8: no item for $word"
            bad=1
        fi
    done < <(grep -oE -- '(^|[ [,|])--?[A-Za-z][A-Za-z-]*' <<<"$2" | grep -oE -- '-.*' | sort -u)
    if [ $rows -eq 0 ]; then
        echo "holdfastd -h: no switches"
        bad=1
    fi
    return $bad
}

# Each line that describes an option, as "-n --names", of a help read from stdin.
help_options() {
    sed -nE 's/^ +((-[A-Za-z0-9])(, )?)?(--[a-z][a-z-]*)?( .*)?$/\2 \4/p' | grep -e - || true
}

# What the synopsis of a page shows for a command, as -n or --names.
synopsis_options() {
    COMMAND=$2 awk '/^\.Sh / { in_synopsis = $2 == "SYNOPSIS" }
    in_synopsis && $1 == ".Cm" { here = $2 == ENVIRON["COMMAND"] }
    in_synopsis && $1 == ".Nm" { here = 0 }
    in_synopsis && here {
        for (i = 1; i < NF; i++)
            if ($i ~ /^\.?Fl$/ && $(i + 1) != "-")
                print "-" $(i + 1)
    }' "$1"
}

# What the text of a page explains somewhere, as -n or --names.
explained_options() {
    awk '/^\.Sh / { in_synopsis = $2 == "SYNOPSIS" }
    !in_synopsis && /^\./ {
        for (i = 1; i < NF; i++)
            if ($i ~ /^\.?Fl$/)
                print "-" $(i + 1)
    }' "$1"
}

bash_options() {
    bash -c 'source "$1"; COMP_WORDS=(holdfast "$2" -) COMP_CWORD=2
        _holdfast; printf "%s\n" "${COMPREPLY[@]}"' bash "$1/completion/holdfast.bash" "$2" | grep -vx -e --
}

# Of the branch of the case for this command: words at the start of a quoted text, or in braces.
zsh_options() {
    COMMAND=$2 awk '/^ +[a-z]+( \| [a-z]+)*\)/ {
        split($0, half, ")")
        n = split(half[1], names, /[ |]+/)
        here = 0
        for (i = 1; i <= n; i++)
            here = here || names[i] == ENVIRON["COMMAND"]
    }
    here && /\$json/ { print "\047--json" }
    here
    /;;$/ { here = 0 }' "$1/completion/_holdfast" |
        sed -E 's/\[[^]]*\]//g; s/\(-[^)]*\)//g' | grep -oE "['{,]--?[A-Za-z0-9][a-z-]*" | sed 's/^.//' || true
}

# say_missing WHERE WANTED HAVE: names the words of WANTED that HAVE lacks; both are lists of lines.
say_missing() {
    local word bad=0
    while read -r word; do
        if [ -n "$word" ] && ! grep -qxF -e "$word" <<<"$3"; then
            echo "$1: no $word"
            bad=1
        fi
    done <<<"$2"
    return $bad
}

# Options of all commands, which no synopsis repeats.
common='url|cacert|cert|key|help'

# check_cli_common ROOT HELP-TEXT: each is explained, and known to the completions.
check_cli_common() {
    local words bad=0
    words=$(grep -oE -e "--($common)\>" <<<"$2" | sort -u)
    say_missing man/holdfast.1 "$words" "$(explained_options "$1/man/holdfast.1")" || bad=1
    say_missing 'completion of bash' "$words" "$(bash_options "$1" ping)" || bad=1
    say_missing 'completion of zsh' "$words" "$(grep -oE -e '--[a-z]+' "$1/completion/_holdfast")" || bad=1
    return $bad
}

# check_cli_command ROOT COMMAND HELP-TEXT
check_cli_command() {
    local page=$1/man/holdfast.1 options forms synopsis row bad=0
    options=$(sed '1,/^$/d' <<<"$3" | help_options | grep -vE -e "--($common)\$" || true)
    forms=$(tr ' ' '\n' <<<"$options" | grep -e - || true)
    synopsis=$(synopsis_options "$page" "$2" | grep -vxE -e '-u' || true)
    while read -r row; do
        # shellcheck disable=SC2086
        if [ -n "$row" ] && ! grep -qxF -e "$(printf '%s\n' $row)" <<<"$synopsis"; then
            echo "man/holdfast.1: the synopsis of $2 has none of $row"
            bad=1
        fi
    done <<<"$options"
    say_missing "holdfast $2 -h" "$synopsis" "$forms" || bad=1
    say_missing "man/holdfast.1, for $2" "$forms" "$(explained_options "$page")" || bad=1
    local shell words
    for shell in bash zsh; do
        words=$("${shell}_options" "$1" "$2" | grep -vxE -e "-u|-h|--($common)" || true)
        say_missing "completion of $shell, for $2" "$forms" "$words" || bad=1
        say_missing "holdfast $2 -h, but the completion of $shell has it" "$words" "$forms" || bad=1
    done
    return $bad
}

# check_cli ROOT HOLDFAST
check_cli() {
    local command rows=0 bad=0
    for command in $("$2" -h | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
        rows=$((rows + 1))
        check_cli_command "$1" "$command" "$("$2" "$command" -h)" || bad=1
    done
    check_cli_common "$1" "$("$2" -h)" || bad=1
    if [ $rows -eq 0 ]; then
        echo 'holdfast -h: no commands'
        bad=1
    fi
    return $bad
}

# On the toy tree.
check_help() {
    check_cli "$1" "$1/holdfast"
}

# Whatever CONTRIBUTING.md names between backquotes is there: files, and names of the code. A name that begins with my_,
# or a file that does, is the reader's own.
check_guide() {
    local root=$1 word rows=0 bad=0
    while read -r word; do
        rows=$((rows + 1))
        if [[ $word == */* ]]; then
            [ -e "$root/$word" ] || [ -e "$root/$word.c" ] && continue
        else
            grep -rqwF --include='*.[chp]*' --include='*.lua' --include='Makefile.am' -e "$word" \
                "$root/src" "$root/tests" "$root/Makefile.am" && continue
        fi
        echo "CONTRIBUTING.md: $word is not there"
        bad=1
    done < <(grep -oE '`[^`]+`' "$root/CONTRIBUTING.md" | tr -d '`' |
        grep -oE '^(src|tests|man|etc|doc)/[A-Za-z0-9_./-]+|^(struct |enum )?[A-Za-z0-9]+_[A-Za-z0-9_]*[A-Za-z0-9]$' |
        sed -E 's/^(struct|enum) //' | grep -vE '(^|/)my[_.]|^holdfast_' | sort -u)
    if [ $rows -eq 0 ]; then
        echo 'CONTRIBUTING.md: names nothing'
        bad=1
    fi
    return $bad
}

check_pages() {
    local page said bad=0
    for page in "$1"/man/*.[1-9]; do
        said=$(mandoc -T lint -W warning "$page" 2>&1) || bad=1
        if [ -n "$said" ]; then
            echo "$said"
            bad=1
        fi
    done
    return $bad
}

# --- self test -----------------------------------------------------------------------------------

toy=$(mktemp -d)
trap 'rm -rf "$toy"' EXIT

toy_tree() {
    mkdir -p "$toy/src/conf" "$toy/src/command" "$toy/man" "$toy/etc" "$toy/completion"
    printf '    CONF_ROW(a, lease, DURATION, lease_ms, "30s", 1, 2, 0,\n        "text")
    CONF_NAMED(b, mode, ENUM, mode,\n        "x y", 0, 0, 0, names, "text")\n' >"$toy/src/conf/table.c"
    printf '[a]\n#lease = 30s\n[b]\nmode=x y\n' >"$toy/etc/holdfast.ini"
    printf '.Bl -tag\n.It Ic lease , other\n.It Cm mode Ns = Ns Ar x\n.El\n' >"$toy/man/holdfast.ini.5"
    printf '    CMD_ROW("LOCK", f)\n    CMD_ROW("SET", f)\n' >"$toy/src/command/table.c"
    printf '.It Ic LOCK Ar name\n' >"$toy/man/holdfast-protocol.7"
    printf '.It Ic GET , SET\n' >"$toy/man/holdfast-drop-in.7"
    mkdir -p "$toy/tests"
    : >"$toy/Makefile.am"
    printf 'A `CMD_ROW` in `src/command/table.c`; `my_own`.\n' >"$toy/CONTRIBUTING.md"
    printf '#!/bin/sh\nif [ "$1" = -h ]; then echo "  run   runs"; echo "  -u, --url"; exit; fi
echo "usage: holdfast run [OPTION]...

  -n, --names N     names
      --json        JSON
  -u, --url URL     broker
  -h, --help        this"\n' >"$toy/holdfast"
    chmod +x "$toy/holdfast"
    printf '.Sh SYNOPSIS\n.Nm\n.Cm run\n.Op Fl n Ar n\n.Op Fl -json\n.Op Fl u Ar url\n.Fl -
.Sh DESCRIPTION\n.It Fl n , Fl -names Ar n\n.It Fl -json\n.It Fl u , Fl -url Ar url\n' >"$toy/man/holdfast.1"
    printf '_holdfast() {\n    COMPREPLY=(-n --names --json -u --url -h --help --)\n}\n' \
        >"$toy/completion/holdfast.bash"
    printf "    run | top) _arguments -S \$common \$json {-n,--names}'[of --all]:n:' ;;\n" >"$toy/completion/_holdfast"
    printf "    common=('--url[broker]:url:')\n" >>"$toy/completion/_holdfast"
    printf '.It Fl c Ar file\n.It Fl \\-dev Ns Oo = Ns Ar n Oc\n' >"$toy/man/holdfastd.8"
}

# try WHAT FILE SED-SCRIPT: the check passes on the toy tree, and no longer after the change.
try() {
    local usage='usage: holdfastd [-c FILE] [--dev[=N]]'
    toy_tree
    if ! "$1" "$toy" "$usage"; then
        echo "self test: $1 rejects a good tree"
        exit 1
    fi
    sed -i "$3" "$toy/$2"
    if "$1" "$toy" "$usage" >/dev/null; then
        echo "self test: $1 takes $2 after $3"
        exit 1
    fi
}

try check_conf man/holdfast.ini.5 s/lease/release/
try check_conf man/holdfast.ini.5 /mode/d
try check_conf etc/holdfast.ini s/30s/31s/
try check_conf etc/holdfast.ini /mode/d
try check_conf etc/holdfast.ini 's/\[b\]/[c]/'
try check_conf src/conf/table.c d
try check_commands man/holdfast-protocol.7 s/LOCK/UNLOCK/
try check_commands man/holdfast-drop-in.7 s/SET/SETS/
try check_commands src/command/table.c d
try check_switches man/holdfastd.8 /Fl.c/d
try check_switches man/holdfastd.8 s/dev/devel/
try check_guide CONTRIBUTING.md 's/table.c/tables.c/'
try check_guide src/command/table.c s/CMD_ROW/CMD_LINE/
try check_guide CONTRIBUTING.md d
try check_help holdfast 's/, --names/, --name/'
try check_help holdfast /--json/d
try check_help holdfast 's/  run.*runs//'
try check_help man/holdfast.1 '/Op Fl n/d'
try check_help man/holdfast.1 's/Op Fl -json/& | Fl -shared/'
try check_help man/holdfast.1 's/It Fl -json/It Fl -xml/'
try check_help completion/holdfast.bash 's/ --names//'
try check_help completion/holdfast.bash 's/-n /-n -o /'
try check_help completion/_holdfast 's/{-n,--names}/-n/'
try check_help completion/_holdfast 's/.json//'
try check_help completion/_holdfast 's/{-n,/{-o,-n,/'
try check_help man/holdfast.1 's/ , Fl -url//'
try check_help completion/holdfast.bash 's/ --url//'
try check_help completion/_holdfast 's/--url/--uri/'

if check_pages "$toy" >/dev/null; then
    echo 'self test: check_pages takes pages without a head'
    exit 1
fi

# --- the tree ------------------------------------------------------------------------------------

root=${top_srcdir:-$(dirname "$0")/..}
status=0
check_conf "$root" || status=1
check_commands "$root" || status=1
check_guide "$root" || status=1
check_switches "$root" "$("${HOLDFASTD:-$root/build/holdfastd}" -h)" || status=1
check_cli "$root" "${HOLDFAST:-$root/build/holdfast}" || status=1
if ! command -v mandoc >/dev/null; then
    echo 'mandoc is not there'
    [ $status -ne 0 ] || status=77
    exit $status
fi
check_pages "$root" || status=1
exit $status
