"""Faults of real masters, brokers, clients and clocks, and what must hold through them.

What has to be survived, and where that is shown (here when no file is named):
  a master with the vote restarts empty, links heal         test_a_restarted_master_does_not_make_a_second_majority
  every master restarted in turn                            test_every_master_restarted_in_turn_with_quarantine
  a master's clock jumps                                    test_a_master_whose_clock_jumps_is_out
  the broker stopped for three leases, with holds and with
    a grant half done                                       test_a_broker_that_stood_still_has_lost_its_holds
  a client stopped for many leases                          test_a_stopped_client_is_renewed_until_maxhold
  a client cut off from its broker                          test_a_client_that_was_cut_off_is_safe_until_its_deadline
  10,000 holds of clients killed at once                    test_many_holders_killed_at_once
  an acquire that arrives after its release                 test_faults.py: test_an_acquire_delivered_after_the_release
  renewals against releases                                 test_nothing_is_renewed_after_its_release
  foreign, expired, former owners                           test_locks.py, test_takeback.py
  a waiter that goes or times out right before its grant    test_locks.py: test_a_waiter_that_timed_out_is_passed_over,
                                                            test_a_client_that_is_gone_is_noticed
  everything at random, judged by a checker                 test_soak.py (for long: tests/bench/soak)
  the same token twice                                      test_the_same_token_is_not_given_twice
  masters that have forgotten their tokens                  test_tokens_rise_over_masters_that_forgot_them
  a vote that its master has forgotten                      test_a_vote_that_was_forgotten_does_not_count,
                                                            test_a_vote_that_was_forgotten_is_no_second_majority
  FLUSHALL, a lost mark, an old dump, SCRIPT FLUSH, a
    promoted replica, a disk that kept all, a second
    restart                                                 test_lost_data_is_noticed and those behind it
  the same server twice, eviction, replicas, brokers that
    disagree                                                test_the_same_server_twice and those behind it
  each error instead of a vote                              test_a_majority_that_refuses_is_no_vote;
                                                            test_faults.py: test_an_odd_answer_is_no_vote
  slow and stopped masters                                  test_one_slow_master_of_five_costs_nothing_three_do
  hostile masters                                           test_a_hostile_master_has_no_vote_and_costs_nothing
  TERM and kill -9 of a broker with holds                   test_a_killed_broker_frees_nobody_early; test_process.py
  brokers that die in the line                              test_waiting.py: test_a_killed_broker_that_is_next_is_passed_over
A host that vanishes from the network needs a second machine. The same rules one by one, in virtual time, with
each of them broken on purpose: tests/sim.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

import procs
from holdfastproc import LEASE_MS
from procs import rss_kb, wait_for
from respclient import Closed, RespClient, RespError, as_map
from steppedredis import SteppedRedis

LEASE_S = LEASE_MS / 1000
LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
MARK = "holdfast:master"


def about(name):
    return lambda request: request.is_eval and request.mentions(name)


def commit_of(name):
    return lambda request: request.is_eval and request.mentions(name) and request.runs("and COMMIT_LARGER or")


def lock_key(master, name):
    """The key of the lock on the master when it is held, or None."""
    key = "holdfast:{%s}" % name
    return key if master.hold(key) else None


def holder_on(master, name):
    hold = master.hold("holdfast:{%s}" % name)
    return hold["owner"] if hold else None


def master_of(client, name):
    """What MASTERS says of one master."""
    for row in client.cmd("MASTERS"):
        row = as_map(row)
        if row["name"] == name:
            return row
    raise AssertionError("no master %s" % name)


def wait_state(client, name, state, deadline_s=10.0):
    return wait_for("master %s %s" % (name, state),
                    lambda: master_of(client, name)["state"].lower() == state and master_of(client, name), deadline_s)


def until_free(client, name, since, validity_ms, deadline_s=15.0):
    """Tries all the time: the reply, which must not come before the validity told at `since` is over."""
    reply = client.cmd("LOCK", name, "WAIT", int(deadline_s * 1000), deadline_s=deadline_s + 5)
    assert reply is not None
    assert time.monotonic() >= since + validity_ms / 1000 - 0.005, "granted while another one held"
    return reply


@pytest.fixture
def make_settled(make_broker):
    """As make_broker, but all masters are active: a quorum is there earlier."""
    def make(masters, **kwargs):
        broker = make_broker(masters, **kwargs)
        with broker.connect() as client:
            wait_for("all masters", lambda: all(as_map(row)["state"] == "active" for row in client.cmd("MASTERS")))
        return broker
    return make


# Exclusion when masters forget

def test_a_restarted_master_does_not_make_a_second_majority(make_redis, make_proxy, make_settled, clients, name):
    """A holds on a, b, c; c forgets; d and e, which never knew, come back: c may not vote for anybody else."""
    masters = [make_redis(n) for n in "abcde"]
    proxies = [make_proxy(m.address) for m in masters]
    options = {"quarantine": "2s", "max_lease": "1800ms", "lease": "1500ms"}
    first = make_settled({m.name: p.url for m, p in zip(masters, proxies)}, options=options)
    second = make_settled(masters, options=options)
    for proxy in proxies[3:]:
        proxy.refuse()
    a, b = clients(first), clients(second)
    since = time.monotonic()
    token, validity = a.cmd("LOCK", name, "OWNER", "app", "LEASE", 1800)
    assert [holder_on(m, name) for m in masters] == ["app", "app", "app", None, None]
    masters[2].restart()
    row = wait_state(b, "c", "quarantine")
    assert 0 < row["quarantine_left_ms"] <= 2000
    assert b.cmd("LOCK", name) is None
    assert until_free(b, name, since, validity)[0] > token


def test_every_master_restarted_in_turn_with_quarantine(make_redis, make_settled, clients, name):
    """Each comes back empty and is out until its quarantine is over: the lock is never lost, never doubled."""
    masters = [make_redis(n) for n in "abc"]
    options = {"quarantine": "1200ms", "max_lease": "1s"}
    first, second = make_settled(masters, options=options), make_settled(masters, options=options)
    holder, rival = clients(first, resp3=True, tell=True), clients(second)
    asker = clients(first)
    token = holder.cmd("LOCK", name, "OWNER", "app")[0]

    def both(master, state):
        assert rival.cmd("LOCK", name) is None
        return all(master_of(client, master.name)["state"] == state for client in (asker, rival))
    for master in masters:
        master.restart()
        wait_for("the quarantine of %s" % master.name, lambda m=master: both(m, "quarantine"), every_s=0.05)
        wait_for("the end of it", lambda m=master: both(m, "active"), every_s=0.05)
        wait_for("the hold on %s" % master.name, lambda m=master: holder_on(m, name) == "app")
    assert holder.cmd("PING") == "PONG"
    assert not [p for p in holder.pushes if p[0] == "lost"]
    assert holder.cmd("LOCK", name, "OWNER", "app")[0] == token
    assert [holder.cmd("UNLOCK", name, "OWNER", "app") for _ in range(2)] == [0, 1]
    assert rival.cmd("LOCK", name, "WAIT", 3000)[0] > token


def granted(client, name):
    """What LOCK answers; None when it is refused, also because nobody knows."""
    client.send("LOCK", name, "WAIT", 3000)
    reply = client.recv()
    return None if isinstance(reply, RespError) else reply


@pytest.mark.parametrize("n", [1, 3])
def test_unlock_when_all_masters_have_forgotten(make_redis, make_broker, clients, name, n):
    """Nothing of it stands there or can come back, so it is given back; but its owner may have it elsewhere."""
    masters = [make_redis(m) for m in "abc"[:n]]
    broker = make_broker(masters, options={"quarantine": "auto", "max_lease": "60s"}, ready=False)
    client, names = clients(broker), [name, name + ":elsewhere"]
    for m in masters:
        wait_for("the first quarantine of %s" % m.name,
                 lambda m=m: (client.send("MASTER", m.name, "TRUST"), client.recv())[1] == "OK")
    broker.wait_masters(n)
    for each in names:
        assert client.cmd("LOCK", each, "LEASE", 50000)
    for m in masters:
        m.kill()
    for m in masters:
        m.start()
    for m in masters:
        wait_state(client, m.name, "quarantine")
        m.cli("SET", "holdfast:{%s}" % names[1],
              "op=else.1 token=1 count=1 seq=0 lease=9000 end=0 taken=1 owner=app", "PX", 50000)
    assert client.cmd("UNLOCK", names[0]) == 1
    error = client.err("UNLOCK", names[1])
    assert error.code == "NOQUORUM" and "is given up here, and held only if" in str(error)
    error = client.err("UNLOCK", names[0])
    assert error.code == "NOQUORUM" and "if '%s' was held it still is" % names[0] in str(error)


def test_a_majority_restarted_at_once(make_redis, make_settled, clients, name):
    """Nothing is left of the hold but what its holder was told."""
    masters = [make_redis(n) for n in "abc"]
    broker = make_settled(masters, options={"quarantine": "1500ms", "max_lease": "1s"})
    a, b = clients(broker), clients(broker)
    since = time.monotonic()
    token, validity = a.cmd("LOCK", name, "LEASE", 1000)
    for master in masters[:2]:
        master.kill()
    for master in masters[:2]:
        master.start()
    wait_state(b, "a", "quarantine")
    assert isinstance(b.err("LOCK", name + "2"), RespError)
    reply = wait_for("a grant", lambda: granted(b, name), 12, 0.02)
    assert reply[0] > token and time.monotonic() >= since + validity / 1000


def test_a_take_over_that_failed_frees_nobody(make_redis, make_proxy, make_broker, clients, name):
    """A minority has the hold under the new operation, a master has forgotten it: no majority is left that says
    yes, and yet nobody else gets it before the deadline that its owner was told."""
    masters = [make_redis(n) for n in "abcde"]
    proxies = [make_proxy(m.address) for m in masters]
    first = make_broker(masters, options={"lease": "1500ms"})
    second = make_broker({m.name: p.url for m, p in zip(masters, proxies)}, options={"lease": "1500ms"})
    holder, other, rival = clients(first, resp3=True, tell=True), clients(second), clients(first)
    proxies[0].refuse()
    proxies[4].refuse()
    proxies[1].on("drop_request", about(name), times=None)
    since = time.monotonic()
    token, validity = holder.cmd("LOCK", name, "OWNER", "app")
    assert other.err("RENEW", name, "OWNER", "app").code == "NOQUORUM"
    masters[4].cli("DEL", lock_key(masters[4], name))
    assert holder.wait_push("lost", 3)[1:3] == [name, token]
    assert until_free(rival, name, since, validity)[0] > token


# Time

@pytest.fixture
def make_stepped():
    made = []

    def make(name):
        made.append(SteppedRedis(name))
        return made[-1].start()
    yield make
    for server in made:
        server.close()


def test_a_master_whose_clock_jumps_is_out(make_redis, make_stepped, make_settled, clients, name):
    """One minute ahead, so its leases end at once; and back again. At most one holder all the time."""
    masters = [make_redis("a"), make_redis("b"), make_stepped("c")]
    options = {"quarantine": "1500ms", "max_lease": "1s"}
    first, second = make_settled(masters, options=options), make_settled(masters, options=options)
    holder, rival = clients(first, resp3=True, tell=True), clients(second)
    token = holder.cmd("LOCK", name, "OWNER", "app")[0]
    wait_for("the hold on c", lambda: holder_on(masters[2], name) == "app")
    for seconds in (60, 0):
        masters[2].step(seconds)
        assert rival.cmd("LOCK", name) is None
        if seconds:
            wait_state(rival, "c", "quarantine")
            wait_for("its end in MASTERS of the other broker",
                     lambda: master_of(holder, "c")["state"] == "quarantine")
        assert rival.cmd("LOCK", name, "WAIT", 100) is None
        wait_state(rival, "c", "active")
        wait_for("the hold on c", lambda: holder_on(masters[2], name) == "app")
    assert not [p for p in holder.pushes if p[0] == "lost"]
    assert holder.cmd("LOCK", name, "OWNER", "app")[0] == token
    assert [holder.cmd("UNLOCK", name, "OWNER", "app") for _ in range(2)] == [0, 1]
    assert rival.cmd("LOCK", name, "WAIT", 3000)[0] > token


def test_a_jump_is_not_forgotten_with_its_link(make_redis, make_stepped, make_proxy, make_settled, clients):
    """The broker wants to put the master into quarantine, and the link breaks."""
    master = make_stepped("a")
    proxy = make_proxy(master.address)
    client = clients(make_settled({"a": proxy.url}, options={"quarantine": "2s", "max_lease": "1s"}))
    rule = proxy.on("cut_before", lambda request: request.is_eval and request.runs("'quarantine', till - now"))
    master.step(60)
    wait_for("the cut", lambda: rule.hits)
    wait_for("the mark", lambda: master.cli("HGET", MARK, "state") == "quarantine")
    wait_state(client, "a", "active")


def test_a_broker_that_stood_still_has_lost_its_holds(make_redis, make_broker, clients, name):
    """Three leases: another broker's client holds meanwhile; the first one's is told and gets no late OK."""
    masters = [make_redis(n) for n in "abc"]
    first, second = make_broker(masters), make_broker(masters)
    old, late, waiter, new = clients(first, resp3=True, tell=True), clients(first), clients(first), clients(second)
    token, validity = old.cmd("LOCK", name)
    since = time.monotonic()
    waiter.send("LOCK", name, "WAIT", 60000)
    wait_for("the waiter", lambda: as_map(late.cmd("LOCKINFO", name))["waiters"])
    for master in masters:
        master.stop()
    late.send("LOCK", name + ":late", "LEASE", 300)
    assert late.silent(0.05)
    first.stop()
    for master in masters:
        master.cont()
    newer = until_free(new, name, since, validity - 30)[0]
    assert newer > token
    assert new.cmd("LOCK", name + ":late", "LEASE", 60000, "WAIT", 5000)[0] > 0
    procs.wait_for("three leases", lambda: time.monotonic() > since + 3 * LEASE_S)
    first.cont()
    assert old.wait_push("lost")[1:3] == [name, token]
    assert old.err("UNLOCK", name).code == "NOTHELD"
    reply = late.recv()
    assert not isinstance(reply, list), "granted late: %r" % (reply,)
    assert waiter.silent(0.3)
    assert new.cmd("UNLOCK", name) == 1
    assert waiter.recv()[0] > newer


CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
from respclient import RespClient
client = RespClient(("127.0.0.1", int(sys.argv[2])), resp3=True, tell=True)
names = sys.argv[4:]
for i in range(0, len(names), 200):
    assert all(client.pipeline(*[("LOCK", name, *sys.argv[3].split()) for name in names[i:i + 200]]))
print("held", flush=True)
print(" ".join(map(str, client.wait_push("lost", 60))), flush=True)
sys.stdin.read()
"""


def other_process(broker, options, *names):
    process = procs.spawn([sys.executable, "-c", CLIENT, LIB, str(broker.port), options, *names],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_stopped_client_is_renewed_until_maxhold(broker3, clients, name):
    """Its connection lives, so it holds; MAXHOLD is the bound. When it goes on it is told."""
    process = other_process(broker3, "MAXHOLD %d" % (3 * LEASE_MS), name)
    process.send_signal(signal.SIGSTOP)
    since = time.monotonic()
    rival = clients(broker3)
    assert rival.cmd("LOCK", name, "WAIT", int(1.5 * LEASE_MS)) is None
    token = rival.cmd("LOCK", name, "WAIT", 10000)[0]
    assert 2.5 * LEASE_S <= time.monotonic() - since <= 4 * LEASE_S + 0.5
    process.send_signal(signal.SIGCONT)
    word, lost, older = process.stdout.readline().split()[:3]
    assert (word, lost) == ("lost", name) and int(older) < token
    process.kill()
    process.communicate()


def test_many_holders_killed_at_once(make_redis, make_broker, clients, name):
    """kill -9: the kernel closes their connections, and all locks are free long before their lease; the others'
    are renewed."""
    broker = make_broker([make_redis(n) for n in "abc"], options={"lease": "25s"})
    other = clients(broker, resp3=True, tell=True)
    others = ["%s:other:%d" % (name, i) for i in range(50)]
    for one in others:
        other.cmd("LOCK", one)
    names = ["%s:%d" % (name, i) for i in range(10000)]
    holders = [other_process(broker, "", *names[i::10]) for i in range(10)]
    for process in holders:
        process.kill()
    since = time.monotonic()
    for process in holders:
        process.communicate()
    client = clients(broker)
    granted = [g for i in range(0, len(names), 500)
               for g in client.pipeline(*[("LOCK", one, "WAIT", 20000) for one in names[i:i + 500]])]
    assert all(isinstance(g, list) for g in granted)
    assert time.monotonic() - since < 20  # a lease would show
    assert other.cmd("PING") == "PONG"
    assert not [p for p in other.pushes if p[0] == "lost"]


class Wire:
    """A TCP connection through us, which can break on the far side only: the near side hears nothing of it."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.far = socket.create_connection(("127.0.0.1", port))
        self.near = None
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        self.near = self.listener.accept()[0]
        threading.Thread(target=self.pump, args=(self.far, self.near), daemon=True).start()
        self.pump(self.near, self.far)

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(4096):
                sink.sendall(data)
        except OSError:
            pass

    def break_far(self):
        """By a reset, as from a firewall that has forgotten the connection."""
        self.far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.far.shutdown(socket.SHUT_RD)
        self.far.close()

    def close(self):
        for one in (self.listener, self.near, self.far):
            if one:
                one.close()


def test_a_client_that_was_cut_off_is_safe_until_its_deadline(make_redis, make_broker, clients, name):
    """It goes on working and knows of nothing: nobody gets the lock before what it was told is over, and somebody
    does within one lease after that."""
    lease_s = 2.0
    broker = make_broker([make_redis(n) for n in "abc"], options={"lease": "2s"})
    wire = Wire(broker.port)
    holder = RespClient(("127.0.0.1", wire.listener.getsockname()[1]))
    rival = clients(broker)
    token, validity_ms = holder.cmd("LOCK", name)
    told = time.monotonic()
    wire.break_far()
    newer = rival.cmd("LOCK", name, "WAIT", 10000)[0]
    waited_s = time.monotonic() - told
    assert newer > token
    assert validity_ms / 1000 - 0.05 <= waited_s <= 2 * lease_s + 2
    holder.close()
    wire.close()


def test_a_killed_broker_frees_nobody_early(make_redis, make_broker, clients, name):
    """Many holds: none is granted to another before the deadline told; the owner takes its own back."""
    masters = [make_redis(n) for n in "abc"]
    options = {"lease": "1500ms"}
    first, second = make_broker(masters, options=options), make_broker(masters, options=options)
    a, b, rival = clients(first), clients(second), clients(second)
    names = ["%s:%d" % (name, i) for i in range(150)]
    granted = a.pipeline(*[("LOCK", one, "OWNER", "app") for one in names])
    told = a.pipeline(*[("RENEW", one, "OWNER", "app") for one in names])
    since = time.monotonic()
    first.kill()
    back = b.pipeline(*[("RENEW", one, "OWNER", "app") for one in names[:50]])
    assert all(new[0] > old[0] for new, old in zip(back, granted))
    least = min(validity for _, validity in told)
    tokens = [until_free(rival, one, since, least - 60)[0] for one in names[50:]]
    assert all(new > old[0] for new, old in zip(tokens, granted[50:]))
    assert all(g is None for g in rival.pipeline(*[("LOCK", one) for one in names[:50]]))


# Tokens

def raise_counters(masters, name, above, *plus):
    """Sets the token counter of this lock so far ahead that the clock plays no part."""
    for master, more in zip(masters, plus):
        for field in master.cli("HKEYS", MARK):
            if field.isdigit():
                master.cli("HSET", MARK, field, above + more)


def test_the_same_token_is_not_given_twice(make_redis, make_proxy, make_broker, clients, name):
    """C=(4,2,2,4,4): A has 5, 3, 3 and is about to commit 5; c loses it, B takes c, d, e and commits 5 first."""
    masters = [make_redis(n) for n in "abcde"]
    proxies = [make_proxy(m.address) for m in masters]
    first = make_broker({m.name: p.url for m, p in zip(masters, proxies)}, options={"request_timeout": "2s"})
    second = make_broker(masters, options={"request_timeout": "2s"})
    a, b = clients(first), clients(second)
    high = b.cmd("LOCK", name)[0] + (1 << 40)
    b.cmd("UNLOCK", name)
    wait_for("the release", lambda: not any(lock_key(m, name) for m in masters))
    raise_counters(masters, name, high, 4, 2, 2, 4, 4)
    for proxy in proxies[3:]:
        proxy.on("drop_request", about(name), times=None)
    rules = [proxy.on("hold_request", commit_of(name)) for proxy in proxies[:3]]
    a.send("LOCK", name, "OWNER", "first", "LEASE", 20000)
    for rule in rules:
        rule.wait()
    masters[2].cli("DEL", lock_key(masters[2], name))
    other = b.cmd("LOCK", name, "OWNER", "second", "LEASE", 20000)
    for rule in rules:
        rule.release()
    reply = a.recv()
    assert not (isinstance(reply, list) and isinstance(other, list)), "two holders: %r and %r" % (reply, other)
    assert isinstance(reply, list) or isinstance(other, list) or reply is None or reply.code == "NOQUORUM"
    for proxy in proxies:
        proxy.clear()
    first_token = max(r[0] for r in (reply, other, [high]) if isinstance(r, list))
    for client, owner in ((a, "first"), (b, "second")):
        client.send("UNLOCK", name, "OWNER", owner)
        client.recv()
    assert b.cmd("LOCK", name, "WAIT", 5000)[0] > first_token


def test_tokens_rise_over_masters_that_forgot_them(make_redis, make_settled, make_broker, clients, name):
    """The counter is far ahead of the clock. All masters restart in turn and hear from the others how far it
    was; a cold broker, which knows nothing, gives more."""
    masters = [make_redis(n) for n in "abc"]
    options = {"quarantine": "1s", "max_lease": "1s"}
    first = make_settled(masters, options=options)
    client = clients(first)
    high = client.cmd("LOCK", name)[0] + (1 << 40)
    client.cmd("UNLOCK", name)
    raise_counters(masters, name, high, 0, 0, 0)
    token = client.cmd("LOCK", name, "WAIT", 1000)[0]
    assert token > high
    client.cmd("UNLOCK", name)
    for master in masters:
        master.restart()
        wait_state(client, master.name, "quarantine")
        wait_state(client, master.name, "active")
    first.close()
    cold = clients(make_broker(masters, options=options))
    assert cold.cmd("LOCK", name, "WAIT", 3000)[0] > token


def test_a_vote_that_was_forgotten_does_not_count(make_redis, make_proxy, make_settled, make_broker, clients, name):
    """Acknowledged by a and b, b crashes; the commit arrives on a only when b is back."""
    masters = [make_redis(n) for n in "abc"]
    proxies = [make_proxy(m.address) for m in masters]
    options = {"quarantine": "1500ms", "max_lease": "1s", "request_timeout": "600ms"}
    first = make_settled({m.name: p.url for m, p in zip(masters, proxies)}, options=options)
    a = clients(first)
    high = a.cmd("LOCK", name)[0] + (1 << 40)
    a.cmd("UNLOCK", name)
    wait_for("the release", lambda: not any(lock_key(m, name) for m in masters))
    raise_counters(masters, name, high, 6, 2, 2)
    proxies[2].on("drop_request", about(name), times=None)
    rules = [proxy.on("hold_request", commit_of(name)) for proxy in proxies[:2]]
    a.send("LOCK", name, "OWNER", "first", "LEASE", 1000)
    for rule in rules:
        rule.wait()
    masters[1].restart()
    for rule in rules:
        rule.release()
    reply = a.recv()
    assert isinstance(reply, RespError) and reply.code == "NOQUORUM", reply
    for proxy in proxies:
        proxy.clear()
    b = clients(make_broker(masters, options=options))
    assert b.cmd("LOCK", name, "OWNER", "second", "WAIT", 8000)[0] > high


def test_a_vote_that_was_forgotten_is_no_second_majority(make_redis, make_proxy, make_settled, make_broker, clients,
                                                         name):
    """Acknowledged by a and b; b restarts empty before a's answer is heard. With c, which was never asked, b must not
    vote for somebody else as long as the hold may last."""
    masters = [make_redis(n) for n in "abc"]
    proxies = [make_proxy(m.address) for m in masters]
    options = {"quarantine": "4500ms", "max_lease": "3s", "request_timeout": "2s"}
    first = make_settled({m.name: p.url for m, p in zip(masters, proxies)}, options=options)
    second = make_broker(masters, options=options)
    a, b = clients(first), clients(second)
    b.cmd("LOCK", name + ":settled")
    proxies[2].on("drop_request", about(name), times=None)
    rule = proxies[0].on("hold_reply", about(name))
    a.send("LOCK", name, "OWNER", "first", "LEASE", 3000)
    rule.wait()
    wait_for("the hold on b", lambda: holder_on(masters[1], name) == "first")
    time.sleep(0.2)  # for b's answer; later is harmless, the test only sees less then
    masters[1].restart()
    rule.release()
    assert isinstance(a.recv(), (list, RespError))
    until = time.monotonic() + 2
    while time.monotonic() < until:
        reply = b.pipeline(("LOCK", name, "OWNER", "second", "LEASE", 3000))[0]
        assert not isinstance(reply, list), "two holders: %r" % reply
        time.sleep(0.05)


# Data that is lost

def flush_all(master):
    master.cli("FLUSHALL")


def drop_mark(master):
    master.cli("DEL", MARK)


@pytest.mark.parametrize("harm", [flush_all, drop_mark])
def test_lost_data_is_noticed(make_redis, make_settled, make_broker, clients, name, harm):
    """The very next script finds it, and the master is quarantined; a cold broker sees the same."""
    masters = [make_redis(n) for n in "abc"]
    options = {"quarantine": "1200ms", "max_lease": "1s"}
    broker = make_settled(masters, options=options)
    holder, other = clients(broker, resp3=True), clients(broker)
    token = holder.cmd("LOCK", name)[0]
    harm(masters[0])
    assert other.cmd("LOCK", name) is None
    wait_state(other, "a", "quarantine")
    cold = clients(make_broker(masters, options=options))
    assert cold.cmd("LOCK", name) is None
    assert master_of(cold, "a")["state"] == "quarantine"
    wait_state(other, "a", "active")
    wait_for("the hold on a", lambda: lock_key(masters[0], name))
    assert holder.cmd("RENEW", name)[0] == token


def test_a_master_from_an_old_dump_is_out(make_redis, make_settled, clients, name):
    """What was granted since then is missing: it is another run of the server, whatever its data say."""
    masters = [make_redis("a"), make_redis("b"), make_redis("c", persist="rdb")]
    options = {"quarantine": "1500ms", "max_lease": "1s"}
    broker = make_settled(masters, options=options)
    holder, rival = clients(broker, resp3=True, tell=True), clients(broker)
    masters[2].cli("SAVE")
    token = holder.cmd("LOCK", name)[0]
    masters[2].restart()
    wait_state(rival, "c", "quarantine")
    assert rival.cmd("LOCK", name) is None
    wait_state(rival, "c", "active")
    wait_for("the hold on c", lambda: lock_key(masters[2], name))
    assert holder.cmd("RENEW", name)[0] == token
    assert not [p for p in holder.pushes if p[0] == "lost"]


def test_a_master_that_keeps_each_write_is_out_as_well(make_redis, make_settled, clients, name):
    """What it was told to keep yesterday, and what its disk and its clock did since, nobody can know."""
    master = make_redis("a", persist=True)
    client = clients(make_settled([master], options={"quarantine": "auto", "max_lease": "1s"}))
    client.cmd("LOCK", name, "LEASE", 600)
    master.cli("CONFIG", "SET", "appendonly", "no")
    assert client.cmd("LOCK", name + "2", "LEASE", 1000)[0] > 0
    master.restart()
    wait_state(client, "a", "quarantine")
    assert client.err("LOCK", name + "3").code == "NOQUORUM"
    wait_state(client, "a", "active")
    assert client.cmd("LOCK", name + "2", "OWNER", "other", "WAIT", 2000)[0] > 0


def test_a_second_restart_ends_no_quarantine(make_redis, make_settled, clients, name):
    """c is out of reach; a comes back empty, then keeps the mark of its quarantine, and restarts with it."""
    masters = [make_redis(n, persist=True) for n in "abc"]
    client = clients(make_settled(masters, options={"quarantine": "auto", "max_lease": "4s"}))
    masters[2].stop()
    masters[0].kill()
    masters[0].lose_data()
    masters[0].start()
    wait_state(client, "a", "quarantine")
    wait_for("a second of it", lambda: master_of(client, "a")["quarantine_left_ms"] < 4000)
    masters[0].restart()
    wait_for("all of it anew", lambda: master_of(client, "a")["quarantine_left_ms"] > 4000)
    assert client.err("LOCK", name).code == "NOQUORUM"
    masters[2].cont()
    wait_state(client, "a", "active")


def test_script_flush_costs_nothing(make_redis, make_settled, clients, name):
    masters = [make_redis(n) for n in "abc"]
    broker = make_settled(masters, options={"quarantine": "1500ms", "max_lease": "1s"})
    client = clients(broker)
    token = client.cmd("LOCK", name)[0]
    for master in masters:
        master.cli("SCRIPT", "FLUSH")
    assert client.cmd("LOCK", name + "2", "WAIT", 2000)[0] > 0
    assert all(as_map(row)["state"] != "quarantine" for row in client.cmd("MASTERS"))
    wait_for("three active masters", lambda: all(as_map(row)["state"] == "active" for row in client.cmd("MASTERS")))
    assert client.cmd("RENEW", name)[0] == token


def test_a_promoted_replica_is_another_server(make_redis, make_proxy, make_settled, clients, name):
    """It has the keys and the mark of its master, but it may lack the last holds: quarantine."""
    masters = [make_redis(n) for n in "ab"] + [make_redis("c", tcp=True)]
    replica = make_redis("c2", tcp=True)
    masters[2].cli("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    replica.cli("REPLICAOF", *map(str, masters[2].address))
    wait_for("the replica", lambda: "master_link_status:up" in replica.cli("INFO", "replication"))
    proxy = make_proxy(masters[2].address)
    broker = make_settled({"a": masters[0].url, "b": masters[1].url, "c": proxy.url},
                         options={"quarantine": "1500ms", "max_lease": "1s"})
    holder, rival = clients(broker, resp3=True), clients(broker)
    token = holder.cmd("LOCK", name)[0]
    masters[2].kill()
    replica.cli("REPLICAOF", "NO", "ONE")
    proxy.upstream = replica.address
    wait_state(rival, "c", "quarantine")
    assert rival.cmd("LOCK", name) is None
    wait_state(rival, "c", "active")
    assert holder.cmd("RENEW", name)[0] == token


def fail_over(masters, make_redis, make_proxy):
    """Another server that takes the place of the last master, and the proxy that is its address for all brokers."""
    spare = make_redis(masters[-1].name + "2", tcp=True)
    proxy = make_proxy(masters[-1].address)

    def to(server):
        proxy.upstream = server.address
        proxy.cut_all()
    urls = {m.name: m.url for m in masters[:-1]}
    urls[masters[-1].name] = proxy.url
    return urls, spare, to


@pytest.mark.parametrize("count", [1, 3])
def test_a_run_that_comes_back_after_another_is_another_one(make_redis, make_proxy, make_settled, clients, name, count):
    """It has its own mark, and nothing of what was granted by the server that stood in for it."""
    masters = [make_redis(n) for n in "abc"[:count]]
    last = masters[-1].name
    urls, spare, to = fail_over(masters, make_redis, make_proxy)
    client = clients(make_settled(urls, options={"quarantine": "1500ms", "max_lease": "1s"}))
    to(spare)
    wait_state(client, last, "quarantine")
    wait_state(client, last, "active")
    to(masters[-1])
    wait_state(client, last, "quarantine")
    wait_state(client, last, "active")
    assert client.cmd("LOCK", name)[0] > 0


def test_a_new_broker_knows_what_stood_in_for_a_master(make_redis, make_proxy, make_settled, clients, name):
    """From the other masters: the first broker is gone, and the mark of the run that is back looks good."""
    masters = [make_redis(n) for n in "abc"]
    urls, spare, to = fail_over(masters, make_redis, make_proxy)
    options = {"quarantine": "1500ms", "max_lease": "1s"}
    first = make_settled(urls, options=options)
    client = clients(first)
    to(spare)
    wait_state(client, "c", "quarantine")
    wait_state(client, "c", "active")
    first.close()
    to(masters[-1])
    second = make_settled(urls, options=options)
    second.wait_log("master c: in quarantine")
    assert clients(second).cmd("LOCK", name)[0] > 0


def test_a_master_that_was_a_replica_for_a_moment_is_another_one(make_redis, make_settled, clients, name):
    """Its run id is the same, and so is the mark that it may have got from there."""
    masters = [make_redis(n) for n in "abc"]
    client = clients(make_settled(masters, options={"quarantine": "1500ms", "max_lease": "1s"}))
    masters[2].cli("REPLICAOF", "127.0.0.1", "1")
    masters[2].cli("REPLICAOF", "NO", "ONE")
    masters[2].cli("CLIENT", "KILL", "TYPE", "NORMAL")
    wait_state(client, "c", "quarantine")
    wait_state(client, "c", "active")
    assert client.cmd("LOCK", name)[0] > 0


# Masters that must not be used

def refused(client, name, *words):
    row = wait_state(client, name, "refused")
    assert any(word in row["last_error"] for word in words), row["last_error"]


def test_the_same_server_twice(make_redis, make_proxy, make_broker, clients, name):
    """By two addresses: one of the two is no master of its own."""
    a, b = make_redis("a"), make_redis("b")
    broker = make_broker({"a": a.url, "b": b.url, "c": make_proxy(a.address).url}, ready=False)
    client = clients(broker)
    wait_for("the refusal", lambda: any("same server" in as_map(r)["last_error"] for r in client.cmd("MASTERS")))
    b.kill()
    wait_for("no quorum of one", lambda: client.err("LOCK", name).code == "NOQUORUM")


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_an_eviction_policy(make_redis, make_broker, clients, name, policy):
    master = make_redis("a", args=["--maxmemory-policy", policy])
    client = clients(make_broker([master], ready=False))
    refused(client, "a", "maxmemory-policy", policy)
    assert client.err("LOCK", name).code == "NOQUORUM"
    master.cli("CONFIG", "SET", "maxmemory-policy", "noeviction")
    wait_for("a grant once it is right", lambda: isinstance(client.send("LOCK", name) or client.recv(), list), 15)


def becomes_writable_replica(master):
    master.cli("CONFIG", "SET", "replica-read-only", "no", "replica-serve-stale-data", "yes")
    master.cli("REPLICAOF", "127.0.0.1", "1")


@pytest.mark.parametrize("change,word", [
    (lambda master: master.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"), "maxmemory-policy"),
    (becomes_writable_replica, "replica")], ids=["policy", "role"])
def test_a_busy_master_is_judged_again(make_redis, make_settled, clients, name, change, word):
    """What was right when it was connected to can be changed; no command of ours need fail for it."""
    masters = [make_redis(n) for n in "abc"]
    broker = make_settled(masters)
    client, busy = clients(broker), clients(broker)
    change(masters[2])

    def is_refused():
        assert busy.cmd("LOCK", name)[0] > 0
        busy.cmd("UNLOCK", name)
        return master_of(client, "c")["state"] == "refused"
    wait_for("the refusal", is_refused)
    assert word in master_of(client, "c")["last_error"]


def test_a_replica_in_the_list(make_redis, make_broker, clients, name):
    a, replica = make_redis("a", tcp=True), make_redis("b")
    replica.cli("REPLICAOF", *map(str, a.address))
    client = clients(make_broker([replica], ready=False))
    refused(client, "b", "slave", "replica")
    assert client.err("LOCK", name).code == "NOQUORUM"


def test_brokers_that_disagree(make_redis, make_broker, clients, name):
    """Another longest lease, or another set of masters: the second broker must not grant."""
    masters = [make_redis(n) for n in "abc"]
    make_broker(masters)
    client = clients(make_broker(masters, options={"max_lease": "59s"}, ready=False))
    refused(client, "a", "disagree")
    assert client.err("LOCK", name).code == "NOQUORUM"
    other = clients(make_broker(masters[:1], ready=False))
    refused(other, "a", "disagree")
    assert other.err("LOCK", name).code == "NOQUORUM"


# Errors in the middle

def out_of_memory(master):
    master.cli("CONFIG", "SET", "maxmemory", "1")
    return lambda: master.cli("CONFIG", "SET", "maxmemory", "0")


def cannot_save(master):
    master.cli("CONFIG", "SET", "save", "1 1000000", "rdbcompression", "no")
    master.cli("SET", "something", "changed")
    os.mkdir(os.path.join(master.dir, "dump.rdb"))
    master.cli("BGSAVE")
    wait_for("the failure", lambda: "rdb_last_bgsave_status:err" in master.cli("INFO", "persistence"))

    def heal():
        master.cli("CONFIG", "SET", "save", "")
        os.rmdir(os.path.join(master.dir, "dump.rdb"))
    return heal


def becomes_replica(master):
    master.cli("REPLICAOF", "127.0.0.1", "1")
    return lambda: master.cli("REPLICAOF", "NO", "ONE")


def busy(master):
    master.cli("CONFIG", "SET", "busy-reply-threshold", "20")
    client = master.connect()
    client.send("EVAL", "while true do end", "0")

    def says_busy():
        try:
            return master.cli("PING") is None
        except RespError as err:
            return err.code == "BUSY"
    wait_for("BUSY", says_busy)

    def says_pong():
        try:
            return master.cli("PING") == "PONG"
        except RespError:
            return False

    def heal():
        master.cli("SCRIPT", "KILL")
        wait_for("the end of the script", says_pong)
        client.close()
    return heal


@pytest.mark.parametrize("harm", [out_of_memory, cannot_save, becomes_replica, busy])
def test_a_majority_that_refuses_is_no_vote(make_redis, make_broker, clients, name, harm):
    """One of three says yes: not granted, nothing is left of it anywhere, and a holder of before lives on."""
    masters = [make_redis(n) for n in "abc"]
    broker = make_broker(masters, options={"lease": "6s"})
    holder, client = clients(broker, resp3=True, tell=True), clients(broker)
    token = holder.cmd("LOCK", name + ":before")[0]
    heal = [harm(master) for master in masters[:2]]
    client.send("LOCK", name, "OWNER", "ghost", "LEASE", 20000)
    reply = client.recv()
    assert isinstance(reply, RespError) and reply.code == "NOQUORUM", reply
    for one in heal:
        one()
    for master in masters:
        wait_for("the undo on %s" % master.name, lambda m=master: holder_on(m, name) is None)
    broker.wait_quorum()
    assert client.cmd("LOCK", name, "OWNER", "next", "WAIT", 5000)[0] > 0
    assert holder.cmd("RENEW", name + ":before")[0] == token
    assert not [p for p in holder.pushes if p[0] == "lost"]


def test_a_release_that_was_refused_is_tried_again(make_redis, make_broker, clients, name):
    """By masters that are there all the time: nothing but the clock can tell when they would take it."""
    masters = [make_redis(n) for n in "abc"]
    client = clients(make_broker(masters, options={"max_lease": "60s"}))
    assert client.cmd("LOCK", name, "LEASE", 60000)
    wait_for("the hold everywhere", lambda: all(lock_key(m, name) for m in masters))
    for master in masters[:2]:
        master.cli("CONFIG", "SET", "min-replicas-to-write", "1")
    assert client.err("UNLOCK", name).code == "NOQUORUM"
    assert all(lock_key(m, name) for m in masters[:2])
    for master in masters[:2]:
        master.cli("CONFIG", "SET", "min-replicas-to-write", "0")
    wait_for("the release", lambda: not any(lock_key(m, name) for m in masters), 10)


# Slow masters

def test_one_slow_master_of_five_costs_nothing_three_do(make_redis, make_proxy, make_broker, clients, name):
    masters = [make_redis(n) for n in "abcde"]
    proxies = [make_proxy(m.address) for m in masters[2:]]
    ways = [m.url for m in masters[:2]] + [p.url for p in proxies]
    broker = make_broker({m.name: url for m, url in zip(masters, ways)})
    client = clients(broker)

    def slowest(tries):
        times = []
        for i in range(tries):
            start = time.monotonic()
            client.send("LOCK", "%s:%d" % (name, i))
            reply = client.recv()
            times.append(time.monotonic() - start)
            assert isinstance(reply, list) or reply.code == "NOQUORUM"
            if isinstance(reply, list):
                client.cmd("UNLOCK", "%s:%d" % (name, i))
        return sorted(times)[-2], reply
    proxies[0].latency_s = 0.5
    took, reply = slowest(30)
    assert isinstance(reply, list) and took < 0.15
    masters[3].stop()
    masters[4].stop()
    took, reply = slowest(3)
    assert isinstance(reply, RespError) and took < 0.25 + 0.5
    masters[3].cont()
    masters[4].cont()
    broker.wait_quorum()


def test_nothing_is_renewed_after_its_release(make_redis, make_proxy, make_broker, clients, name):
    """Locks given back while their renewals are on the way, at masters that answer late: no key stays."""
    masters = [make_redis(n) for n in "abc"]
    proxies = [make_proxy(m.address) for m in masters]
    broker = make_broker({m.name: p.url for m, p in zip(masters, proxies)},
                         options={"lease": "240ms", "min_validity": "10ms"})
    ends = [clients(broker) for _ in range(8)]
    proxies[1].on("delay_request", lambda r: r.is_eval, times=None, value=0.004)
    for turn in range(12):
        names = ["%s:%d:%d" % (name, turn, i) for i in range(8)]
        for client, one in zip(ends, names):
            client.send("LOCK", one)
        assert all(isinstance(client.recv(), (list, RespError)) for client in ends)
        # the first renewal is due after a third of the lease, less some jitter
        time.sleep(0.070 + turn % 6 * 0.004)
        for client, one in zip(ends, names):
            client.send("UNLOCK", one)
        for client in ends:
            client.recv()
    for master in masters:
        wait_for("no key on %s" % master.name, lambda m=master: m.keys() == [MARK], 5, 0.05)


# Hostile masters

class Hostile:
    """Something that listens like a Redis, answers INFO at most, and then says what it likes."""

    def __init__(self, kind, directory):
        self.kind = kind
        self.path = os.path.join(str(directory), "hostile")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.visits = 0
        self.ended = 0
        self.closing = False
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return "unix://" + self.path

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.visits += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            if self.kind != "at once":
                sock.recv(65536)
            getattr(self, self.kind.replace(" ", "_"))(sock)
        except OSError:
            pass
        self.ended += 1
        sock.close()

    def flood(self, sock, piece, times):
        for _ in range(times):
            sock.sendall(piece)
        while sock.recv(65536):
            pass

    def at_once(self, sock):
        self.flood(sock, b"+OK\r\n" * 1000, 1)

    def endless_array(self, sock):
        sock.sendall(b"*4294967295\r\n")
        self.flood(sock, b":1\r\n" * 10000, 1000)

    def many_arrays(self, sock):
        sock.sendall(b"*1000000\r\n")
        self.flood(sock, b":1\r\n" * 10000, 100)

    def depth(self, sock):
        self.flood(sock, b"*1\r\n" * 10000, 100)

    def long_line(self, sock):
        self.flood(sock, b"+" + b"x" * 65536, 200)

    def long_bulk(self, sock):
        sock.sendall(b"$536870912\r\n")
        self.flood(sock, b"x" * 65536, 200)

    def odd_types(self, sock):
        self.flood(sock, b"%1\r\n+a\r\n:1\r\n~1\r\n#t\r\n,1.5\r\n(12\r\n=5\r\ntxt:a\r\n>1\r\n+x\r\n_\r\n", 10)

    def noise(self, sock):
        self.flood(sock, bytes(range(256)) * 100, 10)

    def one_byte_a_second(self, sock):
        for byte in b"$100\r\n" + b"x" * 100:
            sock.sendall(bytes([byte]))
            time.sleep(1)
            if self.closing:
                return

    def close(self):
        self.closing = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.mark.parametrize("kind", ["at once", "endless array", "many arrays", "depth", "long line", "long bulk",
                                  "odd types", "noise", "one byte a second"])
def test_a_hostile_master_has_no_vote_and_costs_nothing(make_redis, make_broker, clients, name, tmp_path, kind):
    masters = [make_redis(n) for n in "ab"]
    hostile = Hostile(kind, masters[0].dir)
    try:
        broker = make_broker({"a": masters[0].url, "b": masters[1].url, "c": hostile.url})
        client = clients(broker)
        before = rss_kb(broker.proc.pid)
        wait_for("the first link to be dropped", lambda: hostile.ended >= 1)
        if kind != "one byte a second":
            wait_for("more of them", lambda: hostile.ended >= 4, 15)
        assert master_of(client, "c")["state"] != "active"
        assert client.cmd("LOCK", name)[0] > 0
        assert client.cmd("UNLOCK", name) == 1
        grown = rss_kb(broker.proc.pid) - before
        if "asan" not in procs_maps(broker.proc.pid):  # it keeps what is freed for a while
            assert grown < 1024, "%d kB more" % grown
        masters[1].kill()
        wait_for("no majority with it", lambda: client.err("LOCK", name).code == "NOQUORUM")
    finally:
        hostile.close()


def procs_maps(pid):
    with open("/proc/%d/maps" % pid, encoding="ascii", errors="replace") as maps:
        return maps.read()


def test_a_client_that_is_gone_is_noticed(broker1, clients, name):
    """kill -9 of a process that waits: it never gets the lock."""
    holder, rival = clients(broker1), clients(broker1)
    token = holder.cmd("LOCK", name)[0]
    process = procs.spawn([sys.executable, "-c", CLIENT, LIB, str(broker1.port), "WAIT 60000", name],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for("the waiter", lambda: as_map(rival.cmd("LOCKINFO", name))["waiters"])
    process.kill()
    process.communicate()
    wait_for("its end", lambda: not as_map(rival.cmd("LOCKINFO", name))["waiters"])
    assert holder.cmd("UNLOCK", name) == 1
    assert rival.cmd("LOCK", name)[0] > token
    with pytest.raises(Closed):
        broker1.kill()
        rival.cmd("PING")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_the_last_releases_are_sent(make_redis, make_broker, clients, name, number):
    """The clients are gone by then; the broker still waits for a master that does not answer."""
    masters = [make_redis(n) for n in "abc"]
    broker = make_broker(masters, options={"request_timeout": "1s"})
    client = clients(broker)
    client.cmd("LOCK", name)
    masters[2].stop()
    assert client.cmd("UNLOCK", name) == 1
    broker.signal(signal.SIGTERM)
    broker.wait_log("drained, stopping")
    wait_for("the end of the connection", lambda: client_is_closed(client))
    broker.signal(number)
    assert broker.wait() == 0


def client_is_closed(client):
    try:
        client.send("PING")
        client.recv(0.5)
    except Closed:
        return True
    return False
