"""A Redis Cluster: what is refused of it, and the Cluster of the tests itself."""

import shutil

import pytest

import procs
from clusterproc import Cluster

pytestmark = pytest.mark.skipif(not shutil.which("redis-cli"), reason="redis-cli is missing")

SLOT = 100


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
