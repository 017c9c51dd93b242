"""Brokers whose settings are not the same: one refusal stops everything, and what ADOPT changes."""

import re
import threading
import time

import pytest

from procs import wait_for
from respclient import RespError, as_map
from test_http import ON, Http

OPTIONS = {"quarantine": "4s", "max_lease": "3s"}


@pytest.fixture
def apart(make_redis, make_broker, clients):
    """Broker x over A B C, and y over A D E, which came later."""
    masters = {n: make_redis(n) for n in "abcde"}

    def over(names):
        return {n: masters[n].url for n in names}
    x = make_broker(over("abc"), options=OPTIONS)
    since = time.monotonic()
    y = make_broker(over("ade"), options=OPTIONS, ready=False, args=ON)
    client = clients(y)
    wait_for("the refusal", lambda: "brokers disagree" in state_of(client, "a")["last_error"])
    wait_for("what would be the end of the quarantines", lambda: time.monotonic() > since + 5, 10)
    return x, y, masters


def state_of(client, master):
    return next(row for row in map(as_map, client.cmd("MASTERS")) if row["name"] == master)


def vetoed(err, master):
    assert isinstance(err, RespError) and err.code == "NOQUORUM", err
    assert "brokers disagree" in str(err) and "MASTER %s ADOPT" % master in str(err), err


def test_two_lists_that_have_one_master_in_common(apart, clients, name):
    """A majority of each list is there, and only one of the two brokers may use its own."""
    x, y, _ = apart
    first, second = clients(x), clients(y)
    names = ["%s:%d" % (name, i) for i in range(60)]
    assert all(first.cmd("LOCK", n, "LEASE", 3000)[0] for n in names)
    for n in names:
        vetoed(second.err("LOCK", n, "LEASE", 3000), "a")
    vetoed(second.err("MLOCK", 2, names[0] + ":m", names[1] + ":m", "LEASE", 3000), "a")
    assert {state_of(second, n)["new_locks"] for n in "ade"} == {"no"}
    assert "configure all alike, or MASTER a ADOPT" in str(second.cmd("LOCKINFO", name))
    y.wait_log("not ready, .* configure all alike, or MASTER a ADOPT")
    reply = Http(y).ask("/readyz?verbose")
    assert reply.status == 503
    assert re.search(r"(?m)^\[-\]quorum: brokers disagree: masters d,e here, b,c there: .* MASTER a ADOPT", reply.text), reply.text


def test_adopted_by_the_other_list(apart, clients, name):
    """What x has told stands, and y gives nothing away before that is over."""
    x, y, _ = apart
    holder, leased, tries = clients(x, resp3=True), clients(x), clients(x)
    admin, waiter = clients(y), clients(y)
    token = holder.cmd("LOCK", name, "TELL")[0]
    leased_token = leased.cmd("LOCK", name + ":l", "LEASE", 3000)[0]
    assert admin.cmd("MASTER", "a", "ADOPT") == "OK"

    def is_refused():
        tries.send("LOCK", name + ":other", "OWNER", "x", "LEASE", 3000)
        since[0] = time.monotonic()
        return isinstance(tries.recv(), RespError)
    since = [0]
    wait_for("the refusal of x", is_refused)
    vetoed(tries.err("LOCK", name + ":more"), "a")
    assert leased.cmd("UNLOCK", name + ":l") == 1
    waiter.send("LOCK", name, "WAIT", 20000)
    assert holder.wait_push("lost")[1:3] == [name, token]
    assert waiter.recv(20)[0] > token
    assert time.monotonic() - since[0] > 3 - 0.25  # what x granted last is over
    assert admin.cmd("LOCK", name + ":l")[0] > leased_token
    assert admin.cmd("LOCK", name + ":other", "WAIT", 3000)


def test_a_broker_under_load_hears_of_it_at_once(make_redis, make_broker, clients, name):
    """No lease longer than the adopted max_lease is granted after ADOPT has been answered by a majority."""
    masters = [make_redis(n) for n in "abc"]
    x = make_broker(masters, options={"max_lease": "60s"})
    y = make_broker(masters, options={"max_lease": "2s"}, ready=False)
    loaded, admin = clients(x), clients(y)
    wait_for("the refusals", lambda: all("brokers disagree" in state_of(admin, n)["last_error"] for n in "abc"))
    granted, errors, stop = [], [], threading.Event()

    def load():
        i = 0
        while not stop.is_set():
            i += 1
            loaded.send("LOCK", "%s:%d" % (name, i % 50), "LEASE", 60000)
            reply = loaded.recv()
            if isinstance(reply, RespError):
                errors.append(str(reply))
            else:
                granted.append(time.monotonic())
                loaded.send("UNLOCK", "%s:%d" % (name, i % 50))
                loaded.recv()
    thread = threading.Thread(target=load)
    thread.start()
    try:
        wait_for("grants", lambda: len(granted) > 20)
        for n in "abc":
            assert admin.cmd("MASTER", n, "ADOPT") == "OK"
        wait_for("y is ready", lambda: all(state_of(admin, n)["state"] == "active" for n in "abc"))
        adopted = time.monotonic()
        wait_for("errors", lambda: len(errors) > 20)
    finally:
        stop.set()
        thread.join()
    assert granted[-1] < adopted
    assert "max_lease 60000 here, 2000 there" in errors[-1]
    assert admin.cmd("LOCK", name + ":new", "LEASE", 2000)


def test_quarantine_is_everybodys(make_redis, make_broker, clients, name):
    """Off at one broker would take it away for all."""
    masters = [make_redis(n) for n in "abc"]
    make_broker(masters, options=OPTIONS)
    client = clients(make_broker(masters, options=dict(OPTIONS, quarantine="off"), ready=False))
    wait_for("the refusal", lambda: "brokers disagree" in state_of(client, "a")["last_error"])
    err = client.err("LOCK", name)
    vetoed(err, "a")
    assert "quarantine off here, 4000 there" in str(err)
    assert "restart" in str(client.err("CONFIG", "SET", "quarantine", "4s"))


def test_names_that_lead_elsewhere(make_redis, make_broker, clients, name):
    """A move that one broker has followed and the other one has not: each would have a majority of its own."""
    masters = {n: make_redis(n) for n in "abcde"}

    def over(names):
        return {n: masters[m].url for n, m in zip("abc", names)}  # each has its name as its id
    x = make_broker(over("abc"), options=OPTIONS)
    sides = [[clients(x), 0], [clients(make_broker(over("dbe"), options=OPTIONS, ready=False)), 0]]
    since, grants = time.monotonic(), [0, 0]
    while time.monotonic() < since + 12:
        for i, (client, _) in enumerate(sides):
            sent = time.monotonic()
            client.send("LOCK", name, "OWNER", "o%d" % i, "LEASE", 1000)
            reply = client.recv()
            if isinstance(reply, list):
                assert time.monotonic() >= sides[1 - i][1], "two owners after %d grants, at %.3f s" % (
                    sum(grants), sent - since)
                sides[i][1] = sent + reply[1] / 1000
                grants[i] += 1
    assert grants[0] > 0
    for client, _ in sides:
        wait_for("what is the matter", lambda c=client: all(
            "another server was found in its place" in state_of(c, n)["last_error"] for n in "ac"))
        wait_for("NOQUORUM", lambda c=client: (c.send("LOCK", name), c.recv())[1].code == "NOQUORUM")
        assert state_of(client, "b")["state"] == "active"
