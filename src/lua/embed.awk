# Turns Lua scripts into C strings: acquire.lua becomes
#     static const char script_lua_acquire[] = "line\n" ...;
# One literal per source line; comment and blank lines become empty ones, so that the line numbers
# in Redis' error messages are those of the source.
# usage: awk -f embed.awk a.lua b.lua >script_lua.h

function finish() {
    if (open)
        print "    \"\";"
}

BEGIN {
    print "/* Made from the .lua files by embed.awk: change those. */"
}

FNR == 1 {
    finish()
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.lua$/, "", name)
    gsub(/[^A-Za-z0-9]/, "_", name)
    printf "\nstatic const char script_lua_%s[] =\n", name
    open = 1
}

{
    line = $0
    sub(/[ \t\r]+$/, "", line)
    if (line ~ /--\[=*\[/) {
        printf "%s:%d: long comments cannot be embedded\n", FILENAME, FNR | "cat 1>&2"
        failed = 1
        exit 1
    }
    if (line ~ /^[ \t]*--/)
        line = ""
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
