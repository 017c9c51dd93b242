"""Clients ask brokers, as they ask Sentinels, which broker to use, and move to another by themselves."""

import os
import queue
import shutil
import subprocess
import sys
import threading

import pytest

from procs import spawn, wait_for
from respclient import RespClient, RespError, as_map
from test_clients import HERE, node_modules  # noqa: F401  pylint: disable=unused-import

HOST = "127.0.0.1"


# ---- what one broker says

def address_of(client, name="holdfast"):
    reply = client.cmd("SENTINEL", "get-master-addr-by-name", name)
    return reply and tuple(reply)


def here(broker):
    return HOST, str(broker.port)


@pytest.mark.parametrize("resp3", [False, True], ids=["RESP2", "RESP3"])
def test_a_broker_alone(one, clients, resp3):
    client = clients(one.broker, resp3=resp3)
    assert address_of(client) == here(one.broker)
    assert address_of(client, "other") is None
    master = as_map(client.cmd("SENTINEL", "MASTER", "holdfast"))
    assert (master["name"], master["ip"], master["port"]) == ("holdfast",) + here(one.broker)
    assert master["flags"] == "master" and master["num-other-sentinels"] == "0"
    assert [as_map(row) for row in client.cmd("SENTINEL", "MASTERS")] == [master]
    for command in "REPLICAS", "SLAVES", "SENTINELS":
        assert client.cmd("SENTINEL", command, "holdfast") == []
    for command in "MASTER", "REPLICAS", "SENTINELS", "CKQUORUM":
        assert "No such master" in str(client.err("SENTINEL", command, "other"))
    assert client.cmd("SENTINEL", "CKQUORUM", "holdfast").startswith("OK ")
    assert client.cmd("ROLE") == ["master", 0, []]
    assert "GET-MASTER-ADDR-BY-NAME service" in client.cmd("SENTINEL", "HELP")
    assert "unknown subcommand" in str(client.err("SENTINEL", "FAILOVER", "holdfast"))


def test_names_and_addresses_are_reloadable(broker1, clients):
    client = clients(broker1)
    client.cmd("CONFIG", "SET", "announce", "broker-a.example:5625", "service", "holdfast mymaster")
    assert address_of(client) == address_of(client, "mymaster") == ("broker-a.example", "5625")
    assert [as_map(row)["name"] for row in client.cmd("SENTINEL", "MASTERS")] == ["holdfast", "mymaster"]
    client.cmd("CONFIG", "SET", "announce", "[::1]:5625", "service", "mymaster")
    assert address_of(client) is None and address_of(client, "mymaster") == ("::1", "5625")
    assert "needs announce" in str(client.err("CONFIG", "SET", "announce", "none", "peers", "b:1"))
    for bad in "b", "b:0", "b:1 b:1", "[b]:1", "b:1 c", "/b:1":
        assert client.err("CONFIG", "SET", "peers", bad).code == "ERR"
    client.cmd("CONFIG", "SET", "service", "none")
    assert client.cmd("SENTINEL", "MASTERS") == []


def test_over_a_unix_socket(make_broker, masters1, tmp_path, clients):
    path = tmp_path / "s"
    broker = make_broker(masters1, listen="127.0.0.1:0 unix:%s" % path)
    with RespClient(str(path)) as client:
        assert "set announce" in str(client.err("SENTINEL", "MASTER", "holdfast"))
        client.cmd("CONFIG", "SET", "announce", "%s:%d" % broker.address)
        assert address_of(client) == here(broker)


def test_who_may_ask(broker1, clients):
    """Who has logged in, whatever else he may do; without that there is nothing but whether it can grant."""
    with open(broker1.conf, "a", encoding="utf-8") as conf:
        conf.write("\n[users]\neye = none\ndefault = nopass\ndefault.allow = inspect\ndefault.names = x\n")
    broker1.hup()
    broker1.wait_log("configuration read again")
    client = clients(broker1)
    assert address_of(client) == here(broker1)
    assert client.cmd("SUBSCRIBE", "+switch-master")[0] == "subscribe"
    with open(broker1.conf, "r+", encoding="utf-8") as conf:
        text = conf.read().replace("default = nopass\ndefault.allow = inspect\ndefault.names = x\n", "")
        conf.seek(0)
        conf.truncate()
        conf.write(text)
    since = broker1.log_size()
    broker1.hup()
    broker1.wait_log("configuration read again", since=since)
    stranger = clients(broker1)
    assert stranger.err("SENTINEL", "MASTERS").code == "NOAUTH"
    assert stranger.err("ROLE").code == "NOAUTH"
    assert stranger.cmd("SENTINEL", "CKQUORUM", "holdfast").startswith("OK ")


# ---- two of them

class Pair:
    """Brokers a and b, who know of each other; a reaches the masters through proxies."""

    def __init__(self, make_broker, make_proxy, masters):
        self.proxies = [make_proxy(m.address) for m in masters]
        options = {"drain_timeout": "1s", "lease": "10s"}
        through = {m.name: p.url for m, p in zip(masters, self.proxies)}
        self.a = make_broker(through, options=options)
        self.b = make_broker(masters, options=options)
        self.brokers = [self.a, self.b]
        for broker in self.brokers:
            with broker.connect() as client:
                # its own is passed over: the same list serves all
                client.cmd("CONFIG", "SET", "announce", "%s:%d" % broker.address, "peers",
                           " ".join("%s:%d" % x.address for x in self.brokers))
        for broker in self.brokers:
            with broker.connect() as client:
                wait_for("the peer", lambda: [as_map(row)["flags"] for row in client.cmd(
                    "SENTINEL", "SENTINELS", "holdfast")] == ["sentinel"])

    def harm(self, how):
        if how == "kill":
            self.a.kill()
        elif how == "stop":
            self.a.stop()
        elif how == "drain":
            self.a.signal(15)
        else:
            for proxy in self.proxies:
                proxy.refuse()
                proxy.cut_all()


@pytest.fixture
def pair(make_broker, make_proxy, masters1):
    return Pair(make_broker, make_proxy, masters1)


def test_cut_off_and_back(pair, clients, name):
    """a names b while it has no majority, tells those who listen, and closes what nothing is under way on."""
    asks, listens, idle = clients(pair.a), clients(pair.a), clients(pair.a)
    listens.cmd("SUBSCRIBE", "+switch-master")
    assert address_of(asks) == here(pair.a)
    pair.harm("cut")
    wait_for("b to be named", lambda: address_of(asks) == here(pair.b))
    assert listens.recv() == ["message", "+switch-master", " ".join(("holdfast",) + here(pair.a) + here(pair.b))]
    assert asks.cmd("ROLE") == ["slave", HOST, pair.b.port, "connected", 0]
    assert asks.err("SENTINEL", "CKQUORUM", "holdfast").code == "NOQUORUM"
    assert idle.read_to_end() == b""
    other = clients(pair.b)
    assert other.cmd("ROLE") == ["master", 0, []]
    for proxy in pair.proxies:
        proxy.refuse(False)
    wait_for("a to be named again", lambda: address_of(asks) == here(pair.a))
    assert listens.recv() == ["message", "+switch-master", " ".join(("holdfast",) + here(pair.b) + here(pair.a))]


def test_paused(pair, clients, name):
    """Who holds something stays until he has given it back."""
    holder, asks = clients(pair.a), clients(pair.a)
    holder.cmd("LOCK", name)
    assert address_of(asks) == here(pair.a)
    asks.cmd("PAUSE")
    assert address_of(asks) == here(pair.b)
    assert holder.cmd("RENEW", name)
    assert holder.cmd("UNLOCK", name) == 1
    assert holder.read_to_end() == b""
    asks.cmd("RESUME")
    assert address_of(asks) == here(pair.a)


def test_no_peer_is_well(pair, clients):
    asks = clients(pair.a)
    assert address_of(asks) == here(pair.a)
    with pair.b.connect() as b:
        b.cmd("PAUSE")
    asks.cmd("PAUSE")
    wait_for("a to have heard that b is paused", lambda: address_of(asks) == here(pair.a))
    assert asks.cmd("ROLE") == ["master", 0, []]


def test_a_killed_peer_is_told_of(pair, clients):
    listens = clients(pair.b)
    listens.cmd("SUBSCRIBE", "+switch-master")
    pair.harm("kill")
    assert listens.recv() == ["message", "+switch-master", " ".join(("holdfast",) + here(pair.a) + here(pair.b))]


# ---- clients

def tool(name):
    return shutil.which(name) or pytest.skip("%s is not installed" % name)


@pytest.fixture
def command(request):
    """command("ioredis"): how its program is run."""
    def make(library):
        if library == "redis-py":
            pytest.importorskip("redis")
            return [sys.executable, HERE / "find-redis-py.py"], {}
        if library == "redis-rb":
            return [tool("ruby"), HERE / "find-redis-rb.rb"], {}
        modules = request.getfixturevalue("node_modules")
        return [tool("node"), HERE / ("find-%s.js" % library)], {"NODE_PATH": str(modules)}
    return make


class Program:
    def __init__(self, argv, env):
        # pylint: disable=consider-using-with
        self.proc = spawn([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, **env))
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.proc.stdout:
            self.lines.put(line.strip())

    def wait_at(self, broker, deadline_s=30):
        want, seen = "%s:%d" % broker.address, []

        def is_there():
            while not self.lines.empty():
                seen.append(self.lines.get())
            return seen and seen[-1] == want
        try:
            wait_for("the lock to be held at %s" % want, is_there, deadline_s)
        except AssertionError as err:
            raise AssertionError("%s: %s" % (err, seen[-20:])) from None


def token_of(client, name):
    return as_map(as_map(client.cmd("LOCKINFO", name))["holders"][0])["token"]


LIBRARIES = ("redis-py", "ioredis", "node-redis", "redis-rb")
# node-redis 5.9 waits for ever for a Sentinel that has taken the connection and says nothing
MOVES = [(library, how) for library in LIBRARIES for how in ("kill", "stop", "drain", "cut")
         if (library, how) != ("node-redis", "stop")]


@pytest.mark.parametrize("library,how", MOVES)
def test_a_lock_goes_along(pair, command, clients, name, library, how):
    argv, env = command(library)
    program = Program(argv + [name, pair.a.port, pair.b.port], env)
    try:
        program.wait_at(pair.a)
        other = clients(pair.b)
        token = token_of(other, name)
        pair.harm(how)
        program.wait_at(pair.b)
        assert token_of(other, name) > token
        with pytest.raises(RespError, match="NOTHELD"):
            other.cmd("UNLOCK", name)
    finally:
        program.proc.kill()
        program.proc.wait()
