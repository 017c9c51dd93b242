"""Users: passwords, classes, names, other ways in, strangers, the wait after wrong passwords, reload."""

import os
import re
import socket
import subprocess
import threading
import time

import pytest

import procs
from holdfastproc import HoldfastProc, daemon_path, run, write_config
from respclient import Closed, RespClient, RespError, as_map, encode, flat


def hash_of(password):
    done = subprocess.run([daemon_path(), "--hash-password"], input=password + "\n", capture_output=True,
                          text=True, check=True, timeout=20)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def hashes():
    return {name: hash_of(name + "-secret") for name in ("app", "ops", "web")}


class UsersProc(HoldfastProc):
    """`users` is the section [users]."""

    def __init__(self, directory, masters, users, **kwargs):
        self.users = dict(users)
        super().__init__(directory, masters, **kwargs)

    def configure(self, **options):
        super().configure(**options)
        with open(self.conf, "a", encoding="utf-8") as out:
            out.write("\n[users]\n" + "".join("%s = %s\n" % item for item in self.users.items()))

    def reload(self):
        self.configure()
        mark = self.log_size()
        self.hup()
        self.wait_log("configuration read again", since=mark)

    def wait_quorum(self, deadline_s=20.0):
        with self.connect() as client:
            client.send("AUTH", "ops", "ops-secret")
            if client.recv() != "OK":
                return

            def granted():
                client.send("LOCK", "ready", "LEASE", 1000)
                return isinstance(client.recv(), list)
            procs.wait_for("a quorum of masters", granted, deadline_s, 0.02)
            client.cmd("UNLOCK", "ready")


@pytest.fixture
def users(hashes):
    return {
        "app": hashes["app"], "app.allow": "lock", "app.names": "orders:* jobs:[0-9]",
        "ops": hashes["ops"], "ops.allow": "lock inspect admin",
        "web": hashes["web"], "web.allow": "inspect",
    }


@pytest.fixture
def make_users_broker(request, tmp_path, masters1):
    made = []
    request.node.holdfast_brokers = made

    def make(section, **kwargs):
        broker = UsersProc(tmp_path, {m.name: m.url for m in masters1}, section, **kwargs)
        made.append(broker)
        return broker.start()
    yield make
    for broker in made:
        broker.close()


@pytest.fixture
def broker(make_users_broker, users):
    return make_users_broker(users)


@pytest.fixture
def login(broker, clients):
    def make(name=None):
        client = clients(broker)
        if name:
            assert client.cmd("AUTH", name, name + "-secret") == "OK"
        return client
    return make


def test_hash_password():
    first, second = hash_of("x"), hash_of("x")
    assert first != second and re.fullmatch(r"pbkdf2-sha256:10000:[0-9a-f]{32}:[0-9a-f]{64}", first)
    done = subprocess.run([daemon_path(), "--hash-password"], input="", capture_output=True, text=True,
                          timeout=20, check=False)
    assert done.returncode == 1 and "empty" in done.stderr


def test_nothing_without_a_password(login):
    client = login()
    for command in (["PING"], ["LOCK", "x"], ["INFO"], ["CLIENT", "ID"], ["COMMAND"], ["ACL", "WHOAMI"]):
        assert str(client.err(*command)) == "NOAUTH Authentication required."
    assert client.err("HELLO", 3).code == "NOAUTH"
    assert client.err("nonsense").code == "ERR"
    assert client.cmd("AUTH", "app", "app-secret") == "OK"
    assert client.cmd("PING") == "PONG"
    assert client.cmd("ACL", "WHOAMI") == "app"


def test_strangers_are_counted(login):
    admin, strangers = login("ops"), [login() for _ in range(2)]

    def unauthenticated():
        return int(re.search(r"unauthenticated_clients:(\d+)", admin.cmd("INFO", "clients")).group(1))
    procs.wait_for("two of them", lambda: unauthenticated() == 2)
    strangers[0].cmd("AUTH", "app", "app-secret")
    assert unauthenticated() == 1
    strangers[1].close()
    procs.wait_for("the last one to go", lambda: unauthenticated() == 0)


def test_hello_auth(login, broker):
    client = login()
    reply = client.cmd("HELLO", 3, "AUTH", "ops", "ops-secret", "SETNAME", "me")
    assert reply["proto"] == 3
    assert client.cmd("CLIENT", "GETNAME") == "me"
    assert client.cmd("ACL", "WHOAMI") == "ops"
    assert client.cmd("RESET") == "RESET"
    assert client.err("PING").code == "NOAUTH"


def test_wrong_passwords(login):
    client = login()
    for args in (["app", "x"], ["app", ""], ["nobody", "app-secret"], ["app-secret"], ["app", "app-secret "],
                 ["APP", "app-secret"]):
        assert client.err("AUTH", *args).code == "WRONGPASS"
    assert client.err("HELLO", 3, "AUTH", "app", "x").code == "WRONGPASS"
    assert client.err("PING").code == "NOAUTH"


def test_a_wrong_password_leaves_who_one_was(login):
    client = login("app")
    assert client.err("AUTH", "ops", "x").code == "WRONGPASS"
    assert client.cmd("ACL", "WHOAMI") == "app"
    assert client.cmd("AUTH", "ops", "ops-secret") == "OK"
    assert client.cmd("ACL", "WHOAMI") == "ops"


def test_classes(login):
    app, web, ops = login("app"), login("web"), login("ops")
    assert app.cmd("LOCK", "orders:1")
    assert str(app.err("CONFIG", "GET", "*")) == \
        "NOPERM user 'app' may not run 'config|get': it lacks the class admin"
    assert "class inspect" in str(app.err("INFO"))
    assert "class admin" in str(app.err("FORCEUNLOCK", "orders:1"))
    assert "class lock" in str(web.err("LOCK", "orders:1"))
    assert web.cmd("LOCKINFO", "orders:1")
    for command in (["SHUTDOWN"], ["CLIENT", "LIST"], ["CLIENT", "KILL", "ID", "1"], ["MONITOR"], ["SLOWLOG", "GET"],
                    ["ACL", "LIST"], ["MASTER", "a", "TRUST"]):
        assert web.err(*command).code == "NOPERM"
    assert ops.cmd("FORCEUNLOCK", "orders:1") == 1


def test_names(login):
    app, ops = login("app"), login("ops")
    assert ops.cmd("LOCK", "secret:1")
    assert app.cmd("LOCK", "orders:1")
    assert app.cmd("LOCK", "jobs:7")
    for name in ("secret:1", "order", "jobs:77", "Orders:1", "*", ""):
        for command in (["LOCK", name], ["UNLOCK", name], ["RENEW", name]):
            assert app.err(*command).code == "NOPERM"
    assert str(app.err("LOCK", "secret:1")) == \
        "NOPERM user 'app' may not use the name 'secret:1' (users: app.names)"
    assert ops.cmd("HOLDS", "secret:1") == 1


def test_names_in_what_is_shown(make_users_broker, users, clients):
    users["app.allow"] = "lock inspect"
    broker = make_users_broker(users)
    app, ops = clients(broker), clients(broker)
    app.cmd("AUTH", "app", "app-secret")
    ops.cmd("AUTH", "ops", "ops-secret")
    ops.cmd("LOCK", "secret:1")
    app.cmd("LOCK", "orders:1")
    assert app.cmd("LOCKS", "COUNT", 100)[1] == ["orders:1"]
    assert sorted(ops.cmd("LOCKS", "COUNT", 100)[1]) == ["orders:1", "secret:1"]
    assert app.err("LOCKINFO", "secret:1").code == "NOPERM"
    assert app.err("HOLDS", "secret:1").code == "NOPERM"
    for command in (["SUBSCRIBE", "lost"], ["SUBSCRIBE", "lock:orders:1", "lock:secret:1"], ["PSUBSCRIBE", "lock:orders:*"],
                    ["PUBSUB", "CHANNELS"], ["PUBSUB", "NUMSUB", "lost"], ["PUBSUB", "NUMSUB", "lock:orders:1", "lock:secret:1"]):
        assert app.err(*command).code == "NOPERM"
    assert app.cmd("PUBSUB", "NUMSUB", "lock:orders:1") == ["lock:orders:1", 0] and app.cmd("PUBSUB", "NUMSUB") == []
    assert app.cmd("SUBSCRIBE", "lock:orders:1")[0] == "subscribe"


@pytest.fixture
def limited(make_users_broker, users, clients, hashes):
    """login(name) to a broker where the administrator `half` has some names only."""
    users.update({"half": hashes["web"], "half.allow": "lock inspect admin", "half.names": "orders:*"})
    broker = make_users_broker(users)

    def make(name):
        client = clients(broker)
        client.cmd("AUTH", name, ("web" if name == "half" else name) + "-secret")
        return client
    return make


def test_monitor_shows_the_names_of_its_user_only(limited):
    half, ops = limited("half"), limited("ops")
    assert half.cmd("MONITOR") == "OK"
    all_of_it = limited("ops")
    all_of_it.cmd("MONITOR")
    for command in (["LOCK", "secret:1"], ["LOCK", "orders:1"], ["MLOCK", 2, "orders:2", "secret:2"], ["LOCKS", "MATCH", "secret:*"],
                    ["HOLDS", "secret:1"], ["COMMAND", "GETKEYS", "LOCK", "secret:1"], ["SUBSCRIBE", "lock:secret:1"],
                    ["UNSUBSCRIBE", "lock:secret:1"], ["PUBSUB", "NUMSUB", "lock:secret:1"], ["PUBSUB", "NUMSUB", "lock:orders:1"],
                    ["PING", "secret"], ["UNLOCK", "orders:1"], ["PING"]):
        ops.send(*command)
    seen, full = [], []
    for client, lines in ((half, seen), (all_of_it, full)):
        while not lines or '"PING"' not in lines[-1] or "secret" in lines[-1] or "redacted" in lines[-1]:
            lines.append(str(client.recv()))
    assert sum("secret" in line for line in full) == 9
    assert not [line for line in seen if "secret" in line]
    assert [re.sub(r".*?\] ", "", line) for line in seen if "orders" in line] == \
        ['"LOCK" "orders:1"', '"PUBSUB" "NUMSUB" "lock:orders:1"', '"UNLOCK" "orders:1"']
    other = limited("half")
    for command in (["SLOWLOG", "GET"], ["ACL", "LOG"], ["PUBSUB", "CHANNELS"], ["WAITING"]):
        assert str(other.err(*command)).endswith("it shows names of others")


def test_deadlock_names_what_one_may_see(limited):
    half, ops = limited("half"), limited("ops")
    for first, second in (("secret:\u202e1", "another lock"), ("orders:9", "'orders:9'")):
        assert isinstance(half.cmd("LOCK", "orders:1"), list) and isinstance(ops.cmd("LOCK", "orders:2"), list)
        third = limited("ops")
        assert isinstance(third.cmd("LOCK", first), list)
        ops.send("LOCK", first, "WAIT", 20000)
        third.send("LOCK", "orders:1", "WAIT", 20000)
        procs.wait_for("both to wait", lambda: limited("ops").cmd("INFO", "clients").count("blocked_clients:2"), 10)
        text = str(half.err("LOCK", "orders:2", "WAIT", 20000))
        assert text.startswith("DEADLOCK 'orders:2' is held by connection ")
        assert "secret" not in text and "which waits for %s; %s is held by" % (second, second) in text
        assert half.cmd("UNLOCK", "orders:1") == 1
        assert isinstance(third.recv(), list)
        for client in (ops, third):  # a reply that nobody has read would make it a reset: its lock would stay
            client.close()
        ops = limited("ops")


def test_acl_commands(login):
    ops = login("ops")
    assert ops.cmd("ACL", "USERS") == ["app", "ops", "web"]
    listed = ops.cmd("ACL", "LIST")
    assert listed[0] == "user app on #*** ~orders:* ~jobs:[0-9] -@all +@connection +@lock"
    assert "pbkdf2" not in str(listed)
    assert ops.cmd("ACL", "LOG", "RESET") == "OK"
    app = login("app")
    for _ in range(3):
        app.err("INFO")
    app.err("LOCK", "x")
    login().err("PING")
    login().err("AUTH", "app", "x")
    entries = [as_map(e) for e in ops.cmd("ACL", "LOG")]
    assert [(e["reason"], e["object"], e["username"], e["count"]) for e in entries] == [
        ("auth", "AUTH", "app", 1), ("auth", "ping", "", 1), ("key", "x", "app", 1), ("command", "info", "app", 3)]
    assert len(ops.cmd("ACL", "LOG", 2)) == 2
    assert "user=app " in ops.cmd("CLIENT", "LIST")
    assert ops.cmd("CLIENT", "KILL", "USER", "app") >= 1
    assert ops.err("CLIENT", "KILL", "USER", "nobody").code == "ERR"


def test_secrets_are_never_shown(login, broker):
    ops, watcher = login("ops"), login("ops")
    watcher.cmd("MONITOR")
    login("app")
    client = login()
    client.err("AUTH", "app", "guessed")
    client.err("HELLO", 3, "AUTH", "app", "guessed")
    ops.cmd("CONFIG", "GET", "protected_mode")
    time.sleep(0.2)
    ops.cmd("LOCK", "last")
    seen = ""
    while "last" not in seen:
        seen += str(watcher.recv())
    shown = seen + " ".join(flat(ops.cmd("SLOWLOG", "GET"))) + str(ops.cmd("CONFIG", "GET", "*")) + \
        str(ops.cmd("ACL", "LOG")) + broker.log_text()
    for secret in ("app-secret", "ops-secret", "guessed", "pbkdf2"):
        assert secret not in shown


# ---- other ways in ----

def test_refusals_are_logged_once_a_minute(make_users_broker, users):
    broker = make_users_broker(users)
    mark = broker.log_size()
    for _ in range(3):
        with broker.connect() as client:
            assert client.err("GET", "x").code in ("ERR", "NOAUTH")
            assert client.err("AUTH", "app", "guessed").code == "WRONGPASS"
    text = broker.log_text(mark)
    assert len(re.findall(r"(?m) warn +users: wrong password peer=127\.0\.0\.1:\d+ .* user=app object=AUTH$", text)) == 1
    assert text.count("users: ") <= 2
    assert "guessed" not in text


def test_unix_peers_by_uid(make_users_broker, users, tmp_path):
    path = "/tmp/hft-users-%d.sock" % os.getpid()
    users["app.uid"] = str(os.getuid())
    broker = make_users_broker(users, listen="127.0.0.1:0 unix:%s" % path)
    with RespClient(path) as client:
        assert client.cmd("ACL", "WHOAMI") == "app"
        assert client.cmd("LOCK", "orders:1")
        client.cmd("AUTH", "ops", "ops-secret")
        assert client.cmd("ACL", "WHOAMI") == "ops"
        client.cmd("RESET")
        assert client.cmd("ACL", "WHOAMI") == "app"
    with broker.connect() as client:
        assert client.err("PING").code == "NOAUTH"


def test_nopass_default(make_users_broker, users, clients, hashes):
    users.update({"default": "nopass", "default.allow": "inspect"})
    broker = make_users_broker(users)
    client = clients(broker)
    assert client.cmd("ACL", "WHOAMI") == "default"
    assert "uptime_in_seconds" in client.cmd("INFO")
    assert client.err("LOCK", "x").code == "NOPERM"
    users["default"] = hashes["app"]
    broker.users = users
    broker.reload()
    client = clients(broker)
    assert client.cmd("AUTH", "app-secret") == "OK"
    assert client.cmd("ACL", "WHOAMI") == "default"


# ---- strangers ----

def test_strangers_have_five_seconds(login, broker):
    client = login()
    start = time.monotonic()
    client.err("PING")
    assert client.read_to_end() == b""
    assert 4 < time.monotonic() - start < 9
    broker.wait_log("did not say in time who it is reason=auth_timeout")


def test_strangers_are_bounded(login, broker):
    for data in (encode("PING", "x" * 2000), encode(*["PING"] * 20), b"*9\r\n", b"x" * 3000):
        client = login()
        client.send_raw(data)
        assert b"Protocol error" in client.read_to_end()
    client = login("app")
    assert client.cmd("PING", "x" * 2000) == "x" * 2000


def test_strangers_are_few(broker, clients):
    app = clients(broker)
    app.cmd("AUTH", "app", "app-secret")
    strangers = []
    refused = 0
    for _ in range(270):
        strangers.append(clients(broker))
    for client in strangers[-14:]:
        refused += b"max number of unauthenticated clients" in client.read_to_end(2)
    assert refused == 14
    assert app.cmd("PING") == "PONG"
    assert strangers[0].cmd("AUTH", "app", "app-secret") == "OK"
    late = clients(broker)
    assert late.cmd("AUTH", "app", "app-secret") == "OK"
    info = app
    assert info.err("INFO").code == "NOPERM"


# ---- wrong passwords ----

def test_guessing_is_slow_and_holds_up_nobody(login):
    app, guesser = login("app"), login()
    start = time.monotonic()
    for _ in range(4):
        assert guesser.err("AUTH", "ops", "x").code == "WRONGPASS"
    assert time.monotonic() - start > 1.3  # 200 + 400 + 800 ms
    guesser.send("AUTH", "ops", "x")       # waits 1.6 s
    worst = 0.0
    for _ in range(50):
        start = time.monotonic()
        assert app.cmd("PING") == "PONG"
        worst = max(worst, time.monotonic() - start)
    assert worst < 0.5
    # Another user from the same place does not wait.
    start = time.monotonic()
    login("web")
    assert time.monotonic() - start < 1.0


def test_guessing_in_parallel_gains_nothing(broker, clients):
    guessers = [clients(broker) for _ in range(20)]
    for g in guessers:
        g.send("AUTH", "ops", "x")
    time.sleep(1.0)
    answered = 0
    for g in guessers:
        g.sock.setblocking(False)
        try:
            answered += g.sock.recv(100).startswith(b"-WRONGPASS")
        except BlockingIOError:
            pass
    assert 1 <= answered <= 4


def test_no_order_of_options_evades_the_delay(login):
    guesser = login()
    start = time.monotonic()
    for _ in range(4):
        assert guesser.err("HELLO", 3, "SETNAME", "AUTH", "AUTH", "ops", "x").code == "WRONGPASS"
    assert guesser.err("HELLO", 3, "AUTH", "a", "b", "AUTH", "ops", "x").code == "WRONGPASS"
    assert time.monotonic() - start > 2.9  # 200 + 400 + 800 + 1600 ms


def from_address(broker, address):
    sock = socket.socket()
    sock.bind((address, 0))
    sock.connect(("127.0.0.1", broker.port))
    sock.settimeout(10)
    return sock


def wrong_passwords(admin):
    return int(dict(line.split(":", 1) for line in admin.cmd("INFO", "holdfast").splitlines() if ":" in line)
               ["auth_failures_password"])


def test_passwords_do_not_stop_the_loop(broker, login):
    """Each from an address of its own, with several names: none of them has to wait at first."""
    admin = login("ops")
    guessers = [from_address(broker, "127.0.1.%d" % i) for i in range(1, 21)]
    for sock in guessers:
        sock.sendall(b"".join(encode("AUTH", "x%d" % i, "y") for i in range(8)))
    procs.wait_for("the first of them", lambda: wrong_passwords(admin) > 0, 20)
    assert wrong_passwords(admin) < 33, "the loop stood still for them"
    # Who comes from elsewhere has his turn before they are through.
    with login() as other:
        assert other.cmd("AUTH", "web", "web-secret") == "OK"
        assert wrong_passwords(admin) < 80
    for sock in guessers:
        sock.close()
    assert admin.cmd("PING") == "PONG"


def try_for_ever(broker, stop, password):
    while not stop.is_set():
        with broker.connect() as client:
            client.send("AUTH", "app", password)
            try:
                client.recv()
            except (Closed, OSError):
                pass


def test_an_old_password_holds_up_nobody(broker, clients):
    """The right one has not been seen yet when the first of them comes."""
    stop = threading.Event()
    others = [threading.Thread(target=try_for_ever, args=(broker, stop, "old-secret")) for _ in range(8)]
    for thread in others:
        thread.start()
    try:
        admin = clients(broker)
        admin.cmd("AUTH", "ops", "ops-secret")
        procs.wait_for("two of them to be refused", lambda: "auth_failures_password:2" in admin.cmd("INFO"), 20)
        for _ in range(20):
            start = time.monotonic()
            assert clients(broker).cmd("AUTH", "app", "app-secret") == "OK"
            assert time.monotonic() - start < 4.0
    finally:
        stop.set()
        for thread in others:
            thread.join()


def test_the_rest_of_a_pipeline_waits_for_the_password(broker, clients):
    client = clients(broker)
    client.send_raw(encode("AUTH", "app", "app-secret") + encode("PING") + encode("AUTH", "app", "x") + encode("LOCK", "x")
                    + encode("LOCK", "orders:1") + encode("HELLO", 3, "AUTH", "ops", "ops-secret") + encode("LOCK", "x"))
    assert client.recv() == "OK" and client.recv() == "PONG"
    assert client.recv().code == "WRONGPASS"
    assert client.recv().code == "NOPERM"
    assert isinstance(client.recv(), list)
    assert client.recv()["proto"] == 3
    assert isinstance(client.recv(), list)


def test_who_ends_its_side_hears_the_answer(broker, clients):
    client = clients(broker)
    client.send_raw(encode("AUTH", "app", "app-secret") + encode("PING"))
    client.sock.shutdown(socket.SHUT_WR)
    assert client.read_to_end() == b"+OK\r\n+PONG\r\n"


def test_who_goes_while_its_password_is_looked_at(broker, login):
    for _ in range(20):
        sock = from_address(broker, "127.0.0.1")
        sock.sendall(encode("AUTH", "web", "guess"))
        sock.close()
    assert login("app").cmd("PING") == "PONG"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_local_users_do_not_wait_for_each_other(make_users_broker, users):
    path = "/tmp/hft-users-%d-b.sock" % os.getpid()
    broker = make_users_broker(users, listen="127.0.0.1:0 unix:%s" % path, options={"unix_socket_mode": "0666"})
    for _ in range(4):
        with RespClient(path) as client:
            assert client.err("AUTH", "app", "guess").code == "WRONGPASS"
    code = "import socket,sys,time\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n" \
        "t = time.monotonic()\ns.sendall(b'AUTH app app-secret\\r\\n')\nprint(s.recv(100), time.monotonic() - t < 1.2)"
    done = subprocess.run(["python3", "-c", code, path], user=65534, capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout == "b'+OK\\r\\n' True\n"


# ---- reload ----

def test_reload(broker, login, users, hashes):
    app, web, ops = login("app"), login("web"), login("ops")
    users["app.allow"] = "lock inspect"
    users["app.names"] = "new:*"
    del users["web"], users["web.allow"]
    broker.users = users
    broker.reload()
    assert web.read_to_end() == b""
    broker.wait_log("its user is no longer there")
    assert app.cmd("LOCK", "new:1")
    assert app.err("LOCK", "orders:1").code == "NOPERM"
    assert "uptime" in app.cmd("INFO")
    assert ops.cmd("ACL", "USERS") == ["app", "ops"]
    users["app"] = hashes["web"]
    broker.reload()
    assert login().err("AUTH", "app", "app-secret").code == "WRONGPASS"
    time.sleep(0.3)
    assert login().cmd("AUTH", "app", "web-secret") == "OK"
    users["app"] = "rubbish"
    broker.configure()
    mark = broker.log_size()
    broker.hup()
    broker.wait_log("configuration unchanged", since=mark)
    assert app.cmd("PING") == "PONG"


def test_who_listens_by_changed_rights_is_closed(broker, login, users):
    monitor, listener, other = login("ops"), login("app"), login("app")
    monitor.cmd("MONITOR")
    listener.cmd("SUBSCRIBE", "lock:orders:1")
    broker.reload()
    assert other.cmd("PING") == "PONG"
    assert monitor.silent(0.2) or monitor.recv()
    users.update({"ops.allow": "lock inspect", "app.names": "jobs:*"})
    broker.users = users
    broker.reload()
    monitor.read_to_end()
    assert listener.read_to_end() == b""
    broker.wait_log("the rights of its user have changed")
    assert other.cmd("PING") == "PONG"


@pytest.mark.parametrize("option, value", [("app.names", "jobs:*"), ("app.allow", "inspect")])
@pytest.mark.parametrize("words", [("LOCK", "orders:1"), ("LOCK", "orders:1", "OWNER", "me"),
                                   ("MLOCK", 2, "orders:2", "orders:1")],
                         ids=["lock", "owner", "mlock"])
def test_a_right_that_went_while_it_waited(broker, login, users, words, option, value):
    """Judged again at the grant; who waits behind it gets the lock at once."""
    holder, app, other = login("ops"), login("app"), login("ops")
    holder.cmd("LOCK", "orders:1")
    app.send(*words, "WAIT", 20000)
    procs.wait_for("the waiter", lambda: as_map(holder.cmd("LOCKINFO", "orders:1"))["waiting"] == 1)
    other.send("LOCK", "orders:1", "WAIT", 20000)
    procs.wait_for("both", lambda: as_map(holder.cmd("LOCKINFO", "orders:1"))["waiting"] == 2)
    broker.users = dict(users, **{option: value})
    broker.reload()
    assert holder.cmd("UNLOCK", "orders:1") == 1
    error = app.recv()
    assert isinstance(error, RespError) and error.code == "NOPERM" and "app" in str(error)
    assert other.recv()[0] > 0
    assert other.cmd("UNLOCK", "orders:1") == 1
    procs.wait_for("nothing is left", lambda: as_map(holder.cmd("LOCKINFO", "orders:2"))["holding"] == 0)
    assert app.cmd("PING") == "PONG"


@pytest.mark.parametrize("option, value", [("app.names", "jobs:*"), ("app.allow", "inspect")])
def test_what_is_held_can_be_given_back_without_the_right(broker, login, users, option, value):
    """By the connection that holds it alone: it is not renewed, nor given back by who only knows its owner."""
    ops, app, other = login("ops"), login("app"), login("app")
    assert app.cmd("LOCK", "orders:1") and app.cmd("LOCK", "orders:2", "OWNER", "me", "LEASE", 60000)
    assert app.cmd("MLOCK", 2, "orders:3", "orders:4") and app.cmd("LOCK", "orders:5", "SHARED")
    broker.users = dict(users, **{option: value})
    broker.reload()
    assert as_map(ops.cmd("LOCKINFO", "orders:1"))["holding"] == 1
    assert other.err("UNLOCK", "orders:2", "OWNER", "me").code == "NOPERM"
    for words in (["RENEW", "orders:1"], ["LOCK", "orders:1", "OWNER", "x"], ["MUNLOCK", 2, "orders:1", "orders:6"],
                  ["UNLOCK", "orders:2"], ["UNLOCK", "orders:2", "OWNER"], ["UNLOCK", "orders:2", "OWNER", "o" * 300]):
        assert app.err(*words).code == "NOPERM", words
    assert app.cmd("UNLOCK", "orders:1") == 1
    assert app.cmd("UNLOCK", "orders:2", "OWNER", "me") == 1
    assert app.cmd("MUNLOCK", 2, "orders:3", "orders:4") == 2
    assert app.cmd("UNLOCK", "orders:5") == 1
    assert app.err("UNLOCK", "orders:1").code == "NOPERM"


def test_a_right_that_stays_while_it_waited(broker, login, users):
    holder, app = login("ops"), login("app")
    holder.cmd("LOCK", "orders:1")
    app.send("LOCK", "orders:1", "WAIT", 20000)
    procs.wait_for("the waiter", lambda: as_map(holder.cmd("LOCKINFO", "orders:1"))["waiting"] == 1)
    broker.users = dict(users, **{"app.names": "orders:1"})
    broker.reload()
    assert holder.cmd("UNLOCK", "orders:1") == 1
    assert app.recv()[0] > 0


def test_from_nobody_to_users_and_back(make_users_broker, users, clients):
    broker = make_users_broker({})
    old = clients(broker)
    assert old.cmd("ACL", "WHOAMI") == "default"
    broker.users = users
    broker.reload()
    assert old.read_to_end() == b""
    client = clients(broker)
    assert client.err("PING").code == "NOAUTH"
    assert client.cmd("AUTH", "app", "app-secret") == "OK"
    broker.users = {}
    broker.reload()
    assert clients(broker).cmd("PING") == "PONG"


# ---- protected mode ----

@pytest.mark.parametrize("listen", ["0.0.0.0:0", "*:0", "127.0.0.1:0 [::]:0"])
def test_protected_mode(tmp_path, listen):
    path = write_config(str(tmp_path / "x.ini"), {"a": "redis://127.0.0.1:1"}, listen=listen)
    status, _, err = run("-c", path)
    assert status == 1
    assert "is open to other machines" in err and "protected_mode = no" in err
    assert run("-c", path, "-t", "-o", "holdfast.protected_mode=no")[0] == 0
    assert run("-c", path, "-t", "-o", "users.app=none")[0] == 0


def test_rights_over_what_a_lock_with_a_tag_is_told(login, broker):
    """They are judged again before it is granted; who listens to a tag may use it as a name."""
    ops, app, two, ears = login("ops"), login("app"), login("app"), login("app")
    app.cmd("HELLO", 3)
    assert ops.cmd("LOCK", "orders:1")
    assert app.cmd("LOCK", "orders:1", "WAIT", 0, "ASYNC", "t") == "QUEUED"
    for words in (("SUBSCRIBE", "async:t"), ("PSUBSCRIBE", "async:*"), ("LOCK", "orders:1", "ASYNC", "t")):
        with pytest.raises(RespError, match="NOPERM user 'app' may not use the channel 'async:"):
            two.cmd(*words)
    assert ears.cmd("SUBSCRIBE", "async:orders:x7f")[0] == "subscribe"
    assert two.cmd("LOCK", "orders:2", "ASYNC", "orders:x7f") == "QUEUED"
    assert ears.recv()[2].startswith("granted ")
    broker.users["app.names"] = "jobs:[0-9]"
    broker.reload()
    assert ops.cmd("UNLOCK", "orders:1") == 1
    end = app.recv_push()
    assert end[1:3] == ["t", "error"]
    assert end[3].startswith("NOPERM user 'app' may not take 'orders:1' any more")
