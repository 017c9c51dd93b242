"""Brokers die and are replaced: nothing stays orphaned, and who reconnects takes its locks back."""

import time

import pytest

from holdfastproc import LEASE_MS
from procs import wait_for
from respclient import as_map

LEASE_S = LEASE_MS / 1000


@pytest.fixture(params=[1, 3], ids=["one master", "three masters"])
def masters(request, make_redis):
    return [make_redis(n) for n in "abc"[:request.param]]


@pytest.fixture
def pair(make_broker, masters):
    """Two brokers in front of the same masters."""
    return make_broker(masters).wait_masters(), make_broker(masters).wait_masters()


def test_two_brokers_exclude_each_other(pair, clients, name):
    first, second = pair
    a, b = clients(first), clients(second)
    token = a.cmd("LOCK", name)[0]
    assert b.cmd("LOCK", name) is None
    assert b.cmd("HOLDS", name) == 0
    assert a.cmd("UNLOCK", name) == 1
    assert b.cmd("LOCK", name, "WAIT", 3000)[0] > token


def test_tokens_rise_over_two_brokers(pair, clients, name):
    ends = [clients(broker) for broker in pair]
    tokens = []
    for client in ends * 15:
        tokens.append(client.cmd("LOCK", name, "WAIT", 5000)[0])
        assert client.cmd("UNLOCK", name) == 1
    assert tokens == sorted(set(tokens))


def test_a_waiter_of_the_other_broker_is_served(pair, clients, name):
    first, second = pair
    a, b = clients(first), clients(second)
    a.cmd("LOCK", name)
    b.send("LOCK", name, "WAIT", 20000)
    assert b.silent(2 * LEASE_S)
    a.cmd("UNLOCK", name)
    assert b.recv()[0] > 0


@pytest.mark.parametrize("lease", [[], ["LEASE", 4 * LEASE_MS]], ids=["watched", "LEASE"])
def test_leaving_once_elsewhere_frees_nothing(pair, clients, name, lease):
    """One of two entries is given back by a connection to the other broker, which then closes."""
    first, second = pair
    holder, rival = clients(first), clients(second)
    for _ in range(2):
        told_ms = holder.cmd("LOCK", name, "OWNER", "app", *lease)[1]
    started = time.monotonic()
    with second.connect() as other:
        assert other.cmd("UNLOCK", name, "OWNER", "app") == 0
        other.cmd("QUIT")
    wait_for("the hold to be here", lambda: rival.cmd("HOLDS", name, "OWNER", "app") == 1)
    granted = rival.cmd("LOCK", name, "WAIT", 20000)
    assert time.monotonic() - started > told_ms / 1000, granted


def test_what_was_left_elsewhere_can_be_renewed(pair, clients, name):
    first, second = pair
    holder, rival = clients(first), clients(first)
    for _ in range(2):
        holder.cmd("LOCK", name, "OWNER", "app")
    token = holder.cmd("RENEW", name, "OWNER", "app")[0]
    with second.connect() as other:
        assert other.cmd("UNLOCK", name, "OWNER", "app") == 0
    back = clients(second)
    assert back.cmd("RENEW", name, "OWNER", "app")[0] > token
    assert rival.cmd("LOCK", name, "WAIT", 3 * LEASE_MS) is None, "it is watched again"
    assert back.cmd("UNLOCK", name, "OWNER", "app") == 1


def test_one_owner_over_two_brokers(pair, clients, name):
    """UNLOCK through the other broker by the same owner."""
    first, second = pair
    a, b = clients(first), clients(second)
    a.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    assert b.cmd("HOLDS", name, "OWNER", "app") == 1
    assert b.err("UNLOCK", name, "OWNER", "other").code == "NOTHELD"
    assert b.cmd("UNLOCK", name, "OWNER", "app") == 1
    assert b.cmd("LOCK", name)[0] > 0


def test_maxhold_goes_along(pair, clients, name):
    """Over two brokers: however often it is taken back, it ends when it was to end at first."""
    one, two = clients(pair[0], resp3=True, tell=True), clients(pair[1], resp3=True, tell=True)
    since = time.monotonic()
    assert one.cmd("LOCK", name, "OWNER", "app", "MAXHOLD", 3000)
    wait_for("the hold", lambda: two.cmd("HOLDS", name, "OWNER", "app") == 1)
    time.sleep(0.5)  # so that it would show if it began anew
    for client in (two, one, two):
        assert client.cmd("RENEW", name, "OWNER", "app")
    assert [two.wait_push("lost", 10)[3] for _ in range(2)] == ["moved", "max-hold"]
    assert 2.5 <= time.monotonic() - since <= 3.4
    other = clients(pair[0])
    assert other.cmd("LOCK", name, "WAIT", 5000)


def test_a_killed_brokers_locks_are_free_after_one_lease(pair, clients, name):
    first, second = pair
    a, b = clients(first), clients(second)
    a.cmd("LOCK", name)
    token, validity = a.cmd("RENEW", name)
    start = time.monotonic()
    first.kill()
    assert b.cmd("LOCK", name) is None
    assert b.cmd("LOCK", name, "WAIT", 20000)[0] > token
    waited = time.monotonic() - start
    assert validity / 1000 * 0.9 <= waited < 2 * LEASE_S + 1.5


def test_a_killed_brokers_leases_run_to_their_end(pair, clients, name):
    first, second = pair
    a, b = clients(first), clients(second)
    a.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    first.kill()
    assert b.cmd("LOCK", name, "WAIT", 2 * LEASE_MS) is None
    assert b.cmd("UNLOCK", name, "OWNER", "app") == 1


def test_take_back_at_another_broker(pair, clients, name):
    first, second = pair
    a, b, rival = clients(first), clients(second), clients(second)
    token = a.cmd("LOCK", name, "OWNER", "app")[0]
    first.kill()
    newer, validity = b.cmd("RENEW", name, "OWNER", "app")
    assert newer > token and 0 < validity < LEASE_MS
    assert rival.cmd("LOCK", name, "WAIT", 4 * LEASE_MS) is None
    assert b.cmd("HOLDS", name, "OWNER", "app") == 1
    assert b.cmd("UNLOCK", name, "OWNER", "app") == 1
    assert rival.cmd("LOCK", name)[0] > newer


def test_take_back_at_the_same_broker_started_again(make_broker, masters, clients, name):
    broker = make_broker(masters, options={"lease": "10s"})
    a = clients(broker)
    token = a.cmd("LOCK", name, "OWNER", "app")[0]
    broker.kill()
    broker.expect_status = 0
    broker.start()
    b, rival = clients(broker), clients(broker)
    assert rival.cmd("LOCK", name) is None
    assert b.cmd("RENEW", name, "OWNER", "app")[0] > token
    assert rival.cmd("LOCK", name) is None
    assert b.cmd("UNLOCK", name, "OWNER", "app") == 1


def test_take_back_keeps_the_count(pair, clients, name):
    first, second = pair
    a, b = clients(first), clients(second)
    a.cmd("LOCK", name, "OWNER", "app")
    a.cmd("LOCK", name, "OWNER", "app")
    first.kill()
    b.cmd("RENEW", name, "OWNER", "app")
    assert b.cmd("HOLDS", name, "OWNER", "app") == 2
    assert [b.cmd("UNLOCK", name, "OWNER", "app") for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("kind", [[], ["SHARED"], ["LIMIT", 2]], ids=["exclusive", "shared", "limit"])
@pytest.mark.parametrize("wait", [[], ["WAIT", 0]], ids=["try", "wait"])
def test_whoever_has_it_stands_behind_no_waiter(pair, clients, name, kind, wait):
    first, second = pair
    holder, waiter, other = clients(first), clients(second), clients(second)
    token = holder.cmd("LOCK", name, "OWNER", "app", *kind)[0]
    assert not kind or clients(first).cmd("LOCK", name, *kind)
    waiter.send("LOCK", name, "WAIT", 0, *(kind if "LIMIT" in kind else []))
    wait_for("the waiter", lambda: as_map(other.cmd("LOCKINFO", name))["waiting"] == 1)
    assert other.cmd("LOCK", name, "OWNER", "app", *wait, *kind)[0] > token
    assert other.cmd("HOLDS", name, "OWNER", "app") == 2
    assert waiter.silent(0.1)


def test_take_back_by_a_stranger_is_refused(pair, clients, name):
    first, second = pair
    a, b = clients(first), clients(second)
    token = a.cmd("LOCK", name, "OWNER", "app")[0]
    assert b.err("RENEW", name, "OWNER", "thief").code == "NOTHELD"
    assert a.cmd("LOCK", name, "OWNER", "app")[0] == token


def test_take_back_too_late_is_refused(pair, clients, name):
    first, second = pair
    a, b, rival = clients(first), clients(second), clients(second)
    a.cmd("LOCK", name, "OWNER", "app")
    first.kill()
    assert rival.cmd("LOCK", name, "WAIT", 20000)[0] > 0
    assert b.err("RENEW", name, "OWNER", "app").code == "NOTHELD"
    assert rival.cmd("HOLDS", name) == 1


def test_taking_over_from_a_living_broker_tells_the_old_holder(pair, clients, name):
    """The first broker sees the foreign operation id, reports the hold as moved and touches it no more."""
    first, second = pair
    a, b, rival = clients(first, resp3=True, tell=True), clients(second), clients(first)
    token = a.cmd("LOCK", name, "OWNER", "app")[0]
    newer = b.cmd("RENEW", name, "OWNER", "app")[0]
    assert newer > token
    push = a.wait_push("lost")
    assert push[1:3] == [name, token]
    a.cmd("QUIT")
    assert rival.cmd("LOCK", name, "WAIT", 3 * LEASE_MS) is None
    assert b.cmd("HOLDS", name, "OWNER", "app") == 1
    assert b.cmd("UNLOCK", name, "OWNER", "app") == 1


def test_an_id_counts_at_its_broker_only(pair, clients, name):
    """The other one cannot know that it is the same request: to count it is safe."""
    a, b = clients(pair[0]), clients(pair[1])
    a.cmd("LOCK", name, "OWNER", "app", "ID", "1")
    assert b.cmd("LOCK", name, "OWNER", "app", "ID", "1", "WAIT", 5000)
    assert b.cmd("HOLDS", name, "OWNER", "app") == 2
    assert b.cmd("LOCK", name, "OWNER", "app", "ID", "1")
    assert [b.cmd("UNLOCK", name, "OWNER", "app") for _ in range(2)] == [0, 1]


def test_quit_at_the_old_broker_does_not_free_a_moved_hold(pair, clients, name):
    first, second = pair
    a, b, rival = clients(first), clients(second), clients(second)
    a.cmd("LOCK", name, "OWNER", "app")
    b.cmd("RENEW", name, "OWNER", "app")
    assert a.cmd("QUIT") == "OK"
    assert rival.cmd("LOCK", name, "WAIT", 3 * LEASE_MS) is None
    assert b.cmd("UNLOCK", name, "OWNER", "app") == 1


def test_forceunlock_through_the_other_broker(pair, clients, name):
    first, second = pair
    a, b = clients(first, resp3=True, tell=True), clients(second)
    token = a.cmd("LOCK", name)[0]
    assert b.cmd("FORCEUNLOCK", name) == 1
    assert b.cmd("LOCK", name, "WAIT", 3000)[0] > token
    assert a.wait_push("lost")[1:3] == [name, token]
    assert a.err("UNLOCK", name).code == "NOTHELD"
    assert b.cmd("HOLDS", name) == 1


def test_many_holds_of_a_killed_broker(pair, clients, name):
    first, second = pair
    a, b = clients(first), clients(second)
    names = ["%s:%d" % (name, i) for i in range(100)]
    granted = a.pipeline(*[("LOCK", n, "OWNER", "app") for n in names])
    first.kill()
    taken = b.pipeline(*[("RENEW", n, "OWNER", "app") for n in names])
    assert all(t[0] > g[0] for t, g in zip(taken, granted))
    assert b.cmd("LOCK", names[0] + "x", "LEASE", 1000)[0] > 0
    rival = clients(second)
    assert rival.cmd("LOCK", names[50], "WAIT", 3 * LEASE_MS) is None
    b.close()
    rival.cmd("OWNER", "rival")
    wait_for("the release of all", lambda: all(
        isinstance(r, list) for r in rival.pipeline(*[("LOCK", n) for n in names])))


# What a broker remembers while others take its holds away


@pytest.fixture
def proxies(masters, make_proxy):
    return {master.name: make_proxy(master.address) for master in masters}


@pytest.fixture
def deaf(make_broker, masters, proxies):
    """Two brokers; the first one hears from now on nothing of what the other one does."""
    pair = (make_broker({name: proxy.url for name, proxy in proxies.items()}).wait_masters(),
            make_broker(masters).wait_masters())
    for proxy in proxies.values():
        wait_for("the subscriber", lambda p=proxy: p.count(lambda r: r.name == "ping") > 0)
        proxy.deaf = True
    return pair


SOON_S = 5  # less than the leases of 20 s


def test_a_deaf_broker_counts_what_the_masters_have(deaf, clients, name):
    a, b = clients(deaf[0]), clients(deaf[1])
    a.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    b.cmd("RENEW", name, "OWNER", "app", "LEASE", 20000)
    b.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    wait_for("the count", lambda: a.cmd("HOLDS", name, "OWNER", "app") == 2, SOON_S)
    assert a.cmd("LOCK", name, "OWNER", "app", "WAIT", 3000, "LEASE", 20000)
    assert a.cmd("HOLDS", name, "OWNER", "app") == 3


def test_a_deaf_broker_locks_what_has_moved(deaf, clients, name):
    a, b = clients(deaf[0]), clients(deaf[1])
    a.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    b.cmd("RENEW", name, "OWNER", "app", "LEASE", 20000)
    assert a.cmd("LOCK", name, "OWNER", "app", "WAIT", 3000, "LEASE", 20000)
    assert a.cmd("HOLDS", name, "OWNER", "app") == 2


@pytest.mark.parametrize("how", ["moved", "forced"])
@pytest.mark.parametrize("words", [("LOCK",), ("LOCK", "LIMIT", 2), ("MLOCK",)], ids=["lock", "kind", "mlock"])
def test_a_deaf_broker_refuses_no_free_lock(deaf, clients, name, how, words):
    a, b, rival = clients(deaf[0]), clients(deaf[1]), clients(deaf[0])
    a.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    if how == "forced":
        assert b.cmd("FORCEUNLOCK", name) == 1
    else:
        b.cmd("RENEW", name, "OWNER", "app", "LEASE", 20000)
        assert b.cmd("UNLOCK", name, "OWNER", "app") == 1
    command = ("MLOCK", 2, name, name + "2") if words[0] == "MLOCK" else ("LOCK", name) + words[1:]
    wait_for("the free lock", lambda: isinstance(rival.pipeline(command)[0], list), SOON_S)


def test_a_deaf_broker_serves_who_waits(deaf, clients, name):
    a, b, rival = clients(deaf[0]), clients(deaf[1]), clients(deaf[0])
    a.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    rival.send("LOCK", name, "WAIT", 15000)
    b.cmd("RENEW", name, "OWNER", "app", "LEASE", 20000)
    assert b.cmd("UNLOCK", name, "OWNER", "app") == 1
    since = time.monotonic()
    assert rival.recv()[0] > 0
    assert time.monotonic() - since < SOON_S


def test_a_forced_lock_is_free_at_its_broker(pair, clients, name):
    first, second = pair
    a, b, rival = clients(first, resp3=True), clients(second), clients(first)
    token = a.cmd("LOCK", name, "LEASE", 20000, "TELL")[0]
    rival.send("LOCK", name, "WAIT", 15000)
    assert b.cmd("FORCEUNLOCK", name) == 1
    assert a.wait_push("lost", SOON_S)[1:3] == [name, token]
    since = time.monotonic()
    assert rival.recv()[0] > token
    assert time.monotonic() - since < SOON_S
