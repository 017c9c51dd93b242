"""A Redis Cluster as the masters, and the Cluster of the tests itself."""

import os
import re
import shutil
import time

import pytest

import procs
from clusterproc import Cluster
from redisproc import broker_rights
from respclient import as_map
from test_outage import Teller, Work, in_pieces, in_quarantine, lost, remembers
from test_waiting import serve as serve_all

pytestmark = pytest.mark.skipif(not shutil.which("redis-cli"), reason="redis-cli is missing")

SLOT = 100
PARTITIONS = 64
LEASE_MS = 8000
OPTIONS = {"quarantine": "auto", "lease": "8s", "max_lease": "8s", "request_timeout": "500ms", "claim_timeout": "1s",
           "sentinel_timeout": "2s"}
MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "man", "holdfast.ini.5")
NAMES = ["n%d" % i for i in range(300)]   # of all partitions


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        yield made


def test_its_nodes_are_no_masters(cluster, make_broker):
    broker = make_broker(cluster.nodes[:3], ready=False)
    for node in cluster.nodes[:3]:
        broker.wait_log("%s: refused: it is part of a Redis Cluster" % node.name)
    for node in cluster.nodes:
        assert node.keys() == []


@pytest.mark.no_daemon
def test_a_slot_moves_and_comes_back(cluster):
    source = cluster.keeper(SLOT)
    target = next(n for n in cluster.running() if n is not source and n.serves(16000))
    cluster.reshard(source, target, SLOT + 1)
    assert cluster.keeper(SLOT) is target
    cluster.reshard(target, source, SLOT + 1)


@pytest.mark.no_daemon
def test_a_master_gives_its_place_to_its_replica(cluster):
    cluster.wait_whole()
    first = cluster.keeper(SLOT)
    second = cluster.fail_over(first)
    procs.wait_for("the new keeper", lambda: cluster.keeper(SLOT) is second, 20, 0.05)
    procs.wait_for("its replica", lambda: cluster.replica_of(second) is first, 20, 0.05)


@pytest.mark.no_daemon
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_master_is_lost(cluster, how):
    cluster.wait_whole()
    first = cluster.keeper(SLOT)
    second = procs.wait_for("its replica", lambda: cluster.replica_of(first), 20, 0.05)
    getattr(first, how)()
    cluster.wait_promoted(second)
    procs.wait_for("the new keeper", lambda: cluster.keeper(SLOT) is second, 20, 0.05)
    if how == "kill":
        first.start()
    else:
        first.cont()
    procs.wait_for("its replica", lambda: cluster.replica_of(second) is first, 20, 0.05)
    cluster.wait_whole()


@pytest.mark.no_daemon
def test_a_node_comes_and_goes(cluster):
    cluster.wait_whole()
    node = cluster.add_node()
    source = cluster.keeper(SLOT)
    cluster.reshard(source, node, 10)
    assert int(node.state()["cluster_size"]) == 4
    cluster.reshard(node, source, 10)
    cluster.delete_node(node)
    assert len(cluster.nodes) == 6


# ---- brokers in front of it ----

@pytest.fixture
def serve(cluster, make_broker):
    """serve("b1", "b2"): brokers that could sign at once, in front of a Cluster that is whole and empty."""
    def do(*names, signs=True):
        cluster.wait_whole()
        cluster.forget()
        options = dict(OPTIONS, brokers=" ".join(names))
        brokers = [make_broker({"c": cluster.url}, ready=False, options=dict(options, name=name)) for name in names]
        for broker in brokers:
            with broker.connect() as client:   # nothing was locked before
                procs.wait_for("the masters of " + broker.name, lambda c=client: not in_quarantine(c), 30)
        for broker in brokers:
            broker.wait_masters(PARTITIONS)
            if signs:
                remembers(broker)
        return brokers
    return do


def masters(broker):
    with broker.connect() as client:
        return {row["name"]: row for row in map(as_map, client.cmd("MASTERS"))}


def test_names_of_all_partitions(cluster, serve, clients):
    first, second = map(clients, serve("b1", "b2", signs=False))
    tokens = [r[0] for r in in_pieces(first, [("LOCK", n) for n in NAMES])]
    assert all(token > 0 for token in tokens)
    assert all(r is None for r in in_pieces(second, [("LOCK", n) for n in NAMES]))
    keys = [sum("holdfast:" in key and key.endswith("}") for key in node.keys()) for node in cluster.nodes
            if node.told()[node.id][2]]
    assert sum(keys) == len(NAMES) and min(keys) > len(NAMES) // 6, keys
    assert in_pieces(first, [("UNLOCK", n) for n in NAMES]) == [1] * len(NAMES)
    again = [r[0] for r in in_pieces(second, [("LOCK", n) for n in NAMES])]
    assert all(b > a for a, b in zip(tokens, again))


def test_several_names_all_or_none(serve, clients):
    first, second = map(clients, serve("b1", "b2", signs=False))
    some = NAMES[:8]
    assert len(first.cmd("MLOCK", len(some), *some, "OWNER", "m")[0]) == len(some)
    assert second.cmd("MLOCK", 3, "free1", NAMES[3], "free2") is None
    assert second.cmd("LOCK", "free1")[0] > 0 and second.cmd("LOCK", "free2")[0] > 0
    assert [first.cmd("UNLOCK", n, "OWNER", "m") for n in some] == [1] * len(some)
    assert second.cmd("MLOCK", len(some), *some)


def test_kinds(serve, clients):
    first, second = map(clients, serve("b1", "b2", signs=False))
    for n in NAMES[:6]:
        assert first.cmd("LOCK", n, "SHARED", "OWNER", "r1")[0] > 0 and second.cmd("LOCK", n, "SHARED", "OWNER", "r2")[0] > 0
        assert first.cmd("LOCK", n, "OWNER", "w") is None
    for n in NAMES[6:12]:
        assert first.cmd("LOCK", n, "LIMIT", 2, "OWNER", "p1")[0] > 0 and second.cmd("LOCK", n, "LIMIT", 2, "OWNER", "p2")[0] > 0
        assert first.cmd("LOCK", n, "LIMIT", 2, "OWNER", "p3") is None


def test_a_lock_goes_from_broker_to_broker(serve, clients):
    """Each is called up by the node that has the name, on its own channel there."""
    one, two = serve("b1", "b2", signs=False)
    first = clients(one)
    for n in NAMES[:12]:
        first.cmd("LOCK", n)
        waiter = clients(two)
        waiter.send("LOCK", n, "WAIT", 20000)
        procs.wait_for("the waiter", lambda: two.info()["waiters"] == "1", 10, 0.02)
        since = time.monotonic()
        assert first.cmd("UNLOCK", n) == 1
        assert waiter.recv(20)[0] > 0
        assert time.monotonic() - since < 0.5
        waiter.close()


def partition_of(cluster, name):
    """Which one it is, and the slot of its keys."""
    width = 16384 // PARTITIONS
    p = int(cluster.running()[0].cli("CLUSTER", "KEYSLOT", name)) // width
    return "p%02d" % p, p * width + width // 2


def in_line(node, name):
    keys = [key for key in node.keys() if key.endswith("{%s}:line" % name)]
    return len(node.cli("LRANGE", keys[0], 0, -1)) if keys else 0


@pytest.mark.parametrize("fails_over", [False, True])
def test_fair_keeps_the_order_of_arrival_over_both_brokers(cluster, serve, clients, fails_over):
    brokers = serve("b1", "b2", signs=fails_over)
    partition, slot = partition_of(cluster, "fair")
    node = cluster.keeper(slot)
    holder = clients(brokers[0])
    holder.cmd("LOCK", "fair")
    waiting = []
    for i in range(12):
        waiting.append(clients(brokers[0 if i in (0, 1, 4, 6, 7, 8) else 1]))
        waiting[-1].send("LOCK", "fair", "WAIT", 0, "FAIR")
        procs.wait_for("a place in the line", lambda: in_line(node, "fair") == i + 1, 20, 0.02)
    if fails_over:
        node = cluster.fail_over(node)
        for broker in brokers:
            wait_moved(broker, {partition}, node)
    assert holder.cmd("UNLOCK", "fair") == 1
    order = serve_all("fair", waiting)
    assert [waiting.index(client) for client in order] == list(range(12))
    cluster.wait_whole()


class Holders:
    """What holds while something is done to the Cluster: nothing of it may get lost, and nothing be given twice."""

    def __init__(self, clients, brokers):
        self.brokers = brokers
        self.teller = Teller(clients, brokers[0], 200)
        self.teller.lock()
        self.leased = clients(brokers[1])
        self.tokens = [r[0] for r in in_pieces(self.leased, [("LOCK", "l:" + n, "OWNER", "l") for n in NAMES[:100]])]
        self.work = Work(brokers, each=2, names=61)
        self.work.goes_on()

    def judge(self):
        self.work.judge()
        for broker in self.brokers:
            procs.wait_for("all partitions", lambda b=broker: int(b.info()["quorum_available"]) == PARTITIONS, 30, 0.05)
            assert not lost(broker)
        replies = in_pieces(self.leased, [("RENEW", "l:" + n, "OWNER", "l") for n in NAMES[:100]])
        assert [r[0] for r in replies] == self.tokens
        assert in_pieces(self.teller.conn, [("UNLOCK", n) for n in self.teller.names]) == [1] * len(self.teller.names)


def is_kept_by(broker, node):
    return {name for name, row in masters(broker).items() if row["address"] == node.at and row["state"] == "active"}


def wait_moved(broker, partitions, node):
    procs.wait_for("that %s keeps them" % node.name, lambda: partitions <= is_kept_by(broker, node), 30, 0.1)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_node_fails(cluster, serve, clients, how):
    brokers = serve("b1", "b2")
    holders = Holders(clients, brokers)
    old = cluster.keeper(SLOT)
    new = procs.wait_for("its replica", lambda: cluster.replica_of(old), 20, 0.05)
    had = is_kept_by(brokers[0], old)
    assert len(had) > 10
    getattr(old, how)()
    cluster.wait_promoted(new)
    for broker in brokers:
        wait_moved(broker, had, new)
    holders.judge()
    if how == "kill":
        old.start()
    else:
        old.cont()
    cluster.wait_whole()


def test_a_node_gives_its_place_to_its_replica_and_takes_it_back(cluster, serve, clients):
    brokers = serve("b1", "b2")
    holders = Holders(clients, brokers)
    old = cluster.keeper(SLOT)
    had = is_kept_by(brokers[0], old)
    for _ in range(2):
        new = cluster.fail_over(old)
        for broker in brokers:
            wait_moved(broker, had, new)
        holders.work.goes_on()
        cluster.wait_whole()
        old = new
    holders.judge()


def test_slots_move_under_load(cluster, serve, clients):
    """A thousand of them, and back: what was before is not taken for what is now."""
    brokers = serve("b1", "b2")
    holders = Holders(clients, brokers)
    source = cluster.keeper(SLOT)
    target = next(n for n in cluster.running() if n is not source and n.serves(16000))
    before = is_kept_by(brokers[0], target)
    cluster.reshard(source, target, 1000)
    procs.wait_for("more partitions there", lambda: len(is_kept_by(brokers[0], target)) > len(before), 20, 0.1)
    holders.work.goes_on()
    cluster.reshard(target, source, 1000)
    holders.judge()


def test_a_node_comes_and_goes_under_load(cluster, serve, clients):
    brokers = serve("b1", "b2")
    holders = Holders(clients, brokers)
    node = cluster.add_node()
    source = cluster.keeper(SLOT)
    cluster.reshard(source, node, 1000)
    procs.wait_for("partitions there", lambda: len(is_kept_by(brokers[1], node)) >= 3, 20, 0.1)
    holders.work.goes_on()
    cluster.reshard(node, source, 1000)
    cluster.delete_node(node)
    holders.judge()


def test_a_missing_broker_keeps_a_promoted_node_closed(cluster, serve, clients):
    """It may still use the node that was there before (safety R17)."""
    one, two = serve("b1", "b2")
    old = cluster.keeper(SLOT)
    had = is_kept_by(one, old)
    two.kill()
    two.expect_status = 0
    new = cluster.fail_over(old)
    client = clients(one)
    procs.wait_for("quarantine", lambda: all(masters(one)[p]["state"] == "quarantine" for p in had), 20, 0.05)
    time.sleep(2 * (LEASE_MS + 2000) / 1000)
    seen = masters(one)
    assert all(seen[p]["state"] == "quarantine" and seen[p]["missing"] == "b2" for p in had)
    assert all(row["state"] == "active" for p, row in seen.items() if p not in had)
    client.cmd("MASTER", min(had), "TRUST")
    procs.wait_for("what is trusted by hand", lambda: masters(one)[min(had)]["state"] == "active")
    two.start(ready=False)
    wait_moved(one, had, new)
    assert all(r[0] > 0 for r in in_pieces(client, [("LOCK", n) for n in NAMES]))
    cluster.wait_whole()


def test_a_broker_that_starts_waits_for_the_others(cluster, serve, clients):
    """It knows nothing of a node that the others may be using by now (safety R17)."""
    one, two = serve("b1", "b2", signs=False)
    held = clients(two)
    assert held.cmd("LOCK", "held", "OWNER", "o")[0] > 0
    one.terminate()
    two.stop()
    one.start(ready=False)
    procs.wait_for("it to wait", lambda: all(row["state"] == "joining" and row["missing"] == "b2"
                                             for row in masters(one).values()), 20, 0.1)
    client = clients(one)
    client.send("LOCK", "new", "WAIT", 30000)
    assert client.silent(2)
    other = clients(one)
    other.cmd("MASTER", "p05", "TRUST")
    procs.wait_for("what is trusted by hand", lambda: masters(one)["p05"]["state"] == "active")
    two.cont()
    assert client.recv(30)[0] > 0
    one.wait_masters(PARTITIONS)
    cluster.wait_whole()


def counted(node, section, line):
    """A figure of INFO that is not there while it is 0."""
    found = re.search(r"^%s[:=]\S*?(\d+)" % re.escape(line), node.cli("INFO", section), re.M)
    return int(found[1]) if found else 0


def test_a_node_that_turns_a_partition_away_gets_no_scripts(cluster, make_broker):
    """It alone has another opinion of who keeps the slot, so it is tried again and again."""
    cluster.wait_whole()
    cluster.forget()
    slot = 16384 // PARTITIONS // 2   # of p00
    node = cluster.keeper(slot)
    other = next(n for n in cluster.running() if n is not node and n.serves(16000))
    node.cli("CLUSTER", "SETSLOT", str(slot), "NODE", other.id)
    try:
        broker = make_broker({"c": cluster.url}, ready=False, options=dict(OPTIONS, name="b1", brokers="b1"))
        procs.wait_for("all others", lambda: sum(row["state"] == "active" for row in masters(broker).values())
                       == PARTITIONS - 1, 40, 0.1)
        node.cli("CONFIG", "RESETSTAT")
        procs.wait_for("some tries", lambda: counted(node, "errorstats", "errorstat_MOVED") >= 3, 20, 0.1)
        assert counted(node, "commandstats", "cmdstat_script|load") == 0
        assert "does not serve this partition: MOVED" in masters(broker)["p00"]["last_error"]
    finally:
        node.cli("CLUSTER", "SETSLOT", str(slot), "NODE", node.id)
    broker.wait_masters(PARTITIONS)
    cluster.wait_whole()


def test_the_whole_is_trusted_and_adopted_at_once(cluster, make_broker, clients):
    cluster.wait_whole()
    cluster.forget()
    broker = make_broker({"c": cluster.url}, ready=False, options=dict(OPTIONS, name="b1", brokers="b1 b2"))
    client = clients(broker)
    procs.wait_for("quarantine", lambda: all(row["state"] == "quarantine" for row in masters(broker).values()), 20, 0.1)
    client.cmd("MASTER", "c", "TRUST")
    broker.wait_masters(PARTITIONS)
    broker.terminate()
    broker.configure(brokers="b1")
    broker.start(ready=False)
    procs.wait_for("other settings", lambda: all(row["state"] == "refused" for row in masters(broker).values()), 20, 0.1)
    clients(broker).cmd("MASTER", "c", "ADOPT")
    broker.wait_masters(PARTITIONS)


def test_a_user_with_few_rights(cluster, serve, make_broker, clients):
    """Those that holdfast.ini(5) lists, and those that it says are for a Cluster."""
    cluster.wait_whole()
    cluster.forget()
    with open(MANUAL, encoding="utf-8") as text:
        more = re.search(r"Beside the rights below the user needs\n\.Li (.*) \.\n", text.read()).group(1).split()
    for node in cluster.running():
        node.cli("ACL", "SETUSER", "few", "on", ">secret", *broker_rights(), *more)
    try:
        url = cluster.url.replace("://", "://few:secret@")
        broker = make_broker({"c": url}, ready=False, options=dict(OPTIONS, name="b1", brokers="b1"))
        with broker.connect() as client:
            procs.wait_for("its masters", lambda: not in_quarantine(client), 30)
        broker.wait_masters(PARTITIONS)
        client, waiter = clients(broker), clients(broker)
        for n in NAMES[:20]:
            assert client.cmd("LOCK", n)[0] > 0
            waiter.send("LOCK", n, "WAIT", 10000)
            assert waiter.silent(0.02) and client.cmd("UNLOCK", n) == 1
            assert waiter.recv(10)[0] > 0
        client.cmd("SUBSCRIBE", "news")
        time.sleep(1)
        for node in cluster.running():
            denied = [as_map(e) for e in node.connect().cmd("ACL", "LOG")]
            assert not [e for e in denied if e["username"] == "few"], denied
    finally:
        for node in cluster.running():
            node.cli("ACL", "DELUSER", "few")
