#!/usr/bin/env bash
# Fails when systemd finds a mistake in the units or in sysusers.d, rates the exposure of the service above 1.2, or
# when what tests/boot.sh has found to be needed in a running systemd is missing. Tries itself on bad units first.
# Exits 77 without systemd-analyze.
set -euo pipefail
export LC_ALL=C

root=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! command -v systemd-analyze >/dev/null; then
    echo 'systemd-analyze is not there'
    exit 77
fi

# The program has to be there: for the check it is true(1), as it need not be installed here.
make_units() {
    sed -e 's|@sbindir@/holdfastd|/bin/true|g' -e "s|@sysconfdir@|/etc|g" \
        "$root/systemd/holdfastd.service.in" >"$work/holdfastd.service"
    cp "$root/systemd/holdfastd.socket" "$work/"
}

# Any word about our own files is a mistake; those about the system's own units are not ours.
check_words() {
    local said
    said=$(SYSTEMD_UNIT_PATH="$work:" systemd-analyze --no-pager verify --man=no "$work"/holdfastd.* 2>&1 |
        grep -F -e holdfastd -e "$work") || return 0
    echo "$said"
    return 1
}

check_exposure() {
    local said
    said=$(systemd-analyze --no-pager security --offline=true --threshold=12 "$work/holdfastd.service" 2>&1) &&
        { tail -n 1 <<<"$said"; return 0; }
    grep -v '✓' <<<"$said"
    return 1
}

# Enabled beside a running service, the socket gets the port in its next restart, as the service wants it then; a
# start does not wait for masters without end; and the socket opens where IPv6 is switched off.
check_needs() {
    local need
    for need in WantedBy=holdfastd.service WantedBy=sockets.target FreeBind=yes; do
        grep -qx "$need" "$work/holdfastd.socket" || { echo "holdfastd.socket: no $need"; return 1; }
    done
    if grep '^TimeoutStartSec=' "$work/holdfastd.service"; then
        return 1
    fi
}

# self test
make_units
sed -i -e '/^Protect/d' "$work/holdfastd.service"
if check_exposure >/dev/null; then
    echo 'self test: check_exposure takes a service without protection'
    exit 1
fi
make_units
sed -i -e 's/^UMask=/UMaks=/' "$work/holdfastd.service"
if check_words >/dev/null; then
    echo 'self test: check_words takes a mistake'
    exit 1
fi

make_units
sed -i -e '/^FreeBind=/d' "$work/holdfastd.socket"
if check_needs >/dev/null; then
    echo 'self test: check_needs takes a socket that wants IPv6'
    exit 1
fi

status=0
make_units
check_needs || status=1
check_words || status=1
check_exposure || status=1
if ! systemd-sysusers --dry-run --replace=/usr/lib/sysusers.d/holdfast.conf "$root/systemd/holdfast.conf" \
    >"$work/sysusers" 2>&1; then
    cat "$work/sysusers"
    status=1
fi
exit $status
