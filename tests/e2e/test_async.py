"""LOCK ... ASYNC and CANCEL: ten thousand waits on one connection, and what else is said there meanwhile."""

import signal
import time

import pytest

from procs import wait_for
from respclient import RespError, as_map

MANY = 10000
LONG = 50000    # a lease that nobody renews and that no test sees the end of
PART = 500
# Masters that are asked for 500 names in one write may take long on a busy machine.
SHARED_OPTIONS = {"request_timeout": "10s", "claim_timeout": "20s"}


def pushed(client):
    """The next push, which nothing precedes."""
    value = client.recv_push()
    assert value[0] == "async", value
    return value[1:]


def all_of(client, requests):
    """Their replies, as a list, sent in parts."""
    replies = []
    for i in range(0, len(requests), PART):
        replies += client.pipeline(*requests[i:i + PART])
    return replies


def wait_many(client, name="%d", n=MANY, *more):
    replies = all_of(client, [["LOCK", name.replace("%d", str(i)), "OWNER", "w%d" % i, "WAIT", 0, "ASYNC", "t%d" % i, *more]
                              for i in range(n)])
    assert replies == ["QUEUED"] * n


def waiters(broker):
    return int(broker.info()["waiters"])


@pytest.fixture
def conn(setup, clients):
    return clients(setup.broker, resp3=True)


def test_waits_stand_beside_everything_else(setup, conn, client):
    """The locks come in the order in which they are freed; replies go on meanwhile."""
    assert all(isinstance(r, list) for r in all_of(client, [["LOCK", "many-%d" % i, "OWNER", "h", "LEASE", LONG] for i in range(MANY)]))
    assert conn.cmd("LOCK", "mine")
    wait_many(conn, "many-%d")
    assert "waiting=%d async=%d" % (MANY, MANY) in conn.cmd("CLIENT", "INFO")
    assert conn.cmd("UNLOCK", "mine") == 1
    assert conn.cmd("LOCK", "mine")
    assert conn.cmd("RENEW", "mine")
    assert conn.cmd("UNLOCK", "mine") == 1
    order = [(i * 7919) % MANY for i in range(MANY)]
    for i in range(0, MANY, PART):
        assert client.pipeline(*[["UNLOCK", "many-%d" % n, "OWNER", "h"] for n in order[i:i + PART]]) == [1] * PART
        ends = [pushed(conn) for _ in range(PART)]
        assert [(end[0], end[1]) for end in ends] == [("t%d" % n, "granted") for n in order[i:i + PART]]
        assert all_of(conn, [["UNLOCK", "many-%d" % n, "OWNER", "w%d" % n] for n in order[i:i + PART]]) == [1] * PART
    assert "async=0" in conn.cmd("CLIENT", "INFO")


def test_a_connection_that_is_cut_waits_for_nothing(setup, conn, client, clients):
    """All of them stand before one who waits for the same lock."""
    assert client.cmd("LOCK", "one")
    wait_many(conn, "one", MANY)
    behind = clients(setup.broker, resp3=True)
    assert behind.cmd("LOCK", "one", "WAIT", 0, "ASYNC", "behind") == "QUEUED"
    conn.reset()
    assert client.cmd("UNLOCK", "one") == 1
    assert pushed(behind)[:2] == ["behind", "granted"]
    wait_for("the others are gone", lambda: waiters(setup.broker) == 0)


def test_reset_cancels_without_a_word(setup, conn, client):
    assert client.cmd("LOCK", "reset")
    wait_many(conn, "reset", 1000)
    assert conn.cmd("RESET") == "RESET"
    assert client.cmd("UNLOCK", "reset") == 1
    assert client.cmd("LOCK", "reset", "WAIT", 5000)
    assert client.cmd("UNLOCK", "reset") == 1
    assert conn.cmd("PING") == "PONG"


def test_barriers_do_not_wait_for_them(setup, conn, client):
    assert client.cmd("LOCK", "barrier")
    assert conn.cmd("LOCK", "barrier", "WAIT", 0, "ASYNC", "t") == "QUEUED"
    assert as_map(conn.cmd("HELLO", 3))["proto"] == 3
    assert conn.cmd("MULTI") == "OK"
    for refused in (("LOCK", "k", "ASYNC", "s"), ("CANCEL", "t")):
        with pytest.raises(RespError, match="NOMULTI"):
            conn.cmd(*refused)
    assert conn.cmd("DISCARD") == "OK"
    assert client.cmd("UNLOCK", "barrier") == 1
    assert pushed(conn)[:2] == ["t", "granted"]
    assert conn.cmd("LOCK", "barrier2", "ASYNC", "u") == "QUEUED"
    assert pushed(conn)[0] == "u"
    assert conn.cmd("QUIT") == "OK"
    assert client.cmd("LOCK", "barrier", "WAIT", 5000)


def test_cancel_and_a_grant_cross(setup, conn, client):
    """Whatever comes first: either it is held and was said to be, or neither."""
    seen = set()
    for i in range(300):
        assert client.cmd("LOCK", "cross")
        assert conn.cmd("LOCK", "cross", "WAIT", 0, "ASYNC", "t") == "QUEUED"
        client.send("UNLOCK", "cross")
        time.sleep(0.00002 * (i % 50))
        conn.send("CANCEL", "t")
        end, answer = pushed(conn), conn.recv()
        assert (end[1], answer) in (("granted", 0), ("cancelled", 1))
        assert client.recv() == 1
        if end[1] == "granted":
            assert conn.cmd("UNLOCK", "cross") == 1
        seen.add(end[1])
    assert client.cmd("LOCK", "cross", "WAIT", 5000)    # nobody has it
    assert client.cmd("UNLOCK", "cross") == 1


def test_what_is_wrong_with_a_request_is_answered(setup, conn, client):
    assert client.cmd("LOCK", "wrong")
    assert conn.cmd("LOCK", "wrong", "WAIT", 0, "ASYNC", "t") == "QUEUED"
    for words, error in ((("LOCK", "k", "ASYNC", "t"), "ERR the tag 't' is that of a request which has not ended"),
                         (("LOCK", "k", "ASYNC", ""), "ERR the tag has 0 bytes"),
                         (("LOCK", "k", "ASYNC", "t" * 65), "ERR the tag has 65 bytes"),
                         (("LOCK", "k", "ASYNC", "t\r"), "ERR the tag has a NUL, CR or LF"),
                         (("LOCK", "k", "ASYNC"), "ERR syntax error"),
                         (("UNLOCK", "k", "ASYNC", "s"), "ERR syntax error")):
        with pytest.raises(RespError, match=error):
            conn.cmd(*words)
    with setup.broker.connect() as admin:
        assert admin.cmd("CONFIG", "SET", "max_async_per_client", 1) == "OK"
        with pytest.raises(RespError, match="LIMIT 1 requests with ASYNC"):
            conn.cmd("LOCK", "k", "ASYNC", "s")
        assert admin.cmd("CONFIG", "SET", "max_async_per_client", 20000) == "OK"
    assert conn.cmd("CANCEL", "s") == 0
    conn.send("CANCEL", "t")
    assert pushed(conn) == ["t", "cancelled"] and conn.recv() == 1
    assert conn.cmd("HOLDS", "k") == 0


def test_the_end_of_one_is_an_error(setup, conn, client):
    assert conn.cmd("LOCK", "error")
    assert conn.cmd("LOCK", "error", "WAIT", 0, "ASYNC", "t") == "QUEUED"
    tag, what, why = pushed(conn)
    assert (tag, what) == ("t", "error") and why.startswith("HELD 'error'")
    assert client.cmd("LOCK", "error2", "LIMIT", 2)
    assert conn.cmd("LOCK", "error2", "WAIT", 0, "ASYNC", "t") == "QUEUED"
    assert pushed(conn)[2].startswith("KIND 'error2'")


def test_validity_and_wait_are_told_together(setup, conn, client):
    """What is counted from before the request ends no later than the hold does."""
    assert client.cmd("LOCK", "counted")
    began = time.monotonic()
    assert conn.cmd("LOCK", "counted", "WAIT", 0, "LEASE", 5000, "ASYNC", "t") == "QUEUED"
    asked = time.monotonic()
    time.sleep(0.3)
    assert client.cmd("UNLOCK", "counted") == 1
    _, what, _, validity, waited = pushed(conn)
    got = time.monotonic()
    assert what == "granted" and 300 * 0.99 <= waited <= (got - began) * 1000
    with setup.broker.connect() as admin:
        left = as_map(as_map(admin.cmd("LOCKINFO", "counted"))["holders"][0])["remaining_ms"]
    looked = time.monotonic()
    assert asked * 1000 + waited + validity <= looked * 1000 + left + 60
    assert began * 1000 + waited + validity <= looked * 1000 + left + 1


def test_several_names(setup, conn, client):
    assert client.cmd("LOCK", "m2")
    assert conn.cmd("MLOCK", 2, "m1", "m2", "WAIT", 0, "ASYNC", "t") == "QUEUED"
    assert conn.cmd("LOCK", "m1", "OWNER", "o", "ASYNC", "s") == "QUEUED"   # it holds nothing while it waits
    assert pushed(conn)[:2] == ["s", "granted"]
    assert client.cmd("UNLOCK", "m2") == 1
    assert conn.cmd("UNLOCK", "m1", "OWNER", "o") == 1
    tag, what, tokens, validity, waited = pushed(conn)
    assert (tag, what, len(tokens)) == ("t", "granted", 2) and validity > 0 and waited >= 0
    assert conn.cmd("MUNLOCK", 2, "m1", "m2") == 2


def test_shown_where_waits_are_shown(setup, conn, client):
    assert client.cmd("LOCK", "shown")
    assert conn.cmd("LOCK", "shown", "WAIT", 0, "OWNER", "o", "ASYNC", "t") == "QUEUED"
    assert conn.cmd("LOCK", "shown", "WAIT", 0, "OWNER", "p", "ASYNC", "u") == "QUEUED"
    rows = [as_map(row) for row in client.cmd("WAITING")]
    assert [row["lock"] for row in rows] == ["shown", "shown"]
    info = as_map(client.cmd("LOCKINFO", "shown"))
    assert [as_map(one)["owner"] for one in info["waiters"]] == ["o", "p"]
    assert int(setup.broker.info()["longest_wait_ms"]) >= 0
    conn.send("CANCEL", "t")
    assert pushed(conn) == ["t", "cancelled"] and conn.recv() == 1
    assert int(setup.broker.info()["acquires_cancelled"]) > 0


# ---- RESP2 ----

def test_resp2_is_told_on_a_channel(setup, clients, client):
    asker, listener = clients(setup.broker), clients(setup.broker)
    with pytest.raises(RespError, match="ERR nobody listens to the channel 'async:x7f'"):
        asker.cmd("LOCK", "two", "ASYNC", "x7f")
    assert listener.cmd("PSUBSCRIBE", "async:x7*")[0] == "psubscribe"
    assert client.cmd("LOCK", "two")
    assert asker.cmd("LOCK", "two", "WAIT", 0, "ASYNC", "x7f") == "QUEUED"
    assert asker.cmd("MLOCK", 2, "t1", "t2", "ASYNC", "x7g") == "QUEUED"
    kind, pattern, channel, message = listener.recv()
    assert (kind, pattern, channel) == ("pmessage", "async:x7*", "async:x7g")
    what, tokens, validity, waited = message.split(" ")
    assert what == "granted" and len(tokens.split(",")) == 2 and int(validity) > 0 and int(waited) >= 0
    assert client.cmd("UNLOCK", "two") == 1
    assert listener.recv()[3].startswith("granted ")
    assert asker.cmd("UNLOCK", "two") == 1
    assert asker.cmd("LOCK", "t1", "OWNER", "o", "ASYNC", "x7h") == "QUEUED"
    assert listener.recv()[2:] == ["async:x7h", "timeout"]
    with pytest.raises(RespError, match="ERR"):
        client.cmd("PUBLISH", "async:x7f", "granted 1 1 1")


def test_a_grant_that_nobody_hears_is_given_back(setup, clients, client):
    asker, listener = clients(setup.broker), clients(setup.broker)
    assert listener.cmd("SUBSCRIBE", "async:lonely")[0] == "subscribe"
    assert client.cmd("LOCK", "lonely")
    assert asker.cmd("LOCK", "lonely", "WAIT", 0, "LEASE", 30000, "ASYNC", "lonely") == "QUEUED"
    listener.close()
    wait_for("nobody listens", lambda: client.cmd("PUBSUB", "CHANNELS") == [])
    assert client.cmd("UNLOCK", "lonely") == 1
    assert client.cmd("LOCK", "lonely", "WAIT", 5000)
    assert client.cmd("UNLOCK", "lonely") == 1


# ---- the broker goes ----

def test_draining_ends_all_of_them(make_broker, masters1, clients):
    broker = make_broker(masters1, options={"drain_timeout": "20s"}).wait_masters()
    holder, conn = clients(broker), clients(broker, resp3=True)
    assert holder.cmd("LOCK", "drained")
    wait_many(conn, "drained", 2000)
    broker.signal(signal.SIGTERM)
    ends = [pushed(conn) for _ in range(2000)]
    assert {end[0] for end in ends} == {"t%d" % i for i in range(2000)}
    assert all(end[1] == "error" and end[2].startswith("DRAINING ") for end in ends)
