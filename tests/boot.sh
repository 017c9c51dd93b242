#!/usr/bin/env bash
# usage: tests/boot.sh DEB [OLD_DEB]
# The service under a systemd that is really running: boots a Debian of its own by systemd-nspawn, installs the
# package there (over OLD_DEB, if given), and tries the units in the orders in which people enable them. By hand, as
# root, with systemd-container and debootstrap: it takes a minute, a mirror of Debian, and rights that a machine for
# tests need not give. BOOT_TREE names a directory that keeps the tree for the next time.
set -euo pipefail
export LC_ALL=C

[ $# -ge 1 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
deb=$1 old_deb=${2-}
packages=systemd,systemd-sysv,dbus,redis-server,procps,libevent-core-2.1-7,libevent-extra-2.1-7,libhiredis0.14,libinih1,libjansson4
work=$(mktemp -d)
pristine=${BOOT_TREE:-$work/pristine} tree=$work/tree
nspawn='' init=''

# ---- the machine ----

make_tree() {
    if [ ! -e "$pristine/etc/debian_version" ]; then
        mkdir -p "$pristine"
        debootstrap --variant=minbase --include="$packages" bookworm "$pristine" >"$work/debootstrap.log" 2>&1 ||
            { tail "$work/debootstrap.log"; exit 1; }
    fi
    cp -a --reflink=auto "$pristine" "$tree"
}

# With a network of its own, where only the loopback is.
start_machine() {
    systemd-nspawn -q -D "$tree" --machine="holdfast-boot-$$" --private-network --keep-unit --register=no --boot \
        >>"$work/console.log" 2>&1 </dev/null &
    nspawn=$!
    until_true "the machine boots" machine_is_up
}

machine_is_up() {
    init=$(cut -d' ' -f1 "/proc/$nspawn/task/$nspawn/children") && [ -n "$init" ] || return 1
    case $(inside systemctl is-system-running 2>&1) in running | degraded) ;; *) return 1 ;; esac
}

# As `systemctl poweroff`; whatever hangs is killed with the machine.
stop_machine() {
    [ -n "$nspawn" ] || return 0
    kill -s SIGRTMIN+4 "$init" 2>/dev/null || kill "$nspawn" 2>/dev/null || true
    wait "$nspawn" || true
    nspawn=''
}

cleanup() {
    stop_machine
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT

inside() {
    timeout 60 nsenter -t "$init" -a env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_COLORS=0 SYSTEMD_PAGER= "$@"
}

# ---- what is expected ----

failed=0

show() {
    inside systemctl --no-pager --full status holdfastd holdfastd.socket || true
    inside journalctl --no-pager -n 40 || true
}

check() {
    local what=$1
    shift
    if "$@" >"$work/said" 2>&1; then
        echo "ok: $what"
    else
        echo "FAILED: $what"
        sed 's/^/    /' "$work/said"
        show | sed 's/^/    /'
        failed=$((failed + 1))
    fi
}

# until_true WHAT COMMAND...: within 30 s.
until_true() {
    local what=$1 tries=0
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 300 ]; then
            echo "FAILED: never: $what"
            show | sed 's/^/    /'
            exit 1
        fi
        sleep 0.1
    done
}

ask() {
    inside redis-cli -p 5625 "$@"
}

answers() {
    [ "$(ask PING)" = PONG ]
}

status_says() {
    inside systemctl show -P StatusText holdfastd | grep -q "$1"
}

socket_has_the_port() {
    [ "$(inside systemctl is-active holdfastd.socket)" = active ]
}

# Both off, as after the installation.
reset() {
    inside systemctl disable --now holdfastd.socket holdfastd >/dev/null 2>&1 || true
    inside systemctl reset-failed >/dev/null 2>&1 || true
}

# It is in quarantine at first.
ready_by_trust() {
    ask MASTER a TRUST
    status_says '^ready'
}

trust_master() {
    until_true "ready" ready_by_trust
}

# ---- the cases ----

orders() {
    reset
    check "enable --now of the service" inside systemctl enable --now holdfastd
    check "it answers" answers
    trust_master
    check "then the socket, at the next restart" inside sh -c 'systemctl enable holdfastd.socket && systemctl restart holdfastd'
    check "the port is systemd's" socket_has_the_port
    check "it answers there" answers
    reset
    check "enable --now of the socket" inside systemctl enable --now holdfastd.socket
    check "the first client starts the service" answers
    check "then the service" inside systemctl enable --now holdfastd
    reset
    check "both at once, the service first" inside systemctl enable --now holdfastd holdfastd.socket
    check "the port is systemd's" socket_has_the_port
    check "it answers" answers
    reset
    check "both at once, the socket first" inside systemctl enable --now holdfastd.socket holdfastd
    check "the port is systemd's" socket_has_the_port
    check "it answers" answers
}

# A client that never stops to ask sees its connection closed, but is never refused.
restarts() {
    trust_master
    inside bash -c '
        for i in $(seq 2000); do
            redis-cli -p 5625 PING 2>&1
            [ ! -e /tmp/enough ] || exit 0
        done' >"$work/asked" 2>&1 &
    local asker=$!
    check "restart" inside systemctl restart holdfastd
    check "once more" inside systemctl restart holdfastd
    inside touch /tmp/enough
    wait $asker || true
    check "clients were answered" grep -q PONG "$work/asked"
    check "nobody was refused" sh -c '! grep -i refused '"$work/asked"
    check "reload" inside systemctl reload holdfastd
    inside sed -i 's/^\[holdfast\]/&\nlaese = 1s/' /etc/holdfast/holdfast.ini
    check "a reload of a file with an error fails" sh -c '! nsenter -t '"$init"' -a systemctl reload holdfastd'
    inside sed -i '/^laese/d' /etc/holdfast/holdfast.ini
    check "it goes on" answers
    check "stop" inside systemctl stop holdfastd holdfastd.socket
}

main_pid() {
    inside systemctl show -P MainPID holdfastd
}

has_restarted() {
    answers && [ "$(main_pid)" != "$1" ]
}

# Killed it comes back, and standing still it is killed by the watchdog first.
deaths() {
    local pid signal
    inside systemctl start holdfastd
    for signal in KILL STOP; do
        pid=$(main_pid)
        inside systemctl kill --signal=$signal --kill-whom=main holdfastd
        until_true "back after $signal" has_restarted "$pid"
        echo "ok: back after $signal"
    done
}

# The boot does not wait for masters.
no_master() {
    reset
    inside systemctl disable --now redis-server >/dev/null 2>&1
    check "start without a master" inside systemctl enable --now holdfastd
    check "the status names what is missing" status_says 'not ready: 0 of 1 masters (a: down)'
    until_true "the log" sh -c "nsenter -t $init -a journalctl --no-pager -u holdfastd | grep 'not ready'"
    stop_machine
    start_machine
    check "a boot without a master" answers
    inside systemctl enable --now redis-server >/dev/null 2>&1
    trust_master
    check "the master has come" status_says '^ready: 1 of 1'
    stop_machine
    start_machine
    check "a boot with the master" status_says 'of 1 masters'
}

credentials() {
    inside redis-cli CONFIG SET requirepass secret >/dev/null
    inside sh -c 'umask 077; echo secret >/etc/holdfast/redis-password
        mkdir -p /etc/systemd/system/holdfastd.service.d
        printf "[Service]\nLoadCredential=redis-password:/etc/holdfast/redis-password\n" \
            >/etc/systemd/system/holdfastd.service.d/override.conf
        cp -a /etc/holdfast/holdfast.ini /etc/holdfast/holdfast.ini.was
        printf "\n[masters]\na.password_credential = redis-password\n" >>/etc/holdfast/holdfast.ini
        systemctl daemon-reload'
    check "a password as a credential" inside systemctl restart holdfastd
    trust_master
    check "-tt with the credential, as root" inside env CREDENTIALS_DIRECTORY=/etc/holdfast holdfastd -tt
    inside sh -c 'rm -r /etc/systemd/system/holdfastd.service.d
        sed -i s/password_credential.*/password_file=\\/etc\\/holdfast\\/redis-password/ /etc/holdfast/holdfast.ini
        systemctl daemon-reload'
    check "-t as root sees that the service cannot read a file" \
        sh -c "nsenter -t $init -a holdfastd -t 2>&1 | grep 'redis-password.*holdfast.*cannot read'"
    inside chgrp holdfast /etc/holdfast/redis-password
    inside chmod 640 /etc/holdfast/redis-password
    check "-tt when it can" inside holdfastd -tt
    check "a password in a file" inside systemctl restart holdfastd
    trust_master
    inside mv /etc/holdfast/holdfast.ini.was /etc/holdfast/holdfast.ini
    inside redis-cli -a secret --no-auth-warning CONFIG SET requirepass '' >/dev/null
}

without_ipv6() {
    reset
    inside sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.lo.disable_ipv6=1
    check "the socket without IPv6" inside systemctl start holdfastd.socket
    check "it answers" answers
    reset
    check "the service without IPv6" inside systemctl start holdfastd
    check "it answers" answers
    inside sysctl -q -w net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.lo.disable_ipv6=0
}

install_package() {
    cp "$1" "$tree/root/new.deb"
    inside dpkg -i /root/new.deb >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log"; exit 1; }
}

upgrade() {
    reset
    inside systemctl start --no-block holdfastd
    until_true "the older one" answers
    local pid
    pid=$(main_pid)
    install_package "$deb"
    check "an upgrade leaves the running one alone" [ "$(main_pid)" = "$pid" ]
    check "restart after it" inside systemctl restart holdfastd
    check "it answers" answers
    ask MASTER a ADOPT >/dev/null # brokers of another version may compare other settings
}

make_tree
start_machine
inside systemctl enable --now redis-server >/dev/null 2>&1
install_package "${old_deb:-$deb}"
[ -z "$old_deb" ] || upgrade
orders
restarts
deaths
no_master
credentials
without_ipv6
echo "$failed failed"
[ "$failed" -eq 0 ]
