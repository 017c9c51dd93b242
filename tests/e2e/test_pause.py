"""PAUSE and RESUME: no new locks while masters are worked on, and nobody loses what he has."""

import urllib.error
import urllib.request

import pytest

from procs import wait_for
from respclient import as_map


def info(client, *names):
    values = dict(line.split(":", 1) for line in client.cmd("INFO", "all").splitlines() if ":" in line)
    return [int(values[name]) for name in names]


def waits(client, number):
    """So many clients stand in a queue."""
    wait_for("%d waiters" % number, lambda: info(client, "waiters") == [number])


def get(broker, path):
    """Status and text."""
    url = broker.wait_log(r"on (http://127\.0\.0\.1:\d+)/").group(1)
    try:
        with urllib.request.urlopen(url + path, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as err:
        return err.code, err.read().decode()


def test_who_does_not_wait_is_refused(broker1, clients, name):
    admin, client = clients(broker1), clients(broker1)
    assert admin.cmd("PAUSE") == "OK"
    err = client.err("LOCK", name)
    assert err.code == "PAUSED" and name in str(err)
    assert admin.cmd("PAUSE") == "OK"
    assert info(admin, "paused", "acquires_paused") == [1, 1]
    assert admin.cmd("RESUME") == "OK"
    assert client.cmd("LOCK", name)
    assert info(admin, "paused") == [0]


def test_who_waits_waits_on(broker1, clients, name):
    """Also when the lock comes free; in the order of arrival after RESUME, and for no longer than asked."""
    admin, holder, first, second, short = [clients(broker1) for _ in range(5)]
    holder.cmd("LOCK", name)
    first.send("LOCK", name, "WAIT", 0)
    waits(admin, 1)
    admin.cmd("PAUSE")
    second.send("LOCK", name, "WAIT", 0)
    waits(admin, 2)
    short.send("LOCK", name, "WAIT", 100)
    assert holder.cmd("UNLOCK", name) == 1
    assert short.recv() is None
    assert first.silent(0.3)
    assert info(admin, "waiters") == [2]
    admin.cmd("RESUME")
    token = first.recv()[0]
    assert second.silent(0.1)
    first.cmd("UNLOCK", name)
    assert second.recv()[0] > token


def test_a_free_lock_is_waited_for(broker1, clients, name):
    """Nobody holds it, and what its connection says behind it waits as well."""
    admin, client = clients(broker1), clients(broker1)
    admin.cmd("PAUSE")
    client.send("LOCK", name, "WAIT", 0)
    client.send("PING")
    assert client.silent(0.2)
    admin.cmd("RESUME")
    assert client.recv() and client.recv() == "PONG"


def test_holders_keep_what_they_have(make_broker, masters1, clients, name):
    """Renewals, re-entry, RENEW on another connection and UNLOCK go on."""
    broker = make_broker(masters1)
    admin, client, other = clients(broker), clients(broker, resp3=True), clients(broker)
    client.cmd("OWNER", "me")
    token = client.cmd("LOCK", name, "TELL")[0]
    admin.cmd("PAUSE")
    for _ in range(3):
        assert client.wait_push("renewed")[2] == token
    assert client.cmd("LOCK", name)[0] == token
    assert client.cmd("UNLOCK", name) == 0
    assert other.cmd("RENEW", name, "OWNER", "me")[0] > token
    assert other.cmd("UNLOCK", name, "OWNER", "me") == 1
    assert client.err("LOCK", name).code == "PAUSED"


def test_another_broker_goes_on(two_brokers, clients, name):
    """A waiter of the paused one does not block the line: the other broker's is served first."""
    paused, other = two_brokers
    admin, waiter, holder, elsewhere = clients(paused), clients(paused), clients(other), clients(other)
    holder.cmd("LOCK", name)
    waiter.send("LOCK", name, "WAIT", 0)
    waits(admin, 1)
    admin.cmd("PAUSE")
    holder.cmd("UNLOCK", name)
    assert elsewhere.cmd("LOCK", name, "WAIT", 5000)
    elsewhere.cmd("UNLOCK", name)
    assert waiter.silent(0.1)
    admin.cmd("RESUME")
    assert waiter.recv()


def test_masters_can_be_restarted_meanwhile(make_broker, make_redis, clients, name):
    """What it is for: nobody is told of a missing quorum while the masters are away."""
    masters = [make_redis(n) for n in "abc"]
    broker = make_broker(masters).wait_masters()
    admin, client = clients(broker), clients(broker)
    admin.cmd("PAUSE")
    client.send("LOCK", name, "WAIT", 0)
    waits(admin, 1)
    for master in masters:
        master.restart()
    broker.wait_masters()
    assert client.silent(0.2)
    admin.cmd("RESUME")
    assert client.recv()


def test_it_is_shown(make_broker, masters1, clients, name):
    broker = make_broker(masters1, args=["-o", "http.listen=127.0.0.1:0"])
    admin = clients(broker)
    assert get(broker, "/readyz")[0] == 200
    assert as_map(admin.cmd("MASTERS")[0])["new_locks"] == "yes"
    admin.cmd("PAUSE")
    status, text = get(broker, "/readyz")
    assert status == 503 and "paused" in text
    assert "[-]acquires: paused" in get(broker, "/readyz?verbose")[1]
    assert as_map(admin.cmd("MASTERS")[0])["new_locks"] == "paused"
    assert '"Paused"' in get(broker, "/status.json")[1]
    assert "\nholdfast_paused 1\n" in get(broker, "/metrics")[1]
    admin.cmd("RESUME")
    assert get(broker, "/readyz")[0] == 200


@pytest.mark.parametrize("command", ["PAUSE", "RESUME"])
def test_arguments_are_refused(broker1, clients, command):
    assert "wrong number" in str(clients(broker1).err(command, "x"))


def test_a_stop_answers_those_who_wait(broker1, clients, name):
    admin, client = clients(broker1), clients(broker1)
    admin.cmd("PAUSE")
    client.send("LOCK", name, "WAIT", 0)
    waits(admin, 1)
    admin.send("SHUTDOWN")
    assert str(client.recv()).startswith("DRAINING")
    assert broker1.wait() == 0
