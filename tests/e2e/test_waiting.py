"""Waiting: order of arrival, hand-over in one script, and calls between brokers.

What has happened is judged by the counters of INFO and by the scripts that reach the masters, never by
how long it took: a grant that came by the fall-back retry is counted in `retries`, one that came by a
call in `wakeups`.
"""

import selectors
import time

import pytest

from holdfastproc import LEASE_MS
from procs import wait_for
from respclient import as_map

LONG = 30000  # a lease that nobody renews and that no test sees the end of
COUNTERS = ("acquire_tries", "acquires_busy", "acquires_deadlock", "acquires_granted", "acquires_timeout",
            "handovers", "retries", "wakeups", "yields", "waiters")


def about(name):
    return lambda request: request.is_eval and request.mentions(name)


class Net:
    """Masters, and brokers that reach them through proxies of their own, which count the scripts."""

    def __init__(self, masters, make_proxy, make_broker):
        self.masters = masters
        self.make_proxy = make_proxy
        self.make_broker = make_broker
        self.proxies = []

    def broker(self, **options):
        """One more broker behind one more proxy for each master."""
        proxies = [self.make_proxy(m.address) for m in self.masters]
        self.proxies.append(proxies)
        return self.make_broker({m.name: p.url for m, p in zip(self.masters, proxies)},
                                options=options).wait_masters()

    def scripts(self, name):
        """How many scripts about this lock each master has been sent."""
        return [sum(proxies[i].count(about(name)) for proxies in self.proxies) for i in range(len(self.masters))]


@pytest.fixture(params=[1, 3], ids=["one master", "three masters"])
def masters(request, make_redis):
    return [make_redis(n) for n in "abc"[:request.param]]


@pytest.fixture
def net(masters, make_proxy, make_broker):
    return Net(masters, make_proxy, make_broker)


@pytest.fixture
def pair(make_broker, masters):
    """Two brokers in front of the same masters."""
    return make_broker(masters).wait_masters(), make_broker(masters).wait_masters()


def counters(*brokers):
    """The counters of INFO, added up over the brokers."""
    infos = [broker.info() for broker in brokers]
    return {key: sum(int(info[key]) for info in infos) for key in COUNTERS}


def since(before, *brokers):
    return {key: value - before[key] for key, value in counters(*brokers).items()}


def wait_for_waiters(broker, count):
    wait_for("%d waiters at %s" % (count, broker.name), lambda: counters(broker)["waiters"] == count)


def line(master, name):
    return master.cli("LRANGE", "holdfast:{%s}:line" % name, 0, -1)


def wait_for_line(masters, name, length):
    """Until that many tickets stand in the line of every master."""
    for master in masters:
        wait_for("%d tickets on %s" % (length, master.name), lambda m=master: len(line(m, name)) == length)


def wait_for_hold(masters, name):
    """Until every master has the hold: one that has not yet would grant the try of another broker, and
    then no ticket of his stands in its line."""
    for master in masters:
        wait_for("the hold on %s" % master.name, lambda m=master: m.cli("EXISTS", "holdfast:{%s}" % name))


def listeners(master):
    return len(master.cli("PUBSUB", "CHANNELS", "holdfast:wake:*"))


def wait_for_listeners(masters, count):
    """Until that many brokers listen for calls on every master."""
    for master in masters:
        wait_for("%d brokers that listen to %s" % (count, master.name), lambda m=master: listeners(m) == count)


def wait_in_line(clients, broker, name, count, *words):
    """That many connections that wait; of several at once nobody knows who stands first."""
    before = counters(broker)["waiters"]
    waiting = [clients(broker) for _ in range(count)]
    for client in waiting:
        client.send("LOCK", name, "WAIT", 0, "LEASE", LONG, *words)
    wait_for_waiters(broker, before + count)
    return waiting


def serve(name, waiting, deadline_s=40):
    """Whoever is granted the lock gives it back at once: those who had it, in order; tokens must rise."""
    order, tokens = [], []
    until = time.monotonic() + deadline_s
    with selectors.DefaultSelector() as ready:
        for client in waiting:
            ready.register(client.sock, selectors.EVENT_READ, client)
        while len(order) < len(waiting):
            assert time.monotonic() < until, "%d of %d were served" % (len(order), len(waiting))
            for key, _ in ready.select(1):
                ready.unregister(key.fileobj)
                grant = key.data.recv()
                assert isinstance(grant, list), grant
                order.append(key.data)
                tokens.append(grant[0])
                assert key.data.cmd("UNLOCK", name) == 1
    assert tokens == sorted(set(tokens))
    return order


# One broker

def test_first_come_first_served(net, clients, name):
    broker = net.broker()
    holder = clients(broker)
    holder.cmd("LOCK", name, "LEASE", LONG)
    waiting = [wait_in_line(clients, broker, name, 1)[0] for _ in range(12)]
    assert holder.cmd("UNLOCK", name) == 1
    assert serve(name, waiting) == waiting


def test_a_hand_over_is_one_script(net, clients, name):
    broker = net.broker()
    holder = clients(broker)
    token = holder.cmd("LOCK", name, "LEASE", LONG)[0]
    waiter, = wait_in_line(clients, broker, name, 1)
    wait_for("the masters to be asked once", lambda: net.scripts(name) == [1] * len(net.masters))
    before = counters(broker)
    assert holder.cmd("UNLOCK", name) == 1
    assert waiter.recv()[0] > token
    wait_for("the last master", lambda: net.scripts(name) == [2] * len(net.masters))
    after = since(before, broker)
    assert (after["handovers"], after["acquire_tries"], after["retries"]) == (1, 1, 0)
    assert holder.err("UNLOCK", name).code == "NOTHELD"
    assert waiter.cmd("HOLDS", name) == 1


def test_two_hundred_waiters_cost_one_script_each(net, clients, name):
    broker = net.broker()
    holder = clients(broker)
    holder.cmd("LOCK", name, "LEASE", LONG)
    waiting = wait_in_line(clients, broker, name, 200)
    assert net.scripts(name) == [1] * len(net.masters)  # nobody asks while a client of the broker holds it
    before = counters(broker)
    holder.cmd("UNLOCK", name)
    serve(name, waiting)
    after = since(before, broker)
    assert after["handovers"] == after["acquires_granted"] == after["acquire_tries"] == 200
    assert all(count <= 204 for count in net.scripts(name)), net.scripts(name)


def test_the_end_of_each_wait_is_nil_and_not_early(net, clients, name):
    broker = net.broker()
    holder = clients(broker)
    holder.cmd("LOCK", name, "LEASE", LONG)
    waiting = [clients(broker) for _ in range(50)]
    start = time.monotonic()
    for client in waiting:
        client.send("LOCK", name, "WAIT", 200)
    for client in waiting:
        assert client.recv() is None
    assert time.monotonic() - start >= 0.199
    after = counters(broker)
    assert (after["acquires_timeout"], after["waiters"]) == (50, 0)
    assert net.scripts(name) == [1] * len(net.masters)
    assert holder.cmd("UNLOCK", name) == 1


def test_lockinfo_lists_the_waiters(net, clients, name):
    broker = net.broker()
    holder = clients(broker)
    holder.cmd("LOCK", name, "LEASE", LONG)
    for i in range(3):
        wait_in_line(clients, broker, name, 1, "OWNER", "waiter-%d" % i, *(["FAIR"] if i == 2 else []))
    info = as_map(holder.cmd("LOCKINFO", name))
    assert info["waiting"] == 3
    waiters = [as_map(w) for w in info["waiters"]]
    assert [w["owner"] for w in waiters] == ["waiter-0", "waiter-1", "waiter-2"]
    assert [w["fair"] for w in waiters] == [0, 0, 1]
    assert [w["waited_ms"] for w in waiters] == sorted((w["waited_ms"] for w in waiters), reverse=True)


def test_a_waiting_client_that_dies_is_passed_over(net, clients, name):
    broker = net.broker()
    holder = clients(broker)
    holder.cmd("LOCK", name, "LEASE", LONG)
    first, second, third = (wait_in_line(clients, broker, name, 1)[0] for _ in range(3))
    first.reset()
    second.close()
    wait_for_waiters(broker, 1)
    holder.cmd("UNLOCK", name)
    assert third.recv()[0] > 0
    assert counters(broker)["handovers"] == 1


def test_who_closes_before_it_is_known_that_he_waits_frees_his_locks(net, clients, name):
    """The end of the connection comes while the masters are asked for the lock for which it is to wait."""
    broker, other, far = net.broker(), net.broker(), "far" + name
    clients(other).cmd("LOCK", far, "LEASE", LONG)
    wait_for_hold(net.masters, far)
    holder, waiter = clients(broker), clients(broker)
    holder.cmd("LOCK", name)
    rules = [proxy.on("hold_reply", about(far)) for proxy in net.proxies[0]]
    holder.send("LOCK", far, "WAIT", 0)
    for rule in rules:
        rule.wait()
    holder.close()
    waiter.cmd("PING")
    for rule in rules:
        rule.release()
    assert waiter.cmd("LOCK", name, "WAIT", 2000)


@pytest.mark.parametrize("end", ["close", "reset", "maxhold"])
def test_the_end_of_a_holder_hands_over(net, clients, name, end):
    """At once after an orderly end; else when the lease or MAXHOLD is over. Never by asking around."""
    broker = net.broker()
    holder = clients(broker)
    token = holder.cmd("LOCK", name, *(["MAXHOLD", LEASE_MS] if end == "maxhold" else []))[0]
    waiter, = wait_in_line(clients, broker, name, 1)
    if end == "close":
        holder.close()
    elif end == "reset":
        holder.reset()
    assert waiter.recv()[0] > token
    after = counters(broker)
    assert (after["handovers"], after["retries"]) == (1, 0)


# Refusals

def test_a_lock_held_here_is_refused_from_memory(net, clients, name):
    broker = net.broker()
    holder, other = clients(broker), clients(broker)
    holder.cmd("LOCK", name, "LEASE", LONG)
    before, scripts = counters(broker), net.scripts(name)
    for i in range(50):
        assert other.cmd("LOCK", name, "OWNER", "other-%d" % i) is None
    after = since(before, broker)
    assert (after["acquires_busy"], after["acquire_tries"]) == (50, 0)
    assert net.scripts(name) == scripts == [1] * len(net.masters)


def test_tries_for_a_lock_held_elsewhere_share_a_question(net, clients, name):
    """The answer to the first one is held back until all have asked."""
    first, second = net.broker(), net.broker(request_timeout="5s")
    clients(first).cmd("LOCK", name, "LEASE", LONG)
    before = counters(second)
    rules = [proxy.on("hold_reply", about(name)) for proxy in net.proxies[1]]
    tries = [clients(second) for _ in range(30)]
    for client in tries:
        client.send("LOCK", name)
    wait_for_waiters(second, 30)
    for rule in rules:
        rule.release()
    assert [client.recv() for client in tries] == [None] * 30
    after = since(before, second)
    assert after["acquires_busy"] == 30
    assert after["acquire_tries"] <= 2


# Deadlock

def test_two_connections_that_wait_for_each_other(net, clients, name):
    broker = net.broker()
    a, b = clients(broker), clients(broker)
    a.cmd("LOCK", name + ":1")
    b.cmd("LOCK", name + ":2")
    a.send("LOCK", name + ":2", "WAIT", 0)
    wait_for_waiters(broker, 1)
    err = b.err("LOCK", name + ":1", "WAIT", 0)
    assert err.code == "DEADLOCK"
    assert name + ":1" in str(err) and name + ":2" in str(err)
    assert counters(broker)["acquires_deadlock"] == 1
    assert b.cmd("LOCK", name + ":1") is None  # a try closes no circle
    assert b.cmd("UNLOCK", name + ":2") == 1
    assert a.recv()[0] > 0


def test_owners_of_a_pool_are_no_circle(net, clients, name):
    """Each request goes out on any connection: another one may give back what this one has taken."""
    broker = net.broker()
    a, b = clients(broker), clients(broker)
    a.cmd("LOCK", name, "OWNER", "one")
    a.send("LOCK", name, "OWNER", "two", "WAIT", 0)
    wait_for_waiters(broker, 1)
    assert b.cmd("UNLOCK", name, "OWNER", "one") == 1
    assert a.recv()[0] > 0
    b.cmd("LOCK", name + ":2", "OWNER", "three")
    a.send("LOCK", name + ":2", "OWNER", "four", "WAIT", 0)
    wait_for_waiters(broker, 1)
    b.send("LOCK", name, "OWNER", "five", "WAIT", 0)
    wait_for_waiters(broker, 2)


def test_owners_with_names_in_a_circle(net, clients, name):
    broker = net.broker()
    a, b = clients(broker), clients(broker)
    a.cmd("LOCK", name + ":1", "OWNER", "a")
    b.cmd("LOCK", name + ":2", "OWNER", "b")
    a.send("LOCK", name + ":2", "OWNER", "a", "WAIT", 0)
    wait_for_waiters(broker, 1)
    assert b.err("LOCK", name + ":1", "OWNER", "b", "WAIT", 0).code == "DEADLOCK"


def test_what_ends_by_itself_is_no_circle(net, clients, name):
    broker = net.broker()
    a, b = clients(broker), clients(broker)
    a.cmd("LOCK", name + ":1", "LEASE", LEASE_MS)
    b.cmd("LOCK", name + ":2")
    a.send("LOCK", name + ":2", "WAIT", 0)
    wait_for_waiters(broker, 1)
    assert b.cmd("LOCK", name + ":1", "WAIT", 20000)[0] > 0


def test_a_circle_of_three(net, clients, name):
    broker = net.broker()
    ring = [clients(broker) for _ in range(3)]
    for i, client in enumerate(ring):
        client.cmd("LOCK", "%s:%d" % (name, i))
    for i in range(2):
        ring[i].send("LOCK", "%s:%d" % (name, i + 1), "WAIT", 0)
    wait_for_waiters(broker, 2)
    err = ring[2].err("LOCK", name + ":0", "WAIT", 0)
    assert err.code == "DEADLOCK"
    assert all("%s:%d" % (name, i) in str(err) for i in range(3))
    ring[2].close()
    for client in ring[1::-1]:
        assert client.recv()[0] > 0
        client.close()


def test_no_deadlock_while_the_owner_has_another_connection(net, clients, name):
    """The second connection of `app` can free what the first one waits behind, and does."""
    broker = net.broker()
    a1, a2, b = clients(broker), clients(broker), clients(broker)
    for client in (a1, a2):
        client.cmd("OWNER", "app")
    a1.cmd("LOCK", name + ":1")
    b.cmd("LOCK", name + ":2")
    a1.send("LOCK", name + ":2", "WAIT", 0)
    wait_for_waiters(broker, 1)
    b.send("LOCK", name + ":1", "WAIT", 0)
    wait_for_waiters(broker, 2)
    assert counters(broker)["acquires_deadlock"] == 0
    assert a2.cmd("UNLOCK", name + ":1") == 1
    assert b.recv()[0] > 0
    assert b.cmd("UNLOCK", name + ":2") == 1
    assert a1.recv()[0] > 0


# Two brokers

def test_a_release_calls_the_waiter_of_the_other_broker(pair, masters, clients, name):
    """To and fro: if calls were lost each grant would take a retry, and there would be as many."""
    rounds = 20
    wait_for_listeners(masters, 2)
    ends = [clients(broker) for broker in pair]
    holder, waiter = ends
    token = holder.cmd("LOCK", name, "LEASE", LONG)[0]
    before = counters(*pair)
    for _ in range(rounds):
        waiter.send("LOCK", name, "WAIT", 0, "LEASE", LONG)
        wait_for("a ticket everywhere", lambda: all(len(line(m, name)) for m in masters))
        assert holder.cmd("UNLOCK", name) == 1
        grant = waiter.recv()
        assert grant[0] > token
        token = grant[0]
        holder, waiter = waiter, holder
    after = since(before, *pair)
    assert after["wakeups"] + after["retries"] >= rounds, after     # a busy machine may be slower than a retry
    assert after["retries"] <= rounds // 10, after
    assert after["handovers"] == 0


def test_a_release_calls_one_broker_only(make_broker, masters, clients, name):
    brokers = [make_broker(masters).wait_masters() for _ in range(3)]
    wait_for_listeners(masters, 3)
    holder = clients(brokers[0])
    holder.cmd("LOCK", name, "LEASE", LONG)
    wait_for_hold(masters, name)
    waiting = []
    for i in (1, 2):
        waiting += wait_in_line(clients, brokers[i], name, 5)
        wait_for_line(masters, name, i)
    before = [counters(broker) for broker in brokers]
    holder.cmd("UNLOCK", name)
    assert waiting[0].recv()[0] > 0
    after = [since(b, broker) for b, broker in zip(before, brokers)]
    # on a quorum the call of one agreed master counts; each counted call is one question at most
    assert after[1]["wakeups"] >= 1 and after[2]["wakeups"] == 0
    assert after[0]["wakeups"] == 0
    waiting[0].cmd("UNLOCK", name)
    serve(name, waiting[1:])


def test_brokers_take_turns(net, clients, name):
    """While both have waiters, none hands over more often in a row than it may; nobody is left behind."""
    limit = 4
    brokers = [net.broker(handover_max_count=limit, handover_max_time="60s") for _ in range(2)]
    wait_for_listeners(net.masters, 2)
    holder = clients(brokers[0])
    holder.cmd("LOCK", name, "LEASE", LONG)
    wait_for_hold(net.masters, name)
    waiting = {}
    for i, broker in enumerate(brokers):
        for client in wait_in_line(clients, broker, name, 40):
            waiting[client] = i
    wait_for_line(net.masters, name, 1)
    before, scripts = counters(*brokers), net.scripts(name)
    holder.cmd("UNLOCK", name)
    turns = [waiting[client] for client in serve(name, waiting)]
    left, runs, last = [40, 40], [], None
    for turn in turns:
        if turn == last:
            runs[-1] += 1
        else:
            runs.append(1)
        last = turn
        left[turn] -= 1
        if min(left) == 0:
            break
    assert limit <= max(runs) <= limit + 2, runs
    assert len(runs) >= 8, runs
    after = since(before, *brokers)
    assert after["yields"] > 0
    assert after["acquire_tries"] <= 80 * 1.5, after
    grants = [(now - then) / 80 for then, now in zip(scripts, net.scripts(name))]
    assert all(per_grant <= 2 for per_grant in grants), grants


def test_two_clients_that_take_turns_starve_no_other_broker(net, clients, name):
    """Nobody waits at their broker for a moment after each hand-over: others that were passed over still count."""
    limit = 4
    brokers = [net.broker(handover_max_count=limit, handover_max_time="60s") for _ in range(2)]
    wait_for_listeners(net.masters, 2)
    holder, waiter = clients(brokers[0]), clients(brokers[0])
    holder.cmd("LOCK", name, "LEASE", LONG)
    wait_for_hold(net.masters, name)
    other = wait_in_line(clients, brokers[1], name, 1)[0]
    wait_for_line(net.masters, name, 1)
    for _ in range(limit + 2):
        waiter.send("LOCK", name, "WAIT", 0, "LEASE", LONG)
        wait_for_waiters(brokers[0], 1)
        assert holder.cmd("UNLOCK", name) == 1
        with selectors.DefaultSelector() as ready:
            ready.register(waiter.sock, selectors.EVENT_READ, waiter)
            ready.register(other.sock, selectors.EVENT_READ, other)
            granted = [key.data for key, _ in ready.select(20)]
        assert len(granted) == 1
        assert isinstance(granted[0].recv(), list)
        if granted[0] is other:
            return
        holder, waiter = waiter, holder
    raise AssertionError("the other broker was passed over %d times" % (limit + 2))


def test_fair_keeps_the_order_of_arrival_across_brokers(pair, masters, clients, name):
    wait_for_listeners(masters, 2)
    holder = clients(pair[0])
    holder.cmd("LOCK", name, "LEASE", LONG)
    wait_for_hold(masters, name)
    waiting = []
    for i in range(12):
        broker = pair[0 if i in (0, 1, 4, 6, 7, 8) else 1]
        client = clients(broker)
        client.send("LOCK", name, "WAIT", 0, "LEASE", LONG, "FAIR")
        waiting.append(client)
        wait_for_line(masters, name, i + 1)
    holder.cmd("UNLOCK", name)
    order = serve(name, waiting)
    assert [waiting.index(client) for client in order] == list(range(12))


def test_nothing_of_the_line_is_left_behind(pair, masters, clients, name):
    wait_for_listeners(masters, 2)
    holder = clients(pair[0])
    holder.cmd("LOCK", name, "LEASE", LONG)
    wait_for_hold(masters, name)
    waiting = wait_in_line(clients, pair[0], name, 5) + wait_in_line(clients, pair[1], name, 5)
    gone = clients(pair[1])
    gone.send("LOCK", name, "WAIT", 0, "FAIR")
    wait_for_waiters(pair[1], 6)
    gone.reset()
    wait_for_waiters(pair[1], 5)
    holder.cmd("UNLOCK", name)
    serve(name, waiting)
    for master in masters:
        wait_for("the end of the line on %s" % master.name,
                 lambda m=master: not [k for k in m.keys(name) if ":gone:" not in k])


# What may die

@pytest.fixture
def three_brokers(make_broker, masters):
    brokers = [make_broker(masters).wait_masters() for _ in range(3)]
    wait_for_listeners(masters, 3)
    return brokers


def next_in_line(clients, brokers, masters, name):
    """Held through the first broker; a client of the second and then one of the third wait for it."""
    holder = clients(brokers[0])
    token = holder.cmd("LOCK", name, "LEASE", LONG)[0]
    wait_for_hold(masters, name)
    waiting = []
    for i in (1, 2):
        waiting += wait_in_line(clients, brokers[i], name, 1)
        wait_for_line(masters, name, i)
    return holder, token, waiting


def test_a_killed_broker_that_is_next_is_passed_over(three_brokers, masters, clients, name):
    holder, token, waiting = next_in_line(clients, three_brokers, masters, name)
    three_brokers[1].kill()
    wait_for_listeners(masters, 2)
    before = counters(three_brokers[2])
    holder.cmd("UNLOCK", name)
    assert waiting[1].recv()[0] > token
    after = since(before, three_brokers[2])
    assert after["wakeups"] >= 1, after


def test_a_broker_killed_after_its_call_blocks_nobody(three_brokers, masters, clients, name):
    """It stands still when it is called up, so the call is lost with it: the retry of the others serves."""
    holder, token, waiting = next_in_line(clients, three_brokers, masters, name)
    three_brokers[1].stop()
    before = counters(three_brokers[2])
    holder.cmd("UNLOCK", name)
    three_brokers[1].kill()
    assert waiting[1].recv()[0] > token
    after = since(before, three_brokers[2])
    assert after["retries"] + after["wakeups"] >= 1, after


def test_a_dead_client_gives_up_its_brokers_place(three_brokers, masters, clients, name):
    holder, token, waiting = next_in_line(clients, three_brokers, masters, name)
    waiting[0].reset()
    wait_for_waiters(three_brokers[1], 0)
    wait_for_line(masters, name, 1)
    holder.cmd("UNLOCK", name)
    assert waiting[1].recv()[0] > token
    assert counters(three_brokers[1])["wakeups"] == 0


def test_the_broker_of_the_holder_is_killed(pair, clients, name):
    """Its lock goes to those who wait elsewhere when the lease is over."""
    holder = clients(pair[0])
    token = holder.cmd("LOCK", name)[0]
    waiting = [wait_in_line(clients, pair[1], name, 1)[0] for _ in range(3)]
    pair[0].kill()
    assert serve(name, waiting) == waiting
    assert waiting[0].err("UNLOCK", name).code == "NOTHELD"
    assert clients(pair[1]).cmd("LOCK", name)[0] > token


def test_a_lost_call_is_made_good(pair, masters, clients, name):
    """The masters cut the connections on which brokers listen, just before the release."""
    wait_for_listeners(masters, 2)
    holder = clients(pair[0])
    token = holder.cmd("LOCK", name, "LEASE", LONG)[0]
    wait_for_hold(masters, name)
    waiter, = wait_in_line(clients, pair[1], name, 1)
    wait_for_line(masters, name, 1)
    for master in masters:
        master.cli("CLIENT", "KILL", "TYPE", "pubsub")
    holder.cmd("UNLOCK", name)
    assert waiter.recv()[0] > token


def test_those_who_release_what_they_do_not_have_keep_nobody_out(make_redis, make_proxy, make_broker, clients, name):
    """Each of them is a question to the masters, one after the other; a LOCK comes in between."""
    master = make_redis("a")
    proxy = make_proxy(master.address)
    broker = make_broker({"a": proxy.url})
    wrong, right = clients(broker), clients(broker)
    proxy.latency_s = 0.003
    before = scripts_run(master)
    for i in range(300):
        wrong.send("UNLOCK", name, "OWNER", "o%d" % i)
    assert right.cmd("LOCK", name, "WAIT", 20000)
    assert scripts_run(master) - before < 300
    assert [wrong.recv().code for _ in range(300)] == ["NOTHELD"] * 300


def scripts_run(master):
    stats = master.cli("INFO", "commandstats").splitlines()
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in stats if line.startswith("cmdstat_evalsha:"))
