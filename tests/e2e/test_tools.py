"""Looking into the broker and changing it as one does with Redis: INFO, SLOWLOG, LATENCY, MONITOR, CLIENT and
CONFIG by redis-cli, and the exporter for Prometheus. (--stat and --latency: test_clients.py.)"""

import re
import shutil
import socket
import subprocess
import urllib.request

import pytest

import procs
from procs import wait_for
from respclient import Closed


@pytest.fixture
def cli(broker1):
    """redis-cli with these arguments: what it prints."""
    if shutil.which("redis-cli") is None:
        pytest.skip("redis-cli is not installed")

    def run(*args):
        done = subprocess.run(["redis-cli", "-p", str(broker1.port)] + list(args), capture_output=True,
                              text=True, timeout=30, check=False)
        return done.stdout + done.stderr
    return run


def fields(text):
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


# redis-cli


def test_info_of_everything(cli, broker1, clients, name):
    """What redis-cli --stat and the exporters read is there, and means what it says."""
    clients(broker1).cmd("LOCK", name)
    info = fields(cli("INFO", "everything"))
    assert info["connected_clients"] == "2" and info["loading"] == "0" and info["role"] == "master"
    assert info["db0"].startswith("keys=1,")
    for key in ("used_memory", "uptime_in_seconds", "total_commands_processed", "blocked_clients",
                "total_connections_received", "maxclients", "rdb_bgsave_in_progress"):
        assert info[key].isdigit(), key
    assert info["ready"] == "1" and info["paused"] == "0"


def test_looking_around(cli, broker1, clients, name):
    """redis-cli --scan and --bigkeys, as at a Redis: each lock is a key of the type lock."""
    client = clients(broker1)
    assert client.cmd("DBSIZE") == 0 and "db0" not in fields(cli("INFO"))
    assert client.cmd("SCAN", 0) == ["0", []]
    names = {"%s:%d" % (name, i) for i in range(300)}
    client.pipeline(*[("LOCK", one) for one in names])
    assert set(cli("--scan").split()) == names
    assert set(cli("--scan", "--pattern", "*:2?").split()) == {"%s:2%d" % (name, i) for i in range(10)}
    big = cli("--bigkeys")
    assert "Sampled 300 keys in the keyspace!" in big and "300 locks with" in big, big
    assert "ERR" not in big
    assert client.cmd("DBSIZE") == 300
    assert client.cmd("TYPE", name + ":1") == "lock" and client.cmd("TYPE", name) == "none"
    seen, cursor = set(), "0"
    while True:
        cursor, page = client.cmd("SCAN", cursor, "COUNT", 50, "TYPE", "lock", "MATCH", "*")
        seen |= set(page)
        if cursor == "0":
            break
    assert seen == names
    assert client.cmd("SCAN", 0, "TYPE", "string") == ["0", []]
    for bad, text in ((("x",), "ERR invalid cursor"), ((0, "COUNT"), "ERR syntax error"),
                      ((0, "FOO", 1), "ERR syntax error"),
                      ((0, "COUNT", "x"), "ERR value is not an integer or out of range")):
        assert str(client.err("SCAN", *bad)) == text


def test_slowlog(cli, masters1, broker1, clients, name):
    """What the masters made slow, not what waited for somebody else."""
    holder, waiter = clients(broker1), clients(broker1)
    cli("SLOWLOG", "RESET")
    holder.cmd("LOCK", name)
    waiter.cmd("LOCK", name, "WAIT", 100)
    assert cli("SLOWLOG", "LEN").strip() == "0"
    masters1[0].stop()
    holder.send("UNLOCK", name)
    holder.silent(0.05)
    masters1[0].cont()
    assert holder.recv() == 1
    assert cli("SLOWLOG", "LEN").strip() == "1"
    entry = cli("SLOWLOG", "GET").split()
    assert entry[-5:-3] == ["UNLOCK", name] or ("UNLOCK" in entry and name in entry)
    assert int(entry[2]) >= 10000


def test_monitor(broker1, clients, name):
    watcher, client = clients(broker1), clients(broker1)
    assert watcher.cmd("MONITOR") == "OK"
    client.send("AUTH", "me", "hunter2")
    client.recv()
    client.cmd("LOCK", name)
    seen = watcher.recv() + watcher.recv()
    assert '"AUTH" "(redacted)"' in seen and "hunter2" not in seen and '"LOCK" "%s"' % name in seen


def test_client_list_kill_and_pause(cli, broker1, clients, name):
    client, other = clients(broker1), clients(broker1)
    client.cmd("CLIENT", "SETNAME", "victim")
    client.cmd("LOCK", name)
    line = [line for line in cli("CLIENT", "LIST").splitlines() if "name=victim" in line][0]
    assert " locks=1 " in line and " cmd=lock " in line
    assert cli("CLIENT", "KILL", "ID", re.search(r"id=(\d+)", line).group(1)).strip() == "1"
    with pytest.raises(Closed):
        client.cmd("PING")
    assert cli("CLIENT", "PAUSE", "30000", "WRITE").strip() == "OK"
    assert "connected_clients" in cli("INFO", "clients")
    other.send("LOCK", name + "2")
    assert other.silent(0.2)
    assert cli("CLIENT", "UNPAUSE").strip() == "OK"
    assert isinstance(other.recv(), list)


# CONFIG


def test_a_reload_makes_the_file_count_again(broker1, clients):
    """What CONFIG SET had said before is over; it never was in the file."""
    client = clients(broker1)
    client.cmd("CONFIG", "SET", "lease", "7s", "limits.idle_timeout", "1h")
    with open(broker1.conf, encoding="utf-8") as file:
        assert "lease = 800ms" in file.read()
    assert "configuration file" in str(client.err("CONFIG", "REWRITE"))
    mark = broker1.log_size()
    broker1.hup()
    broker1.wait_log("configuration read again", since=mark)
    assert client.cmd("CONFIG", "GET", "lease") == ["lease", "800ms"]
    assert client.cmd("CONFIG", "GET", "limits.idle_timeout") == ["limits.idle_timeout", "0s"]


# prometheus-redis-exporter


def test_redis_exporter(broker1, clients, name, tmp_path):
    """Debian's prometheus-redis-exporter: up, our locks and commands in it, and nothing to complain of."""
    program = shutil.which("prometheus-redis-exporter")
    if program is None:
        pytest.skip("prometheus-redis-exporter is not installed")
    client = clients(broker1)
    client.cmd("LOCK", name)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = str(tmp_path / "exporter.log")
    with open(log, "wb") as out:
        exporter = procs.spawn([program, "-redis.addr", "redis://127.0.0.1:%d" % broker1.port, "-export-client-list",
                                "-web.listen-address", "127.0.0.1:%d" % port], stdout=out, stderr=subprocess.STDOUT)
    try:
        def scrape():
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=10) as page:
                    return page.read().decode()
            except OSError:
                return None
        text = wait_for("the exporter", scrape)
        text = wait_for("a second scrape", scrape)
    finally:
        exporter.kill()
        exporter.wait()
    for line in ("redis_up 1", "redis_exporter_last_scrape_error{err=\"\"} 0", 'redis_db_keys{db="db0"} 1'):
        assert "\n" + line + "\n" in text, line
    assert 'redis_commands_total{cmd="lock"}' in text
    with open(log, encoding="utf-8") as lines:
        bad = [line for line in lines if "level=info" not in line]
    assert not bad, bad
