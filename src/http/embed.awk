# Turns files into C strings at build time: page.html becomes
#     static const char http_page_html[] = "line\n" ...;
# without what stands before each line, blank lines, and comments that fill whole lines.
# usage: awk -f embed.awk page.html style.css >page_files.h

function finish() {
    if (open)
        print "    \"\";"
}

BEGIN {
    print "/* Made from page.html and its like by embed.awk: change those. */"
}

FNR == 1 {
    finish()
    name = FILENAME
    sub(/^.*\//, "", name)
    gsub(/[^A-Za-z0-9]/, "_", name)
    printf "\nstatic const char http_%s[] =\n", name
    open = 1
}

{
    sub(/^[ \t]+/, "")
    sub(/[ \t\r]+$/, "")
}

/^(<!--|\/\*)/ {
    in_comment = 1
}

!in_comment && $0 != "" {
    gsub(/\\/, "&&")
    gsub(/"/, "\\\"")
    gsub(/\?/, "\\?")
    printf "    \"%s\\n\"\n", $0
}

/(-->|\*\/)$/ {
    in_comment = 0
}

END {
    finish()
}
