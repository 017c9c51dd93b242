"""Masters that come back empty, as clients and operators see it: what is held stays held, who waits is served."""

import collections
import importlib.machinery
import importlib.util
import json
import os
import re
import socket
import threading
import time

import pytest

from procs import wait_for
from respclient import Closed, NoReply, RespClient, RespError, as_map
from test_cli import cli, ok
from test_http import Http, value


def load_soak():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "soak")
    loader = importlib.machinery.SourceFileLoader("soak", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
    loader.exec_module(module)
    return module


soak = load_soak()
now = time.monotonic
ON = ("-o", "http.listen=127.0.0.1:0")

LEASE_MS = 8000   # long enough for what is done while a lock is held, by a sanitized broker on a busy machine
MANY_MS = 15000   # and the same of many locks
OPTIONS = {"quarantine": "auto", "request_timeout": "500ms", "claim_timeout": "1s"}
OVER_RE = "its quarantine is over"   # in the log: by time, not by a roll call
PIECE = 250       # requests in one write
LONG_MS = 50000


def in_pieces(conn, requests):
    replies = []
    for i in range(0, len(requests), PIECE):
        replies += conn.pipeline(*requests[i:i + PIECE])
    return replies


def remembers(broker):
    """Waits until it could sign a roll call: it knows of all locks that it can have granted."""
    wait_for("the memory of %s" % broker.name, lambda: broker.info().get("roll_call_memory_left_ms") == "0", 30, 0.05)


def lost(broker):
    return {k: v for k, v in broker.info().items() if k.startswith("lost_") and v != "0"}


class Crowd:
    """Holds of one broker: watched ones over several connections, and some with LEASE."""

    def __init__(self, clients, broker, watched, leased, lease_ms=LEASE_MS, conns=10):
        self.broker, self.lease_ms = broker, lease_ms
        self.conns = [clients(broker) for _ in range(conns)]
        self.parts = [["%s:w:%d:%d" % (broker.name, i, j) for j in range(watched // conns)] for i in range(conns)]
        self.leased = ["%s:l:%d" % (broker.name, i) for i in range(leased)]
        self.tokens = {}

    def lock(self):
        for conn, part in zip(self.conns, self.parts):
            self.tokens.update((n, r[0]) for n, r in zip(part, in_pieces(conn, [("LOCK", n) for n in part])))
        conn, words = self.conns[0], ("OWNER", "crowd", "LEASE", self.lease_ms)
        self.tokens.update((n, r[0]) for n, r in zip(self.leased, in_pieces(
            conn, [("LOCK", n) + words for n in self.leased])))

    def check_kept(self, masters):
        """None is lost: each is on all masters, and renewed under its token."""
        assert not lost(self.broker)
        for master in masters:
            wait_for("all holds on %s" % master.name, lambda m=master: not self.missing(m), 20, 0.2)
        for conn, part in zip(self.conns, self.parts):
            for n, reply in zip(part, in_pieces(conn, [("RENEW", n) for n in part])):
                assert isinstance(reply, list) and reply[0] == self.tokens[n], (n, reply, self.tokens[n])
        words = ("OWNER", "crowd", "LEASE", self.lease_ms)
        for n, reply in zip(self.leased, in_pieces(self.conns[0], [("RENEW", n) + words for n in self.leased])):
            assert isinstance(reply, list) and reply[0] == self.tokens[n], (n, reply, self.tokens[n])
        assert not lost(self.broker)

    def missing(self, master):
        return {"holdfast:{%s}" % n for n in self.tokens} - set(master.cli("KEYS", "holdfast:{*}"))


class Teller:
    """Watched locks on one connection that hears what becomes of them."""

    def __init__(self, clients, broker, count):
        self.conn = clients(broker, resp3=True, tell=True)
        self.names = ["%s:t:%d" % (broker.name, i) for i in range(count)]
        self.heard = collections.defaultdict(list)   # {name: kinds of pushes}

    def lock(self):
        assert all(isinstance(r, list) for r in in_pieces(self.conn, [("LOCK", n) for n in self.names]))

    def listen_until(self, what, enough, deadline_s=25):
        until = now() + deadline_s
        while not enough():
            try:
                push = self.conn.recv_push(max(0.001, until - now()))
            except NoReply:
                raise AssertionError("no push says: " + what) from None
            assert push[0] != "lost", push
            self.heard[push[1]].append(push[0])

    def in_jeopardy(self):
        """Those of which it has heard that they are, and not yet that they are safe."""
        told = {name: [kind for kind in kinds if kind != "renewed"] for name, kinds in self.heard.items()}
        return [name for name, kinds in told.items() if kinds and kinds[-1] == "jeopardy"]


class Worker(threading.Thread):
    """Takes one lock after the other and gives it back, always with WAIT; what it was told is judged at the end."""

    def __init__(self, broker, number, history, ends, names):
        super().__init__(daemon=True)
        self.broker, self.number, self.history, self.ends, self.names = broker, number, history, ends, names
        self.grants, self.wrong = 0, None

    def run(self):
        try:
            with self.broker.connect() as client:
                while not self.ends.is_set():
                    self.work(client)
        except (Closed, NoReply, RespError) as err:
            self.wrong = repr(err)

    def work(self, client):
        name, owner = "work:%d" % (self.grants % self.names), "%s-%d-%d" % (self.broker.name, self.number, self.grants)
        call = now()
        token, validity = client.cmd("LOCK", name, "OWNER", owner, "WAIT", LONG_MS, deadline_s=LONG_MS / 1000)
        self.history.add(["told", call, now(), "w%d" % self.number, self.broker.name, name, owner, token, validity, 0])
        self.grants += 1
        time.sleep(0.005)
        self.history.add(["end", now(), name, owner])
        try:
            client.cmd("UNLOCK", name, "OWNER", owner)
        except RespError as err:   # in an outage it is given up
            if err.code not in ("NOQUORUM", "NOTHELD"):
                raise


class Work:
    def __init__(self, brokers, each=2, names=3):
        self.history, self.ends = soak.History(), threading.Event()
        self.workers = [Worker(b, i, self.history, self.ends, names) for i, b in enumerate(brokers * each)]
        for worker in self.workers:
            worker.start()

    def grants(self):
        assert not any(w.wrong for w in self.workers), [w.wrong for w in self.workers]
        return sum(w.grants for w in self.workers)

    def goes_on(self):
        before = self.grants()
        wait_for("work", lambda: self.grants() > before + 10, 30)

    def judge(self):
        self.goes_on()
        self.ends.set()
        for worker in self.workers:
            worker.join(30)
            assert not worker.is_alive() and not worker.wrong, worker.wrong
        by_name = collections.defaultdict(list)
        for told in self.history.told:
            by_name[told.name].append(told)
        wrong = [line for tolds in by_name.values() for line in list(soak.check_overlaps(self.history, tolds)) +
                 list(soak.check_tokens(tolds, 0))]
        assert not wrong, wrong


class First(threading.Thread):
    """Who asks for a new lock in an outage, and waits: when it got it, and what the log had said by then."""

    def __init__(self, broker, name="first"):
        super().__init__(daemon=True)
        self.broker, self.name = broker, name
        self.mark = broker.log_size()
        self.conn = broker.connect()
        self.conn.send("LOCK", name, "OWNER", "first", "WAIT", LONG_MS)
        self.reply, self.at, self.log = None, None, ""
        self.start()

    def run(self):
        self.reply = self.conn.recv(LONG_MS / 1000)
        self.at = now()
        self.log = self.broker.log_text(self.mark)
        self.conn.close()

    def wait(self):
        self.join(40)
        assert isinstance(self.reply, list), self.reply
        return self


class Outage:
    """All masters are killed, and come back empty; notes when each of them could be reached again."""

    def __init__(self, masters):
        self.masters = masters
        self.reached = []
        for master in masters:
            master.kill()

    def end(self):
        watchers = [threading.Thread(target=self.watch, args=(m,), daemon=True) for m in self.masters]
        for watcher in watchers:
            watcher.start()
        for master in self.masters:
            master.start()
        for watcher in watchers:
            watcher.join(20)
        assert len(self.reached) == len(self.masters)

    def watch(self, master):
        until = now() + 20
        while now() < until:
            try:
                with RespClient(master.address, deadline_s=1) as client:
                    client.cmd("PING")
                self.reached.append(now())
                return
            except (OSError, Closed, NoReply, RespError):
                time.sleep(0.001)

    def majority_since(self):
        return sorted(self.reached)[len(self.reached) // 2]


def wait_in_line(clients, broker, name, count, *words):
    """That many requests that wait, in this order."""
    line = []
    for i in range(count):
        before = int(broker.info()["waiters"])
        client = clients(broker)
        client.send("LOCK", name, "OWNER", "waiter-%s-%d" % (name, i), "WAIT", LONG_MS, *words)
        wait_for("a waiter", lambda n=before: int(broker.info()["waiters"]) > n)
        line.append(client)
    return line


def serve_in_order(line, name, token):
    """Each of the line gets the lock after the one before it has given it back."""
    for i, client in enumerate(line):
        reply = client.recv(30)
        assert isinstance(reply, list) and reply[0] > token, (i, reply, token)
        token = reply[0]
        assert all(other.silent(0) for other in line[i + 1:])
        assert client.cmd("UNLOCK", name, "OWNER", "waiter-%s-%d" % (name, i)) == 1


def started(make_broker, masters, names, listed=True, lease_ms=LEASE_MS, **kwargs):
    """Brokers that could sign at once, where there is a roll call."""
    lease = "%dms" % lease_ms
    options = dict(OPTIONS, lease=lease, max_lease=lease, brokers=" ".join(names) if listed else None)
    brokers = [make_broker(masters, ready=False, options=dict(options, name=name), **kwargs) for name in names]
    for broker in brokers:
        with broker.connect() as client:   # nothing was locked before
            wait_for("the masters of " + broker.name, lambda c=client: not in_quarantine(c), 20)
        broker.wait_masters()
    for broker in brokers if listed else []:
        remembers(broker)
    return brokers


def in_quarantine(client):
    """Whether there is still a master that is, or is not there yet; ends their quarantines."""
    seen = [as_map(row) for row in client.cmd("MASTERS")]
    for master in seen:
        if master["state"] == "quarantine":
            client.send("MASTER", master["name"], "TRUST")
            client.recv()   # it may have ended meanwhile
    return any(master["state"] != "active" for master in seen)


def say(record_property, what, ms):
    record_property(what, round(ms, 1))
    print("%s: %.1f ms" % (what, ms))


@pytest.mark.parametrize("count, watched", [(1, 10000), (3, 2000)], ids=["one master", "three masters"])
def test_nothing_is_lost_and_the_outage_ends_at_once(make_redis, make_broker, clients, record_property, count, watched):
    """A broker that is alone in its list, with many holds, and clients at work."""
    masters = [make_redis(n) for n in "abc"[:count]]
    broker, = started(make_broker, masters, ["only"], lease_ms=MANY_MS)
    crowd, teller = Crowd(clients, broker, watched, watched // 10, MANY_MS), Teller(clients, broker, 100)
    holder = clients(broker)
    token = holder.cmd("LOCK", "line")[0]
    line = wait_in_line(clients, broker, "line", 8)
    work = Work([broker])
    crowd.lock()
    teller.lock()
    work.goes_on()

    outage = Outage(masters)
    first = First(broker)
    teller.listen_until("jeopardy", lambda: teller.in_jeopardy())
    outage.end()
    first.wait()
    say(record_property, "first_grant_ms", (first.at - outage.majority_since()) * 1000)
    assert OVER_RE not in first.log
    teller.listen_until("safe", lambda: not teller.in_jeopardy())
    assert holder.cmd("UNLOCK", "line") == 1
    serve_in_order(line, "line", token)
    crowd.check_kept(masters)
    work.judge()
    broker.wait_masters()
    assert OVER_RE not in broker.log_text(first.mark)


def test_a_lock_that_ends_in_an_outage_goes_to_who_waits_longest(make_redis, make_broker, clients):
    masters = [make_redis("a")]
    broker, = started(make_broker, masters, ["only"])
    holder = clients(broker)
    token = holder.cmd("LOCK", "n", "LEASE", 1000)[0]
    line = wait_in_line(clients, broker, "n", 5)
    outage = Outage(masters)
    assert not line[0].data and line[0].silent(2)   # its lease ends meanwhile
    outage.end()
    serve_in_order(line, "n", token)


@pytest.mark.parametrize("count", [1, 3], ids=["one master", "three masters"])
def test_two_brokers_end_it_together(make_redis, make_broker, clients, record_property, count):
    masters = [make_redis(n) for n in "abc"[:count]]
    brokers = started(make_broker, masters, ["left", "right"])
    crowds = [Crowd(clients, broker, 500, 50) for broker in brokers]
    holders = [clients(broker) for broker in brokers]
    tokens = [holder.cmd("LOCK", "line%d" % i)[0] for i, holder in enumerate(holders)]
    lines = [wait_in_line(clients, brokers[1 - i], "line%d" % i, 4) for i in range(2)]   # at the other one
    work = Work(brokers)
    for crowd in crowds:
        crowd.lock()
    work.goes_on()

    outage = Outage(masters)
    firsts = [First(broker, "first-" + broker.name) for broker in brokers]
    for broker in brokers:
        wait_for("the end of the links", lambda b=broker: b.info()["quorum_available"] == "0")
    outage.end()
    for first in firsts:
        first.wait()
        say(record_property, first.name + "_ms", (first.at - outage.majority_since()) * 1000)
        assert OVER_RE not in first.log
    # what one has the other does not give away, on masters that have it from memory alone
    others = [clients(brokers[1 - i]) for i in range(2)]
    for other, crowd in zip(others, crowds):
        assert all(r is None for r in in_pieces(other, [("LOCK", n) for n in crowd.tokens]))
    for i, holder in enumerate(holders):
        assert holder.cmd("UNLOCK", "line%d" % i) == 1
        serve_in_order(lines[i], "line%d" % i, tokens[i])
    for crowd in crowds:
        crowd.check_kept(masters)
    work.judge()


def held_until(conn, name, *words):
    """Takes it; the moment until which its owner relies on it, for certain."""
    reply = conn.cmd("LOCK", name, *words)
    return now() + reply[1] / 1000 - soak.SLACK_S


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "without a list"])
def test_a_dead_broker_costs_a_quarantine_and_no_hold_of_the_living(make_redis, make_broker, clients, listed):
    masters = [make_redis("a")]
    living, dead = started(make_broker, masters, ["left", "right"], listed, args=ON)
    crowd = Crowd(clients, living, 200, 0)
    crowd.lock()
    holder = clients(living)
    token = holder.cmd("LOCK", "line")[0]
    line = wait_in_line(clients, living, "line", 4)
    until = held_until(clients(dead), "dead", "OWNER", "dead", "LEASE", LEASE_MS)
    dead.kill()
    outage = Outage(masters)
    first, rival = First(living), First(living, "dead")
    outage.end()
    wait_for("the quarantine", lambda: as_map(clients(living).cmd("MASTERS")[0])["state"] == "quarantine")
    if listed:
        wait_for("the broker that is there to sign", lambda: masters_of(living)[0]["signed"] == "left")
        check_seen(living)
    for one in first, rival:
        one.wait()
        assert OVER_RE in one.log
    assert rival.at > until
    assert holder.cmd("UNLOCK", "line") == 1
    serve_in_order(line, "line", token)
    crowd.check_kept(masters)


def test_a_broker_alone_without_a_list_keeps_its_holds(make_redis, make_broker, clients):
    """Three masters at once, so that nothing but its memory has them."""
    masters = [make_redis(n) for n in "abc"]
    broker, = started(make_broker, masters, ["alone"], listed=False)
    crowd = Crowd(clients, broker, 200, 0)
    crowd.lock()
    holder = clients(broker)
    token = holder.cmd("LOCK", "line")[0]
    line = wait_in_line(clients, broker, "line", 4)
    outage = Outage(masters)
    first = First(broker)
    outage.end()
    assert OVER_RE in first.wait().log
    assert holder.cmd("UNLOCK", "line") == 1
    serve_in_order(line, "line", token)
    crowd.check_kept(masters)


# Restarts of the broker

def end_cleanly(broker):
    broker.terminate()
    assert broker.proc.returncode == 0


def end_at_once(broker):
    broker.kill()
    broker.expect_status = 0


def run_again(broker):
    broker.start(ready=False)
    broker.wait_masters()
    return broker


@pytest.mark.parametrize("end", [end_cleanly, end_at_once], ids=["clean", "kill -9"])
@pytest.mark.parametrize("count", [1, 3], ids=["one master", "three masters"])
def test_a_broker_comes_back_without_a_quarantine(make_redis, make_broker, clients, end, count):
    masters = [make_redis(n) for n in "abc"[:count]]
    broker, = started(make_broker, masters, ["only"])
    client = clients(broker)
    tokens = {n: client.cmd("LOCK", n, "OWNER", "app")[0] for n in ("x", "y")}
    tokens["z"] = client.cmd("LOCK", "z", "OWNER", "app", "LEASE", LEASE_MS)[0]
    end(broker)
    run_again(broker)
    client = clients(broker)
    assert client.cmd("LOCK", "new")[0] > 0
    assert all(client.cmd("LOCK", n, "OWNER", "rival") is None for n in tokens)
    for n, token in tokens.items():
        assert client.cmd("RENEW", n, "OWNER", "app")[0] > token
    assert "quarantine" not in broker.log_text(broker.mark)


def test_a_broker_that_left_cleanly_signs_at_once(make_redis, make_broker, clients):
    """It has said that it left nothing behind, while a majority of the masters was there."""
    masters = [make_redis("a")]
    broker, = started(make_broker, masters, ["only"])
    client = clients(broker)
    token = client.cmd("LOCK", "n")[0]
    assert client.cmd("UNLOCK", "n") == 1
    end_cleanly(broker)
    run_again(broker)
    remembers(broker)
    outage = Outage(masters)
    first = First(broker, "n")
    outage.end()
    assert OVER_RE not in first.wait().log and first.reply[0] > token


def test_a_broker_that_was_killed_does_not_sign(make_redis, make_broker, clients):
    """Its next process knows nothing of what it had granted, and does not sign before all of that is over."""
    masters = [make_redis("a")]
    broker, = started(make_broker, masters, ["only"])
    client = clients(broker)
    until = held_until(client, "n", "OWNER", "app", "LEASE", LEASE_MS)
    end_at_once(broker)
    run_again(broker)
    outage = Outage(masters)
    rival = First(broker, "n")
    outage.end()
    rival.wait()
    # the second, when its name had not been written anew yet
    assert re.search("not signed here: this broker (has started only just now|was not there before)", rival.log)
    assert rival.at > until


def test_what_a_broker_left_behind_is_waited_for(make_redis, make_broker, clients):
    """A clean leave, but of a broker whose lock with LEASE is still out."""
    masters = [make_redis("a")]
    broker, = started(make_broker, masters, ["only"])
    client = clients(broker)
    until = held_until(client, "n", "OWNER", "app", "LEASE", LEASE_MS)
    client.close()
    end_cleanly(broker)
    run_again(broker)
    outage = Outage(masters)
    rival = First(broker, "n")
    outage.end()
    assert rival.wait().at > until


# Who waits

def test_who_waits_is_asked_for_as_soon_as_a_majority_is_back(make_broker, masters1, clients):
    """And not when his next retry is due: all have what they want before one who asks anew has had 150 grants."""
    broker = make_broker(masters1)
    master, = masters1
    master.kill()
    wait_for("the end of the link", lambda: broker.info()["quorum_available"] == "0")
    waiting = [clients(broker) for _ in range(20)]
    for i, client in enumerate(waiting):
        client.send(*(("LOCK", "w%d" % i) if i % 2 else ("MLOCK", 2, "w%d" % i, "m%d" % i)), "WAIT", 50000)
    wait_for("the waiters", lambda: broker.info()["waiters"] == "20")
    master.start()
    other, grants = clients(broker), 0
    while grants < 150:
        other.send("LOCK", "n%d" % grants, "LEASE", 5000)
        grants += isinstance(other.recv(), list)
    for client in waiting:
        assert isinstance(client.recv(0.001), list)


def test_who_does_not_wait_is_told_at_once(make_broker, masters1, clients):
    broker = make_broker(masters1)
    client = clients(broker)
    masters1[0].kill()
    wait_for("the end of the link", lambda: broker.info()["quorum_available"] == "0")
    for words in ("LOCK", "n"), ("MLOCK", 2, "n", "m"):
        for wait in (), ("WAIT", 300):
            assert client.err(*words, *wait).code == "NOQUORUM"
    assert broker.info()["waiters"] == "0"


# What operators see

def masters_of(broker):
    with broker.connect() as client:
        return [as_map(row) for row in client.cmd("MASTERS")]


def check_seen(broker):
    """In the quarantine of a, after left has signed and while right is missing."""
    web, row = Http(broker), masters_of(broker)[0]
    assert row["missing"] == "right" and row["quarantine_left_ms"] > 0
    ready = web.ask("/readyz?verbose")
    assert ready.status == 503
    assert "waits for right" in ready.text and "signed by left" in ready.text, ready.text
    assert "waits for right" in web.ask("/readyz").text
    shown = web.status()["masters"][0]
    assert (shown["signed"], shown["missing"]) == ("left", "right") and shown["quarantine_ms"] > 0
    metrics = web.metrics()
    assert value(metrics, "holdfast_backend_roll_call_missing", node="a", broker="right") == 1
    assert value(metrics, "holdfast_backend_roll_call_missing", node="a", broker="left") == 0
    assert value(metrics, "holdfast_backend_quarantine_remaining_seconds", node="a") > 0
    shown = ok(broker, "masters")
    assert "waits for right" in shown, shown
    assert "right" in broker.log_text(broker.mark)


def test_operators_see_who_has_not_signed(make_broker, masters1):
    """A broker of the list that was never there, and one that has only just come: nobody has signed."""
    broker = make_broker(masters1, ready=False, args=ON, options={
        "quarantine": "auto", "name": "left", "brokers": "left right"})
    wait_for("the answer of the master", lambda: masters_of(broker)[0]["missing"] == "left,right")
    web, row = Http(broker), masters_of(broker)[0]
    assert row["quarantine_left_ms"] > 0 and row["signed"] == "" and row["no_roll_call"] == ""
    ready = web.ask("/readyz?verbose")
    assert ready.status == 503
    assert re.search(r"master a: quarantined \S+, waits for left,right; not by this broker: \w+", ready.text), ready.text
    assert re.search(r"^\[-\]roll call: this broker cannot sign for \S+ more", ready.text, re.M), ready.text
    assert "waits for left,right" in web.ask("/readyz").text
    shown = web.status()["masters"][0]
    assert shown["missing"] == "left,right" and shown["signed"] == "" and shown["unsigned_why"]
    metrics = web.metrics()
    for name in "left", "right":
        assert value(metrics, "holdfast_backend_roll_call_missing", node="a", broker=name) == 1
    assert value(metrics, "holdfast_roll_call") == 1
    assert value(metrics, "holdfast_roll_call_memory_left_seconds") > 0
    assert "waits for left,right" in ok(broker, "masters")
    assert json.loads(ok(broker, "masters", "--json"))[0]["missing"] == "left,right"
    assert "waits for left,right" in cli(broker, "ping")[1]


def test_without_a_list_there_is_no_roll_call(make_broker, masters1):
    broker = make_broker(masters1, ready=False, args=ON, options={"quarantine": "auto"})
    wait_for("the quarantine", lambda: masters_of(broker)[0]["state"] == "quarantine")
    web = Http(broker)
    ready = web.ask("/readyz?verbose").text
    assert "waits for" not in ready and "roll call" not in ready and "signed" not in ready
    assert not any(name == "holdfast_backend_roll_call_missing" for name, _ in web.metrics())
    assert value(web.metrics(), "holdfast_roll_call") == 0


# A master that is away

class Closing:
    """A master's address at which every connection is closed at once; counts them."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.name, self.url = "a", "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.tries = 0
        self.enough = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                self.listener.accept()[0].close()
            except OSError:
                return
            self.tries += 1
            if self.tries == 100:
                self.enough.set()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_a_master_that_is_away_is_tried_often(make_broker):
    """Else nobody gets a lock for a second or two after its return. Doubling up to 2 s, 100 tries take a minute."""
    with Closing() as master:
        make_broker([master], ready=False)
        assert master.enough.wait(15), master.tries
