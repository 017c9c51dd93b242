"""What Redis clients and tools send, and the commands that look into the broker.

Where the answer must be Redis's own, the master's redis-server is asked the same and both are compared.
"""

import re
import time

import pytest

from procs import wait_for
from respclient import Closed, as_map, encode, flat


@pytest.fixture
def client(one, clients):
    return clients(one.broker)


@pytest.fixture
def other(one, clients):
    return clients(one.broker)


def as_redis(one, client, *args):
    """Sends the same to both: holdfast must answer as Redis does."""
    client.send(*args)
    ours = client.recv()
    with one.masters[0].connect() as direct:
        direct.send(*args)
        theirs = direct.recv()
    assert type(ours) is type(theirs), (ours, theirs)
    if str(theirs).startswith("ERR unknown command"):  # ours goes on, for people
        assert str(ours).startswith(str(theirs) + "(holdfast keeps locks, not data; "), ours
    else:
        assert str(ours) == str(theirs)
    return ours


# Exactly Redis's texts

@pytest.mark.parametrize("args", [
    ("nosuchcommand",),
    ("NoSuch", "bar", "baz"),
    ("nosuch", "it's", "a\tb"),
    ("nosuch", "x" * 200, "y"),
    ("n" * 200, "a"),
    ("nosuch",) + ("abcdefghij",) * 30,
    ("nosuch", "a\r\nb"),
    ("n\r\nx",),
    ("",),
    ("PING", "a", "b"),
    ("ECHO",),
    ("ECHO", "a", "b"),
    ("SELECT",),
    ("SELECT", "1x"),
    ("SELECT", "99"),
    ("SELECT", "-1"),
    ("SELECT", "16"),
    ("SELECT", "15"),
    ("HELLO", "4"),
    ("HELLO", "1"),
    ("HELLO", "abc"),
    ("HELLO", "3", "foo"),
    ("HELLO", "2", "SETNAME", "a b"),
    ("CLIENT",),
    ("CLIENT", "FOO"),
    ("CLIENT", "SETNAME", "a b"),
    ("CLIENT", "KILL", "1.2.3.4:5"),
    ("CLIENT", "KILL", "ID", "999999999"),
    ("CONFIG",),
    ("CONFIG", "foo"),
    ("COMMAND", "foo"),
    ("AUTH", "x"),
    ("AUTH", "nobody", "x"),
    ("TIME", "x"),
    ("RESET", "x"),
    ("SUBSCRIBE",),
    ("INFO", "nosuchsection"),
    ("PING",),
    ("PING", "hello"),
    ("ECHO", "hello"),
    ("SELECT", "0"),
    ("CLIENT", "SETNAME", "me"),
    ("CLIENT", "GETNAME"),
    ("CLIENT", "NO-EVICT", "on"),
    ("RESET",),
], ids=lambda args: " ".join(args)[:30].encode("unicode_escape").decode())
def test_answers_as_redis_does(one, client, args):
    as_redis(one, client, *args)
    assert client.cmd("PING") == "PONG"


@pytest.mark.parametrize("command", ["LPUSH", "INCRBYFLOAT", "DEBUG", "FLUSHALL", "KEYS"])
def test_commands_of_redis_that_are_not_ours_are_unknown(client, command):
    err = client.err(command, "a", "b")
    assert str(err).startswith("ERR unknown command '%s', with args beginning with: 'a' 'b' (holdfast keeps locks, not data;" % command)
    assert "LOCK" in str(err).split("(")[1]
    assert client.cmd("PING") == "PONG"


# HELLO, RESET, QUIT

def test_hello_without_a_version_keeps_the_protocol(client):
    reply = as_map(client.cmd("HELLO"))
    assert reply["proto"] == 2
    assert reply["role"] == "master" and reply["mode"] == "standalone"
    assert reply["server"] and reply["version"]
    assert reply["id"] == client.cmd("CLIENT", "ID")
    assert reply["modules"] == []


def test_hello_three_and_back(client):
    client.send("HELLO", 3)
    reply = client.recv()
    assert isinstance(reply, dict) and reply["proto"] == 3
    assert isinstance(client.cmd("CONFIG", "GET", "*"), dict)
    reply = client.cmd("HELLO", 2)
    assert isinstance(reply, list) and as_map(reply)["proto"] == 2
    assert isinstance(client.cmd("CONFIG", "GET", "*"), list)


def test_hello_noproto_keeps_the_protocol(client):
    client.cmd("HELLO", 3)
    assert client.err("HELLO", 4).code == "NOPROTO"
    assert isinstance(client.cmd("HELLO"), dict)


def test_hello_setname(client):
    client.cmd("HELLO", 3, "SETNAME", "worker")
    assert client.cmd("CLIENT", "GETNAME") == "worker"


def test_hello_with_a_password_though_none_is_set(client):
    """As with Redis: the default user of a server without passwords takes any."""
    client.cmd("HELLO", 3, "AUTH", "default", "guess")
    assert client.cmd("PING") == "PONG"


def test_reset(client):
    client.cmd("HELLO", 3)
    client.cmd("CLIENT", "SETNAME", "worker")
    assert client.cmd("RESET") == "RESET"
    assert as_map(client.cmd("HELLO"))["proto"] == 2
    assert not client.cmd("CLIENT", "GETNAME")


def test_quit(client):
    assert client.cmd("QUIT") == "OK"
    assert client.read_to_end() == b""


def test_quit_answers_what_came_before(client):
    replies = client.pipeline(("PING",), ("ECHO", "x"), ("QUIT",))
    assert replies == ["PONG", "x", "OK"]
    assert client.read_to_end() == b""


# CLIENT

def test_client_ids_rise(client, other):
    assert client.cmd("CLIENT", "ID") < other.cmd("CLIENT", "ID")
    assert client.cmd("CLIENT", "ID") == client.cmd("CLIENT", "ID")


def test_client_setinfo(client):
    assert client.cmd("CLIENT", "SETINFO", "LIB-NAME", "redis-py") == "OK"
    assert client.cmd("CLIENT", "SETINFO", "lib-ver", "5.0.1") == "OK"
    line = client.cmd("CLIENT", "INFO")
    assert "lib-name=redis-py" in line and "lib-ver=5.0.1" in line
    client.err("CLIENT", "SETINFO", "lib-color", "red")


def test_client_list_and_info(client, other):
    client.cmd("CLIENT", "SETNAME", "first")
    number = client.cmd("CLIENT", "ID")
    line = client.cmd("CLIENT", "INFO").strip()
    fields = dict(part.split("=", 1) for part in line.split(" "))
    assert fields["id"] == str(number) and fields["name"] == "first"
    assert re.fullmatch(r"127\.0\.0\.1:\d+", fields["addr"])
    for field in ("laddr", "fd", "age", "idle", "flags", "db", "cmd", "user", "resp"):
        assert field in fields
    lines = other.cmd("CLIENT", "LIST").strip().splitlines()
    assert any(entry.startswith("id=%d " % number) for entry in lines)
    only = other.cmd("CLIENT", "LIST", "ID", number).strip().splitlines()
    assert len(only) == 1 and "name=first" in only[0]


def test_client_kill_by_id(client, other):
    assert other.cmd("CLIENT", "KILL", "ID", client.cmd("CLIENT", "ID")) == 1
    assert client.read_to_end() == b""


def test_client_kill_by_address(client, other):
    address = "%s:%d" % client.sock.getsockname()
    assert other.cmd("CLIENT", "KILL", address) == "OK"
    assert client.read_to_end() == b""


def test_a_killed_clients_locks_go_too(one, clients, other, name):
    victim = clients(one.broker)
    victim.cmd("LOCK", name)
    other.cmd("CLIENT", "KILL", "ID", victim.cmd("CLIENT", "ID"))
    assert other.cmd("LOCK", name, "WAIT", 5000)[0] > 0


# WAITING

def test_waiting_lists_the_longest_first(client, other, one, clients, name):
    assert client.cmd("WAITING") == []
    client.cmd("LOCK", name)
    client.cmd("LOCK", name + "-2")
    first, second = clients(one.broker), clients(one.broker)
    first.cmd("CLIENT", "SETNAME", "bob")
    first.send("MLOCK", 2, name, name + "-2", "WAIT", 0)
    wait_for("one waits", lambda: len(other.cmd("WAITING")) == 1)
    second.send("LOCK", name + "-2", "WAIT", 0)
    wait_for("two wait", lambda: len(other.cmd("WAITING")) == 2)
    rows = [as_map(row) for row in other.cmd("WAITING")]
    assert [row["lock"] for row in rows] == [name, name + "-2"] and [row["client"] for row in rows] == ["bob", ""]
    assert rows[0]["waited_ms"] >= rows[1]["waited_ms"]
    assert other.cmd("CLIENT", "KILL", "ID", rows[1]["connection"]) == 1
    wait_for("one waits", lambda: len(other.cmd("WAITING")) == 1)
    assert [as_map(row)["lock"] for row in other.cmd("WAITING", "COUNT", "1")] == [name]
    assert "1..100" in str(client.err("WAITING", "COUNT", 101))


# COMMAND

OURS = ["lock", "unlock", "renew", "holds", "owner", "lockinfo", "locks", "forceunlock", "masters"]
THEIRS = ["ping", "echo", "quit", "reset", "select", "hello", "auth", "time", "client", "command", "info",
          "config", "subscribe", "unsubscribe", "psubscribe", "punsubscribe"]


def test_command_list_and_count(client):
    names = client.cmd("COMMAND", "LIST")
    assert set(OURS + THEIRS) <= set(n.lower() for n in names)
    assert client.cmd("COMMAND", "COUNT") == len(names) == len(set(names))


def test_command_info(client):
    assert client.cmd("COMMAND", "INFO", "nosuch") == [None]
    lock, missing, ping = client.cmd("COMMAND", "INFO", "lock", "nosuch", "PING")
    assert missing is None
    assert lock[0] == "lock" and lock[1] == -2
    assert ping[0] == "ping" and ping[1] == -1
    assert isinstance(lock[2], list) and all(isinstance(v, int) for v in lock[3:6])


def test_command_lists_each(client):
    entries = client.cmd("COMMAND")
    assert len(entries) == client.cmd("COMMAND", "COUNT")
    assert set(OURS) <= {entry[0] for entry in entries}


def test_command_docs(client):
    docs = as_map(client.cmd("COMMAND", "DOCS", *OURS))
    assert set(docs) == set(OURS)
    for doc in docs.values():
        doc = as_map(doc)
        assert doc["summary"] and doc["since"] and doc["group"]
    lock = as_map(docs["lock"])
    assert "arguments" in lock
    words = {w.lower() for w in flat(lock["arguments"])}
    assert {"name", "wait", "lease", "maxhold", "owner"} <= words
    assert client.cmd("COMMAND", "DOCS", "nosuch") == []


def test_command_docs_of_all_in_resp3(one, clients):
    three = clients(one.broker, resp3=True)
    docs = three.cmd("COMMAND", "DOCS")
    assert isinstance(docs, dict) and set(OURS) <= set(docs)
    assert len(docs) == three.cmd("COMMAND", "COUNT")


def test_every_command_that_is_listed_exists(one, client):
    for command in client.cmd("COMMAND", "LIST"):
        if command.lower() in ("shutdown", "monitor"):
            continue
        with one.broker.connect() as fresh:
            fresh.send(command)
            reply = fresh.recv()
        assert "unknown command" not in str(reply), command


# INFO

def info_of(client, *sections):
    reply = client.cmd("INFO", *sections)
    return dict(line.split(":", 1) for line in reply.splitlines() if ":" in line and line[0] != "#")


def test_info_has_what_the_tools_read(client):
    info = info_of(client)
    for field in ("redis_version", "process_id", "tcp_port", "uptime_in_seconds", "run_id",
                  "connected_clients", "blocked_clients", "maxclients",
                  "used_memory", "loading", "rdb_bgsave_in_progress", "aof_rewrite_in_progress",
                  "total_connections_received", "total_commands_processed", "instantaneous_ops_per_sec",
                  "role", "connected_slaves", "used_cpu_sys", "used_cpu_user"):
        assert field in info, field
    assert info["loading"] == "0"
    assert info["role"] == "master"
    assert int(info["connected_clients"]) >= 1
    assert re.search(r"^# Server\r?$", client.cmd("INFO"), re.M)


def test_info_sections(client):
    for section in ("server", "clients", "memory", "persistence", "stats", "replication", "cpu", "keyspace",
                    "holdfast"):
        text = client.cmd("INFO", section)
        headings = re.findall(r"^# (\w+)", text, re.M)
        assert [h.lower() for h in headings] == [section], section
    for section in ("all", "everything", "default", "commandstats", "errorstats", "latencystats"):
        client.cmd("INFO", section)
    assert set(re.findall(r"^# (\w+)", client.cmd("INFO", "server", "clients"), re.M)) == {"Server", "Clients"}


def test_info_counts(client, name):
    before = int(info_of(client)["total_commands_processed"])
    client.pipeline(*[("PING",)] * 10)
    assert int(info_of(client)["total_commands_processed"]) >= before + 10
    client.cmd("LOCK", name)
    match = re.match(r"keys=(\d+)", info_of(client, "keyspace")["db0"])
    assert match and int(match.group(1)) >= 1


def test_info_shows_blocked_clients(client, other, name):
    client.cmd("LOCK", name)
    other.send("LOCK", name, "WAIT", 0)
    wait_for("blocked_clients", lambda: int(info_of(client)["blocked_clients"]) >= 1)
    client.cmd("UNLOCK", name)
    other.recv()
    wait_for("no blocked_clients", lambda: int(info_of(client)["blocked_clients"]) == 0)


# CONFIG, TIME

def test_config_get(client):
    everything = as_map(client.cmd("CONFIG", "GET", "*"))
    assert len(everything) > 10
    leases = as_map(client.cmd("CONFIG", "GET", "*lease*"))
    assert any(key.endswith("max_lease") for key in leases)
    assert set(leases) < set(everything)
    assert as_map(client.cmd("CONFIG", "GET", "nosuchoption")) == {}


def test_config_get_several_patterns(client):
    got = as_map(client.cmd("CONFIG", "GET", "*max_lease", "*min_validity"))
    assert len(got) == 2


def test_config_shows_no_password(make_redis, make_broker, clients):
    master = make_redis("a", tcp=True, password="hunter2secret")
    broker = make_broker([master])
    client = clients(broker)
    assert "hunter2secret" not in " ".join(flat(client.cmd("CONFIG", "GET", "*")))
    assert "hunter2secret" not in " ".join(flat(client.cmd("MASTERS")))
    assert "hunter2secret" not in client.cmd("INFO", "everything")
    assert "hunter2secret" not in broker.log_text()


def test_time(client):
    seconds, micros = client.cmd("TIME")
    assert abs(int(seconds) - time.time()) < 5 and 0 <= int(micros) < 1000000


# SUBSCRIBE and its family

def test_subscribe_and_unsubscribe(client):
    assert client.pipeline(("SUBSCRIBE", "lost", "lock:x"))[0] == ["subscribe", "lost", 1]
    assert client.recv() == ["subscribe", "lock:x", 2]
    assert client.cmd("PSUBSCRIBE", "lock:*") == ["psubscribe", "lock:*", 3]
    assert client.cmd("UNSUBSCRIBE", "lost") == ["unsubscribe", "lost", 2]
    assert client.cmd("UNSUBSCRIBE", "never") == ["unsubscribe", "never", 2]
    assert client.cmd("PUNSUBSCRIBE") == ["punsubscribe", "lock:*", 1]
    assert client.cmd("UNSUBSCRIBE") == ["unsubscribe", "lock:x", 0]
    assert client.cmd("UNSUBSCRIBE") == ["unsubscribe", None, 0]
    assert client.cmd("OWNER")


def test_a_resp2_subscriber_may_say_little(one, client):
    client.cmd("SUBSCRIBE", "lost")
    assert client.cmd("PING") == ["pong", ""]
    assert client.cmd("PING", "x") == ["pong", "x"]
    assert str(client.err("LOCK", "n")) == (
        "ERR Can't execute 'lock': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed"
        " in this context")
    assert client.cmd("RESET") == "RESET"
    assert client.cmd("PING") == "PONG"


def test_a_resp3_subscriber_may_say_everything(one, clients, name):
    three = clients(one.broker, resp3=True)
    three.send("SUBSCRIBE", "lock:" + name)
    assert three.recv_push() == ["subscribe", "lock:" + name, 1]
    assert three.cmd("PING") == "PONG"
    token = three.cmd("LOCK", name)[0]
    message = three.wait_push("message")
    assert message[1] == "lock:" + name and "granted" in message[2]
    assert token


def test_the_channel_of_a_lock(client, other, name):
    listener = client
    listener.cmd("SUBSCRIBE", "lock:" + name)
    other.cmd("LOCK", name)
    assert "granted" in listener.recv()[2]
    other.cmd("UNLOCK", name)
    message = listener.recv()
    assert message[:2] == ["message", "lock:" + name] and "released" in message[2]


def test_psubscribe_gets_pmessages(client, other, name):
    client.cmd("PSUBSCRIBE", "lock:" + name + "*")
    other.cmd("LOCK", name + "1")
    message = client.recv()
    assert message[0] == "pmessage" and message[2] == "lock:" + name + "1" and "granted" in message[3]


@pytest.mark.parametrize("words", [("SUBSCRIBE", "lock:{}"), ("PSUBSCRIBE", "lock:*"), ("MONITOR",)])
def test_what_listens_begins_behind_the_replies_before_it(make_broker, masters1, clients, name, words):
    """A RESP2 client would take a message that comes first for the reply to its LOCK."""
    broker = make_broker(masters1, options={"request_timeout": "10s"})
    client, other = clients(broker), clients(broker)
    masters1[0].stop()
    client.send_raw(encode("LOCK", name) + encode(*(word.format(name) for word in words)))
    wait_for("the LOCK", lambda: int(broker.info()["waiters"]) == 1)
    other.cmd("ECHO", "heard by a monitor")
    masters1[0].cont()
    assert client.recv()[0] > 0
    answer = client.recv()
    assert answer == "OK" or answer[0] == words[0].lower()


# LOCKINFO, LOCKS, FORCEUNLOCK, MASTERS

def test_lockinfo_of_a_held_lock(client, other, name):
    token = client.cmd("LOCK", name, "OWNER", "app")[0]
    client.cmd("LOCK", name, "OWNER", "app")
    other.send("LOCK", name, "WAIT", 0)

    def info():
        return as_map(client.cmd("LOCKINFO", name))
    wait_for("a waiter", lambda: "0" not in flat(info()["waiters"])[:1] and flat(info()["waiters"]))
    reply = info()
    assert {"kind", "limit", "holders", "waiters"} <= set(reply)
    assert len(reply["holders"]) == 1
    holder = as_map(reply["holders"][0])
    assert holder["owner"] == "app" and holder["count"] == 2 and holder["token"] == token
    remaining = [v for k, v in holder.items() if "remaining" in k]
    assert len(remaining) == 1 and remaining[0] > 0
    client.cmd("UNLOCK", name, "OWNER", "app")
    client.cmd("UNLOCK", name, "OWNER", "app")
    assert other.recv()[0] > token


def test_lockinfo_in_resp3_is_a_map(one, clients, name):
    three = clients(one.broker, resp3=True)
    three.cmd("LOCK", name)
    reply = three.cmd("LOCKINFO", name)
    assert isinstance(reply, dict) and isinstance(reply["holders"][0], dict)


def test_lockinfo_of_a_free_lock(client, name):
    reply = as_map(client.cmd("LOCKINFO", name))
    assert reply["holders"] == []


def test_lockinfo_of_a_lock_held_through_another_broker(two_brokers, clients, name):
    a, b = [clients(broker) for broker in two_brokers]
    token = a.cmd("LOCK", name, "OWNER", "app")[0]
    holder = as_map(as_map(b.cmd("LOCKINFO", name))["holders"][0])
    assert holder["owner"] == "app" and holder["token"] == token
    assert "elsewhere" in flat(holder)


def lock_names(entries):
    """The names in LOCKS's second element, whatever shape an entry has."""
    names = []
    for entry in entries:
        if isinstance(entry, dict):
            names.append(entry["name"])
        elif isinstance(entry, list):
            names.append(as_map(entry)["name"] if entry[0] == "name" else entry[0])
        else:
            names.append(entry)
    return names


def all_locks(client, *options):
    cursor, seen, rounds = "0", [], 0
    while True:
        cursor, entries = client.cmd("LOCKS", "CURSOR", cursor, *options)
        seen += lock_names(entries)
        rounds += 1
        assert rounds < 1000
        if str(cursor) == "0":
            return seen, rounds


def test_locks_with_cursor(client, name):
    names = {"%s:%d" % (name, i) for i in range(50)}
    client.pipeline(*[("LOCK", n) for n in names])
    seen, rounds = all_locks(client, "MATCH", name + ":*", "COUNT", 7)
    assert set(seen) == names and len(seen) == 50
    assert rounds > 1
    seen, _ = all_locks(client, "MATCH", name + ":1?")
    assert set(seen) == {"%s:%d" % (name, i) for i in range(10, 20)}
    client.pipeline(*[("UNLOCK", n) for n in names])
    assert all_locks(client, "MATCH", name + ":*")[0] == []


def test_locks_without_options(client, name):
    client.cmd("LOCK", name)
    cursor, entries = client.cmd("LOCKS")
    assert str(cursor).isdigit()
    assert isinstance(entries, list)


@pytest.mark.parametrize("options, word", [
    (("CURSOR", "x"), "CURSOR"), (("COUNT", "0"), "COUNT"), (("COUNT", "x"), "COUNT"), (("MATCH",), "MATCH"),
    (("FOO",), "FOO"),
])
def test_locks_bad_options(client, options, word):
    err = client.err("LOCKS", *options)
    assert err.code == "ERR" and word.lower() in str(err).lower()


def test_forceunlock(client, other, name):
    assert client.cmd("FORCEUNLOCK", name) == 0
    client.cmd("OWNER", "app")
    token = client.cmd("LOCK", name)[0]
    client.cmd("LOCK", name)
    assert other.cmd("FORCEUNLOCK", name) == 1
    assert client.cmd("HOLDS", name) == 0
    assert client.err("UNLOCK", name).code == "NOTHELD"
    assert other.cmd("LOCK", name)[0] > token


def test_forceunlock_serves_the_next_waiter(client, other, clients, one, name):
    client.cmd("LOCK", name)
    other.send("LOCK", name, "WAIT", 0)
    assert other.silent(0.1)
    assert clients(one.broker).cmd("FORCEUNLOCK", name) == 1
    assert other.recv()[0] > 0


def test_masters(one, client):
    reply = client.cmd("MASTERS")
    assert len(reply) == 1
    words = flat(reply)
    assert any(one.masters[0].path in word for word in words)
    assert "active" in " ".join(words).lower()


# HTTP

@pytest.mark.parametrize("request_text", [
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\nLOCK http-a\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\nLOCK http-a\r\n",
    b"Host: x\r\nLOCK http-a\r\n",
    b"post / HTTP/1.1\r\nLOCK http-a\r\n",
], ids=["POST", "GET", "Host", "post"])
def test_http_is_refused(one, clients, client, request_text):
    browser = clients(one.broker)
    browser.send_raw(request_text)
    got = browser.read_to_end()
    assert b"*2" not in got and got.count(b"\r\n") <= 1
    assert client.cmd("LOCK", "http-a")[0] > 0
    assert client.cmd("UNLOCK", "http-a") == 1


def test_the_connection_survives_unknown_commands(client):
    for _ in range(50):
        client.err("WHAT", "is", "this")
    try:
        assert client.cmd("PING") == "PONG"
    except Closed:
        pytest.fail("an unknown command closed the connection")
