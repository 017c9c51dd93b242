"""What people, and users with few rights, see of locks that commands of Redis have taken, and these of locks of LOCK."""

import pytest

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
