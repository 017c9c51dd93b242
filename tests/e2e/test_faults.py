"""Messages between broker and masters are delayed, lost, repeated, cut: counts, tokens and ownership stay exact."""

import time

import pytest

from holdfastproc import LEASE_MS
from procs import rss_kb, wait_for
from respclient import RespError

LEASE = 30000


class Net:
    """A broker behind one proxy per master, and a second broker that goes straight to the masters."""

    def __init__(self, masters, proxies, broker, straight):
        self.masters = masters
        self.proxies = proxies
        self.broker = broker
        self.straight = straight

    def heal(self):
        """No rule any more, and no connection on which something is missing."""
        for proxy in self.proxies:
            proxy.clear()
            proxy.cut_all()


@pytest.fixture(params=[1, 3], ids=["one master", "three masters"])
def net(request, make_redis, make_proxy, make_broker):
    masters = [make_redis(n) for n in "abc"[:request.param]]
    proxies = [make_proxy(m.address) for m in masters]
    broker = make_broker({m.name: p.url for m, p in zip(masters, proxies)}).wait_masters()
    return Net(masters, proxies, broker, lambda: make_broker(masters))


@pytest.fixture
def client(net, clients):
    return clients(net.broker)


def about(name):
    """Scripts that speak of this lock."""
    return lambda request: request.is_eval and request.mentions(name)


def on_all(net, action, name, **kwargs):
    return [proxy.on(action, about(name), **kwargs) for proxy in net.proxies]


def holds_on(master, name, owner):
    """Whether a hold of the lock on the master names the owner."""
    return any(hold["owner"] == owner for hold in master.holds(name).values())


def check_exact(net, clients, name, client, owner="app"):
    """The owner holds once or not at all; then somebody else gets the lock with a larger token."""
    net.broker.wait_quorum()
    count = client.cmd("HOLDS", name, "OWNER", owner)
    token = 0
    if count:
        token = client.cmd("RENEW", name, "OWNER", owner, "LEASE", LEASE)[0]
        released = [client.cmd("UNLOCK", name, "OWNER", owner) for _ in range(count)]
        assert released == [0] * (count - 1) + [1]
    assert client.err("UNLOCK", name, "OWNER", owner).code == "NOTHELD"
    other = clients(net.straight())
    newer = other.cmd("LOCK", name, "OWNER", "other", "WAIT", 5000)
    assert newer is not None and newer[0] > token
    return count


def test_duplicated_requests_change_nothing(net, clients, client, name):
    """Each script arrives twice."""
    rules = on_all(net, "duplicate", name, times=None)
    token = client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)[0]
    assert client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)[0] == token
    assert client.cmd("HOLDS", name, "OWNER", "app") == 2
    assert client.cmd("UNLOCK", name, "OWNER", "app") == 0
    assert client.cmd("UNLOCK", name, "OWNER", "app") == 1
    assert client.err("UNLOCK", name, "OWNER", "app").code == "NOTHELD"
    assert all(rule.hits for rule in rules)
    assert check_exact(net, clients, name, client) == 0


@pytest.mark.parametrize("action", ["drop_request", "drop_reply", "cut_before", "cut_after", "hold_request"])
def test_an_acquire_that_fails_everywhere_leaves_nothing(net, clients, client, name, action):
    """Not granted: an error, and nobody is kept out by what was left (the lease is 30 s)."""
    rules = on_all(net, action, name, times=None)
    client.send("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    reply = client.recv()
    assert isinstance(reply, RespError) and reply.code == "NOQUORUM", reply
    net.heal()
    assert all(rule.hits for rule in rules)
    net.broker.wait_quorum()
    for master in net.masters:
        wait_for("the undo on %s" % master.name, lambda m=master: not holds_on(m, name, "app"))
    assert check_exact(net, clients, name, client) == 0


@pytest.mark.parametrize("action", ["drop_reply", "cut_before", "cut_after", "drop_request"])
def test_a_reentry_that_fails_keeps_the_count(net, clients, client, name, action):
    token = client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)[0]
    on_all(net, action, name, times=None)
    client.send("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    reply = client.recv()
    net.heal()
    net.broker.wait_quorum()
    expected = 2 if isinstance(reply, list) else 1
    assert client.cmd("HOLDS", name, "OWNER", "app") == expected
    assert client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)[0] == token
    assert check_exact(net, clients, name, client) == expected + 1


@pytest.mark.parametrize("action", ["drop_request", "drop_reply", "cut_before", "cut_after"])
def test_a_release_that_is_not_confirmed_happens_in_the_end(net, clients, client, name, action):
    client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    on_all(net, action, name, times=None)
    client.send("UNLOCK", name, "OWNER", "app")
    reply = client.recv()
    assert reply == 1 or (isinstance(reply, RespError) and reply.code == "NOQUORUM"), reply
    net.heal()
    net.broker.wait_quorum()
    for master in net.masters:
        wait_for("the release on %s" % master.name, lambda m=master: not holds_on(m, name, "app"))
    other = clients(net.straight())
    assert other.cmd("LOCK", name, "WAIT", 5000) is not None


def test_an_acquire_delivered_after_the_release(net, clients, client, name):
    """Held back past the time-out and let go after everything is over: no key comes back to life."""
    rules = on_all(net, "hold_request", name)
    client.send("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    assert client.recv().code == "NOQUORUM"
    straight = net.straight()
    other = clients(straight)
    token = other.cmd("LOCK", name, "OWNER", "other", "WAIT", 5000)[0]
    assert other.cmd("UNLOCK", name, "OWNER", "other") == 1
    for rule in rules:
        rule.release()
    net.broker.wait_quorum()
    for master in net.masters:
        wait_for("the undo on %s" % master.name, lambda m=master: not holds_on(m, name, "app"))
    assert other.cmd("LOCK", name, "OWNER", "other", "WAIT", 5000)[0] > token


def test_an_acquire_repeated_after_its_release(net, clients, client, name):
    """The same bytes once more after UNLOCK: the operation id is known, nothing is created."""
    rules = on_all(net, "replay_later", name)
    token = client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)[0]
    assert client.cmd("UNLOCK", name, "OWNER", "app") == 1
    for rule in rules:
        rule.release()
    for proxy, master in zip(net.proxies, net.masters):
        wait_for("acquire and release on %s" % master.name, lambda p=proxy: p.count(about(name)) >= 2)
        wait_for("quiet on %s" % master.name, lambda m=master: not holds_on(m, name, "app"))
    other = clients(net.straight())
    assert other.cmd("LOCK", name, "WAIT", 3000)[0] > token


def test_a_release_repeated_does_not_free_the_next_hold(net, clients, client, name):
    client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    rules = on_all(net, "replay_later", name)
    assert client.cmd("UNLOCK", name, "OWNER", "app") == 1
    token = client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)[0]
    for rule in rules:
        rule.release()
    other = clients(net.straight())
    assert other.cmd("LOCK", name, "WAIT", 500) is None
    assert client.cmd("HOLDS", name, "OWNER", "app") == 1
    assert client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE)[0] == token


@pytest.mark.parametrize("answer", [
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    b"-MISCONF Redis is configured to save RDB snapshots\r\n",
    b"-READONLY You can't write against a read only replica.\r\n",
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-BUSY Redis is busy running a script.\r\n",
    b"-NOAUTH Authentication required.\r\n",
    b"-ERR something else\r\n",
    b"+OK\r\n",
    b":1\r\n",
    b"$-1\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*2\r\n:-1\r\n:-1\r\n",
    b"$5\r\nhello\r\n",
    b"*1\r\n*1\r\n*1\r\n:1\r\n",
], ids=lambda b: b.split(b"\r\n")[0][:12].decode())
def test_an_odd_answer_is_no_vote(net, clients, client, name, answer):
    rules = on_all(net, "replace", name, times=None, value=answer)
    client.send("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    reply = client.recv()
    assert not isinstance(reply, list), "granted by %r" % answer
    assert reply is None or reply.code == "NOQUORUM", reply
    for proxy in net.proxies:
        proxy.clear()
    assert all(rule.hits for rule in rules)
    assert check_exact(net, clients, name, client) == 0


@pytest.mark.parametrize("answer", [
    b"*4294967295\r\n",
    b"*2147483647\r\n" + b":1\r\n" * 100,
    b"*1\r\n" * 20000,
    b"$4294967295\r\n",
    b"$-7\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b":99999999999999999999\r\n",
    b"+" + b"x" * 3000000,
    b"*3\r\n:1\r\n$1000000\r\n",
], ids=lambda b: b.split(b"\r\n")[0][:14].decode())
def test_a_hostile_answer_drops_the_link(net, clients, client, name, answer):
    before = rss_kb(net.broker.proc.pid)
    rules = on_all(net, "replace", name, value=answer)
    client.send("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    reply = client.recv()
    assert isinstance(reply, RespError) and reply.code == "NOQUORUM", reply
    assert all(rule.hits for rule in rules)
    assert rss_kb(net.broker.proc.pid) - before < 64 << 10
    assert check_exact(net, clients, name, client) == 0


def test_a_reply_that_was_not_asked_for(net, clients, client, name):
    """One reply too many must not answer the next request."""
    on_all(net, "replace_reply", name, value=b":1\r\n:1\r\n")
    client.send("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    client.recv()
    assert check_exact(net, clients, name, client) in (0, 1)


def test_a_missing_reply_shifts_nothing(net, clients, client, name):
    """The replies of two locks, the first one missing: the second's answer is not taken for the first's."""
    on_all(net, "skip_reply", name + ":1")
    client.send("LOCK", name + ":1", "OWNER", "app", "LEASE", LEASE)
    client.send("LOCK", name + ":2", "OWNER", "app", "LEASE", LEASE)
    first = client.recv()
    client.recv()
    assert not isinstance(first, list)
    assert check_exact(net, clients, name + ":1", client) == 0


def test_noscript_is_repeated(net, clients, client, name):
    """SCRIPT FLUSH: the only refusal that proves that nothing has run."""
    for master in net.masters:
        master.cli("SCRIPT", "FLUSH")
    assert client.cmd("LOCK", name, "OWNER", "app", "LEASE", LEASE, "WAIT", 3000)[0] > 0
    assert client.cmd("HOLDS", name, "OWNER", "app") == 1
    assert check_exact(net, clients, name, client) == 1


def test_a_black_hole_ends_in_an_error_not_in_a_hang(net, client, name):
    for proxy in net.proxies:
        proxy.blackhole()
    assert client.err("LOCK", name).code == "NOQUORUM"
    for proxy in net.proxies:
        proxy.blackhole(False)
    net.broker.wait_quorum()


def test_a_watched_lock_lives_through_cut_connections(make_redis, make_proxy, make_broker, clients, name):
    masters = [make_redis(n) for n in "abc"]
    proxies = [make_proxy(m.address) for m in masters]
    broker = make_broker({m.name: p.url for m, p in zip(masters, proxies)}, options={"lease": "3s"})
    holder = clients(broker, resp3=True, tell=True)
    broker.wait_masters()
    token = holder.cmd("LOCK", name)[0]
    for _ in range(4):
        for proxy in proxies:
            proxy.cut_all()
        broker.wait_quorum()
    broker.wait_masters()
    assert holder.cmd("RENEW", name)[0] == token
    assert not [p for p in holder.pushes if p[0] == "lost"]


def test_cut_while_renewing(net, clients, client, name):
    """The first renewal is lost on every master; the next ones save the hold."""
    token = client.cmd("LOCK", name, "OWNER", "app")[0]
    rules = on_all(net, "cut_after", name)
    for rule in rules:
        rule.wait()
    other = clients(net.broker)
    assert other.cmd("LOCK", name, "WAIT", 3 * LEASE_MS) is None
    assert client.cmd("LOCK", name, "OWNER", "app")[0] == token


def test_one_slow_master_costs_nothing(make_redis, make_proxy, make_broker, clients, name):
    masters = [make_redis(n) for n in "abc"]
    proxy = make_proxy(masters[2].address)
    broker = make_broker({"a": masters[0].url, "b": masters[1].url, "c": proxy.url})
    proxy.latency_s = 0.1
    client = clients(broker)
    start = time.monotonic()
    for i in range(10):
        client.cmd("LOCK", "%s:%d" % (name, i), "LEASE", 5000)
    assert time.monotonic() - start < 1.0


def test_a_silent_link_is_given_up(net, client, name):
    """Requests vanish, nothing is closed: the broker itself has to begin anew."""
    on_all(net, "drop_request", name)
    assert client.err("LOCK", name).code == "NOQUORUM"
    for proxy in net.proxies:
        proxy.clear()
    net.broker.wait_quorum()


def test_restart_between_request_and_reply(net, clients, client, name):
    """The masters die with the request in their hands and come back empty."""
    rules = on_all(net, "hold_reply", name)
    client.send("LOCK", name, "OWNER", "app", "LEASE", LEASE)
    for rule in rules:
        rule.wait()
    for master in net.masters:
        master.restart()
    for proxy in net.proxies:
        proxy.cut_all()
    reply = client.recv()
    assert isinstance(reply, RespError) and reply.code == "NOQUORUM", reply
    for proxy in net.proxies:
        proxy.clear()
    assert check_exact(net, clients, name, client) == 0
