"""The log: its level at run time, the reason of each end, and what strangers can make of it."""

import os
import re
import subprocess
import time

import pytest

import procs
from holdfastproc import READY_RE, daemon_env, daemon_path, write_config
from procs import wait_for
from respclient import RespClient


def test_the_level_changes_at_run_time(broker1, clients):
    client = clients(broker1)
    broker1.connect().close()
    mark = broker1.log_size()
    assert client.cmd("CONFIG", "SET", "log_level", "debug") == "OK"
    with broker1.connect() as other:
        number = other.cmd("CLIENT", "ID")
        other.send("QUIT")
    broker1.wait_log(r"client %d: closed: .* reason=quit peer=127\.0\.0\.1:\d+ commands=2 age_ms=\d+" % number,
                     since=mark)
    assert client.cmd("CONFIG", "SET", "log_level", "error") == "OK"
    mark = broker1.log_size()
    assert client.cmd("CONFIG", "SET", "log_level", "warn") == "OK"
    assert broker1.log_text(mark) == "", "it is said at info, which is no longer logged"
    assert "reason=quit" not in broker1.log_text().partition("debug")[0]


def test_each_end_has_a_reason(broker1, clients):
    client = clients(broker1)
    with broker1.connect() as victim:
        number = victim.cmd("CLIENT", "ID")
        assert client.cmd("CLIENT", "KILL", "ID", number) == 1
    broker1.wait_log(r"client %d: closed: .* reason=killed peer=" % number)
    with broker1.connect() as rude:
        rude.sock.sendall(b"*1\r\n$x\r\n")
        assert "Protocol error" in str(rude.recv())
    broker1.wait_log(r"client \d+: closed: .* reason=protocol peer=")


def test_a_lost_lock_is_one_line(broker1, masters1, clients, name):
    """The name comes last: nothing that a client has chosen stands before a fact."""
    client = clients(broker1)
    evil = name + " token=1 server: ready"
    token = client.cmd("LOCK", evil)[0]
    assert clients(broker1).cmd("FORCEUNLOCK", evil) == 1
    line = broker1.wait_log(r"^.*lock: lost reason=forced token=%d .*$" % token).group(0)
    assert line.endswith("name=%s token=1 server: ready" % name)


def test_many_lost_locks_do_not_fill_the_log(broker1, masters1, clients):
    client = clients(broker1)
    for i in range(1000):
        client.send("LOCK", "many:%d" % i)
    assert all(isinstance(client.recv(), list) for i in range(1000))
    time.sleep(1.1)   # of each second some lines are written: of one in which there were none
    mark = broker1.log_size()
    masters1[0].cli("FLUSHALL")
    wait_for("the loss of all", lambda: int(broker1.info()["lost_gone"]) == 1000, 20)
    lines = broker1.log_text(mark).count("lock: lost ")
    assert 0 < lines < 1000
    # The next line of this kind tells how many there were.
    wait_for("the count", lambda: swallowed(broker1, mark) + lines >= 900 or once_more(client, broker1), 20)


def test_what_is_lost_is_told_beside_what_is_in_jeopardy(broker1, masters1, clients):
    client = clients(broker1)
    for i in range(1000):
        client.send("LOCK", "many:%d" % i)
    assert all(isinstance(client.recv(), list) for i in range(1000))
    masters1[0].kill()
    wait_for("the loss of all", lambda: int(broker1.info()["lost_no_quorum"]) == 1000, 20)
    text = broker1.log_text()
    assert text.count("lock: in jeopardy") >= 200 and text.count("lock: lost ") >= 200


def once_more(client, broker):
    client.send("LOCK", "one more")
    if isinstance(client.recv(), list):
        with broker.connect() as other:
            other.cmd("FORCEUNLOCK", "one more")


def swallowed(broker, mark):
    return sum(int(n) for n in re.findall(r"lock: more lines like these swallowed=(\d+)", broker.log_text(mark)))


@pytest.fixture
def piped(tmp_path, masters1):
    """A broker whose standard error is a pipe; it is read to where it listens, and then no more."""
    read_end, write_end = os.pipe()
    path = write_config(str(tmp_path / "piped.ini"), {m.name: m.url for m in masters1}, {"log_level": "trace"})
    proc = procs.spawn([daemon_path(), "-c", path], stdout=subprocess.DEVNULL, stderr=write_end, env=daemon_env())
    os.close(write_end)
    text = b""
    while not (ready := re.search(READY_RE.encode(), text)):
        text += os.read(read_end, 65536)
    yield proc, int(ready.group(1)), read_end
    proc.terminate()
    while os.read(read_end, 65536):
        pass
    assert proc.wait(20) == 0
    os.close(read_end)


def test_a_pipe_that_nobody_reads_stops_nobody(piped, name):
    """Everybody who asks is heard at once, and what was dropped is counted, and said when there is room."""
    _, port, read_end = piped
    with RespClient(("127.0.0.1", port)) as client:
        wait_for("a lock", lambda: client.send("LOCK", name, "LEASE", 60000) or isinstance(client.recv(), list), 10)
        for _ in range(2000):
            with RespClient(("127.0.0.1", port)) as other:
                assert other.cmd("PING", deadline_s=5) == "PONG"
        wait_for("lines to be dropped", lambda: int(info_of(client)["log_lines_dropped"]) > 0, 10)
        text = b""
        while b"lines dropped, as nobody read them n=" not in text:
            text += os.read(read_end, 65536)
        for line in text.split(b"\n")[1:-1]:
            assert re.match(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [a-z]+ +\S", line)


def info_of(client):
    return dict(line.split(":", 1) for line in client.cmd("INFO", "everything").splitlines() if ":" in line)


def test_nobody_turns_the_direction_of_a_line(broker1, clients, name):
    client = clients(broker1)
    client.cmd("LOCK", name + "\u202egnp\u200b")
    assert clients(broker1).cmd("FORCEUNLOCK", name + "\u202egnp\u200b") == 1
    line = broker1.wait_log(r"lock: lost reason=forced .*name=%s.*$" % name).group(0)
    assert line.endswith(r"\xe2\x80\xaegnp\xe2\x80\x8b")
