"""A master that is found by three Sentinels: failover, what an old master may still do, passwords and TLS."""

import re
import time

import pytest

from procs import wait_for
from respclient import as_map
from sentinelproc import Watched

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


def test_found(watched, make_broker, clients, name):
    broker = make_broker({"a": watched.url}, options=OPTIONS)
    client = clients(broker)
    wait_active(client, watched.servers[0])
    assert client.cmd("LOCK", name, "LEASE", 2000)[0] > 0
    row = state_of(client)
    for s in watched.sentinels:
        assert "%s names 127.0.0.1:%d" % (s.address, watched.servers[0].port) in row["sentinels"], row


@pytest.mark.parametrize("how", ["stop", "kill", "failover"])
def test_failover(watched, make_broker, clients, name, how):
    """A lock that is held goes on, and nobody else has it, until its time is over."""
    brokers = [make_broker({"a": watched.url}, options=OPTIONS) for _ in range(2)]
    old = watched.servers[0]
    holder, other = map(clients, brokers)
    token = holder.cmd("LOCK", name)[0]
    if how == "failover":
        new = watched.failover()
    else:
        old.stop() if how == "stop" else old.kill()
        new = watched.wait_moved(old)
    for client in holder, other:
        wait_active(client, new)
    reply = other.cmd("LOCK", name + ":2", "WAIT", 10000, "LEASE", 1000)
    assert reply[0] > token
    for broker in brokers:
        broker.wait_log(r"a majority of its Sentinels names 127\.0\.0\.1:%d" % new.port)
