"""Redis as it is deployed: names that move, replicas, servers that hide or forbid something, and what a
user may do there."""

import os
import pathlib
import re
import socket

import pytest

from dnsserver import AAAA, DnsServer
from holdfastproc import run, write_config
from procs import wait_for
from redisproc import broker_rights
from respclient import RespClient

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


def subscribers(server):
    return server.cli("PUBSUB", "CHANNELS", "holdfast:wake:*")


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
    wait_for("the subscriber", lambda: subscribers(master))


def test_messages_are_heard_where_the_name_leads(make_names, with_files, make_pair, make_broker, clients):
    """The old server goes on, and so does the link by which it calls up; but nobody says anything there."""
    names = make_names({"redis.test": ["127.0.0.2"]})
    first, second = make_pair()
    broker = make_broker({"a": "redis://redis.test:%d" % first.port}, wrapper=with_files(names.line))
    wait_for("the subscriber", lambda: subscribers(first))
    names.answers["redis.test"] = ["127.0.0.3"]
    first.cli("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    broker.wait_log("active .*run_id=%s" % second.run_id())
    wait_for("the subscriber", lambda: subscribers(second))
    assert not subscribers(first)


# ---- what is hidden or forbidden ----

NO_CONFIG = ["--rename-command", "CONFIG", ""]


@pytest.fixture
def make_hiding(make_redis, make_proxy):
    """make_hiding(["run_id"], ...): a server, and a proxy whose INFO leaves these out."""
    def make(hidden, name="a", server=None, **kwargs):
        server = server or make_redis(name, **kwargs)
        proxy = make_proxy(server.address)

        def edit(raw):
            lines = [line for line in raw.partition(b"\r\n")[2][:-2].split(b"\r\n")
                     if line.partition(b":")[0].decode() not in hidden]
            text = b"\r\n".join(lines)
            return b"$%d\r\n%s\r\n" % (len(text), text)
        proxy.on("edit_reply", lambda r: r.name == "info", times=None, value=edit)
        return server, proxy
    return make


def look(tmp_path, url):
    status, out, err = run("-tt", "-c", write_config(tmp_path / "look.ini", {"a": url}), deadline_s=40)
    return status, out + err


def shown(broker, field):
    with broker.connect() as client:
        row = client.cmd("MASTERS")[0]
    return row[row.index(field) + 1]


def test_config_is_disabled(make_redis, make_broker, clients, tmp_path):
    server = make_redis("a", persist=True, args=NO_CONFIG)
    broker = make_broker([server])
    assert clients(broker).cmd("LOCK", "x")
    assert shown(broker, "last_error") == ""
    status, out = look(tmp_path, server.url)
    assert status == 0 and "cannot be checked" not in out
    assert re.search(r"(?m)^a .* yes +[\d.]+ ", out), "it persists, and when is not known"


@pytest.mark.parametrize("args", [[], NO_CONFIG])
def test_info_tells_no_policy(make_hiding, make_broker, clients, tmp_path, args):
    """CONFIG is asked for it; without that it is served, and people are told."""
    hidden = ["maxmemory_policy", "maxmemory"]
    server, proxy = make_hiding(hidden, args=args)
    broker = make_broker({"a": proxy.url})
    assert clients(broker).cmd("LOCK", "x")
    said = shown(broker, "last_error"), look(tmp_path, proxy.url)[1], broker.log_text()
    words = "it does not tell its maxmemory_policy (with any but noeviction it may evict locks)"
    assert [words in text for text in said] == [bool(args)] * 3
    _, evicts = make_hiding(hidden, name="b", args=["--maxmemory-policy", "allkeys-lru"] + args)
    two = make_broker({"a": evicts.url}, ready=bool(args))
    if not args:
        two.wait_log("refused: it may evict locks .maxmemory-policy is allkeys-lru")


def test_info_is_forbidden(make_redis, make_broker, tmp_path):
    server = make_redis("a", tcp=True, args=["--rename-command", "INFO", ""])
    make_broker([server], ready=False).wait_log("refused: INFO is disabled or renamed there")
    server = make_redis("b", tcp=True)
    server.cli("ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-info")
    status, out = look(tmp_path, "redis://app:pw@127.0.0.1:%d" % server.port)
    assert status == 1 and "a: its user may not use INFO: holdfast.ini(5) lists what it needs" in out


@pytest.fixture
def trusted(make_broker, clients):
    """trusted(url): a broker with a quarantine that only TRUST ends, and has ended."""
    def make(url):
        broker = make_broker({"a": url}, ready=False, options={"quarantine": "1h"})
        broker.wait_log("master a: in quarantine for")
        assert clients(broker).cmd("MASTER", "a", "TRUST") == "OK"
        broker.wait_masters()
        return broker
    return make


def restarts(broker):
    return shown(broker, "restarts"), shown(broker, "state")


def test_no_run_id(make_hiding, trusted, make_broker, clients, tmp_path):
    """All brokers know the run by the same name, also over other links."""
    server, proxy = make_hiding(["run_id"])
    broker = trusted(proxy.url)
    assert clients(broker).cmd("LOCK", "x", "LEASE", 60000)
    two = make_broker({"a": proxy.url}, options={"quarantine": "1h"})
    for one in broker, two:
        assert "run_id (SCRIPT FLUSH counts as a restart)" in shown(one, "last_error")
    before = [one.log_size() for one in (broker, two)]
    server.cli("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    for one, since in zip((broker, two), before):
        one.wait_log("master a: active", since=since)
        assert restarts(one) == (0, "active")
    status, out = look(tmp_path, proxy.url)
    assert "run_id" in out and "no broker has used it" not in out


def test_no_run_id_and_a_restart(make_hiding, trusted):
    """Its data come back, and its mark with them."""
    server, proxy = make_hiding(["run_id"], persist=True)
    broker = trusted(proxy.url)
    since = broker.log_size()
    server.restart()
    broker.wait_log("master a: restarted", since=since)
    broker.wait_log("master a: in quarantine for", since=since)
    assert restarts(broker) == (1, "quarantine")
    assert server.cli("HGET", "holdfast:master", "state") == "quarantine"


def test_no_run_id_and_scripts_that_outlive_a_restart(make_hiding, trusted):
    """No Redis does so; what stands in its place may. Its uptime tells."""
    server, proxy = make_hiding(["run_id"], persist=True)
    broker = trusted(proxy.url)
    run_name = server.cli("HGET", "holdfast:master", "run_id")
    texts = [r.args[2] for r in proxy.requests if r.name == "script" and r.args[1].upper() == b"LOAD"]
    wait_for("a later second", lambda: int(server.cli("TIME")[0]) > int(run_name.partition("t")[2]) + 2)
    since = broker.log_size()
    proxy.refuse()
    server.restart()
    for text in texts:
        server.cli("SCRIPT", "LOAD", text)
    proxy.refuse(False)
    broker.wait_log("master a: in quarantine for", since=since)
    assert server.cli("HGET", "holdfast:master", "run_id") != run_name


def test_no_run_id_and_no_scripts(make_hiding, trusted, clients):
    _, proxy = make_hiding(["run_id"])
    broker = trusted(proxy.url)
    since = broker.log_size()
    with RespClient(proxy.upstream) as client:
        client.cmd("SCRIPT", "FLUSH")
    clients(broker).send("LOCK", "x")
    broker.wait_log("master a: in quarantine for", since=since)


def test_no_run_id_and_brokers_that_come_at_once(make_hiding, make_broker, clients):
    """Each makes a name for the run; they agree in the end."""
    _, proxy = make_hiding(["run_id"])
    held = proxy.on("hold_reply", lambda r: r.name == "hget", times=3)
    brokers = [make_broker({"a": proxy.url}, ready=False) for _ in range(3)]
    held.wait(3)
    held.release()
    for n, broker in enumerate(brokers):
        wait_for_lock(clients(broker), "x%d" % n)


def test_no_run_id_and_one_server_twice(make_hiding, make_broker):
    server, proxy = make_hiding(["run_id"])
    broker = make_broker({"a": proxy.url, "b": make_hiding(["run_id"], server=server)[1].url}, ready=False)
    broker.wait_log("refused: it is the same server as master")


# ---- what a user may do ----
# All brokers of these tests live on the rights that the manual lists: see conftest.py.

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src" / "redis"


@pytest.mark.no_daemon
def test_the_rights_in_the_manual_are_those_that_are_looked_for():
    """And all that scripts do is among them."""
    in_manual = {word for word in broker_rights() if word.startswith("+")}
    looked_for = set(re.findall(r'\{"(\+[^"]+)"', (SOURCES / "master_rights.c").read_text()))
    assert in_manual == looked_for | {"+info", "+time", "+multi", "+discard"}
    scripts = "".join(path.read_text() for path in (SOURCES / "lua").glob("*.lua"))
    done = re.findall(r"call\((?:p, )?'(\w+)'", scripts)
    assert len(done) > 100 and {"+" + word.lower() for word in done} <= in_manual


def test_what_a_user_lacks_is_told_word_by_word(make_redis, make_broker, tmp_path):
    server = make_redis("a", tcp=True)
    masters = "redis://app:pw@127.0.0.1:%d" % server.port
    rights = [word for word in broker_rights() if word.startswith("+")]
    server.cli("ACL", "SETUSER", "app", "on", ">pw", "~holdfast:*", "resetchannels", "&holdfast:*", "-@all",
               "+info", "+multi", "+discard")
    status, out = look(tmp_path, masters)
    assert status == 1
    told = set(re.findall(r"(?<= )\+\S+", "\n".join(line for line in out.splitlines() if "ACL SETUSER app" in line)))
    assert told == set(rights) - {"+info", "+multi", "+discard", "+type", "+hlen", "+pexpireat"}
    server.cli("ACL", "SETUSER", "app", *told)
    status, out = look(tmp_path, masters)
    assert status == 0 and "ACL SETUSER" not in out
    make_broker({"a": masters})


def test_a_command_that_is_renamed(make_redis, make_broker, tmp_path):
    server = make_redis("a", args=["--rename-command", "ZADD", "hidden", "--rename-command", "CLIENT", ""], rights=None)
    status, out = look(tmp_path, server.url)
    assert status == 1 and "a: these commands are disabled or renamed there: zadd\n" in out
    server = make_redis("b", args=["--rename-command", "EVALSHA", ""], rights=None)
    make_broker([server], ready=False).wait_log("refused: join is disabled or renamed there|refused: EVALSHA")
