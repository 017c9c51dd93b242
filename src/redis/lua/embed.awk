# Turns Lua scripts into C strings at build time: acquire.lua becomes
#     static const char script_lua_acquire[] = "line\n" ...;
# A line `--@ part.lua` is replaced by what stands in that file beside it, which may have such lines too; a line
# `--@ codes acquire` by locals with the names and numbers of enum acquire_code in ../codes.h, `--@ codes ACQUIRE_TAKEN` by
# that one, and so on for each word behind `codes`. What a line `--@ mirror ...` has behind that, a part or a piece of Lua, is
# only in the text for brokers that mirror (R23): script_lua_acquire_mirror.
# One literal per source line; comment and blank lines become empty ones and a part becomes one line, so that the line numbers
# in Redis' error messages are those of the source.
# usage: awk -f embed.awk a.lua b.lua >script_lua.h
#        awk -f embed.awk -v plain=1 a.lua          one script as it is sent, to read or to try by hand
#        ... -v mirror=1                            the text for brokers that mirror

function finish() {
    if (open && !plain)
        print "    \"\";"
}

function fail(words) {
    printf "%s:%d: %s\n", FILENAME, FNR, words | "cat 1>&2"
    failed = 1
    exit 1
}

# Without comments, and without blanks at the end.
function stripped(line) {
    sub(/[ \t\r]+$/, "", line)
    if (line ~ /--\[=*\[/)
        fail("long comments cannot be embedded")
    return line ~ /^[ \t]*--/ ? "" : line
}

function directory(    path) {
    path = FILENAME
    sub(/[^\/]*$/, "", path)
    return path
}

# A part as one line, with the parts that it names itself.
function part(name, depth,    file, line, text) {
    file = directory() name
    if (depth > 4)
        fail("parts name each other in a circle: " name)
    while ((getline line < file) > 0) {
        line = line ~ /^ *--@ / ? inserted(line, depth + 1) : stripped(line)
        sub(/ -- .*$/, "", line)
        sub(/^[ \t]+/, "", line)
        if (line != "")
            text = text (text == "" ? "" : " ") line
    }
    close(file)
    if (text == "")
        fail("there is no part " file)
    return text
}

# Of codes.h enum <what>_code, or the one code of this name, as locals.
function codes(what,    file, line, word, inside, names, numbers) {
    file = directory() "../codes.h"
    while ((getline line < file) > 0) {
        if (line ~ "^enum " what "_code [{]")
            inside = 1
        else if (line ~ /^}/)
            inside = 0
        else if (split(line, word, /[ ,=]+/) > 3 && (inside || word[2] == what)) {
            names = names (names == "" ? "" : ", ") word[2]
            numbers = numbers (numbers == "" ? "" : ", ") word[3]
        }
    }
    close(file)
    if (names == "")
        fail("there is no " what " in " file)
    return "local " names " = " numbers
}

# What a line `--@ ...` stands for.
function inserted(line, depth,    word, n, i, text) {
    n = split(line, word)
    if (word[2] == "mirror") {
        sub(/^ *--@ mirror /, "", line)
        return !mirror ? "" : word[3] ~ /[.]lua$/ ? part(word[3], depth) : line
    }
    if (word[2] != "codes")
        return part(word[2], depth)
    for (i = 3; i <= n; i++)
        text = text (i > 3 ? " " : "") codes(word[i])
    return text
}

BEGIN {
    if (!plain && !mirror)
        print "/* Made from the .lua files by embed.awk: change those. */"
}

FNR == 1 {
    finish()
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.lua$/, "", name)
    gsub(/[^A-Za-z0-9]/, "_", name)
    if (!plain)
        printf "\nstatic const char script_lua_%s%s[] =\n", name, mirror ? "_mirror" : ""
    open = 1
}

{
    line = $0 ~ /^ *--@ / ? inserted($0, 1) : stripped($0)
    if (plain) {
        print line
        next
    }
    gsub(/\\/, "&&", line)
    gsub(/"/, "\\\"", line)
    gsub(/\?/, "\\?", line)
    gsub(/\t/, "\\t", line)
    printf "    \"%s\\n\"\n", line
}

END {
    if (!failed)
        finish()
}
