"""What people, and users with few rights, see of locks that commands of Redis have taken, and these of locks of LOCK."""

import json
import re

import pytest

from procs import wait_for
from respclient import as_map
from test_cli import ok
from test_http import ON, Http, value
from test_users import hash_of

NATIVE_VALUE = "held by LOCK"


@pytest.fixture
def people(make_broker, masters1, clients):
    """Two connections: of a user who may not look at locks, and of one who may."""
    options = ["users.default=nopass", "users.default.allow=lock drop-in", "users.ops=" + hash_of("x"),
               "users.ops.allow=lock drop-in inspect admin"]
    broker = make_broker(masters1, args=[word for option in options for word in ("-o", option)])
    app, ops = clients(broker), clients(broker)
    assert ops.cmd("AUTH", "ops", "x") == "OK"
    return app, ops


# Rights

def test_the_owner_of_a_native_lock_is_for_those_who_may_look(people, name):
    app, ops = people
    assert ops.cmd("LOCK", name, "OWNER", "secretive", "LEASE", 60000)
    assert ops.cmd("GET", name) == "secretive" and ops.cmd("STRLEN", name) == 9
    assert app.cmd("GET", name) == NATIVE_VALUE and app.cmd("STRLEN", name) == len(NATIVE_VALUE)
    assert app.cmd("EVAL", "return redis.call('get', KEYS[1])", 1, name) == NATIVE_VALUE
    assert app.cmd("EVAL", "return redis.call('get', KEYS[1]) == ARGV[1]", 1, name, "secretive") is None
    assert app.cmd("MULTI") == "OK" and app.cmd("GET", name) == "QUEUED"
    assert app.cmd("EXEC") == [NATIVE_VALUE]
    assert app.cmd("TYPE", name) == "lock" and app.cmd("EXISTS", name) == 1 and 0 < app.cmd("PTTL", name) <= 60000
    assert app.cmd("DELIFEQ", name, "secretive") == 0 and app.cmd("DEL", name) == 0
    for words in (("PEXPIRE", name, 1000), ("DELIFEQ", name, NATIVE_VALUE), ("SET", name, "v", "XX")):
        error = str(app.err(*words))
        assert "is held by LOCK, by somebody" in error and "secretive" not in error
    assert "by secretive" in str(ops.err("PEXPIRE", name, 1000))
    assert ops.cmd("UNLOCK", name, "OWNER", "secretive") == 1


def test_who_may_use_commands_of_redis_may_ask_for_the_type(people, name, make_broker, masters1, clients):
    app, _ = people
    assert app.cmd("TYPE", name) == "none"
    assert app.cmd("SET", name, "v", "NX", "PX", 60000) == "OK"
    assert app.cmd("TYPE", name) == "string" and app.cmd("DEL", name) == 1
    assert [row[6] for row in app.cmd("COMMAND", "INFO", "type")] == [["@drop-in", "@inspect"]]
    other = clients(make_broker(masters1, ready=False, args=["-o", "users.default=nopass", "-o", "users.default.allow=lock"]))
    assert "lacks the class" in str(other.err("TYPE", name))


# What people see of it

LONG_VALUE = "line\r\nbreak \u2028 " + "v" * 900


@pytest.fixture
def broker(make_broker, masters3):
    return make_broker(masters3, args=ON).wait_masters()


@pytest.fixture
def taker(broker, clients):
    client = clients(broker)
    for words in (("LIB-NAME", "redis-py"), ("LIB-VER", "5.0.1")):
        assert client.cmd("CLIENT", "SETINFO", *words) == "OK"
    return client


def look(client, name):
    info = as_map(client.cmd("LOCKINFO", name))
    return info, [as_map(holder) for holder in info["holders"]]


def locks(client, *words, command="LOCKS"):
    names, cursor = [], "0"
    while True:
        cursor, some = client.cmd(*((command, "CURSOR", cursor) if command == "LOCKS" else (command, cursor)), *words)
        names += some
        if cursor == "0":
            return sorted(names)


def test_lockinfo_says_who_has_it(broker, taker, clients):
    other = clients(broker)
    assert taker.cmd("SET", "job", "5f2c-value", "NX", "PX", 60000) == "OK"
    for client in (taker, other):
        info, (holder,) = look(client, "job")
        assert info["kind"] == "drop-in" and info["limit"] == info["holding"] == 1
        assert holder["owner"] == "5f2c-value" and holder["library"] == "redis-py 5.0.1"
        assert holder["connection"] == taker.cmd("CLIENT", "ID") and 0 <= holder["held_ms"] < 60000
        assert 0 < holder["remaining_ms"] <= 60000 and holder["token"] > 0
        assert all(says.startswith("held by commands of Redis under token ") for says in as_map(info["masters"]).values())
    assert other.cmd("PEXPIRE", "job", 90000) == 1      # it stays that of who has taken it
    assert look(other, "job")[1][0]["connection"] == taker.cmd("CLIENT", "ID")
    assert other.cmd("SET", "job", "mine", "XX", "PX", 60000) == "OK"
    assert look(other, "job")[1][0]["library"] == "" and look(other, "job")[1][0]["connection"] == other.cmd("CLIENT", "ID")
    assert other.cmd("EVAL", "redis.call('hset', KEYS[1], 'a:1', 2, 'b', 1) return redis.call('pexpire', KEYS[1], 60000)", 1, "hash") == 1
    assert look(other, "hash")[1][0]["owner"] == "a:1: 2, b: 1"


def test_a_long_value_is_shortened_and_printable(taker):
    assert taker.cmd("SET", "long", LONG_VALUE, "NX", "PX", 60000) == "OK"
    owner = look(taker, "long")[1][0]["owner"]
    assert owner.startswith("line\\x0d\\x0abreak \\xe2\\x80\\xa8 vvv") and owner.endswith("v\u2026") and len(owner) < 120
    assert taker.cmd("EVAL", "for i = 1, 60 do redis.call('hset', KEYS[1], 'field' .. i, i) end return 1", 1, "wide") == 1
    assert look(taker, "wide")[1][0]["owner"].startswith("field1: 1, field2: 2, ")


def test_a_long_value_does_not_keep_forceunlock_from_it(taker):
    assert taker.cmd("SET", "long", LONG_VALUE, "NX", "PX", 60000) == "OK"
    assert taker.cmd("FORCEUNLOCK", "long") == 1
    assert taker.cmd("EXISTS", "long") == 0 and look(taker, "long") == (look(taker, "none")[0], [])


def test_another_broker_sees_the_value_alone(broker, taker, make_broker, masters3, clients):
    other = clients(make_broker(masters3))
    assert taker.cmd("SET", "job", "value", "NX", "PX", 60000) == "OK"
    _, (holder,) = look(other, "job")
    assert holder["owner"] == "value" and holder["connection"] == "elsewhere" and "library" not in holder
    assert other.cmd("GET", "job") == "value" and locks(other) == []
    assert locks(taker) == ["job"]
    assert other.cmd("PEXPIRE", "job", 50000) == 1      # its last change was made there
    wait_for("the other broker to be heard", lambda: locks(taker) == [])
    assert locks(other) == ["job"]


def test_locks_lists_them_until_they_end(broker, taker):
    names = ["many:%d" % i for i in range(300)]
    for name in names[:200]:
        assert taker.cmd("SET", name, "v", "NX", "PX", 60000) == "OK"
    for name in names[200:]:
        assert taker.cmd("LOCK", name, "LEASE", 60000)
    assert taker.cmd("EVAL", "return redis.call('hset', KEYS[1], 'a', 1)", 1, "a-hash") == 1
    assert locks(taker) == locks(taker, "COUNT", 7) == sorted(names + ["a-hash"])
    assert locks(taker, "MATCH", "many:1?") == ["many:%d" % i for i in range(10, 20)]
    assert locks(taker, command="SCAN") == sorted(names + ["a-hash"])
    assert locks(taker, "TYPE", "lock", command="SCAN") == sorted(names[200:])
    assert locks(taker, "TYPE", "string", command="SCAN") == sorted(names[:200])
    assert locks(taker, "TYPE", "hash", command="SCAN") == ["a-hash"] and locks(taker, "TYPE", "list", command="SCAN") == []
    wait_for("the slowest master", lambda: taker.cmd("DBSIZE") == 301)     # names that are asked about count too
    info = broker.info()
    assert info["locks_held_drop_in"] == "201" and info["locks_held"] == "301" and info["db0"].startswith("keys=301,")
    for name in names[:199]:
        assert taker.cmd("DEL", name) == 1
    assert taker.cmd("PEXPIRE", names[199], 50) == 1
    wait_for("the end of its time", lambda: broker.info()["locks_held_drop_in"] == "1")
    assert locks(taker) == sorted(names[200:] + ["a-hash"])


def test_users_see_the_names_that_they_may_use(make_broker, masters1, clients):
    options = ["users.default=nopass", "users.default.allow=drop-in inspect", "users.default.names=orders:*",
               "users.ops=" + hash_of("x"), "users.ops.allow=drop-in inspect"]
    broker = make_broker(masters1, ready=False, args=[word for option in options for word in ("-o", option)])
    broker.wait_log("server: ready: 1 of 1 masters", since=0)
    few, ops = clients(broker), clients(broker)
    assert ops.cmd("AUTH", "ops", "x") == "OK"
    for name in ("orders:1", "jobs:1"):
        assert ops.cmd("SET", name, "v", "NX", "PX", 60000) == "OK"
    assert locks(few) == ["orders:1"] and locks(ops) == ["jobs:1", "orders:1"]


def test_max_locks_counts_them(make_broker, masters1, clients):
    client = clients(make_broker(masters1, args=["-o", "limits.max_locks=3"]))
    assert client.cmd("SET", "a", "v", "NX", "PX", 60000) == "OK" and client.cmd("LOCK", "b", "LEASE", 60000)
    assert client.cmd("SET", "c", "v", "NX", "PX", 60000) == "OK"
    for words in (("SET", "d", "v", "NX", "PX", 1000), ("EVAL", "return redis.call('set', KEYS[1], 'v')", 1, "d"), ("LOCK", "d")):
        error = client.err(*words)
        assert error.code == "LIMIT" and "max_locks" in str(error)
    assert client.cmd("EXISTS", "d") == 0
    assert client.cmd("SET", "a", "w", "XX", "PX", 60000) == "OK" and client.cmd("PEXPIRE", "c", 60000) == 1
    assert client.cmd("DEL", "a") == 1 and client.cmd("LOCK", "d", "LEASE", 60000)
    assert client.err("SET", "a", "v", "NX", "PX", 1000).code == "LIMIT"


def test_the_command_shows_them(broker, taker):
    assert taker.cmd("SET", "job", "5f2c-value", "NX", "PX", 60000) == "OK" and taker.cmd("LOCK", "native", "OWNER", "me")
    listed = [line.split() for line in ok(broker, "ls").splitlines()]
    assert listed[1][:4] == ["job", "drop-in", "5f2c-value", "(redis-py"] and listed[2][:3] == ["native", "exclusive", "me"]
    assert json.loads(ok(broker, "ls", "--json"))[0]["library"] == "redis-py 5.0.1"
    assert re.search(r"(?m)^kind +drop-in$", ok(broker, "show", "job")) and re.search(r"(?m)^library +redis-py 5\.0\.1$", ok(broker, "show", "job"))
    assert json.loads(ok(broker, "show", "--json", "job"))["holders"][0]["library"] == "redis-py 5.0.1"
    assert "5f2c-value (redis-py 5.0.1)" in ok(broker, "top")


def test_the_page_shows_them(broker, taker):
    web = Http(broker)
    assert taker.cmd("SET", "job", "5f2c-value", "NX", "PX", 60000) == "OK"
    page = web.status()
    (row,) = page["holds"]
    assert row["drop_in"] is True and row["lock"] == "job" and row["value"] == "5f2c-value" and row["library"] == "redis-py 5.0.1"
    assert row["client"] == taker.cmd("CLIENT", "ID") and 0 < row["left_ms"] <= 60000 and page["held"] == 1
    taker.send("LOCK", "job", "WAIT", 0)
    wait_for("a waiter", lambda: web.status()["holds"][0]["waiting"] == 1)


def test_figures_of_calls(broker, taker):
    def figures():
        info = broker.info()
        return {name: int(info["drop_in_" + name]) for name in ("calls", "runs", "exchanges", "from_memory", "again", "long")}
    taker.cmd("CONFIG", "RESETSTAT")
    assert taker.cmd("SET", "job", "v", "NX", "PX", 60001) == "OK" and taker.cmd("GET", "job") == "v"
    assert taker.cmd("SET", "job", "v", "NX", "PX", 1000) is None
    now = figures()
    assert now["calls"] == 3 and 3 <= now["runs"] <= 5 and now["exchanges"] + now["from_memory"] >= 3 and now["long"] == 1 and now["again"] == 0
    assert taker.cmd("SCRIPT", "LOAD", "return 1")
    metrics = Http(broker).metrics()
    assert value(metrics, "holdfast_drop_in_calls_total") == 3 and value(metrics, "holdfast_locks_held", type="drop_in") == 1
    assert value(metrics, "holdfast_drop_in_scripts") == 1 and value(metrics, "holdfast_drop_in_names") == 1


# Client libraries

def libraries(broker):
    rows = [value.split(",") for key, value in broker.info().items() if re.fullmatch(r"library\d+", key)]
    maps = [dict(field.split("=", 1) for field in row) for row in rows]
    return {row["name"]: (int(row["connections"]), int(row["commands"])) for row in maps}


def test_connections_and_commands_by_library(broker, taker, clients):
    other = clients(broker)
    other.cmd("CONFIG", "RESETSTAT")
    for name in ("go-redis(,go1.21.0)", 'a"b\\c,d=e'):
        assert other.cmd("CLIENT", "SETINFO", "LIB-NAME", name) == "OK"
    assert taker.cmd("SET", "job", "v", "NX", "PX", 60000) == "OK" and other.cmd("PING") == "PONG"
    seen = libraries(broker)
    assert seen["redis-py"] == (1, 1) and seen["a_b_c_d_e"] == (1, 1) and seen["go-redis"] == (0, 1)
    assert seen["unknown"][0] >= 1
    metrics = Http(broker).metrics()
    assert value(metrics, "holdfast_library_connections", library="redis-py") == 1
    assert value(metrics, "holdfast_library_commands_total", library="redis-py") == 1
    taker.close()
    wait_for("the end of the connection", lambda: libraries(broker)["redis-py"] == (0, 1))


def test_libraries_are_bounded(broker, clients):
    client = clients(broker)
    for i in range(100):
        assert client.cmd("CLIENT", "SETINFO", "LIB-NAME", "lib%d" % i) == "OK"
    assert client.cmd("PING") == "PONG"
    seen = libraries(broker)
    assert len(seen) <= 34 and seen["other"][0] == 1 and seen["other"][1] >= 60
    assert client.cmd("CLIENT", "SETINFO", "LIB-NAME", "lib3") == "OK"
    assert libraries(broker)["lib3"][0] == 1 and libraries(broker)["other"][0] == 0


# Bounds

def test_what_is_too_long_is_an_error_and_no_more(taker, name):
    script = "return 1 --"
    assert taker.cmd("EVAL", script + "x" * (16384 - len(script)), 0) == 1
    for words in (("EVAL", script + "x" * 16384, 0), ("SCRIPT", "LOAD", "x" * 100000), ("SET", name, "v" * 20000, "NX"),
                  ("SET", name, "v" * 1000000, "NX", "PX", 1000), ("SET", "k" * 600, "v", "NX"), ("SET", name, "v" * 5000, "NX")):
        error = taker.err(*words)
        assert error.code in ("ERR", "LIMIT") and re.search("16384|4096|512", str(error)), error
    assert taker.cmd("EXISTS", name) == 0
