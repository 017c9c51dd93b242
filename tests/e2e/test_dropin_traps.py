"""What programs that lock on Redis rely on, or stumble over, without knowing it: a test for each trap of holdfast-drop-in(7)
that test_dropin.py has not already."""

import pytest

from procs import wait_for
from respclient import RespError
from test_dropin import COMPARE_AND_DELETE, LEAVE, REENTER

LONG_MS = 3600000
EXTEND = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"
BOTH = """if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'PX', 30000)
redis.call('set', KEYS[2], ARGV[1], 'PX', 90000)
return 1"""


def time_left(master, name):
    with master.connect() as direct:
        return direct.cmd("PTTL", "holdfast:{%s}" % name)


def test_a_given_time_is_never_stretched(setup, clients, client, name):
    """The time is the caller's bound on a crash: neither the end of the connection nor the watchdog changes it."""
    taker = clients(setup.broker)
    assert taker.cmd("SET", name, "v", "NX", "PX", 40000) == "OK"
    taker.close()
    for _ in range(5):
        assert 0 < client.cmd("PTTL", name) <= 40000


def ask_in_time(client, *words):
    """So short a time may be over before a slow machine has answered, which is said, and is not what is tried here."""
    while True:
        try:
            return client.cmd(*words)
        except RespError as err:
            if not str(err).startswith("NOQUORUM the masters took "):
                raise


@pytest.mark.parametrize("words", [("SET", "{}", "w", "NX", "PX", 25), ("GET", "{}"), ("EVAL", COMPARE_AND_DELETE, 1, "{}", "w")], ids=lambda w: w[0])
def test_the_end_of_a_lock_is_no_error(client, other, name, words):
    """Programs that ask again and again meet the moment in which it ends: what they hear is that it is held, or free."""
    words = [name if word == "{}" else word for word in words]
    for _ in range(25):
        while ask_in_time(client, "SET", name, "v", "NX", "PX", 25) is None:
            pass
        while client.cmd("GET", name) == "v":
            ask_in_time(other, *words)


@pytest.mark.parametrize("value", ["drop-in s t x", "", "a b\r\nc=1\n", "\x00\x01\x02", "op=1 token=2 owner=x", "x" * 1024],
                         ids=["like-ours", "empty", "lines", "nuls", "fields", "1024"])
def test_a_value_may_be_any_text(client, name, value):
    assert client.cmd("SET", name, value, "NX", "PX", 30000) == "OK"
    assert client.cmd("GET", name) == value
    assert client.cmd("EVAL", COMPARE_AND_DELETE, 1, name, value + "x") == 0
    assert client.cmd("EVAL", COMPARE_AND_DELETE, 1, name, value) == 1
    assert client.cmd("EXISTS", name) == 0


def test_nobody_passes_for_a_value_by_an_owner(client, name):
    assert "drop-in" in str(client.err("LOCK", name, "OWNER", "drop-in s t v", "LEASE", 30000))
    assert client.cmd("EXISTS", name) == 0


def test_a_silent_master_is_not_waited_for(make_broker, masters3, clients, name):
    """Libraries for Redlock give this one address 100 to 400 ms: a reply is there as soon as two of three have answered."""
    broker = make_broker(masters3, options={"request_timeout": "30s"}).wait_masters()
    client = clients(broker)
    sha1 = client.cmd("SCRIPT", "LOAD", COMPARE_AND_DELETE)
    masters3[1].stop()
    try:
        assert client.cmd("SET", name, "v", "NX", "PX", 30000) == "OK"
        assert client.cmd("SET", name, "w", "NX", "PX", 30000) is None
        assert client.cmd("EVAL", EXTEND, 1, name, "v", 60000) == 1
        assert client.cmd("EVALSHA", sha1, 1, name, "w") == 0
        assert client.cmd("EVALSHA", sha1, 1, name, "v") == 1
        assert client.cmd("EXISTS", name) == 0
    finally:
        masters3[1].cont()


def test_who_has_lost_releases_his_own_value(client, name):
    """Losers of a Redlock round release what they may have taken: 0, and nothing ends."""
    assert client.cmd("SET", name, "v", "NX", "PX", 30000) == "OK"
    assert client.cmd("SET", name, "w", "NX", "PX", 30000) is None
    assert client.cmd("EVAL", COMPARE_AND_DELETE, 1, name, "w") == 0
    assert client.cmd("DELIFEQ", name, "w") == 0
    assert client.cmd("GET", name) == "v"


def test_a_count_that_a_script_returns_is_the_true_one(client, name):
    for _ in range(3):
        assert client.cmd("EVAL", REENTER, 1, name, 30000, "me") is None
    assert client.cmd("HGETALL", name) == ["me", "3"]
    assert [client.cmd("EVAL", LEAVE, 1, name, 30000, "me") for _ in range(4)] == [0, 0, 1, None]


@pytest.mark.parametrize("count", [1, 3], ids=["one", "three"])
def test_times_longer_than_max_lease(make_broker, make_redis, clients, name, count):
    """The key is written with its whole time on every master, and outlives its broker."""
    masters = [make_redis(letter) for letter in "abc"[:count]]
    first = make_broker(masters, options={"max_lease": "60s"}).wait_masters()
    assert clients(first).cmd("SET", name, "v", "NX", "PX", LONG_MS) == "OK"
    for master in masters:
        wait_for("the hold on each master", lambda master=master: time_left(master, name) > 0)
        assert LONG_MS - 60000 < time_left(master, name) <= LONG_MS
    first.kill()
    client = clients(make_broker(masters, options={"max_lease": "60s"}).wait_masters())
    assert client.cmd("SET", name, "w", "NX", "PX", LONG_MS) is None
    assert LONG_MS - 60000 < client.cmd("PTTL", name) <= LONG_MS
    assert client.cmd("EVAL", COMPARE_AND_DELETE, 1, name, "v") == 1


def test_companions_are_committed_together(client, name):
    mark = name + ":mark"
    assert client.cmd("EVAL", BOTH, 2, name, mark, "v") == 1
    assert client.cmd("EVAL", BOTH, 2, name, mark, "w") == 0
    assert client.cmd("GET", name) == "v" and client.cmd("GET", mark) == "v"
    assert 30000 < client.cmd("PTTL", mark) <= 90000
    assert client.cmd("DEL", name, mark) == 2


@pytest.mark.parametrize("call,hint", [("'zadd', KEYS[1], 1, 'x'", "LIMIT"), ("'incr', KEYS[1]", "token"), ("'sadd', KEYS[1], 'x'", "")],
                         ids=["zadd", "incr", "sadd"])
def test_what_does_not_fit_says_so(client, name, call, hint):
    """What a script calls that a lock cannot do is refused with the command that serves the purpose; nothing is done."""
    error = str(client.err("EVAL", "return redis.call(%s)" % call, 1, name))
    assert call.split("'")[1] in error.lower() and hint in error
    assert client.cmd("EXISTS", name) == 0
