#!/bin/sh
# Fails when a LOCK and its UNLOCK take over 5 % more instructions than when their figure was stored (cost.py), or when
# one turn of the loop takes too many whatever is asked (worst.py). Arguments are those of cost.py, which then runs alone.
# Exit status 77: valgrind or redis-server is missing.
here=$(dirname "$0")
/usr/bin/python3 "$here/cost.py" "$@" || exit
[ $# -gt 0 ] || exec /usr/bin/python3 "$here/worst.py"
