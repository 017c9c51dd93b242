"""The log: its level at run time, the reason of each end, and what strangers can make of it."""

import re
import time

from procs import wait_for


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


def once_more(client, broker):
    client.send("LOCK", "one more")
    if isinstance(client.recv(), list):
        with broker.connect() as other:
            other.cmd("FORCEUNLOCK", "one more")


def swallowed(broker, mark):
    return sum(int(n) for n in re.findall(r"lock: more lines like these swallowed=(\d+)", broker.log_text(mark)))
