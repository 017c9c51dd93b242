# Turns Lua scripts into C strings at build time: acquire.lua becomes
#     static const char script_lua_acquire[] = "line\n" ...;
# A line `--@ part.lua` is replaced by what stands in that file beside it. One literal per source line; comment and
# blank lines become empty ones and a part becomes one line, so that the line numbers in Redis' error messages are
# those of the source.
# usage: awk -f embed.awk a.lua b.lua >script_lua.h
#        awk -f embed.awk -v plain=1 a.lua          one script as it is sent, to read or to try by hand

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

function part(name, file, line, text) {
    file = FILENAME
    sub(/[^\/]*$/, "", file)
    file = file name
    while ((getline line < file) > 0) {
        line = stripped(line)
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

BEGIN {
    if (!plain)
        print "/* Made from the .lua files by embed.awk: change those. */"
}

FNR == 1 {
    finish()
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.lua$/, "", name)
    gsub(/[^A-Za-z0-9]/, "_", name)
    if (!plain)
        printf "\nstatic const char script_lua_%s[] =\n", name
    open = 1
}

{
    line = $0 ~ /^ *--@ / ? part($2) : stripped($0)
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
