"""A master that is found by three Sentinels: failover, what an old master may still do, passwords and TLS."""

import re
import threading
import time

import pytest

from holdfastproc import run, write_config
from procs import free_ports, wait_for
from respclient import RespClient, RespError, as_map
from sentinelproc import NAME, Watched, url_of
from test_cli import cli
from test_tls import Authority, client_context

OPTIONS = {"quarantine": "1s", "max_lease": "3s", "sentinel_timeout": "2s"}


@pytest.fixture
def make_watched():
    made = []

    def make(**kwargs):
        watched = Watched(**kwargs)
        made.append(watched)
        return watched.start()
    yield make
    for watched in made:
        watched.close()


@pytest.fixture
def watched(make_watched):
    return make_watched()


def state_of(client, master="a"):
    return next(row for row in map(as_map, client.cmd("MASTERS")) if row["name"] == master)


def wait_active(client, server, deadline_s=20):
    def is_active():
        row = state_of(client)
        return row["state"] == "active" and row["address"] == "127.0.0.1:%d" % server.port
    wait_for("the master at %d to be used" % server.port, is_active, deadline_s)


def wait_follows(client, watched, deadline_s=20):
    """Until the broker uses the server that all Sentinels name; returns that. Sentinels that are short of processor time
    may fail over once more by themselves: the broker has so long to follow from each server that they name."""
    named, until = None, time.monotonic() + deadline_s
    while True:
        now, row = watched.agreed(), state_of(client)
        if now and row["state"] == "active" and row["address"] == "127.0.0.1:%d" % now.port:
            return now
        if now and now is not named:
            named, until = now, time.monotonic() + deadline_s
        assert time.monotonic() < until, "%s is not used within %d s: %s" % (named and named.port, deadline_s, row)
        time.sleep(0.005)


@pytest.fixture
def follow(make_broker, clients):
    """follow(url, ...): a broker whose master has not forgotten anything, and a connection to it."""
    def do(url, ready=True, **kwargs):
        kwargs["options"] = dict(OPTIONS, **kwargs.get("options", {}))
        broker = make_broker({"a": url}, ready=False, **kwargs)
        client = clients(broker)
        if ready:
            wait_for("the master to be joined", lambda: state_of(client)["state"] in ("quarantine", "active"))
            if state_of(client)["state"] == "quarantine":
                client.cmd("MASTER", "a", "TRUST")
            wait_for("the master to vote", lambda: state_of(client)["state"] == "active")
        return broker, client
    yield do


def test_what_each_sentinel_says(watched, follow, name):
    """Each Sentinel's word is in the log, in MASTERS, in `holdfast masters` and in -tt."""
    broker, client = follow(watched.url)
    watched.failover()
    new = wait_follows(client, watched)
    for s in watched.sentinels:
        broker.wait_log("Sentinel %s names 127.0.0.1:%d" % (s.address, new.port))
        words = "%s names 127.0.0.1:%d" % (s.address, new.port)
        wait_for("its word", lambda: words in state_of(client)["sentinels"])
        assert words in cli(broker, "masters")[1]
        assert words in cli(broker, "masters", "--json")[1]
    assert client.cmd("LOCK", name, "WAIT", 10000)[0] > 0


def test_a_look(watched, tmp_path):
    lost = watched.sentinels[2]
    lost.kill()
    conf = write_config(tmp_path / "look.ini", {"a": watched.url}, OPTIONS)
    status, out, err = run("-tt", "-c", conf, deadline_s=40)
    assert status == 0, out + err
    for s in watched.sentinels[:2]:
        assert "%s names 127.0.0.1:%d" % (s.address, watched.servers[0].port) in out
    assert re.search(r"hint +a: its Sentinels: .*%s: " % lost.address, out), out
    watched.sentinels[1].kill()
    status, out, _ = run("-tt", "-c", conf, deadline_s=40)
    assert status == 1
    assert re.search("error +a: .*no majority of its Sentinels names a server", out), out


def test_the_old_one_comes_back_as_a_master(make_watched, follow, name):
    """Nobody goes back to it, whatever it says of itself, until Sentinels name it."""
    watched = make_watched(stubborn=True)
    (_, holder), (_, other) = follow(watched.url), follow(watched.url)
    old = watched.servers[0]
    holder.cmd("LOCK", name, "LEASE", 3000)
    old.stop()
    watched.wait_moved(old)
    old.cont()
    assert "role:master" in old.cli("INFO", "replication")
    for client in holder, other:
        wait_follows(client, watched)
    reply = other.cmd("LOCK", name, "WAIT", 20000)
    assert reply[0] > 0
    assert holder.cmd("LOCK", name) is None
    new = wait_follows(other, watched)
    assert not old.hold("holdfast:{%s}" % name) or old.hold("holdfast:{%s}" % name)["op"] != new.hold(
        "holdfast:{%s}" % name)["op"]
    assert old not in [wait_follows(c, watched) for c in (holder, other)]


def test_cut_off_with_the_old_master(make_watched, follow, make_proxy, clients, name):
    """Broker x hears no Sentinel any more and still has the old master, which is one; y has followed to the new
    one. x keeps its lock for a while, stops in time, and only then y gives it to somebody else."""
    watched = make_watched(stubborn=True)
    old = watched.servers[0]
    proxies = [make_proxy(("127.0.0.1", s.port), tcp=True) for s in watched.sentinels]
    options = {"sentinel_timeout": "6s", "max_lease": "5s", "lease": "5s", "quarantine": "5s"}
    x, _ = follow(url_of(["%s:%d" % p.address for p in proxies]), options=options)
    _, other = follow(watched.url, options=options)
    holder = clients(x, resp3=True, tell=True)
    assert holder.cmd("LOCK", name)[0] > 0
    for p in proxies:
        p.blackhole()
    deaf = time.monotonic()
    old.stop()
    watched.wait_moved(old)
    old.cont()
    wait_for("y to follow", lambda: state_of(other)["address"] != "127.0.0.1:%d" % old.port)
    other.send("LOCK", name, "WAIT", 30000)
    wait_for("x to stop", lambda: state_of(clients(x))["address"] != "127.0.0.1:%d" % old.port, 20)
    assert time.monotonic() < deaf + 6 + 1.5
    with pytest.raises(RespError, match="NOQUORUM.*Sentinels"):
        clients(x).cmd("LOCK", name + ":2")
    holder.wait_push("lost", 15)
    lost = time.monotonic()
    assert other.recv()[0] > 0
    assert time.monotonic() > lost


def test_no_sentinels(follow, make_redis):
    """A Redis server, and nobody: each is named with what is wrong."""
    redis, free_port = make_redis("r", tcp=True), free_ports(1)[0]
    broker, client = follow(url_of(["127.0.0.1:%d" % redis.port, "127.0.0.1:%d" % free_port]), ready=False)
    broker.wait_log("Sentinel 127.0.0.1:%d: it refuses: ERR unknown command" % redis.port)
    wait_for("both words", lambda: re.search(":%d: it refuses.*:%d: .*refused" % (redis.port, free_port), ", ".join(
        sorted(state_of(client)["sentinels"].split(", "), key=lambda word: str(redis.port) not in word))))
    assert state_of(client)["address"] == "(not named)"


def test_all_sentinels_are_gone(watched, follow, name):
    """No lock is had, in words; when they are back it goes on at once, as it is the same run of the same server."""
    broker, client = follow(watched.url)
    wait_active(client, watched.servers[0])
    for s in watched.sentinels:
        s.kill()
    wait_for("the end of their word", lambda: state_of(client)["state"] == "down", 15)
    with pytest.raises(RespError, match="NOQUORUM.*a: no majority of its Sentinels names it"):
        client.cmd("LOCK", name)
    broker.wait_log("no majority of its Sentinels has named 127.0.0.1:%d within 2s" % watched.servers[0].port)
    restarts = state_of(client)["restarts"]
    since = broker.log_size()
    for s in watched.sentinels:
        s.again()
    wait_active(client, watched.servers[0])
    assert client.cmd("LOCK", name)[0] > 0
    assert state_of(client)["restarts"] == restarts
    assert "in quarantine" not in broker.log_text(since)


def test_replicas_that_lag(watched, follow, clients, name):
    """The one that is promoted has never heard of the lock: nobody gets it before its time is over."""
    broker, holder = follow(watched.url)
    other = clients(broker)
    old = watched.servers[0]
    wait_active(holder, old)
    for replica in watched.servers[1:]:
        replica.stop()
    told = holder.cmd("LOCK", name, "LEASE", 3000)
    granted = time.monotonic()
    old.kill()
    for replica in watched.servers[1:]:
        replica.cont()
    watched.wait_moved(old)
    wait_follows(other, watched)
    reply = other.cmd("LOCK", name, "WAIT", 20000)
    assert reply[0] > told[0]
    assert time.monotonic() - granted >= told[1] / 1000


def test_one_failover_after_another(watched, follow, clients, name):
    """The server that has just been promoted stands still while the broker waits there for its quarantine to end."""
    broker, holder = follow(watched.url)
    other = clients(broker)
    old = watched.servers[0]
    told = holder.cmd("LOCK", name, "LEASE", 3000)
    granted = time.monotonic()
    old.kill()
    new = watched.wait_moved(old)
    new.stop()
    third = watched.wait_moved(new)
    assert third is not old
    new.cont()
    wait_follows(other, watched)
    reply = other.cmd("LOCK", name, "WAIT", 20000)
    assert reply[0] > told[0]
    assert time.monotonic() - granted >= told[1] / 1000


def test_passwords(make_watched, follow, name, tmp_path):
    """A user of its own for the Sentinels, with the rights that the manual names, and another for the master."""
    rights = "+auth +subscribe +unsubscribe +sentinel|get-master-addr-by-name &+switch-master"
    watched = make_watched(password="of-master", login=("among-them",), sentinel_lines=[
        "requirepass among-them", "sentinel sentinel-pass among-them", "sentinel auth-pass mymaster of-master",
        "user watcher on >of-watcher resetchannels -@all " + rights])
    addresses = [s.address for s in watched.sentinels]
    good = ["-o", "masters.a.master=redis://:of-master@"]
    _, client = follow(url_of(addresses, "sentinel://watcher:of-watcher@"), args=good)
    watched.failover()
    wait_follows(client, watched)
    assert client.cmd("LOCK", name, "WAIT", 10000)[0] > 0
    secret = tmp_path / "secret"
    secret.write_text("wrong\n")
    args = good + ["-o", "masters.a.sentinel_password_file=%s" % secret]
    wrong, client = follow(url_of(addresses, "sentinel://watcher@"), args=args, ready=False)
    wrong.wait_log("Sentinel .*: it refuses: WRONGPASS")
    wrong.wait_log("no majority of its Sentinels names a server")
    secret.write_text("of-watcher\n")
    wrong.hup()
    wait_follows(client, watched)
    none, _ = follow(url_of(addresses, "sentinel://watcher:of-watcher@"), ready=False)
    none.wait_log("it asks for a password")


def test_tls(make_watched, follow, name, tmp_path):
    """TLS to both: Sentinels by one authority, servers by another."""
    ca = Authority(tmp_path)
    cert, key = ca.issue("both")
    files = ["tls-cert-file " + cert, "tls-key-file " + key, "tls-ca-cert-file " + ca.cert,
             "tls-auth-clients no", "tls-replication yes"]
    args = [word for line in files for word in ("--" + line).split(" ", 1)]
    watched = make_watched(redis_args=args, sentinel_lines=files, context=client_context(ca))
    address = url_of([s.address for s in watched.sentinels], "sentinels://")
    options = ["-o", "masters.a.sentinel_ca=" + ca.cert, "-o", "masters.a.master=rediss://"]
    _, client = follow(address, args=options + ["-o", "masters.a.ca=" + ca.cert])
    watched.failover()
    wait_follows(client, watched)
    assert client.cmd("LOCK", name, "WAIT", 10000)[0] > 0
    strange, _ = follow(address, args=options, ready=False)
    strange.wait_log("master a: cannot be used: .*certificate")


def switches(sentinel):
    """A connection that hears when this Sentinel has moved to another master."""
    client = RespClient(("127.0.0.1", sentinel.port))
    client.cmd("SUBSCRIBE", "+switch-master")
    return client


def moment_of_switch(ear, out):
    ear.recv(30)
    out.append(time.monotonic())


@pytest.mark.parametrize("how", ["stop", "kill", "failover"])
def test_new_locks_right_after_a_failover(watched, follow, name, how):
    """All brokers are listed: each plants what its clients hold, nothing is lost, and nobody waits for the
    quarantine, which would be nine seconds and more."""
    options = {"quarantine": "auto", "max_lease": "3s", "lease": "3s", "brokers": "x y", "sentinel_timeout": "5s"}
    (one, holder), (two, other) = [follow(watched.url, options=dict(options, name=n)) for n in "xy"]
    for broker in one, two:
        wait_for("its memory", lambda b=broker: int(b.info()["roll_call_memory_left_ms"]) == 0, 15)
    token = holder.cmd("LOCK", name)[0]
    switched, ears = [], [switches(s) for s in watched.sentinels]
    threads = [threading.Thread(target=moment_of_switch, args=(ear, switched)) for ear in ears]
    for thread in threads:
        thread.start()
    if how == "failover":
        watched.sentinels[0].cmd("SENTINEL", "FAILOVER", NAME)
    else:
        watched.servers[0].stop() if how == "stop" else watched.servers[0].kill()
    wait_for("the move", lambda: state_of(other)["address"] != "127.0.0.1:%d" % watched.servers[0].port, 20)
    wait_for("a new lock", lambda: granted(other, name + ":new"), 30, 0.002)
    grant = time.monotonic()
    for thread in threads:
        thread.join()
    for ear in ears:
        ear.close()
    assert grant < sorted(switched)[1] + 2   # most often 20 to 50 ms, with sanitizers
    assert holder.cmd("RENEW", name)[0] == token
    assert other.cmd("LOCK", name) is None


def granted(client, name):
    client.send("LOCK", name, "LEASE", 1000)
    return isinstance(client.recv(), list)
