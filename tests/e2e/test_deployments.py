"""Redis as it is deployed: names that move, replicas."""

import os
import re
import socket

import pytest

from dnsserver import AAAA, DnsServer
from procs import wait_for

# ---- names ----

SOON_S = 10.0


@pytest.fixture
def make_names():
    made = []

    def make(*args, **kwargs):
        made.append(DnsServer(*args, **kwargs))
        return made[-1]
    yield make
    for server in made:
        server.close()


@pytest.fixture
def with_files(tmp_path):
    """with_files(resolv_conf, hosts=...): a wrapper for a broker that sees these files; writing them anew changes what it sees."""
    def make(resolv_conf, hosts="127.0.0.1 localhost\n"):
        script = "exec \"$@\""
        for name, text in ("resolv.conf", resolv_conf), ("hosts", hosts):
            (tmp_path / name).write_text(text)
            script = "mount --bind %s /etc/%s && %s" % (tmp_path / name, name, script)
        return ["unshare", "--mount"] + ["--map-root-user"] * (os.geteuid() != 0) + ["sh", "-c", script, "sh"]
    return make


@pytest.fixture
def make_pair(make_redis):
    """make_pair(): two servers with the same port at 127.0.0.2 and 127.0.0.3."""
    def make(**kwargs):
        first = make_redis("first", tcp=True, host="127.0.0.2", **kwargs)
        return first, make_redis("second", tcp=True, host="127.0.0.3", port=first.port, **kwargs)
    return make


def wait_for_lock(client, name):
    """Until the broker has got over what has happened to its master."""
    def granted():
        client.send("LOCK", name)
        return isinstance(client.recv(), list)
    wait_for("a lock", granted, SOON_S)


def test_a_name_that_moves(make_names, with_files, make_pair, make_broker, clients):
    """As that of a managed Redis does at a failover. How long its answer may be kept does not count: it is asked for anew."""
    names = make_names({"redis.test": ["127.0.0.2"]})
    first, second = make_pair()
    broker = make_broker({"a": "redis://redis.test:%d" % first.port}, wrapper=with_files(names.line))
    client = clients(broker)
    assert client.cmd("LOCK", "before")
    names.answers["redis.test"] = ["127.0.0.3"]
    first.kill()
    wait_for_lock(client, "after")
    assert second.keys("{after}")
    broker.wait_log("active .*run_id=%s" % second.run_id())


@pytest.fixture
def black_hole():
    """black_hole(host, port): an address that takes no connection, and refuses none."""
    made = []

    def make(host, port):
        listener = socket.socket()
        made.append(listener)
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(3):
            made.append(socket.socket())
            made[-1].setblocking(False)
            made[-1].connect_ex((host, port))
    yield make
    for one in made:
        one.close()


def test_a_name_with_several_addresses(make_names, with_files, make_redis, make_broker, clients, black_hole):
    """One refuses, one does not answer at all."""
    names = make_names({"redis.test": ["127.0.0.2", "127.0.0.3", "127.0.0.4"]})
    server = make_redis("a", tcp=True, host="127.0.0.4")
    black_hole("127.0.0.3", server.port)
    broker = make_broker({"a": "redis://redis.test:%d" % server.port}, wrapper=with_files(names.line))
    assert clients(broker).cmd("LOCK", "x")


def test_a_name_with_an_address_of_ipv6(make_names, with_files, make_redis, make_broker, clients):
    names = make_names({"redis.test": ["::1"]})
    server = make_redis("a", tcp=True, args=["--bind", "127.0.0.1", "::1"])
    broker = make_broker({"a": "redis://redis.test:%d" % server.port}, wrapper=with_files(names.line))
    assert clients(broker).cmd("LOCK", "x")


def test_a_name_server_that_says_nothing_of_ipv6(make_names, with_files, make_redis, make_broker, clients):
    names = make_names({"redis.test": ["127.0.0.1"]}, mute=[AAAA])
    server = make_redis("a", tcp=True)
    broker = make_broker({"a": "redis://redis.test:%d" % server.port}, wrapper=with_files(names.line))
    assert clients(broker).cmd("LOCK", "x")
    assert ("redis.test", AAAA) in names.questions


def test_a_name_server_that_is_gone(make_names, with_files, make_redis, make_broker, clients):
    """The first of two: it is not the only one that is asked."""
    gone, names = make_names(mute=[1, AAAA]), make_names({"redis.test": ["127.0.0.1"]})
    server = make_redis("a", tcp=True)
    broker = make_broker({"a": "redis://redis.test:%d" % server.port}, wrapper=with_files(gone.line + names.line))
    assert clients(broker).cmd("LOCK", "x")


@pytest.mark.parametrize("by", ["hosts", "resolv.conf"])
def test_files_of_names_that_change(make_names, with_files, make_redis, make_broker, clients, tmp_path, by):
    """As on a machine that comes into another network."""
    names = make_names({"redis.test": ["127.0.0.1"]})
    server = make_redis("a", tcp=True)
    broker = make_broker({"a": "redis://redis.test:%d" % server.port}, wrapper=with_files(make_names().line), ready=False)
    broker.wait_log("master a: cannot be used: ")
    (tmp_path / by).write_text(names.line if by == "resolv.conf" else "127.0.0.1 localhost redis.test\n")
    wait_for_lock(clients(broker), "x")


# ---- replicas ----

AT_ONCE = ["--repl-diskless-sync-delay", "0"]


def follow(replica, master):
    replica.cli("REPLICAOF", *map(str, master.address))
    wait_for("the replica", lambda: "master_link_status:up" in replica.cli("INFO", "replication"))


def test_a_replica_is_refused_with_the_name_of_its_master(make_redis, make_broker):
    master, replica = make_redis("a", tcp=True, args=AT_ONCE), make_redis("b", tcp=True)
    follow(replica, master)
    broker = make_broker([replica], ready=False)
    words = "it is a replica and no master: name its master, 127.0.0.1 port %d, in [masters]" % master.port
    broker.wait_log("master b: refused: " + re.escape(words))
    with broker.connect() as client:
        row = client.cmd("MASTERS")[0]
        assert words in row[row.index("last_error") + 1]


def test_a_master_that_becomes_a_replica_is_dropped_at_once(make_redis, make_proxy, make_broker):
    """Also while nothing is asked of it: by the next look, of which there are two in a second."""
    other, master = make_redis("other", tcp=True), make_redis("a", tcp=True)
    proxy = make_proxy(master.address)
    broker = make_broker({"a": proxy.url})
    looks = proxy.on("count", lambda r: r.name == "hmget", times=None)
    looks.wait()
    master.cli("REPLICAOF", *map(str, other.address))
    so_far = len(looks.hits)
    broker.wait_log("master a: refused: it is a replica")
    assert len(looks.hits) <= so_far + 2


def test_a_failover_of_a_name(make_names, with_files, make_pair, make_broker, clients):
    """The old master stays where it was, as a replica, and the name moves late."""
    names = make_names({"redis.test": ["127.0.0.2"]})
    first, second = make_pair(args=AT_ONCE)
    follow(second, first)
    broker = make_broker({"a": "redis://redis.test:%d" % first.port}, wrapper=with_files(names.line))
    client = clients(broker)
    assert client.cmd("LOCK", "before")
    second.cli("REPLICAOF", "NO", "ONE")
    first.cli("REPLICAOF", *map(str, second.address))
    broker.wait_log("master a: refused: it is a replica")
    names.answers["redis.test"] = ["127.0.0.3"]
    wait_for_lock(client, "after")
    broker.wait_log("active .*run_id=%s" % second.run_id())
    second.cli("REPLICAOF", *map(str, first.address))
    first.cli("REPLICAOF", "NO", "ONE")
    names.answers["redis.test"] = ["127.0.0.2"]
    wait_for_lock(client, "after that")
    broker.wait_log("active .*run_id=%s" % first.run_id())


def test_a_name_of_a_master_and_its_replicas(make_names, with_files, make_redis, make_broker, clients):
    """As that of all pods of a service. The name server tells them in the same order each time."""
    names = make_names({"redis.test": ["127.0.0.2", "127.0.0.3", "127.0.0.4"]})
    master = make_redis("m", tcp=True, host="127.0.0.4", args=AT_ONCE)
    for host in "127.0.0.2", "127.0.0.3":
        follow(make_redis(host, tcp=True, host=host, port=master.port), master)
    broker = make_broker({"a": "redis://redis.test:%d" % master.port}, wrapper=with_files(names.line))
    assert clients(broker).cmd("LOCK", "x")
    assert master.keys("{x}")
