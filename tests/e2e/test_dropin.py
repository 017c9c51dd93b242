"""Commands of Redis on locks: each story is told to a broker and to a redis-server, which must answer the same bytes.

Times to live may differ by what passes between the two; values that depend on chance (NaN) do not occur.
"""

import hashlib
import socket

import pytest

from procs import wait_for
from redisproc import RedisProc
from respclient import Incomplete, RespError, encode, parse

COMPARE_AND_DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
REENTER = """if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    redis.call('hincrby', KEYS[1], ARGV[2], 1)
    redis.call('pexpire', KEYS[1], ARGV[1])
    return nil
end
return redis.call('pttl', KEYS[1])"""
LEAVE = """if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
local left = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if left > 0 then redis.call('pexpire', KEYS[1], ARGV[1]) return 0 end
redis.call('del', KEYS[1])
return 1"""


class Raw:
    """A connection that returns the very bytes of a reply."""

    def __init__(self, address, resp3=False):
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(10)
            self.sock.connect(address)
        else:
            self.sock = socket.create_connection(address, 10)
        self.data = b""
        if resp3:
            self.ask("HELLO", 3)

    def send(self, *words):
        self.sock.sendall(encode(*words))

    def reply(self):
        while True:
            try:
                _, end = parse(self.data)
            except Incomplete:
                more = self.sock.recv(65536)
                assert more, "the connection was closed"
                self.data += more
                continue
            reply, self.data = self.data[:end], self.data[end:]
            return reply

    def ask(self, *words):
        self.send(*words)
        return self.reply()

    def close(self):
        self.sock.close()


@pytest.fixture(scope="module")
def model():
    """A Redis of its own: SCRIPT FLUSH would hit the scripts of the broker on a master."""
    with RedisProc("model") as redis:
        yield redis


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def pair(request, setup, model):
    """The same connection twice: to the broker, and to the model."""
    made = [Raw(side.address, resp3=request.param == 3) for side in (setup.broker, model)]
    yield made
    for raw in made:
        raw.close()


TIMES = ("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME")


def is_same(words, ours, of_redis):
    if ours == of_redis:
        return True
    if str(words[0]).upper() not in TIMES or ours[:1] != b":" or of_redis[:1] != b":":
        return False
    a, b = int(ours[1:]), int(of_redis[1:])
    return a >= 0 and b >= 0 and abs(a - b) <= (1 if "P" not in words[0][:1].upper() else 1500)


def tell(pair, story, name):
    for line in story:
        words = [name if w == "K" else name + "2" if w == "K2" else w for w in (line.split() if isinstance(line, str) else line)]
        ours, of_redis = [side.ask(*words) for side in pair]
        assert is_same(words, ours, of_redis), "%r: %r, Redis says %r" % (words, ours, of_redis)


STORIES = {
    "take, look, refuse, free": [
        "GET K", "SET K v NX PX 30000", "SET K v NX PX 30000", "SET K w NX PX 30000", "GET K", "EXISTS K", "EXISTS K K2 K",
        "PTTL K", "TTL K", "PEXPIRETIME K", "EXPIRETIME K", "TYPE K", "STRLEN K", "DEL K", "DEL K", "GET K", "TTL K", "PTTL K",
        "EXISTS K", "TYPE K", "STRLEN K", "PEXPIRETIME K", "EXPIRETIME K"],
    "options in any order and case": [
        "set K v px 30000 nx", "PTTL K", "sEt K w Nx eX 30", "UNLINK K", "SET K v EXAT 1999999999 NX", "PEXPIRETIME K", "DEL K",
        "SET K v NX PXAT 1999999999000", "EXPIRETIME K", "DEL K", "SET K v NX GET", "SET K w NX GET", "DEL K"],
    "without a time": [
        "SETNX K v", "SETNX K w", "TTL K", "PTTL K", "EXPIRETIME K", "GET K", "EXPIRE K 30", "TTL K", "PERSIST K", "TTL K",
        "PERSIST K", "DEL K", "SET K v NX", "TTL K", "PERSIST K", "DEL K", "PERSIST K"],
    "times": [
        "EXPIRE K 30", "SET K v NX EX 30", "PEXPIRE K 60000 GT", "PEXPIRE K 30000 GT", "PEXPIRE K 20000 LT", "PEXPIRE K 90000 LT",
        "PTTL K", "EXPIRE K 10 NX", "EXPIRE K 10 XX", "EXPIRE K 10 NX XX", "EXPIRE K 10 GT LT", "EXPIRE K 10 FOO", "TTL K",
        "EXPIREAT K 1999999999", "PEXPIREAT K 1999999999000", "EXPIRETIME K", "EXPIRE K x", "EXPIRE K 9223372036854775807",
        "PEXPIRE K -1", "GET K", "SET K v NX EX 30", "EXPIRE K 0", "EXISTS K"],
    "change what is held": [
        "SET K v XX PX 30000", "SET K v NX PX 30000", "SET K w XX PX 60000", "GET K", "PTTL K", "SET K u XX KEEPTTL", "PTTL K",
        "SET K t XX GET PX 20000", "GETEX K", "GETEX K PX 40000", "PTTL K", "GETEX K PERSIST", "TTL K", "GETEX K EX 0", "GETDEL K",
        "GETDEL K", "GETEX K"],
    "a hash that a script has made": [
        ("EVAL", REENTER, 1, "K", 30000, "me"), ("EVAL", REENTER, 1, "K", 30000, "me"), "HGETALL K", "HGET K me", "HGET K you",
        "HEXISTS K me", "HEXISTS K you", "HLEN K", "HKEYS K", "HVALS K", "HMGET K me you", "TYPE K", "GET K", "STRLEN K",
        "SET K v NX PX 1000", "SET K v NX GET", "GETDEL K", "GETEX K", "PTTL K", ("EVAL", LEAVE, 1, "K", 30000, "you"),
        ("EVAL", LEAVE, 1, "K", 30000, "me"), "HGETALL K", ("EVAL", LEAVE, 1, "K", 30000, "me"), "HGETALL K", "HGET K me", "HLEN K",
        "HKEYS K", "HMGET K me", "TYPE K"],
    "a hash in a transaction": [
        ("EVAL", REENTER, 1, "K", 30000, "me"), "MULTI", "HGETALL K", "PTTL K2", "HGET K you", "EXEC", "DEL K"],
    "wrong types": ["SET K v NX PX 30000", "HGET K f", "HGETALL K", "HLEN K", "HEXISTS K f", "HKEYS K", "HVALS K", "HMGET K f", "DEL K"],
    "mistakes": [
        "SET K", "SET K v NX XX", "SET K v NX PX", "SET K v NX PX x", "SET K v NX PX 0", "SET K v NX PX -5", "SET K v NX EX 9223372036854775807",
        "SET K v NX PX 10 EX 10", "SET K v NX FOO", "SET K v NX KEEPTTL PX 5", "SETNX K", "GET", "GET a b", "DEL", "EXISTS", "TTL",
        "PTTL a b", "EXPIRE K", "HGET K", "HGETALL", "HGETALL a b", "HMGET K", "GETEX K FOO", "GETEX K PX 0", "GETEX K EX", "UNLINK",
        "PERSIST", "STRLEN", "TYPE", "TYPE a b", "EVAL", "EVAL x", "EVALSHA x", "EVAL x y", "EVAL x 1", "EVAL x -1", "EVAL x 2 K",
        "EVALSHA x 1", "EVALSHA x 0", "SCRIPT", "SCRIPT LOAD", "SCRIPT EXISTS", "SCRIPT FLUSH x", "SCRIPT FOO", "WATCH", "UNWATCH x", "EXEC",
        "DISCARD", "GETDEL", "HEXISTS K", "HLEN", "EXPIRETIME", "PEXPIREAT K", "EVAL_RO x", "EVALSHA_RO x 0"],
    "scripts": [
        "SET K v NX PX 30000", ("EVAL", COMPARE_AND_DELETE, 1, "K", "w"), ("EVAL", COMPARE_AND_DELETE, 1, "K", "v"),
        ("EVAL", COMPARE_AND_DELETE, 1, "K", "v"), ("EVAL", "return {1, 'a', false, {2}}", 0), ("EVAL", "return nil", 0),
        ("EVAL", "return {ok='fine'}", 0), ("EVAL", "return redis.error_reply('ODD thing')", 0), ("EVAL", "return 3.99", 0),
        ("EVAL", "return true", 0), ("EVAL", "return false", 0), ("EVAL", "return {KEYS[1], ARGV[1]}", 1, "K", "arg"),
        ("EVAL_RO", "return redis.call('get', KEYS[1])", 1, "K"), ("EVAL", "return {", 0)],
    "messages": [
        "PUBLISH nobody m", "PUBLISH", "PUBLISH c", "PUBLISH c m n", "MULTI", "PUBLISH nobody m", "EXEC",
        ("EVAL", "return redis.call('publish', 'nobody', 'm')", 0), ("EVAL", "return redis.call('publish', 'nobody')", 0)],
    "scripts by their SHA-1": [
        ("SCRIPT", "LOAD", COMPARE_AND_DELETE), ("SCRIPT", "EXISTS", hashlib.sha1(COMPARE_AND_DELETE.encode()).hexdigest(), "0" * 40),
        "SET K v NX PX 30000", ("EVALSHA", hashlib.sha1(COMPARE_AND_DELETE.encode()).hexdigest(), 1, "K", "v"),
        ("EVALSHA", hashlib.sha1(COMPARE_AND_DELETE.encode()).hexdigest().upper(), 1, "K", "v"), ("EVALSHA", "0" * 40, 1, "K"),
        ("EVALSHA", "short", 0), ("SCRIPT", "LOAD", "return {"), "SCRIPT FLUSH", ("SCRIPT", "EXISTS", hashlib.sha1(COMPARE_AND_DELETE.encode()).hexdigest()),
        ("EVALSHA", hashlib.sha1(COMPARE_AND_DELETE.encode()).hexdigest(), 1, "K", "v"), "SCRIPT FLUSH SYNC", "SCRIPT FLUSH async"],
    "transactions": [
        "MULTI", "EXEC", "MULTI", "DISCARD", "SET K v NX PX 30000", "MULTI", "GET K", "PEXPIRE K 60000", "DEL K", "GET K", "EXEC",
        "EXISTS K", "MULTI", "SET K v NX PX 30000", "SET K w NX PX 30000", "HGET K f", "EXEC", "GET K", "MULTI", "DEL K", "DISCARD",
        "GET K", "MULTI", "GET", "DEL K", "EXEC", "GET K", "DEL K", "MULTI", "MULTI", "EXEC", "MULTI", "WATCH K", "EXEC", "MULTI",
        "SETNX K v", "TTL K", "EXEC", "DEL K", "UNWATCH", "EXEC"],
    "watched": [
        "WATCH K", "GET K", "MULTI", "SET K v NX PX 30000", "EXEC", "WATCH K", "GET K", "MULTI", "DEL K", "EXEC", "WATCH K K2",
        "SET K v NX PX 30000", "MULTI", "DEL K", "EXEC", "GET K", "WATCH K", "PEXPIRE K 40000", "UNWATCH", "MULTI", "DEL K", "EXEC",
        "WATCH K", "SET K v NX PX 30000", "MULTI", "EXEC", "WATCH K", "DEL K", "MULTI", "DISCARD", "MULTI", "EXEC"],
    "values of any bytes": [
        ("SET", "K", b"\x00\xff\r\n*1\r\n$3\r\n\xc3\x28", "NX", "PX", 30000), "GET K", "STRLEN K", ("EVAL", COMPARE_AND_DELETE, 1, "K", b"\x00\xff\r\n*1\r\n$3\r\n\xc3\x28"),
        ("SET", "K", b"x" * 1024, "NX", "PX", 30000), "GET K", "DEL K", ("SET", "K", b"", "NX", "PX", 30000), "GET K", "STRLEN K", "DEL K"],
}


@pytest.mark.parametrize("story", sorted(STORIES))
def test_answers_as_redis_does(pair, story, name):
    tell(pair, STORIES[story], name.replace(" ", "_"))


# What Redis 7 does not have: the texts are those of Redis 8.4 and Valkey 9

def test_conditional_commands(client, name):
    assert client.cmd("SET", name, "v", "IFEQ", "v", "PX", 30000) is None, "it never takes a free lock"
    assert client.cmd("DELEX", name, "IFEQ", "v") == 0 and client.cmd("DELIFEQ", name, "v") == 0
    assert client.cmd("SET", name, "v", "NX", "PX", 30000) == "OK"
    assert client.cmd("SET", name, "w", "IFEQ", "u", "PX", 60000) is None
    assert client.cmd("SET", name, "w", "PX", 60000, "ifeq", "v") == "OK"
    assert client.cmd("GET", name) == "w" and 50000 < client.cmd("PTTL", name) <= 60000
    assert client.cmd("SET", name, "w", "IFEQ", "v", "GET") == "w"
    assert client.cmd("DELEX", name, "IFEQ", "v") == 0 and client.cmd("DELIFEQ", name, "v") == 0
    assert client.cmd("DELEX", name, "IFNE", "w") == 0
    assert client.cmd("DELEX", name, "IFEQ", "w") == 1
    assert client.cmd("SETNX", name, "v") == 1 and client.cmd("DELIFEQ", name, "v") == 1
    assert client.cmd("SETNX", name, "v") == 1 and client.cmd("DELEX", name) == 1
    assert client.cmd("SETNX", name, "v") == 1 and client.cmd("DELEX", name, "IFNE", "w") == 1
    assert client.cmd("EXISTS", name) == 0
    assert str(client.err("SET", name, "v", "NX", "IFEQ", "v")) == "ERR syntax error"
    assert str(client.err("SET", name, "v", "IFEQ")) == "ERR syntax error"
    assert str(client.err("DELEX", name, "FOO", "v")) == "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"


@pytest.mark.parametrize("words", [
    (), ("PX", 30000), ("GET",), ("KEEPTTL",), ("EX", 5, "GET"), ("IFNE", "x"), ("IFNE", "x", "PX", 5),
], ids=lambda words: " ".join(map(str, words)) or "bare")
def test_a_set_that_would_take_the_lock_away_is_refused(client, other, name, words):
    client.cmd("SET", name, "v", "NX", "PX", 30000)
    error = str(other.err("SET", name, "w", *words))
    assert error.startswith("ERR '%s' was not set: without NX" % name) and "holdfast keeps locks, not data" in error
    assert client.cmd("GET", name) == "v"
    client.cmd("DEL", name)


@pytest.mark.parametrize("words", [
    ("HSET", "k", "f", "v"), ("HSETNX", "k", "f", "v"), ("HINCRBY", "k", "f", 1), ("HDEL", "k", "f"), ("INCR", "k"), ("LPUSH", "k", "v"),
    ("ZADD", "k", 1, "v"), ("KEYS", "*"), ("FLUSHALL",), ("SETEX", "k", 10, "v"), ("GETSET", "k", "v"), ("MGET", "k"), ("RENAME", "k", "l"),
], ids=lambda words: words[0])
def test_other_commands_of_redis_are_unknown(client, words):
    error = str(client.err(*words))
    assert error.startswith("ERR unknown command '%s', with args beginning with: " % words[0])
    assert "holdfast keeps locks, not data" in error
    assert client.cmd("PING") == "PONG"


def test_a_new_script_is_tried_once_and_the_log_says_for_what_it_would_be_refused(make_broker, masters1, clients, name):
    broker = make_broker(masters1)
    client = clients(broker)
    waker = """if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('lpush', KEYS[2], 1) redis.call('del', KEYS[1]) return 1 end
        return 0"""
    assert client.cmd("EVAL", COMPARE_AND_DELETE, 1, name, "v") == 0
    since = broker.log_size()
    for _ in range(3):
        assert client.cmd("EVAL", waker, 2, name, name + ":signal", "v") == 0
    broker.wait_log("drop-in: script %s, run for the first time, .* all keys held by ARGV.1.: refused: the script calls lpush, which is not "
                    "served: .*LOCK" % hashlib.sha1(waker.encode()).hexdigest(), since=since)
    assert client.cmd("EVAL", "return redis.call('exists', KEYS[1])", 1, name) == 0
    for _ in range(100):
        client.cmd("EVAL", COMPARE_AND_DELETE, 1, name, "v")
    assert broker.log_text().count("run for the first time") == 1


def test_script_check_shows_what_a_script_would_do(client, name):
    sha1 = client.cmd("SCRIPT", "LOAD", COMPARE_AND_DELETE)
    rows = client.cmd("SCRIPT", "CHECK", sha1, 1, name, "v")
    assert all(len(row) == 3 for row in rows)
    states = {row[0]: row[1:] for row in rows}
    assert "0" in states["free"][1] and "frees" in states["held by ARGV[1]"][0] and "1" in states["held by ARGV[1]"][1], rows
    assert client.cmd("EXISTS", name) == 0
    bad = client.cmd("SCRIPT", "LOAD", "if redis.call('get', KEYS[1]) then return redis.call('lpush', KEYS[1], 'x') end return 0")
    assert any("lpush" in row[1] for row in client.cmd("SCRIPT", "CHECK", bad, 1, name))
    assert client.err("SCRIPT", "CHECK", "0" * 40, 1, name).code == "NOSCRIPT"
    assert str(client.err("SCRIPT", "CHECK", sha1, 2, name, name)) == "ERR a script has at most 16 keys, each of another name"
    assert str(client.err("SCRIPT", "CHECK", sha1, 2, name)) == "ERR Number of keys can't be greater than number of args"
    assert client.err("SCRIPT", "CHECK", sha1, "x", name).code == "ERR"


# Together with LOCK

def test_lock_and_set_exclude_each_other(client, other, name):
    assert client.cmd("SET", name, "v", "NX", "PX", 30000) == "OK"
    assert other.cmd("LOCK", name) is None
    assert client.cmd("DEL", name) == 1
    assert other.cmd("LOCK", name) is not None
    assert client.cmd("SET", name, "v", "NX", "PX", 30000) is None
    assert client.cmd("DEL", name) == 0, "what LOCK took is freed by UNLOCK"
    assert isinstance(client.err("SET", name, "v", "XX", "PX", 1000), RespError)
    assert client.cmd("EXISTS", name) == 1 and client.cmd("TYPE", name) == "lock"
    assert other.cmd("HOLDS", name) == 1
    assert other.cmd("UNLOCK", name) == 1
    assert client.cmd("EXISTS", name) == 0


@pytest.mark.parametrize("how", [("SHARED",), ("LIMIT", 2)], ids=["readers", "permits"])
def test_what_readers_and_permits_have_had_is_free(client, other, name, how):
    assert other.cmd("LOCK", name, *how)
    assert client.cmd("SET", name, "v", "NX", "PX", 30000) is None
    assert client.cmd("PTTL", name) > 0
    assert other.cmd("UNLOCK", name) == 1
    assert client.cmd("SET", name, "v", "NX", "PX", 30000) == "OK"


def test_a_script_that_has_looked_at_readers_takes_nothing_in_vain(client, other, name):
    """Nobody can say that what it saw still stands when it takes the other one: it is not told that it has it."""
    assert other.cmd("LOCK", name, "SHARED")
    body = "if redis.call('exists', KEYS[1]) == 1 then redis.call('set', KEYS[2], 'v', 'px', 30000) end return 1"
    assert client.err("EVAL", body, 2, name, name + ":2").code == "TRYAGAIN"
    assert client.cmd("EXISTS", name + ":2") == 0


def test_a_waiting_lock_gets_what_del_frees(client, other, name):
    client.cmd("SET", name, "v", "NX", "PX", 30000)
    other.send("LOCK", name, "WAIT", 20000)
    wait_for("the waiter", lambda: any(row[1] == name for row in client.cmd("WAITING")))
    assert client.cmd("DEL", name) == 1
    assert len(other.recv()) == 2


def test_nothing_is_bound_to_a_connection(setup, clients, client, name):
    first = clients(setup.broker)
    first.cmd("SET", name, "v", "NX", "PX", 30000)
    first.cmd("QUIT")
    assert client.cmd("GET", name) == "v"
    assert client.cmd("DEL", name) == 1


def test_databases(client, other, name):
    client.cmd("SELECT", 3)
    assert client.cmd("SET", name, "v", "NX", "PX", 30000) == "OK"
    assert client.cmd("EVAL", "return {KEYS[1], redis.call('get', KEYS[1])}", 1, name) == [name, "v"]
    assert other.cmd("EXISTS", name) == 0 and other.cmd("GET", "db3:" + name) == "v"
    client.cmd("MULTI")
    client.cmd("GET", name)
    client.cmd("DEL", name)
    assert client.cmd("EXEC") == ["v", 1]
    assert other.cmd("EXISTS", "db3:" + name) == 0


# Through a second broker

@pytest.fixture(params=["two_brokers", "two_brokers3"], ids=["one", "three"])
def both(request, clients):
    return [clients(broker) for broker in request.getfixturevalue(request.param)]


def take(client, name, value):
    """A broker may refuse from memory until it has heard that a hold of its own was ended elsewhere."""
    wait_for("a free lock", lambda: client.cmd("SET", name, value, "NX", "PX", 30000) == "OK")


def test_what_one_broker_has_taken_is_held_at_the_other(both, name):
    here, there = both
    for value in "xyz":    # each broker remembers what it was told before, and is corrected
        take(here, name, value)
        assert there.cmd("SET", name, "w", "NX", "PX", 30000) is None
        assert there.cmd("GET", name) == value
        assert there.cmd("PEXPIRE", name, 60000) == 1
        assert here.cmd("EVAL", COMPARE_AND_DELETE, 1, name, "w") == 0
        assert 40000 < here.cmd("PTTL", name) <= 60000
        assert here.cmd("EVAL", COMPARE_AND_DELETE, 1, name, value) == 1
        assert there.cmd("GET", name) is None
        take(there, name, "w")
        assert here.cmd("SET", name, value, "NX", "PX", 30000) is None
        assert here.cmd("DEL", name) == 1
        here, there = there, here


def test_counts_go_on_at_the_other_broker(both, name):
    here, there = both
    for side in (here, there, here):
        assert side.cmd("EVAL", REENTER, 1, name, 30000, "me") is None
    assert there.cmd("HGET", name, "me") == "3"
    assert isinstance(there.cmd("EVAL", REENTER, 1, name, 30000, "you"), int)
    assert [side.cmd("EVAL", LEAVE, 1, name, 30000, "me") for side in (there, here, there)] == [0, 0, 1]
    assert here.cmd("EXISTS", name) == 0


def test_watch_sees_what_the_other_broker_did(both, name):
    here, there = both
    here.cmd("SET", name, "v", "NX", "PX", 30000)
    here.cmd("WATCH", name)
    assert here.cmd("GET", name) == "v"
    assert there.cmd("PEXPIRE", name, 60000) == 1
    here.cmd("MULTI")
    here.cmd("DEL", name)
    assert here.cmd("EXEC") is None
    assert there.cmd("GET", name) == "v"


def test_a_lock_that_waits_at_the_other_broker_gets_what_is_freed(both, name):
    here, there = both
    here.cmd("SET", name, "v", "NX", "PX", 30000)
    assert there.cmd("LOCK", name) is None
    there.send("LOCK", name, "WAIT", 20000)
    assert here.cmd("DEL", name) == 1
    assert len(there.recv()) == 2
    assert here.cmd("SET", name, "v", "NX", "PX", 30000) is None
    assert there.cmd("UNLOCK", name) == 1
    take(here, name, "v")


def test_scripts_are_kept_by_each_broker(both, name):
    here, there = both
    sha1 = here.cmd("SCRIPT", "LOAD", COMPARE_AND_DELETE)
    assert there.cmd("SCRIPT", "EXISTS", sha1) == [0]
    assert there.err("EVALSHA", sha1, 1, name, "v").code == "NOSCRIPT"
    assert there.cmd("EVAL", COMPARE_AND_DELETE, 1, name, "v") == 0
    assert there.cmd("EVALSHA", sha1, 1, name, "v") == 0


def test_a_lock_outlives_its_broker(make_broker, masters1, clients, name):
    first = make_broker(masters1)
    clients(first).cmd("SET", name, "v", "NX", "PX", 30000)
    first.terminate()
    client = clients(make_broker(masters1))
    assert client.cmd("SET", name, "w", "NX", "PX", 30000) is None
    assert client.cmd("EVAL", COMPARE_AND_DELETE, 1, name, "v") == 1


# Transactions are of such commands only

@pytest.mark.parametrize("words", [("LOCK", "x"), ("UNLOCK", "x"), ("PING",), ("EVAL", "return 1", 0), ("INFO",)], ids=lambda w: w[0])
def test_what_cannot_be_part_of_a_transaction_spoils_it(client, name, words):
    client.cmd("MULTI")
    assert client.cmd("SET", name, "v", "NX", "PX", 30000) == "QUEUED"
    assert client.err(*words).code == "NOMULTI"
    assert str(client.err("EXEC")).startswith("EXECABORT nothing of this transaction was run: ")
    assert client.cmd("EXISTS", name) == 0


def test_watch_sees_what_another_client_did(client, other, name):
    client.cmd("SET", name, "v", "NX", "PX", 30000)
    client.cmd("WATCH", name)
    assert client.cmd("GET", name) == "v"
    other.cmd("PEXPIRE", name, 60000)
    client.cmd("MULTI")
    client.cmd("DEL", name)
    assert client.cmd("EXEC") is None
    assert client.cmd("GET", name) == "v"
    client.cmd("DEL", name)


def test_a_transaction_is_bounded(client, name):
    client.cmd("MULTI")
    for _ in range(64):
        assert client.cmd("GET", name) == "QUEUED"
    assert client.err("GET", name).code == "LIMIT"
    assert client.err("EXEC").code == "EXECABORT"


# What clients ask of the command table

def test_keys_of_commands(client):
    assert client.cmd("COMMAND", "GETKEYS", "SET", "k", "v", "NX") == ["k"]
    assert client.cmd("COMMAND", "GETKEYS", "DEL", "k", "l", "m") == ["k", "l", "m"]
    assert client.cmd("COMMAND", "GETKEYS", "EVAL", "return 1", "2", "k", "l", "arg") == ["k", "l"]
    rows = {row[0]: row for row in client.cmd("COMMAND", "INFO", "get", "del", "eval", "hgetall", "watch")}
    assert [rows[n][3:6] for n in ("get", "del", "eval", "hgetall", "watch")] == [[1, 1, 1], [1, -1, 1], [0, 0, 0], [1, 1, 1], [1, -1, 1]]
    assert "movablekeys" in rows["eval"][2] and "@drop-in" in rows["eval"][6]


# Configuration and rights

def test_turned_off(make_broker, masters1, clients, name):
    client = clients(make_broker(masters1, args=["-o", "drop_in.enabled=no"]))
    assert str(client.err("SET", name, "v", "NX")).startswith("ERR unknown command 'SET', with args beginning with: '%s' 'v' 'NX' (" % name)
    assert client.cmd("TYPE", name) == "none"
    client.cmd("MULTI")
    assert str(client.err("GET", name)).startswith("ERR unknown command")
    assert client.err("EXEC").code == "EXECABORT"
    client.cmd("CONFIG", "SET", "drop_in.enabled", "yes")
    assert client.cmd("SET", name, "v", "NX") == "OK"


@pytest.fixture
def people(make_broker, masters1, clients):
    options = ["users.default=nopass", "users.default.names=orders:*", "users.default.allow=drop-in"]
    broker = make_broker(masters1, ready=False, args=[word for option in options for word in ("-o", option)])
    broker.wait_log("server: ready: 1 of 1 masters", since=0)
    return broker, clients(broker)


def test_rights_are_by_class_and_name(people):
    _, client = people
    assert client.cmd("SET", "orders:1", "v", "NX", "PX", 30000) == "OK"
    assert client.cmd("EVAL", COMPARE_AND_DELETE, 1, "orders:1", "w") == 0
    for words in (("SET", "jobs:1", "v", "NX"), ("GET", "jobs:1"), ("DEL", "orders:1", "jobs:1"), ("EVAL", "return 1", 2, "orders:1", "jobs:1"),
                  ("EVAL", "return 1", "x", "jobs:1"), ("WATCH", "jobs:1")):
        assert "may not use the name 'jobs:1'" in str(client.err(*words)), words
    assert client.cmd("EVAL", "return ARGV[1]", 1, "orders:1", "jobs:1") == "jobs:1"
    assert "class lock" in str(client.err("LOCK", "orders:1"))
    assert client.cmd("SELECT", 2) == "OK"
    assert "may not use the name 'db2:orders:1'" in str(client.err("GET", "orders:1"))


def test_the_class_is_refused(make_broker, masters1, clients):
    client = clients(make_broker(masters1, args=["-o", "users.default=nopass", "-o", "users.default.allow=lock inspect"]))
    for words in (("SET", "k", "v", "NX"), ("EVAL", "return 1", 0), ("SCRIPT", "LOAD", "return 1")):
        assert "it lacks the class drop-in" in str(client.err(*words))
    assert client.cmd("TYPE", "k") == "none"
