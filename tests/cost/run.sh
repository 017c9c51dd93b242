#!/bin/sh
# Fails when a LOCK and its UNLOCK take over 5 % more instructions than when their figure was stored (cost.py), or when
# one turn of the loop takes too many whatever is asked (worst.py), or a client's script does (cage.py).
# Arguments are those of cost.py, which then runs alone.
# Exit status 77: valgrind or redis-server is missing.
here=$(dirname "$0")
/usr/bin/python3 "$here/cost.py" "$@" || exit
[ $# -eq 0 ] || exit 0
/usr/bin/python3 "$here/cage.py" || exit
exec /usr/bin/python3 "$here/worst.py"
