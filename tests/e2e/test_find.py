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
from test_tls import Authority, make_tls_broker  # noqa: F401  pylint: disable=unused-import
from test_clients import HERE, go_redis, java, node_modules  # noqa: F401  pylint: disable=unused-import

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
    """Brokers a and b, who know of each other; each reaches the masters through proxies of its own."""

    def __init__(self, make_broker, make_proxy, masters):
        self.brokers, self.proxies_of = [], {}
        for _ in "ab":
            proxies = {m.name: make_proxy(m.address) for m in masters}
            broker = make_broker({name: proxy.url for name, proxy in proxies.items()},
                                 options={"drain_timeout": "1s", "lease": "10s"})
            self.proxies_of[broker] = list(proxies.values())
            self.brokers.append(broker)
        self.a, self.b = self.brokers
        self.proxies = self.proxies_of[self.a]
        for broker in self.brokers:
            with broker.connect() as client:
                # its own is passed over: the same list serves all
                client.cmd("CONFIG", "SET", "announce", "%s:%d" % broker.address, "peers",
                           " ".join("%s:%d" % x.address for x in self.brokers))
        for broker in self.brokers:
            with broker.connect() as client:
                wait_for("the peer", lambda: [as_map(row)["flags"] for row in client.cmd(
                    "SENTINEL", "SENTINELS", "holdfast")] == ["sentinel"])

    def harm(self, how, broker=None):
        broker = broker or self.a
        broker.harm(how, self.proxies_of[broker])


@pytest.fixture
def pair(make_broker, make_proxy, masters1):
    return Pair(make_broker, make_proxy, masters1)


def told_role(client):
    """What HELLO says, and what INFO says: a role, and where the master is."""
    told = dict(line.split(":", 1) for line in str(client.cmd("INFO", "replication")).splitlines() if ":" in line)
    return as_map(client.cmd("HELLO"))["role"], told["role"], told.get("master_host"), told.get("master_port")


def test_cut_off_and_back(pair, clients, name):
    """a names b while it has no majority, tells those who listen, and closes what nothing is under way on."""
    asks, listens, idle = clients(pair.a), clients(pair.a), clients(pair.a)
    listens.cmd("SUBSCRIBE", "+switch-master")
    assert address_of(asks) == here(pair.a)
    pair.harm("cut")
    wait_for("b to be named", lambda: address_of(asks) == here(pair.b))
    assert listens.recv() == ["message", "+switch-master", " ".join(("holdfast",) + here(pair.a) + here(pair.b))]
    assert asks.cmd("ROLE") == ["slave", HOST, pair.b.port, "connected", 0]
    assert told_role(asks) == ("replica", "slave", HOST, str(pair.b.port))
    assert asks.err("SENTINEL", "CKQUORUM", "holdfast").code == "NOQUORUM"
    assert idle.read_to_end() == b""
    other = clients(pair.b)
    assert other.cmd("ROLE") == ["master", 0, []]
    assert told_role(other) == ("master", "master", None, None)
    for proxy in pair.proxies:
        proxy.refuse(False)
    wait_for("a to be named again", lambda: address_of(asks) == here(pair.a))
    assert told_role(asks) == ("master", "master", None, None)
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


def peers_flags(client):
    return [as_map(row)["flags"] for row in client.cmd("SENTINEL", "SENTINELS", "holdfast")]


def test_peers_over_tls(make_tls_broker, masters1, tmp_path, clients):
    """They speak nothing but TLS to other machines, and want certificates of all who come."""
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    cert, key = authority.issue("server")
    tls = {"certificate": cert, "key": key, "ca": authority.cert, "client_certificates": "required",
           "peer_ca": authority.cert}
    brokers = [make_tls_broker(masters1, tls) for _ in range(2)]
    peers = " ".join("tls://127.0.0.1:%d" % b.tls_port for b in brokers)
    a, b = map(clients, brokers)
    for client, broker in (a, brokers[0]), (b, brokers[1]):
        client.cmd("CONFIG", "SET", "announce", "127.0.0.1:%d" % broker.tls_port, "peers", peers)
    for client in a, b:
        wait_for("the peer", lambda client=client: peers_flags(client) == ["sentinel"])
    assert address_of(a) == ("127.0.0.1", str(brokers[0].tls_port))
    assert "peer_ca" in str(b.err("CONFIG", "SET", "tls.peer_ca", str(tmp_path / "none.pem")))
    # whom nobody believes is not heard
    b.cmd("CONFIG", "SET", "tls.peer_ca", stranger.cert)
    wait_for("the peer to be gone", lambda: peers_flags(b) != ["sentinel"])
    b.cmd("CONFIG", "SET", "tls.peer_ca", authority.cert)
    wait_for("the peer", lambda: peers_flags(b) == ["sentinel"])


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
        if library == "go-redis":
            return [request.getfixturevalue("go_redis"), "find"], {}
        if library in ("jedis", "lettuce"):
            return request.getfixturevalue("java") + ["Find", library], {}
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

    def wait_at(self, brokers, deadline_s=30):
        """The one of these brokers at which the lock is held, told twice: one answer may be from before."""
        at, seen = {"%s:%d" % broker.address: broker for broker in brokers}, []
        while not self.lines.empty():
            self.lines.get()

        def is_there():
            while not self.lines.empty():
                seen.append(self.lines.get())
            return len(seen) > 1 and seen[-1] == seen[-2] and at.get(seen[-1])
        try:
            return wait_for("the lock to be held at %s" % " or ".join(at), is_there, deadline_s)
        except AssertionError as err:
            raise AssertionError("%s: %s" % (err, seen[-20:])) from None


def wait_for_listeners(brokers, clients):
    """Jedis asks all brokers one after the other, each time moves to the one that is named, and then listens there."""
    for client in map(clients, brokers):
        wait_for("a listener", lambda client=client: client.cmd("PUBSUB", "NUMSUB", "+switch-master")[1])


def token_of(client, name):
    return as_map(as_map(client.cmd("LOCKINFO", name))["holders"][0])["token"]


LIBRARIES = ["redis-py", "ioredis", "node-redis", "redis-rb"]
if shutil.which("go"):
    LIBRARIES += ["go-redis"]
if shutil.which("mvn") and shutil.which("javac"):
    LIBRARIES += ["jedis", "lettuce"]
# node-redis 5.9 waits for ever for a Sentinel that has taken the connection and says nothing
MOVES = [(library, how) for library in LIBRARIES for how in ("kill", "stop", "drain", "cut")
         if (library, how) != ("node-redis", "stop")]


@pytest.mark.parametrize("library,how", MOVES)
def test_a_lock_goes_along(pair, command, clients, name, library, how):
    argv, env = command(library)
    program = Program(argv + [name, pair.a.port, pair.b.port], env)
    try:
        program.wait_at(pair.brokers)
        if library == "jedis":
            wait_for_listeners(pair.brokers, clients)
        first = program.wait_at(pair.brokers)
        [second] = [broker for broker in pair.brokers if broker is not first]
        other = clients(second)
        token = token_of(other, name)
        pair.harm(how, first)
        program.wait_at([second])
        assert token_of(other, name) > token
        with pytest.raises(RespError, match="NOTHELD"):
            other.cmd("UNLOCK", name)
    finally:
        program.proc.kill()
        program.proc.wait()
