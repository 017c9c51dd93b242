#!/usr/bin/python3
"""As worst.py, with a million locks and 10,000 connections: no turn of the loop may grow with how many there are.

    tests/cost/many.py                  everything that may, 1 when a turn is over the budget
    tests/cost/many.py expiry drain     those alone
    LOCKS=200000 tests/cost/many.py     with so many locks

It takes some minutes and is run by hand, when something has changed that goes through all locks or all clients.
"""

import os
import re
import shutil
import signal
import sys
import tempfile
import time

from worst import SKIP, Counted, ask, at_once, encode, judge, pages, raise_files, reload, settle, wait_until
from redisproc import RedisProc

LOCKS = int(os.environ.get("LOCKS", "1000000"))
CLIENTS = 10000
HOLDERS = 20                # of the connections hold what is due at once,
DUE = 100000                # so many of each kind
LISTENERS = 9000
LEASE_S = 60
PART = 500                  # locks in one pipeline
LOAD_S = 300                # after which the locks that were made have to do


def figure(client, name, section="holdfast"):
    return int(re.search(r"^%s:(\d+)" % name, client.cmd("INFO", section), re.M).group(1))


def send_many(client, requests):
    """Fails when one is answered by an error."""
    client.send_raw(b"".join(requests) + encode("PING", "end-of-part"))
    data = b""
    while not data.endswith(b"end-of-part\r\n"):
        data += client.sock.recv(1 << 16)
    assert not data.startswith(b"-") and b"\n-" not in data, data[:300]


def take(client, what, first, count, *lease):
    for part in range(first, first + count, PART):
        send_many(client, [encode("LOCK", "%s-%d" % (what, n), *lease) for n in range(part, part + PART)])


class State:
    def __init__(self, broker, redis):
        self.broker, self.redis = broker, redis
        self.crowd = [broker.connect() for _ in range(CLIENTS)]
        self.holders = self.crowd[:HOLDERS]
        self.others = self.crowd[HOLDERS:]
        self.held, start = 0, time.monotonic()
        while self.held < LOCKS and time.monotonic() - start < LOAD_S:
            take(self.crowd[-1 - self.held // 10000 % 100], "long", self.held, 10 * PART, "LEASE", 24 * 3600 * 1000)
            self.held += 10 * PART
        print("%d locks of %d clients, after %d s" % (self.held, CLIENTS, time.monotonic() - start), flush=True)

    def still(self, seconds):
        """The broker stands still: what has become due meanwhile is due at once."""
        os.kill(self.broker.proc.proc.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.broker.proc.proc.pid, signal.SIGCONT)

    def take_due(self, what, *lease):
        self.broker.count("off")
        for i, holder in enumerate(self.holders):
            take(holder, what, i * DUE // HOLDERS, DUE // HOLDERS, *lease)
        self.broker.count("on")


def look(state):
    for words in (["INFO", "everything"], ["LOCKS", "COUNT", "100000"], ["LOCKS", "COUNT", "100000", "MATCH", "*none*"],
                  ["SCAN", "0", "COUNT", "100000"], ["DBSIZE"], ["CLIENT", "LIST"], ["CLIENT", "INFO"],
                  ["PUBSUB", "NUMSUB", "lock:x"], ["SLOWLOG", "GET", "-1"]):
        ask(state.broker, [words])


def lock(state):
    for words in (["LOCK", "one-%d"], ["HOLDS", "long-7"], ["LOCKINFO", "long-7"], ["LOCK", "long-7"],
                  ["UNLOCK", "long-7"]):
        ask(state.broker, [words])


def requests_at_once(state):
    at_once(state, {client: encode("PING") for client in state.others})
    for client in state.others:
        client.recv(60)
    settle(state.broker)


def pause_of_clients_ends(state):
    with state.broker.connect() as client:
        client.cmd("CLIENT", "PAUSE", "3000", "ALL")
        for other in state.others:
            other.send("LOCK", "paused")
    for other in state.others:
        other.recv(60)
    settle(state.broker)


def message_to_all(state):
    listeners = state.others[:LISTENERS]
    for listener in listeners:
        listener.send("SUBSCRIBE", "lock:all")
    with state.broker.connect() as client:
        wait_until("not subscribed", lambda: client.cmd("PUBSUB", "NUMSUB", "lock:all")[1] == LISTENERS)
        for _ in range(3):
            client.cmd("LOCK", "all", "LEASE", 1000)
            client.cmd("UNLOCK", "all")
    for listener in listeners:
        listener.send("UNSUBSCRIBE", "lock:all")
    for listener in listeners:
        while listener.recv(60)[0] != "unsubscribe":
            pass
    settle(state.broker)


def master_was_still(state):
    """Thousands of answers come at once."""
    state.redis.stop()
    for i, client in enumerate(state.others):
        client.send("LOCK", "late-%d" % i, "LEASE", 600000)
    time.sleep(3)
    state.redis.cont()
    for client in state.others:
        client.recv(60)
    settle(state.broker)


def until(client, name, count):
    wait_until("%s is not %d" % (name, count), lambda: figure(client, name) >= count)


def expiry(state):
    with state.broker.connect() as client:
        before = figure(client, "releases_expired")
        state.take_due("expiring", "LEASE", 30000)
        state.still(35)
        until(client, "releases_expired", before + DUE)


def renewals(state):
    """All are due at once, and all answers come at once."""
    state.take_due("renewed")
    with state.broker.connect() as client:
        before = figure(client, "renewals_ok")
        state.redis.stop()
        state.still(LEASE_S / 2)
        time.sleep(5)
        state.redis.cont()
        until(client, "renewals_ok", before + DUE)


def holder_leaves(state):
    state.take_due("left")
    with state.broker.connect() as client:
        before = figure(client, "locks_held")
        for holder in state.holders[1:]:
            holder.close()
        wait_until("not released", lambda: figure(client, "locks_held") <= before - DUE // HOLDERS * (HOLDERS - 1))


def pause_and_resume(state):
    with state.broker.connect() as client:
        assert client.cmd("PAUSE") == "OK" and client.cmd("RESUME") == "OK"
    settle(state.broker)


def drain(state):
    """With locks that are held, then without."""
    os.kill(state.broker.proc.proc.pid, signal.SIGTERM)
    time.sleep(5)
    state.others[0].send("PING")
    state.others[0].recv(60)


def kill_all(state):
    client = state.holders[0]
    client.cmd("CLIENT", "KILL", "SKIPME", "YES")
    wait_until("not gone", lambda: "connected_clients:1\r" in client.cmd("INFO", "clients"))


# In this order: the last ones take the state apart.
FLOWS = {"look": look, "lock": lock, "pages": pages, "reload": reload, "requests at once": requests_at_once,
         "pause of clients ends": pause_of_clients_ends, "message to all": message_to_all,
         "master was still": master_was_still, "pause and resume": pause_and_resume, "expiry": expiry,
         "renewals": renewals, "holder leaves": holder_leaves, "drain": drain, "kill all": kill_all}


def main():
    wanted = [word.lower() for word in sys.argv[1:]]
    if not shutil.which("valgrind") or raise_files() < 2 * CLIENTS:
        print("needs valgrind, and %d descriptors" % (2 * CLIENTS))
        return SKIP
    directory, failed = tempfile.mkdtemp(prefix="hfm-"), []
    try:
        with RedisProc() as redis:
            broker = Counted(directory, redis, lease="%ds" % LEASE_S, max_lease="24h", pause_limit="60s",
                             drain_timeout="60s", request_timeout="30s")
            state = State(broker, redis)
            broker.count("on")
            for name, flow in FLOWS.items():
                if not wanted or name in wanted:
                    broker.turns()
                    flow(state)
                    failed += [name] if judge(name, broker.turns()) else []
            broker.proc.kill()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
