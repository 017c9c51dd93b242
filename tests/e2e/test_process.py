"""The process: options, configuration errors, signals, dev mode, systemd's two protocols."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

import holdfastproc
import procs
from holdfastproc import HoldfastProc, daemon_path, run
from procs import wait_for
from respclient import RespClient, as_map, flat

REDIS_URL = "unix:///nonexistent/redis.sock"


@pytest.fixture
def config(tmp_path):
    """config(text): a file with that text; its path."""
    def write(text, name="holdfast.ini"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)
    return write


GOOD = """\
[holdfast]
listen = 127.0.0.1:0
lease = 10s

[masters]
a = redis://127.0.0.1:6379
b = unix:///run/redis.sock
c = redis://user:secret@[::1]:6380/2
"""


# Options

def test_help():
    status, out, err = run("-h")
    assert status == 0 and err == ""
    for option in ("-c", "-t", "-p", "-o", "--dev", "-v", "-V", "-h"):
        assert option in out
    assert "holdfastd" in out


def test_version():
    status, out, err = run("-V")
    assert status == 0 and err == ""
    assert re.match(r"holdfastd \d+\.\d+", out) and out.count("\n") >= 1


@pytest.mark.parametrize("args, word", [
    (("-Z",), "Z"),
    (("--nosuch",), "nosuch"),
    (("-c",), "c"),
    (("-p", "x"), "x"),
    (("-p", "70000"), "70000"),
    (("-o", "nosuch"), "nosuch"),
    (("-o", "holdfast.nosuch=1"), "nosuch"),
    (("-o", "holdfast.lease=never"), "lease"),
    (("--dev=0",), "0"),
    (("--dev=x",), "x"),
    (("stray",), "stray"),
])
def test_bad_options(args, word):
    status, out, err = run(*args)
    assert status == 1
    assert out == ""
    lines = err.strip().splitlines()
    assert 1 <= len(lines) <= 2, err
    assert word in lines[0]


# -t and configuration errors

def test_t_accepts_a_good_file(config):
    status, _, err = run("-t", "-c", config(GOOD))
    assert status == 0, err


def test_t_does_not_touch_masters_or_ports(config, make_redis):
    """The address is taken and no master is there: the file is good all the same."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        text = GOOD.replace("127.0.0.1:0", "127.0.0.1:%d" % taken.getsockname()[1])
        assert run("-t", "-c", config(text))[0] == 0


BAD = {
    "unknown option": ("[holdfast]\nlisten = 127.0.0.1:0\nlaese = 10s\n[masters]\na = redis://h:1\n", 3, "laese"),
    "unknown section": ("[holdfast]\n\n[mastres]\na = redis://h:1\n", 4, "mastres"),
    "bad duration": ("[holdfast]\nlease = soon\n[masters]\na = redis://h:1\n", 2, "lease"),
    "below the bound": ("[holdfast]\nlease = 1ms\n[masters]\na = redis://h:1\n", 2, "lease"),
    "bad listen": ("[holdfast]\nlisten = 127.0.0.1:99999\n[masters]\na = redis://h:1\n", 2, "listen"),
    "bad word": ("[holdfast]\non_lost = explode\n[masters]\na = redis://h:1\n", 2, "on_lost"),
    "bad scheme": ("[holdfast]\nlease = 10s\n[masters]\na = http://h:1\n", 4, "a"),
    "bad port": ("[masters]\na = redis://h:99999\n", 2, "a"),
    "same master name twice": ("[masters]\na = redis://h:1\na = redis://h:2\n", 3, "a"),
    "no section": ("lease = 10s\n", 1, "section"),
    "not ini": ("[holdfast]\nthis is no option\n[masters]\na = redis://h:1\n", 2, None),
}


@pytest.mark.parametrize("text, line, word", BAD.values(), ids=BAD.keys())
def test_t_names_file_and_line(config, text, line, word):
    path = config(text)
    status, _, err = run("-t", "-c", path)
    assert status == 1
    first = err.strip().splitlines()[0]
    assert re.search(r"%s:%d\b" % (re.escape(path), line), first), err
    assert word is None or word in first


@pytest.mark.parametrize("text, line, word", BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_one_line_and_status_1(config, text, line, word):
    path = config(text)
    status, out, err = run("-c", path)
    assert status == 1 and out == ""
    assert len(err.strip().splitlines()) == 1, err
    assert "%s:%d" % (path, line) in err


def test_lease_above_max_lease(config):
    status, _, err = run("-t", "-c", config("[holdfast]\nlease = 50s\nmax_lease = 10s\n[masters]\na = redis://h:1\n"))
    assert status == 1 and "lease" in err


def test_no_masters(config):
    status, _, err = run("-c", config("[holdfast]\nlisten = 127.0.0.1:0\n"))
    assert status == 1 and "master" in err
    assert len(err.strip().splitlines()) == 1, err


def test_a_missing_file(tmp_path):
    path = str(tmp_path / "nosuch.ini")
    status, _, err = run("-c", path)
    assert status == 1 and path in err
    assert len(err.strip().splitlines()) == 1, err


def test_a_taken_port(config):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        path = config("[holdfast]\nlisten = 127.0.0.1:%d\n[masters]\na = %s\n" % (port, REDIS_URL))
        status, _, err = run("-c", path)
    assert status == 1 and str(port) in err


def test_p_and_o_override_the_file(make_broker, masters1, clients):
    broker = make_broker(masters1, listen="127.0.0.1:1",
                         args=["-p", "0", "-o", "holdfast.max_lease=33s"])
    values = as_map(clients(broker).cmd("CONFIG", "GET", "*max_lease"))
    assert list(values.values()) in (["33s"], ["33000"])


def test_o_listen(make_broker, masters1, clients):
    broker = make_broker(masters1, listen="127.0.0.1:1", args=["-o", "holdfast.listen=127.0.0.1:0"])
    assert clients(broker).cmd("PING") == "PONG"


def test_several_listeners_and_a_unix_socket(make_broker, masters1, make_redis, clients):
    path = os.path.join(masters1[0].dir, "hf")
    broker = make_broker(masters1, listen="127.0.0.1:0 unix:%s" % path)
    with RespClient(path) as local:
        assert local.cmd("PING") == "PONG"
        assert local.cmd("LOCK", "u")[0] > 0
    assert clients(broker).cmd("PING") == "PONG"
    broker.close()
    assert not os.path.exists(path)


def test_a_left_over_unix_socket_is_no_obstacle(make_broker, masters1):
    path = os.path.join(masters1[0].dir, "hf")
    broker = make_broker(masters1, listen="127.0.0.1:0 unix:%s" % path)
    broker.kill()
    broker.expect_status = 0
    broker.start()
    with RespClient(path) as local:
        assert local.cmd("PING") == "PONG"


def test_a_password_for_a_master(make_redis, make_broker, clients, name):
    master = make_redis("a", tcp=True, password="s3cret")
    assert clients(make_broker([master])).cmd("LOCK", name)[0] > 0


def test_a_wrong_password_for_a_master_is_named(make_redis, make_broker, clients, name):
    master = make_redis("a", tcp=True, password="s3cret")
    broker = make_broker({"a": master.url.replace("s3cret", "s3krit")}, ready=False)
    client = clients(broker)
    broker.wait_log(r"WRONGPASS")
    err = client.err("LOCK", name)
    assert err.code == "NOQUORUM"
    assert "s3krit" not in broker.log_text()


# SIGHUP

def lease_of(client):
    values = as_map(client.cmd("CONFIG", "GET", "*lease"))
    return [v for k, v in values.items() if k.split(".")[-1] == "lease"][0]


def test_hup_applies_a_good_file(broker1, clients, name):
    client = clients(broker1)
    assert client.cmd("LOCK", name)[1] < 1000
    before = lease_of(client)
    broker1.configure(lease="5s")
    broker1.hup()
    wait_for("the new lease", lambda: lease_of(client) != before)
    assert client.cmd("LOCK", name + "2")[1] > 4000
    assert client.cmd("HOLDS", name) == 1


def test_hup_with_a_bad_file_keeps_the_old(broker1, clients, name):
    client = clients(broker1)
    client.cmd("LOCK", name)
    before = lease_of(client)
    mark = broker1.log_size()
    broker1.configure(lease="5s", min_validity="rubbish")
    broker1.hup()
    broker1.wait_log(r"min_validity", since=mark)
    assert re.search(re.escape(broker1.conf) + r":\d+", broker1.log_text(mark))
    assert lease_of(client) == before
    assert client.cmd("HOLDS", name) == 1
    broker1.configure(min_validity="30ms")
    broker1.hup()
    wait_for("the new lease", lambda: lease_of(client) != before)


def test_hup_while_the_file_is_gone(broker1, clients):
    client = clients(broker1)
    mark = broker1.log_size()
    os.unlink(broker1.conf)
    broker1.hup()
    broker1.wait_log(re.escape(broker1.conf), since=mark)
    assert client.cmd("PING") == "PONG"


def test_many_hups(broker1, clients):
    client = clients(broker1)
    for _ in range(50):
        broker1.hup()
    assert client.cmd("PING") == "PONG"


# TERM and INT

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_broker_stops(broker1, clients, number):
    client = clients(broker1)
    assert client.cmd("PING") == "PONG"
    broker1.signal(number)
    assert broker1.wait(5) == 0
    client.read_to_end()


def test_term_drains(broker1, clients, name):
    """The holder keeps its lock and may unlock; nobody gets a new one; then the broker ends by itself."""
    holder, other = clients(broker1), clients(broker1)
    holder.cmd("LOCK", name)
    mark = broker1.log_size()
    broker1.signal(signal.SIGTERM)
    broker1.wait_log("drain", since=mark)
    assert other.err("LOCK", name + "2").code == "DRAINING"
    time.sleep(3 * holdfastproc.LEASE_MS / 1000)
    assert holder.cmd("RENEW", name)[1] > 0
    assert holder.cmd("UNLOCK", name) == 1
    assert broker1.wait(5) == 0


def test_term_answers_the_waiters(broker1, clients, name):
    holder, waiter = clients(broker1), clients(broker1)
    holder.cmd("LOCK", name)
    waiter.send("LOCK", name, "WAIT", 0)
    assert waiter.silent(0.1)
    broker1.signal(signal.SIGTERM)
    reply = waiter.recv()
    assert getattr(reply, "code", None) == "DRAINING", reply
    holder.cmd("QUIT")
    assert broker1.wait(5) == 0


def test_a_second_term_stops_at_once(make_broker, masters1, clients, name):
    """And does not free a lock whose holder was not told."""
    broker = make_broker(masters1, options={"lease": "20s"})
    holder = clients(broker)
    holder.cmd("LOCK", name)
    mark = broker.log_size()
    broker.signal(signal.SIGTERM)
    broker.wait_log("drain", since=mark)
    start = time.monotonic()
    broker.signal(signal.SIGTERM)
    assert broker.wait(5) == 0
    assert time.monotonic() - start < 2
    holder.read_to_end()
    next_broker = make_broker(masters1, options={"lease": "20s"})
    assert clients(next_broker).cmd("LOCK", name) is None


def test_drain_timeout(make_broker, masters1, clients, name):
    broker = make_broker(masters1, options={"drain_timeout": "500ms"})
    holder = clients(broker)
    holder.cmd("LOCK", name)
    broker.signal(signal.SIGTERM)
    assert broker.wait(10) == 0
    holder.read_to_end()


def test_term_before_any_master_is_there(make_broker):
    broker = make_broker({"a": REDIS_URL}, ready=False)
    broker.signal(signal.SIGTERM)
    assert broker.wait(5) == 0


def test_sigpipe_and_friends_do_not_kill(broker1, clients):
    broker1.signal(signal.SIGPIPE)
    assert clients(broker1).cmd("PING") == "PONG"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_to_the_last_moment(broker1, number):
    """Who says it again and again does not kill what is just ending."""
    broker1.signal(signal.SIGTERM)
    while broker1.proc.poll() is None:
        broker1.signal(number)
    assert broker1.wait() == 0


# Dev mode

@pytest.fixture(params=[1, 3])
def dev(request, tmp_path):
    """holdfastd --dev or --dev=3 and the redis-servers below it."""
    broker = HoldfastProc(tmp_path, {}, name="dev")
    broker.count = request.param
    broker.start(argv=[daemon_path(), "--dev" if request.param == 1 else "--dev=3", "-p", "0"])
    broker.redises = [pid for pid, command in procs.children(broker.proc.pid).items()
                      if command == "redis-server"]
    broker.directories = [os.readlink("/proc/%d/cwd" % pid) for pid in broker.redises]
    yield broker
    broker.close()


def gone(pids):
    return not any(procs.alive(pid) for pid in pids)


def test_dev_starts_its_own_masters(dev, clients, name):
    assert len(dev.redises) == dev.count
    client = clients(dev)
    assert client.cmd("LOCK", name)[0] > 0
    assert len(client.cmd("MASTERS")) == dev.count
    assert "redis-cli" in dev.log_text()


def test_dev_takes_its_masters_down(dev):
    dev.close()
    assert gone(dev.redises)
    for directory in dev.directories:
        if directory.startswith("/tmp/"):
            assert not os.path.exists(directory)


def test_dev_leaves_nothing_behind_when_killed(dev):
    assert len(dev.redises) == dev.count
    dev.kill()
    wait_for("the end of the redis-servers", lambda: gone(dev.redises))


def test_dev_three_lives_with_one_master_out(tmp_path, clients, name):
    broker = HoldfastProc(tmp_path, {}, name="dev")
    broker.start(argv=[daemon_path(), "--dev=3", "-p", "0"])
    try:
        client = clients(broker)
        broker.wait_masters(3)
        token = client.cmd("LOCK", name)[0]
        wait_for("the hold on all masters", lambda: " ".join(flat(client.cmd("LOCKINFO", name))).count("held by") == 3)
        victim = [pid for pid, command in procs.children(broker.proc.pid).items()
                  if command == "redis-server"][0]
        os.kill(victim, signal.SIGKILL)
        assert client.cmd("RENEW", name)[0] == token
        assert clients(broker).cmd("LOCK", name) is None
    finally:
        broker.close()


@pytest.mark.parametrize("args", [("--dev", "-o", "masters.a=redis://127.0.0.1:1"),
                                  ("-o", "masters.a.id=x", "--dev=3")])
def test_dev_takes_no_masters_of_others(args):
    """They would be passed over in silence."""
    status, out, err = run(*args, "-p", "0", "-t")
    assert status == 1 and out == ""
    assert "masters.a" in err and "--dev" in err and len(err.splitlines()) == 1, err


def test_dev_without_redis_server_says_so(tmp_path):
    status, _, err = run("--dev", "-p", "0", PATH=str(tmp_path))
    assert status == 1 and "redis-server" in err
    assert len(err.strip().splitlines()) <= 2, err


# systemd

def has_libsystemd():
    out = subprocess.run(["ldd", daemon_path()], capture_output=True, text=True, check=False).stdout
    return "libsystemd" in out


needs_systemd = pytest.mark.usefixtures("libsystemd")


@pytest.fixture
def libsystemd():
    if not has_libsystemd():
        pytest.skip("built without libsystemd")


class Notify:
    """What the service manager would hear."""

    def __init__(self, path):
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(path)
        self.got = []

    def drain(self, timeout_s=0.0):
        self.sock.settimeout(timeout_s or 0.0001)
        try:
            while True:
                self.got += self.sock.recv(65536).decode().splitlines()
        except (socket.timeout, BlockingIOError):
            pass
        return self.got

    def wait(self, line, deadline_s=10):
        wait_for("sd_notify %s" % line, lambda: any(re.match(line, g) for g in self.drain(0.01)), deadline_s)

    def close(self):
        self.sock.close()


@pytest.fixture
def notify(make_redis, masters1):
    made = Notify(os.path.join(masters1[0].dir, "n"))
    yield made
    made.close()


@needs_systemd
def test_ready_is_told(make_broker, masters1, notify):
    broker = make_broker(masters1, env={"NOTIFY_SOCKET": notify.path})
    notify.wait("READY=1")
    assert any(g.startswith("STATUS=") for g in notify.got)
    broker.signal(signal.SIGTERM)
    notify.wait("STOPPING=1")
    assert broker.wait() == 0


@needs_systemd
def test_ready_without_a_quorum(make_broker, masters1, make_redis, notify):
    """Ready is who listens: a start, and with it the boot, does not hang on masters that are not there. Who
    is missing stands in the status and in the log."""
    masters = masters1 + [make_redis("b"), make_redis("c")]
    masters[1].kill()
    masters[2].kill()
    broker = make_broker(masters, ready=False, env={"NOTIFY_SOCKET": notify.path})
    notify.wait("READY=1")
    notify.wait(r"STATUS=not ready: 1 of 3 masters \(b: down, c: down\)")
    broker.wait_log(r"not ready, no lock can be granted: 1 of 3 masters \(b: down, c: down\)")
    with broker.connect() as client:
        assert client.err("LOCK", "n").code == "NOQUORUM"
    masters[1].start()
    notify.wait("STATUS=ready: 2 of 3 masters")


@needs_systemd
def test_reload_is_told(broker1, make_broker, masters1, notify):
    broker = make_broker(masters1, env={"NOTIFY_SOCKET": notify.path})
    notify.wait("READY=1")
    notify.got.clear()
    broker.hup()
    notify.wait("RELOADING=1")
    notify.wait("READY=1")


@needs_systemd
def test_the_watchdog_is_fed(make_broker, masters1, notify):
    broker = make_broker(masters1, env={"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": 400000})
    notify.wait("WATCHDOG=1")
    notify.got.clear()
    notify.wait("WATCHDOG=1", 3)
    broker.close()


LAUNCHER = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_PID=str(os.getpid()),"
            " LISTEN_FDS='1'); os.execv(sys.argv[2], sys.argv[2:])")


@needs_systemd
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_socket_activation(make_broker, masters1, name, kind):
    """A client that came before the daemon is served by the passed socket."""
    if kind == "tcp":
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        address = listener.getsockname()
    else:
        listener = socket.socket(socket.AF_UNIX)
        address = os.path.join(masters1[0].dir, "act")
        listener.bind(address)
    listener.listen(16)
    with RespClient(address, deadline_s=20) as early:
        early.send("PING")
        broker = make_broker(masters1, start=False, pass_fds=(listener.fileno(),),
                             wrapper=[sys.executable, "-c", LAUNCHER, str(listener.fileno())])
        broker.spawn()
        assert early.recv() == "PONG"

        def granted():
            early.send("LOCK", name)
            return isinstance(early.recv(), list)
        wait_for("a quorum", granted)
        assert early.cmd("UNLOCK", name) == 1
    broker.signal(signal.SIGTERM)
    assert broker.wait() == 0
    if kind == "unix":
        assert os.path.exists(address), "the socket belongs to the service manager"
    listener.close()


@needs_systemd
def test_who_comes_early_waits_for_the_masters(make_broker, make_redis, make_proxy, name):
    """On a port that stays open over a restart there is no NOQUORUM while the masters are joined."""
    master = make_redis("a")
    proxy = make_proxy(master.address)
    proxy.on("delay_reply", lambda r: r.args[0].upper() == b"EVALSHA", value=0.5)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    with RespClient(listener.getsockname(), deadline_s=20) as early:
        early.send("LOCK", name)
        broker = make_broker({"a": proxy.url}, start=False, pass_fds=(listener.fileno(),),
                             options={"request_timeout": "10s", "lease": "30s"},
                             wrapper=[sys.executable, "-c", LAUNCHER, str(listener.fileno())])
        broker.spawn()
        assert isinstance(early.recv(), list)
        assert early.cmd("UNLOCK", name) == 1
    broker.close()
    listener.close()


def test_without_masters_clients_are_let_in_too(make_broker):
    broker = make_broker({"a": "unix:///nowhere/s"}, ready=False)
    with broker.connect() as client:
        assert client.err("LOCK", "x").code == "NOQUORUM"


@needs_systemd
def test_socket_activation_by_systemd(make_broker, masters1, name):
    """As a socket unit does it, by systemd's own tool: the first client starts the broker."""
    tool = shutil.which("systemd-socket-activate")
    if not tool:
        pytest.skip("systemd-socket-activate is not installed")
    address = os.path.join(masters1[0].dir, "act")
    broker = make_broker(masters1, start=False, wrapper=[tool, "-l", address, "-E", "ASAN_OPTIONS"])
    broker.spawn()
    wait_for("the socket", lambda: "Listening on" in broker.log_text())  # the file is there before it listens
    assert "holdfastd" not in broker.log_text(), "nobody has come yet"
    with RespClient(address, deadline_s=20) as client:
        assert client.cmd("PING") == "PONG"

        def granted():
            client.send("LOCK", name)
            return isinstance(client.recv(), list)
        wait_for("a quorum", granted)
        assert client.cmd("UNLOCK", name) == 1
    assert "listening on unix:%s" % address in broker.log_text()
    assert "listening on 127." not in broker.log_text(), "sockets that are passed take the place of listen"
    broker.signal(signal.SIGTERM)
    assert broker.wait() == 0
    assert os.path.exists(address)


def test_file_descriptors_do_not_leak(broker1, clients):
    def count():
        return len(os.listdir("/proc/%d/fd" % broker1.proc.pid))
    with broker1.connect() as first:
        first.cmd("PING")
    wait_for("the first close", lambda: int(broker1.info()["connected_clients"]) == 1)
    before = count()
    for _ in range(100):
        with broker1.connect() as client:
            client.cmd("LOCK", "x", "LEASE", 100)
    wait_for("all closed", lambda: count() <= before)


def test_dead_masters_do_not_leak_either(broker1, masters1, clients):
    client = clients(broker1)
    client.cmd("PING")
    before = len(os.listdir("/proc/%d/fd" % broker1.proc.pid))
    for _ in range(3):
        masters1[0].restart()
        broker1.wait_quorum()
    wait_for("the old count", lambda: len(os.listdir("/proc/%d/fd" % broker1.proc.pid)) <= before)
