"""Overload and strangers: bounds of all that can grow, restarts with many holds. Where each is told:

  hostile master: *4294967295, depth, unsolicited replies, 1 byte/s    test_scenarios.py (Hostile), test_faults.py
                                                                       (answers in the place of good ones)
  1,000 holds over TERM, kill -9, another binary                       test_restart
  *2147483647, *-5, $4294967296, no CRLF, NULs, byte by byte           test_protocol.py; at length by tests/fuzz
  10,000 strangers, half requests, replies not read                    test_strangers, test_half_requests_and_...
  LimitNOFILE=128 and 500 connects, accept that fails                  test_few_descriptors, test_no_descriptors_left
  POST, Host:, TLS hello on a plain port                               test_admin.py, test_protocol.py
  CR, LF, NUL in names and in errors of masters                        test_protocol.py, test_errors_of_masters
  wrong passwords, names of others, INFO user who says KILL            test_users.py
  each limit of [limits]                                               here, test_protocol.py, check_client.c
  patterns that cost                                                   here, check_glob.c, check_pubsub.c
  what takes more than one turn                                        here, check_pubsub.c, tests/cost/worst.py
  one connection that floods                                           test_a_flood_delays_nobody, check_client.c
"""

import os
import re
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from holdfastproc import daemon_path
from procs import rss_kb, wait_for
from respclient import Closed, RespClient, RespError, as_map, encode

# Long enough for a sanitized broker beside a test that takes all of a processor.
LEASE_MS = 2000
LEASE = {"lease": "%dms" % LEASE_MS}
SELF_ACTIVATE = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()),"
                 " LISTEN_FDS='1'); os.execv(sys.argv[2], sys.argv[2:])")


def is_sanitized(pid):
    with open("/proc/%d/maps" % pid, encoding="ascii", errors="replace") as maps:
        return "asan" in maps.read()


def info(client, *names):
    values = dict(line.split(":", 1) for line in client.cmd("INFO", "all").splitlines() if ":" in line)
    return [int(values[name]) for name in names]


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Holder:
    """A connection with so many watched locks; told() names what it has heard of them."""

    def __init__(self, broker, count, name, setup=()):
        self.client = broker.connect(resp3=True, tell=True)
        for request in setup:
            self.client.cmd(*request)
        self.names = ["%s:%d" % (name, i) for i in range(count)]
        for reply in self.client.pipeline(*[("LOCK", one) for one in self.names]):
            assert isinstance(reply, list), reply

    def told(self):
        self.client.cmd("PING")
        return [push[0] for push in self.client.pushes if push[0] != "renewed"]

    def close(self):
        self.client.close()


def lateness_ms(broker, client):
    """The latest that a renewal was sent after it was due."""
    line = re.search(r"renewal_lateness_us:.*max=(\d+)", client.cmd("INFO", "holdfast"))
    return int(line.group(1)) / 1000


# ---- a flood ----

def test_a_flood_delays_nobody(make_broker, masters3, clients, name):
    """Four connections that send as fast as they can, their replies read: others and renewals go on."""
    broker3 = make_broker(masters3, options=LEASE).wait_masters()
    holder = Holder(broker3, 50, name)
    other = clients(broker3)
    stop = threading.Event()
    answered = [0] * 4

    def flood(i):
        with broker3.connect() as client:
            client.sock.settimeout(20)
            part = encode("PING") * 1000
            reader = threading.Thread(target=drain, args=(client, i), daemon=True)
            reader.start()
            while not stop.is_set():
                client.sock.sendall(part)
            client.half_close()
            reader.join(20)

    def drain(client, i):
        while True:
            data = client.sock.recv(1 << 20)
            if not data:
                return
            answered[i] += data.count(b"\n")
    threads = [threading.Thread(target=flood, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_for("the flood", lambda: min(answered) > 2000, 20)
        times = []
        until = time.monotonic() + 1.5 * LEASE_MS / 1000
        while time.monotonic() < until:
            start = time.monotonic()
            assert other.cmd("PING") == "PONG"
            token = other.cmd("LOCK", name)
            assert token and other.cmd("UNLOCK", name) == 1
            times.append(time.monotonic() - start)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert holder.told() == []
    assert min(answered) > 5000
    assert lateness_ms(broker3, other) < LEASE_MS / 2
    assert sorted(times)[len(times) // 2] < 0.5
    print("flood: %d answered, %d others, median %.1f ms, worst %.1f ms, renewals at most %.1f ms late" % (
        sum(answered), len(times), 1000 * sorted(times)[len(times) // 2], 1000 * max(times),
        lateness_ms(broker3, other)))
    holder.close()


# ---- what one leaves behind ----

def test_renewals_go_before_what_others_left(make_broker, masters1, clients, name):
    """12,000 locks are given back while the master does not work, then a renewal is due: it is the first that the master
    does after what it had been given already."""
    redis, count = masters1[0], 6000
    broker = make_broker(masters1, options={"lease": "9s", "request_timeout": "8s"}).wait_masters()
    holder, asker = clients(broker), clients(broker)
    assert holder.cmd("LOCK", name)
    hosts = [clients(broker) for _ in range(2)]
    for i, host in enumerate(hosts):
        for part in range(0, count, 500):
            replies = host.pipeline(*(("LOCK", "%s-%d-%d" % (name, i, n)) for n in range(part, part + 500)))
            assert all(isinstance(reply, list) for reply in replies)
    with redis.connect() as watcher:
        assert watcher.cmd("MONITOR") == "OK"

        def in_flight():
            return as_map(asker.cmd("MASTERS")[0])["in_flight"]
        redis.stop()
        for host in hosts:
            host.close()
        wait_for("the releases", lambda: in_flight() >= 2 * count, 20)
        wait_for("a renewal that is due", lambda: in_flight() > 2 * count, 20)
        redis.cont()
        released, line = 0, ""
        while '"holdfast:{%s}"' % name not in line:
            line = watcher.recv(20)
            if '"EVALSHA"' in line:
                released += line.count('"holdfast:{%s-' % name)
    assert released < 2000, "the renewal came behind %d releases" % released
    wait_for("all others", lambda: in_flight() == 0, 20)
    assert as_map(holder.cmd("LOCKINFO", name))["holders"]


def test_more_than_one_turn_gives_back(make_broker, masters1, clients, name):
    """3,000 locks of a connection that goes are released over several turns: who asks for one of them gets it at once, and
    so does the same owner, who begins anew."""
    broker = make_broker(masters1).wait_masters()
    asker, host = clients(broker), clients(broker)
    names = ["%s-%d" % (name, n) for n in range(3000)]
    host.cmd("OWNER", "app")
    for part in range(0, 3000, 500):
        assert all(isinstance(r, list) for r in host.pipeline(*(("LOCK", n) for n in names[part:part + 500])))
    asker.cmd("OWNER", "app")
    host.send("QUIT")
    host.read_to_end()
    replies = asker.pipeline(*(("LOCK", n) for n in names[::100]))
    assert all(isinstance(reply, list) for reply in replies)
    wait_for("all others", lambda: info(asker, "locks_held") == [30], 20)
    assert [asker.cmd("HOLDS", n) for n in names[::100]] == [1] * 30
    asker.send("RESET")
    asker.recv()
    wait_for("these", lambda: info(asker, "locks_held") == [0], 20)


def test_more_waiters_than_one_turn_turns_away(make_broker, masters1, clients, name):
    """RESUME goes on with all locks, the drain turns all waiters away, over several turns of the loop."""
    broker = make_broker(masters1, options={"drain_timeout": "20s"}).wait_masters()
    asker = clients(broker)
    waiters = [clients(broker) for _ in range(400)]
    assert asker.cmd("PAUSE") == "OK"
    for i, waiter in enumerate(waiters):
        waiter.send("LOCK", "%s-%d" % (name, i), "WAIT", 0, "LEASE", 60000)
    wait_for("all to wait", lambda: info(asker, "blocked_clients") == [400], 20)
    assert asker.cmd("RESUME") == "OK"
    assert all(isinstance(waiter.recv(20), list) for waiter in waiters)
    assert asker.cmd("LOCK", name)
    for waiter in waiters:
        waiter.send("LOCK", name, "WAIT", 0)
    wait_for("all to wait", lambda: info(asker, "blocked_clients") == [400], 20)
    broker.signal(signal.SIGTERM)
    assert {waiter.recv(20).code for waiter in waiters} == {"DRAINING"}
    asker.close()


def test_a_list_of_many_clients(make_broker, masters1, clients, name):
    """CLIENT LIST of more than one turn writes: each connection once, replies in order, others are served."""
    broker = make_broker(masters1).wait_masters()
    crowd = [clients(broker) for _ in range(900)]
    ids = {int(client.cmd("CLIENT", "ID")) for client in crowd}
    first, second = crowd[0], crowd[1]
    first.send_raw(encode("CLIENT", "LIST") + encode("CLIENT", "LIST") + encode("PING"))
    second.send_raw(encode("CLIENT", "LIST") + encode("PING"))
    for client, refused in ((first, True), (second, False)):
        listed = [int(line.split()[0].split("=")[1]) for line in client.recv(20).splitlines()]
        assert len(listed) == len(set(listed)) and ids <= set(listed)
        assert not refused or client.recv(20).code == "LIMIT"
        assert client.recv(20) == "PONG"
    for client in crowd[2:10]:   # one that goes takes its list along
        client.send("CLIENT", "LIST")
        client.close()
    assert len(second.cmd("CLIENT", "LIST").splitlines()) >= 892


def test_all_clients_go_at_once(make_broker, masters1, clients, name):
    broker = make_broker(masters1).wait_masters()
    asker = clients(broker)
    crowd = [clients(broker) for _ in range(900)]
    for i, client in enumerate(crowd):
        client.send("LOCK", "%s-%d" % (name, i))
    assert all(isinstance(client.recv(), list) for client in crowd)
    assert asker.cmd("CLIENT", "KILL", "SKIPME", "YES") == 900
    for client in crowd:
        client.read_to_end()
    assert info(asker, "connected_clients") == [1]


# ---- patterns ----

COSTLY = ["*[" + "b" * 1020 + "]z", "*a" * 511 + "z", "*" + "a" * 1022 + "z", "*" + "?" * 500 + "[^a-y]"]


def test_costly_patterns_find_what_they_should(broker1, clients, name):
    """A page of LOCKS ends where looking has taken long enough: the cursor goes on, and nothing is missing."""
    client = clients(broker1)
    names = [name + "%04d" % i + "a" * 400 for i in range(500)]
    for part in range(0, 500, 100):
        client.send_raw(b"".join(encode("LOCK", n, "LEASE", 30000) for n in names[part:part + 100]))
        assert all(isinstance(client.recv(), list) for _ in range(100))

    def pages(*options):
        found, cursor, count = set(), "0", 0
        while count == 0 or cursor != "0":
            cursor, page = client.cmd("LOCKS", "CURSOR", cursor, "COUNT", 100000, *options)
            found.update(page)
            count += 1
        return found, count
    for pattern in COSTLY:
        assert pages("MATCH", pattern)[0] == set()
    assert pages("MATCH", name + "*" + "*a" * 400)[0] == set(names)
    assert pages("MATCH", "*" + "?" * 400 + "a")[1] > 1
    assert client.err("LOCKS", "MATCH", "a" * 1025).code == "LIMIT"
    for command in (("PSUBSCRIBE",), ("CONFIG", "GET"), ("PUBSUB", "CHANNELS"), ("COMMAND", "LIST", "FILTERBY", "PATTERN")):
        assert client.err(*command, "a" * 1025).code == "LIMIT"


def test_costly_patterns_of_listeners(make_broker, masters1, clients, name):
    """Each message is compared with all patterns, some of them in each turn: who listens hears everything in order, and
    whoever holds a lock keeps it."""
    broker = make_broker(masters1, options=LEASE).wait_masters()
    holder = Holder(broker, 50, name)
    listener, app = clients(broker), clients(broker)
    patterns = [(COSTLY[i % 4] + str(i))[-1024:] for i in range(127)]
    for part in range(0, 127, 50):
        for _ in listener.send_raw(encode("PSUBSCRIBE", *patterns[part:part + 50])) or patterns[part:part + 50]:
            assert listener.recv()[0] == "psubscribe"
    assert listener.cmd("PSUBSCRIBE", "lock:%s-*" % name)[2] == 128
    assert listener.err("PSUBSCRIBE", "one:more:*").code == "LIMIT"
    names = ["%s-%d-%s" % (name, i, "a" * 440) for i in range(300)]
    app.send_raw(b"".join(encode("LOCK", n, "LEASE", 30000) for n in names))
    assert all(isinstance(app.recv(), list) for _ in names)
    assert [listener.recv()[2] for _ in names] == ["lock:" + n for n in names]
    assert holder.told() == []
    holder.close()


def test_many_patterns_of_all(make_broker, masters1, clients, name):
    broker = make_broker(masters1).wait_masters()
    listeners = [clients(broker) for _ in range(9)]
    for i, listener in enumerate(listeners[:8]):
        for part in range(0, 128, 64):
            listener.send_raw(encode("PSUBSCRIBE", *["%s:%d:%d" % (name, i, n) for n in range(part, part + 64)]))
            assert [listener.recv()[0] for _ in range(64)] == ["psubscribe"] * 64
    assert "1024 patterns" in str(listeners[8].err("PSUBSCRIBE", "another:*"))
    assert listeners[8].cmd("PSUBSCRIBE", "%s:0:0" % name)[2] == 1   # there is one already


def test_many_who_watch(broker1, clients, name):
    for _ in range(16):
        assert clients(broker1).cmd("MONITOR") == "OK"
    assert clients(broker1).err("MONITOR").code == "LIMIT"


# ---- limits of locks ----

def test_limits_of_locks(make_broker, masters1, clients, name):
    """Each error names its option; what is refused leaves nothing behind."""
    broker = make_broker(masters1, args=["-o", "limits.max_locks=6", "-o", "limits.max_locks_per_client=3",
                                         "-o", "limits.max_waiters_per_lock=2", "-o", "limits.max_waiters=3"])
    one, two, three = clients(broker), clients(broker), clients(broker)
    one.cmd("OWNER", "one")
    for i in range(3):
        one.cmd("LOCK", "%s:%d" % (name, i))
    err = one.err("LOCK", name + ":x")
    assert err.code == "LIMIT" and "max_locks_per_client" in str(err)
    for i in range(3):
        two.cmd("LOCK", "%s:lease:%d" % (name, i), "LEASE", 5000)
    err = three.err("LOCK", name + ":x")
    assert err.code == "LIMIT" and "(max_locks)" in str(err)
    assert one.cmd("LOCK", name + ":0"), "to enter again is no new lock"
    assert info(three, "acquires_limit") == [2]
    assert one.cmd("UNLOCK", name + ":2") == 1
    assert three.cmd("LOCK", name + ":x")
    waiting = [clients(broker) for _ in range(3)]
    for i, client in enumerate(waiting):
        client.send("LOCK", name + (":0" if i < 2 else ":1"), "WAIT", 0)
    wait_for("three waiters", lambda: info(three, "waiters") == [3])
    err = three.err("LOCK", name + ":0", "WAIT", 0)
    assert str(err) == "LIMIT 2 requests wait for '%s:0', no more are allowed (max_waiters_per_lock)" % name
    err = three.err("LOCK", name + ":1", "WAIT", 0)
    assert str(err) == "LIMIT 3 requests wait at this broker, no more are allowed (max_waiters)"
    assert info(three, "acquires_limit") == [4]


def test_nobody_may_wait(make_broker, masters1, clients, name):
    broker = make_broker(masters1, args=["-o", "limits.max_waiters_per_lock=0"])
    client = clients(broker)
    err = client.err("LOCK", name, "WAIT", 0)
    assert str(err) == "LIMIT 0 requests wait for '%s', no more are allowed (max_waiters_per_lock)" % name
    assert client.cmd("LOCK", name)


def test_limit_of_one_address(make_broker, masters1, clients):
    broker = make_broker(masters1, args=["-o", "limits.max_clients_per_address=4"])
    kept = [clients(broker) for _ in range(3)]
    for client in kept:
        assert client.cmd("PING") == "PONG"
    wait_for("room for one more", lambda: info(kept[0], "connected_clients") == [3])
    clients(broker).cmd("PING")
    assert b"max_clients_per_address" in clients(broker).read_to_end()
    assert info(kept[0], "rejected_per_address") == [1]
    kept[0].cmd("CONFIG", "SET", "limits.max_clients_per_address", 6)
    assert clients(broker).cmd("PING") == "PONG"


def test_a_long_answer_comes_in_parts(broker1, clients, name):
    """LOCKS with a large COUNT stops at some 64 kB and gives a cursor."""
    client = clients(broker1)
    for start in range(0, 300, 100):
        client.pipeline(*[("LOCK", "%s:%s%d" % (name, "x" * 400, i), "LEASE", 30000) for i in range(start, start + 100)])
    seen, cursor, calls = set(), "0", 0
    while calls == 0 or cursor != "0":
        cursor, names = client.cmd("LOCKS", "CURSOR", cursor, "COUNT", 100000)
        assert sum(len(one) for one in names) < 80 << 10
        seen.update(names)
        calls += 1
    assert len(seen) == 300 and calls > 1


def test_output_that_is_not_read(make_broker, masters1, clients):
    """The hard limit ends the connection at once, the soft one after its time."""
    broker = make_broker(masters1, args=["-o", "limits.output_buffer_soft_time=300ms",
                                         "-o", "limits.output_buffer_soft=16k"])
    watcher = clients(broker)
    slow = clients(broker)
    slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sock.settimeout(0.5)
    try:
        for _ in range(2000):
            slow.sock.send(encode("ECHO", "x" * 8000) * 4)
    except OSError:
        pass
    wait_for("its end", lambda: info(watcher, "disconnects_output_limit") == [1])
    assert info(watcher, "connected_clients") == [1]


# ---- limits of requests ----

def test_requests_in_flight(make_broker, masters1, clients, name):
    """A pipeline longer than max_pending_requests is read as far as that, and answered in order all the same."""
    broker = make_broker(masters1, options={"request_timeout": "5s"}, args=["-o", "limits.max_pending_requests=8"])
    client, admin = clients(broker), clients(broker)
    client.cmd("CLIENT", "SETNAME", "long")
    masters1[0].stop()
    client.send_raw(b"".join(encode("LOCK", "%s:%d" % (name, i)) + encode("ECHO", i) for i in range(100)))

    def in_flight():
        line = [line for line in admin.cmd("CLIENT", "LIST").splitlines() if "name=long" in line][0]
        return int(re.search(r" in-flight=(\d+)", line).group(1))
    wait_for("the bound", lambda: in_flight() == 8)
    masters1[0].cont()
    for i in range(100):
        assert isinstance(client.recv(), list) and client.recv() == str(i)


@pytest.mark.parametrize("option, data, why", [
    ("max_request_args=80", b"*81\r\n", "over max_request_args 80"),
    ("max_arg_len=1k", b"*2\r\n$4\r\nECHO\r\n$16777216\r\n", "over 16777216 bytes"),
    ("max_inline=1k", b"x" * 1100, "over max_inline 1024"),
], ids=lambda value: value.split("=")[0] if isinstance(value, str) and "=" in value else "")
def test_requests_that_are_too_large(make_broker, masters1, clients, option, data, why):
    broker = make_broker(masters1, args=[word for one in option.split() for word in ("-o", "limits." + one)])
    client, other = clients(broker), clients(broker)
    client.send_raw(data)
    answer = client.read_to_end()
    assert answer.startswith(b"-ERR Protocol error: ") and why.encode() in answer and answer.count(b"\n") == 1, answer
    assert info(other, "protocol_errors_resp") == [1]


@pytest.mark.parametrize("option, data, why", [
    ("max_arg_len=1k", encode("ECHO", "x" * 1025), "an argument of 1025 bytes is over max_arg_len 1024"),
    ("max_arg_len=1k", b"ECHO " + b"x" * 1025 + b"\r\n", "an argument of 1025 bytes is over max_arg_len 1024"),
    ("max_arg_len=1k", encode("ECHO", "x" * 3000000), "an argument of 3000000 bytes is over max_arg_len 1024"),
    ("max_request=4k max_arg_len=2k", encode("MLOCK", 5, *["x" * 1000] * 5), "it is over max_request 4096"),
], ids=lambda value: value.split("=")[0] if isinstance(value, str) and "=" in value else "")
def test_the_connection_outlives_a_request_that_is_too_large(make_broker, masters1, clients, name, option, data, why):
    broker = make_broker(masters1, args=[word for one in option.split() for word in ("-o", "limits." + one)])
    client, other = clients(broker), clients(broker)
    client.send("LOCK", name)
    client.send_raw(data)
    client.send("PING")
    assert isinstance(client.recv(), list)
    assert str(client.recv()) == "LIMIT the request was not run: " + why
    assert client.recv() == "PONG" and client.cmd("UNLOCK", name) == 1
    client.cmd("MULTI")
    client.send_raw(data)
    assert client.recv().code == "LIMIT"
    assert client.err("EXEC").code == "EXECABORT"
    assert info(other, "protocol_errors_resp") == [0]


def test_what_is_dropped_takes_no_memory(make_broker, masters1, clients):
    broker = make_broker(masters1)
    client, other = clients(broker), clients(broker)
    client.send_raw(b"*2\r\n$4\r\nECHO\r\n$15000000\r\n")
    for _ in range(14):
        client.send_raw(b"x" * 1000000)
    line = [line for line in other.cmd("CLIENT", "LIST").splitlines() if " qbuf=" in line]
    assert all(int(re.search(r" qbuf=(\d+)", one).group(1)) < 100000 for one in line)
    client.send_raw(b"x" * 1000000 + b"\r\n")
    assert "15000000" in str(client.recv())
    assert client.cmd("PING") == "PONG"


def test_idle_clients(make_broker, masters1, clients, name):
    """Who has a lock, waits or listens is not idle."""
    broker = make_broker(masters1, args=["-o", "limits.idle_timeout=300ms"])
    holder, listener, idle = clients(broker), clients(broker), clients(broker)
    holder.cmd("LOCK", name)
    listener.cmd("SUBSCRIBE", "lost")
    idle.cmd("PING")
    assert idle.read_to_end(15) == b""
    assert holder.cmd("UNLOCK", name) == 1
    assert info(holder, "disconnects_idle") == [1]
    assert listener.silent(0.1)


def test_too_much_for_a_master(make_broker, masters1, clients, name):
    """A master that does not answer is given no more than max_master_inflight; what is beyond fails at once."""
    broker = make_broker(masters1, options={"request_timeout": "5s"}, args=["-o", "limits.max_master_inflight=16"])
    client = clients(broker)
    masters1[0].stop()
    client.send_raw(b"".join(encode("LOCK", "%s:%d" % (name, i), "LEASE", 60000) for i in range(40)))
    other = clients(broker)
    wait_for("the bound", lambda: as_map(other.cmd("MASTERS")[0])["in_flight"] == 16)
    wait_for("the others", lambda: info(other, "acquires_no_quorum") == [24])
    masters1[0].cont()
    replies = [client.recv() for _ in range(40)]
    errors = [reply for reply in replies if isinstance(reply, RespError)]
    assert len(errors) == 24 and all(err.code == "NOQUORUM" and "overloaded" in str(err) for err in errors), replies
    assert sum(isinstance(reply, list) for reply in replies) == 16


def test_a_busy_master_keeps_nobody_waiting(make_broker, masters1, clients, name):
    """While every master has much to do, the broker looks for their answers first; it does not wait for them."""
    broker = make_broker(masters1, options={"request_timeout": "60s"})
    client, other = clients(broker), clients(broker)
    masters1[0].stop()
    client.send_raw(b"".join(encode("LOCK", "%s:%d" % (name, i), "LEASE", 60000) for i in range(40)))
    wait_for("much to do", lambda: as_map(other.cmd("MASTERS")[0])["in_flight"] == 40)
    assert other.cmd("PING") == "PONG"
    masters1[0].cont()
    assert all(isinstance(client.recv(), list) for _ in range(40))


def test_a_watcher_that_does_not_read(make_broker, masters1, clients):
    """What it did not ask for counts as well: the hard limit ends it."""
    broker = make_broker(masters1, args=["-o", "limits.output_buffer_hard=16k", "-o", "limits.output_buffer_soft=16k"])
    watcher, client = clients(broker), clients(broker)
    watcher.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    watcher.cmd("MONITOR")

    def closed():
        client.pipeline(*[("ECHO", "x" * 8000)] * 20)
        return info(client, "disconnects_output_limit") == [1]
    wait_for("its end", closed, 20)
    broker.wait_log("does not take its replies \\(output_buffer_hard\\)")


# ---- strangers ----

class Crowd:
    """Many plain sockets, read by one selector: counts how each ended and when."""

    def __init__(self, address):
        self.address = address
        self.selector = selectors.DefaultSelector()
        self.open = 0
        self.refused = self.ended = 0
        self.longest_s = 0.0

    def come(self, data=b"", reads=True):
        sock = socket.socket()
        sock.settimeout(20)
        sock.connect(self.address)
        sock.setblocking(False)
        started = time.monotonic()
        try:
            if data:
                sock.send(data)
        except OSError:
            pass
        self.open += 1
        self.selector.register(sock, selectors.EVENT_READ, [started, reads, b""])

    def look(self, for_s):
        for key, _ in self.selector.select(for_s):
            try:
                data = key.fileobj.recv(4096)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if data:
                key.data[2] += data[:200]
                continue
            self.ended += 1
            self.open -= 1
            self.refused += b"max number" in key.data[2]
            self.longest_s = max(self.longest_s, time.monotonic() - key.data[0])
            self.selector.unregister(key.fileobj)
            key.fileobj.close()

    def close(self):
        for key in list((self.selector.get_map() or {}).values()):
            key.fileobj.close()
        self.selector.close()


@pytest.fixture
def many_files():
    """Descriptors for the test itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def crowd(many_files):
    made = []

    def make(broker):
        made.append(Crowd(broker.address))
        return made[-1]
    yield make
    for one in made:
        one.close()


def test_strangers(make_broker, masters1, crowd, name):
    """10,000 connections that never say who they are: silent, with half a request, with requests whose
    answers they do not read. All are gone within five seconds, and whoever belongs here notices nothing."""
    unix = os.path.join(masters1[0].dir, "users")
    broker = make_broker(masters1, start=False, options=LEASE, listen="127.0.0.1:0 unix:" + unix)
    broker.configure()
    with open(broker.conf, "a", encoding="utf-8") as out:
        out.write("\n[users]\nme = none\nme.uid = %d\nme.allow = lock inspect\n" % os.getuid())
    broker.start(ready=False, argv=[daemon_path(), "-c", broker.conf])
    client = RespClient(unix, resp3=True, tell=True)
    wait_for("a quorum", lambda: isinstance(client.pipeline(("LOCK", name))[0], list), 20)
    for reply in client.pipeline(*[("LOCK", "%s:%d:b" % (name, i)) for i in range(50)]):
        assert isinstance(reply, list), reply
    before_kb = rss_kb(broker.proc.pid)
    people = crowd(broker)
    kinds = [b"", b"*2\r\n$4\r\nLOCK\r\n$10\r\nab", encode("PING") * 20]
    most_kb = 0
    for i in range(10000):
        people.come(kinds[i % 3])
        if i % 50 == 0:
            people.look(0)
        if i % 1000 == 0:
            most_kb = max(most_kb, rss_kb(broker.proc.pid))
    until = time.monotonic() + 20
    while people.open > 0 and time.monotonic() < until:
        people.look(0.1)
        most_kb = max(most_kb, rss_kb(broker.proc.pid))
    assert people.open == 0 and people.ended == 10000
    assert people.longest_s < 9, "5 s, and what a busy machine adds"
    assert client.cmd("PING") == "PONG" and not [p for p in client.pushes if p[0] != "renewed"]
    assert lateness_ms(broker, client) < LEASE_MS / 2
    refused, timed_out = info(client, "rejected_unauthenticated", "disconnects_auth_timeout")
    assert refused > 9000 and timed_out > 100
    if not is_sanitized(broker.proc.pid):
        assert most_kb <= 64 << 10
    print("strangers: %d refused, the longest stayed %.1f s, RSS %d kB before, %d kB at most, renewals at most "
          "%.1f ms late" % (refused, people.longest_s, before_kb, most_kb, lateness_ms(broker, client)))
    client.close()


def test_half_requests_and_unread_replies(make_broker, masters1, crowd, clients, name):
    """The same without users: 3,000 connections, each of which takes memory until its time is over."""
    broker = make_broker(masters1, options=LEASE, args=["-o", "limits.request_time=2s", "-o", "limits.output_buffer_soft_time=2s"])
    holder = Holder(broker, 50, name)
    client = clients(broker)
    before_kb = rss_kb(broker.proc.pid)
    people = crowd(broker)
    for i in range(3000):
        people.come([b"*2\r\n$4\r\nECHO\r\n$4000\r\n" + b"x" * 3000, b"LOCK", b"*3\r\n$4"][i % 3])
    most_kb = rss_kb(broker.proc.pid)
    until = time.monotonic() + 30
    while people.open > 0 and time.monotonic() < until:
        people.look(0.1)
        most_kb = max(most_kb, rss_kb(broker.proc.pid))
    assert people.open == 0
    assert info(client, "disconnects_slow_request") == [3000]
    assert holder.told() == [] and lateness_ms(broker, client) < LEASE_MS / 2
    if not is_sanitized(broker.proc.pid):
        assert most_kb <= 64 << 10
    print("half requests: RSS %d kB before, %d kB at most, the longest stayed %.1f s, renewals at most %.1f ms late" % (
        before_kb, most_kb, people.longest_s, lateness_ms(broker, client)))
    holder.close()


# ---- descriptors ----

def test_few_descriptors(make_broker, masters1, crowd, name):
    """With 128 descriptors there is room for some clients and always for the masters; the others are told."""
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit is not installed")
    broker = make_broker(masters1, options=LEASE, wrapper=["prlimit", "--nofile=128:128"])
    assert "LimitNOFILE" in broker.log_text()
    holder = Holder(broker, 20, name)
    people = crowd(broker)
    for _ in range(500):
        people.come(encode("PING"))
    start, used = time.monotonic(), cpu_s(broker.proc.pid)
    wait_for("the refused to be told", lambda: (people.look(0.05), people.refused > 350)[1], 20)
    while time.monotonic() < start + LEASE_MS / 1000:
        people.look(0.05)
    assert people.ended == people.refused, "nobody is sent away without a word"
    assert holder.told() == []
    masters1[0].cli("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # the broker needs a descriptor
    wait_for("the master again", lambda: info(holder.client, "quorum_available") == [1])
    assert info(holder.client, "rejected_no_descriptor") == [0]
    print("few descriptors: %d of 500 served, %.1f %% of a processor" % (
        people.open, 100 * (cpu_s(broker.proc.pid) - used) / (time.monotonic() - start)))
    people.close()
    wait_for("room again", lambda: info(holder.client, "connected_clients") == [1])
    assert broker.connect().cmd("PING") == "PONG"
    holder.close()


def test_no_descriptors_left(make_broker, masters1, crowd, name):
    """accept fails: it costs no processor time, one at a time is told, renewals are on time, and it is over by
    itself when there are descriptors again."""
    broker = make_broker(masters1, options=LEASE)
    pid = broker.proc.pid
    holder = Holder(broker, 20, name)
    used = len(os.listdir("/proc/%d/fd" % pid))
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 5, hard))
    people = crowd(broker)
    for _ in range(500):
        people.come(encode("PING"))
    wait_for("one to be told", lambda: (people.look(0.05), people.refused >= 3)[1], 20)
    start, cpu = time.monotonic(), cpu_s(pid)
    while time.monotonic() < start + LEASE_MS / 1000:
        people.look(0.05)
    share = (cpu_s(pid) - cpu) / (time.monotonic() - start)
    assert share < 0.3, "%.0f %% of a processor" % (100 * share)
    assert people.open > 400 and holder.told() == []
    rejected, paused_us = info(holder.client, "rejected_no_descriptor", "accept_paused_usec")
    assert rejected >= 3 and paused_us > 0
    assert lateness_ms(broker, holder.client) < LEASE_MS / 2
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    wait_for("all to be served", lambda: info(holder.client, "connected_clients")[0] > 400, 20)
    print("no descriptors: %.1f %% of a processor, %d told in %.1f s, renewals at most %.1f ms late" % (
        100 * share, rejected, time.monotonic() - start, lateness_ms(broker, holder.client)))
    holder.close()


# ---- what masters say ----

def test_errors_of_masters(make_broker, make_redis, make_proxy, clients, name):
    """An error of a master with line ends and control bytes in it stays inside one error line, and one line of
    the log."""
    master = make_redis()
    proxy = make_proxy(master.address)
    broker = make_broker({"a": proxy.url})
    client = clients(broker)
    proxy.on("replace_reply", lambda r: r.is_eval and r.mentions(name), times=None,
             value=b"-OOM \rx\x00+OK\n$5\x1b[31m evil\r\n")
    client.send("LOCK", name)
    client.send("PING")
    reply = client.recv()
    assert isinstance(reply, RespError) and reply.code == "NOQUORUM", reply
    assert client.recv() == "PONG"
    assert "(a: OOM" in str(reply) and not re.search(r"[\x00-\x1f]", str(reply)), reply
    broker.wait_log(r"warn .* refuses scripts: OOM \\x0dx\\x00\+OK\\x0a\$5\\x1b\[31m evil swallowed=0$")
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", broker.log_text())


# ---- restarts ----

class Fleet:
    """Ten applications with 100 watched locks each, every one with an owner of its own. Even ones come back
    after a restart, odd ones are never heard of again."""

    COUNT, EACH = 10, 100

    def __init__(self, address, name):
        self.address = address
        self.locks = [["%s:%d:%d" % (name, i, k) for k in range(self.EACH)] for i in range(self.COUNT)]
        self.tokens = {}
        self.deadline = {}  # by lock: the last moment that its holder was told
        self.clients = [RespClient(address, deadline_s=30, resp3=True, tell=True) for _ in range(self.COUNT)]
        for i, client in enumerate(self.clients):
            client.cmd("OWNER", "app-%d" % i)

    def say(self, i, verb):
        """LOCK or RENEW of all of one application; the replies."""
        client = self.clients[i]
        start = time.monotonic()
        replies = client.pipeline(*[(verb, lock) for lock in self.locks[i]])
        for lock, reply in zip(self.locks[i], replies):
            assert isinstance(reply, list), "%s %s: %r" % (verb, lock, reply)
            assert reply[0] >= self.tokens.get(lock, 0)
            self.tokens[lock] = reply[0]
            self.deadline[lock] = start + reply[1] / 1000
        return replies

    def come_back(self, i):
        self.clients[i].close()
        self.clients[i] = RespClient(self.address, deadline_s=30, resp3=True, tell=True)
        self.clients[i].cmd("OWNER", "app-%d" % i)

    def close(self):
        for client in self.clients:
            client.close()


class Rival:
    """Asks for the abandoned locks through another broker, without a pause: when each was given."""

    def __init__(self, broker, locks):
        self.given = {}
        self.left = list(locks)
        self.stop = threading.Event()
        self.client = broker.connect(deadline_s=30)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.left and not self.stop.is_set():
            for start in range(0, len(self.left), 100):
                part = self.left[start:start + 100]
                replies = self.client.pipeline(*[("LOCK", one, "LEASE", 60000) for one in part])
                now = time.monotonic()
                for one, reply in zip(part, replies):
                    if isinstance(reply, list):
                        self.given[one] = (now, reply[0])
            self.left = [one for one in self.left if one not in self.given]

    def close(self):
        self.stop.set()
        self.thread.join(30)
        self.client.close()


RESTART_LEASE_S = 6


@pytest.mark.parametrize("how", ["term", "kill", "upgrade"])
def test_restart(make_broker, masters3, name, tmp_path, how):
    """1,000 holds, and the broker is started again behind the same listening socket. Whoever reconnects gets his
    back by RENEW; what nobody comes back for is given to nobody before the deadline that its holder was told, and
    is free at the end of the lease. Nobody's connection is refused meanwhile."""
    if "libsystemd" not in subprocess.run(["ldd", daemon_path()], capture_output=True, text=True, check=True).stdout:
        pytest.skip("built without libsystemd")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    options = {"lease": "%ds" % RESTART_LEASE_S, "drain_timeout": "300ms", "request_timeout": "2s"}

    def start(label, program=None):
        broker = make_broker(masters3, start=False, name=label, options=options, pass_fds=(listener.fileno(),),
                             wrapper=[sys.executable, "-c", SELF_ACTIVATE, str(listener.fileno())])
        if program:
            broker.configure()
        return broker.start(argv=[program, "-c", broker.conf] if program else None)
    rival_broker = make_broker(masters3, name="rival", options=options)
    first = start("first")
    fleet = Fleet(listener.getsockname(), name)
    for i in range(fleet.COUNT):
        fleet.say(i, "LOCK")
    for i in range(fleet.COUNT):
        fleet.say(i, "RENEW")
    rival = Rival(rival_broker, [lock for i in range(1, fleet.COUNT, 2) for lock in fleet.locks[i]])
    began = time.monotonic()
    program = None
    if how == "kill":
        first.kill()
    else:
        first.signal(signal.SIGTERM)
        first.wait()
    if how == "upgrade":
        program = str(tmp_path / "holdfastd.new")
        shutil.copy(daemon_path(), program)
    second = start("second", program)
    gap = time.monotonic() - began
    back = time.monotonic()
    for i in range(0, fleet.COUNT, 2):
        fleet.come_back(i)
        fleet.say(i, "RENEW")
    back = time.monotonic() - back
    try:
        wait_for("the abandoned locks", lambda: not rival.left, 3 * RESTART_LEASE_S + 10)
        early = {one: fleet.deadline[one] - when for one, (when, _) in rival.given.items() if when < fleet.deadline[one]}
        assert not early, "given before their holders' deadlines: %r" % early
        assert all(token > fleet.tokens[one] for one, (_, token) in rival.given.items())
        margins = [when - fleet.deadline[one] for one, (when, _) in rival.given.items()]
        for i in range(0, fleet.COUNT, 2):  # kept all the while
            fleet.say(i, "RENEW")
            assert not any(push[0] == "lost" for push in fleet.clients[i].pushes)
        print("restart by %s: away for %.2f s, 500 taken back in %.2f s, abandoned ones given %.2f to %.2f s after "
              "their deadlines" % (how, gap, back, min(margins), max(margins)))
    finally:
        rival.close()
        fleet.close()
        second.terminate()
        listener.close()


def test_drain_waits_for_holders(make_broker, masters1, clients, name):
    """Renewals go on while it drains, beyond the lease; it ends when the last holder has left."""
    broker = make_broker(masters1, options=LEASE)
    holder, other = clients(broker, resp3=True), clients(broker)
    token = holder.cmd("LOCK", name, "TELL")[0]
    broker.signal(signal.SIGTERM)
    broker.wait_log("draining")
    for _ in range(4):
        push = holder.wait_push("renewed")
        assert push[2] == token
    assert other.err("LOCK", name + "2").code == "DRAINING"
    assert holder.cmd("RENEW", name)[0] == token
    assert holder.cmd("UNLOCK", name) == 1
    assert broker.wait() == 0
    with pytest.raises(Closed):
        other.cmd("PING")
        other.cmd("PING")
