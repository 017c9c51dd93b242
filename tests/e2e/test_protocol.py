"""The bytes on the wire: fragments, pipelines, and everything that is not RESP."""

import os
import random
import re
import socket
import time

import pytest

from procs import rss_kb, wait_for
from respclient import Closed, NoReply, RespError, encode


@pytest.fixture
def client(one, clients):
    return clients(one.broker)


@pytest.fixture
def other(one, clients):
    return clients(one.broker)


# Well-formed, in odd pieces

def test_byte_by_byte(client, name):
    for byte in encode("LOCK", name, "LEASE", 5000) + encode("HOLDS", name) + b"PING\r\n":
        client.send_raw(bytes([byte]))
    assert client.recv()[0] > 0
    assert client.recv() == 1
    assert client.recv() == "PONG"


def test_every_split_of_a_request_in_two(one, clients):
    data = encode("ECHO", "h\r\n$3\r\nello")
    client = clients(one.broker)
    for cut in range(1, len(data)):
        client.send_raw(data[:cut])
        client.send_raw(data[cut:])
        assert client.recv() == "h\r\n$3\r\nello"


@pytest.mark.parametrize("line, reply", [
    (b"PING\r\n", "PONG"),
    (b"PING\n", "PONG"),
    (b"ping   \r\n", "PONG"),
    (b"  PING hello\r\n", "hello"),
    (b'ECHO "a b"\r\n', "a b"),
    (b'ECHO "\\x41\\n"\r\n', "A\n"),
    (b"ECHO 'it'\r\n", "it"),
    (b'ECHO ""\r\n', ""),
])
def test_inline(client, line, reply):
    client.send_raw(line)
    assert client.recv() == reply


def test_empty_requests_are_ignored(client):
    client.send_raw(b"\r\n\r\n*0\r\n\n*-1\r\nPING\r\n")
    assert client.recv() == "PONG"
    assert client.silent(0.05)


def test_inline_and_multibulk_mixed(client, name):
    client.send_raw(b"LOCK " + name.encode() + b" LEASE 5000\r\n" + encode("HOLDS", name) + b"PING\r\n")
    assert client.recv()[0] > 0
    assert client.recv() == 1
    assert client.recv() == "PONG"


def test_a_lock_by_netcat(one, clients, name):
    """A line typed by hand, then the end of input: all answers arrive."""
    client = clients(one.broker)
    client.send_raw(b"LOCK %s\r\nUNLOCK %s\r\n" % (name.encode(), name.encode()))
    client.half_close()
    data = client.read_to_end()
    assert re.fullmatch(rb"\*2\r\n:\d+\r\n:\d+\r\n:1\r\n", data)


# Pipelining

def test_a_long_pipeline_keeps_its_order(client):
    assert client.pipeline(*[("ECHO", str(i)) for i in range(2000)]) == [str(i) for i in range(2000)]


def test_commands_behind_a_waiting_lock_wait(client, other, name):
    token = other.cmd("LOCK", name)[0]
    client.send_raw(encode("PING") + encode("LOCK", name, "WAIT", 0) + encode("ECHO", "after")
                    + encode("HOLDS", name))
    assert client.recv() == "PONG"
    assert client.silent(0.2)
    other.cmd("UNLOCK", name)
    assert client.recv()[0] > token
    assert client.recv() == "after"
    assert client.recv() == 1


def test_commands_behind_a_lock_that_times_out(client, other, name):
    other.cmd("LOCK", name)
    client.send_raw(encode("LOCK", name, "WAIT", 200) + encode("ECHO", "after"))
    assert client.recv() is None
    assert client.recv() == "after"


def test_several_waiting_locks_in_one_pipeline(client, other, name):
    other.pipeline(*[("LOCK", name + str(i)) for i in range(3)])
    client.send_raw(b"".join(encode("LOCK", name + str(i), "WAIT", 0) for i in range(3)) + encode("PING"))
    for i in (2, 1, 0):
        assert client.silent(0.05)
        assert other.cmd("UNLOCK", name + str(i)) == 1
    assert all(client.recv()[0] > 0 for _ in range(3))
    assert client.recv() == "PONG"


def test_quit_behind_a_waiting_lock(client, other, name):
    other.cmd("LOCK", name)
    client.send_raw(encode("LOCK", name, "WAIT", 0) + encode("QUIT"))
    assert client.silent(0.2)
    other.cmd("UNLOCK", name)
    assert client.recv()[0] > 0
    assert client.recv() == "OK"
    assert client.read_to_end() == b""
    assert other.cmd("LOCK", name, "WAIT", 3000)[0] > 0


def test_lock_and_unlock_in_one_write(client, name):
    replies = client.pipeline(*[("LOCK", name), ("UNLOCK", name)] * 50)
    tokens = [r[0] for r in replies[::2]]
    assert tokens == sorted(set(tokens))
    assert replies[1::2] == [1] * 50


def test_errors_in_a_pipeline_do_not_shift_replies(client):
    replies = client.pipeline(("PING",), ("NOSUCH",), ("LOCK",), ("ECHO", "x"))
    assert replies[0] == "PONG" and replies[3] == "x"
    assert isinstance(replies[1], RespError) and isinstance(replies[2], RespError)


# Not RESP: an error that says so, and the end of the connection

MALFORMED = {
    "huge array": b"*2147483647\r\n",
    "huger array": b"*4294967295\r\n",
    "array beyond 64 bits": b"*99999999999999999999\r\n",
    "array too many words": b"*1025\r\n" + b"$1\r\nx\r\n" * 1025,
    "not a count": b"*x\r\n",
    "half a count": b"*1x\r\n",
    "signed count": b"*+1\r\n",
    "huge bulk": b"*1\r\n$4294967296\r\n",
    "large bulk": b"*1\r\n$536870912\r\n",
    "bulk above all limits": b"*2\r\n$4\r\nECHO\r\n$16777217\r\n",
    "negative bulk": b"*1\r\n$-2\r\n",
    "null bulk": b"*1\r\n$-1\r\n",
    "bulk without a size": b"*1\r\n$\r\n",
    "bulk size not a number": b"*1\r\n$4x\r\nPING\r\n",
    "no dollar": b"*1\r\nPING\r\n",
    "colon for dollar": b"*1\r\n:4\r\nPING\r\n",
    "nested array": b"*1\r\n*1\r\n$4\r\nPING\r\n",
    "unbalanced quote": b'ECHO "abc\r\n',
    "text after a quote": b'ECHO "abc"def\r\n',
    "unbalanced single quote": b"ECHO 'abc\r\n",
    "count line without end": b"*" + b"1" * 70000,
    "bulk line without end": b"*1\r\n$" + b"1" * 70000,
    "inline above 64 KB": b"A" * (64 * 1024 + 1),
    "inline above 64 KB with end": b"ECHO " + b"A" * (64 * 1024 + 1) + b"\r\n",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed(one, clients, other, data):
    client = clients(one.broker)
    try:
        client.send_raw(data)
        client.recv_error = client.recv()
    except Closed:
        pytest.fail("closed without a word")
    assert isinstance(client.recv_error, RespError)
    assert str(client.recv_error).startswith("ERR Protocol error: ")
    assert client.read_to_end() == b""
    assert other.cmd("PING") == "PONG"


def test_what_came_before_the_error_is_answered(one, clients, name):
    client = clients(one.broker)
    client.send_raw(encode("LOCK", name, "LEASE", 3000) + encode("PING") + b"*x\r\n" + encode("PING"))
    assert client.recv()[0] > 0
    assert client.recv() == "PONG"
    assert str(client.recv()).startswith("ERR Protocol error: ")
    assert client.read_to_end() == b""


def test_a_bulk_without_crlf(one, clients):
    """Redis skips the two bytes unseen; they are refused or skipped, never taken for a request."""
    client = clients(one.broker)
    client.send_raw(b"*1\r\n$4\r\nPINGXX*1\r\n$4\r\nPING\r\n")
    client.half_close()
    data = client.read_to_end()
    assert data == b"+PONG\r\n+PONG\r\n" or data.startswith(b"-ERR Protocol error: ")


def test_nul_bytes(one, clients):
    client = clients(one.broker)
    client.send_raw(b"\0\0\0\0\r\n")
    reply = client.recv()
    assert isinstance(reply, RespError)
    client = clients(one.broker)
    assert client.cmd("ECHO", b"a\0b") == "a\0b"
    assert client.err(b"NO\0SUCH").code == "ERR"
    assert client.cmd("PING") == "PONG"


def test_a_tls_hello_is_refused(one, clients, other):
    client = clients(one.broker)
    client.send_raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n")
    client.half_close()
    client.read_to_end()
    assert other.cmd("PING") == "PONG"


def test_errors_never_split_replies(client):
    """What a client sends comes back inside one error line."""
    for nasty in (b"a\r\n+OK", b"a\n:1", b"a\0\r\n$-1"):
        client.send_raw(encode(nasty, nasty) + encode("PING"))
        assert isinstance(client.recv(), RespError)
        assert client.recv() == "PONG"
        client.send_raw(encode("LOCK", "n", nasty, nasty) + encode("PING"))
        assert isinstance(client.recv(), RespError)
        assert client.recv() == "PONG"


def test_a_long_unknown_command_is_cut_short(client):
    err = client.err("x" * 10000, "y" * 10000)
    assert len(str(err)) < 1000


def test_random_bytes(one, clients, other):
    seed = int.from_bytes(os.urandom(4), "big")
    print("seed", seed)
    rng = random.Random(seed)
    alphabet = b"*$:+-_,#=%~>|\r\n0123456789 PINGLOCK\"'\0\xff"
    for _ in range(60):
        client = clients(one.broker)
        try:
            for _ in range(rng.randrange(1, 4)):
                client.send_raw(bytes(rng.choice(alphabet) for _ in range(rng.randrange(1, 400))))
            client.half_close()
        except OSError:
            continue
        client.read_to_end()
    assert other.cmd("PING") == "PONG"


def test_replies_that_nobody_reads_are_bounded(one, clients, other):
    """A client that never reads is closed at the limit instead of growing the broker."""
    client = clients(one.broker)
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    before = rss_kb(one.broker.proc.pid)
    request = encode("ECHO", "x" * 8000) * 20
    client.sock.settimeout(1)
    sent = 0
    try:
        while sent < 64 << 20:
            sent += client.sock.send(request)
    except OSError:
        pass
    assert rss_kb(one.broker.proc.pid) - before < 40 << 10
    assert other.cmd("PING") == "PONG"


def test_an_unfinished_request_is_closed(make_broker, masters1, clients):
    broker = make_broker(masters1, args=["-o", "limits.request_time=300ms"])
    client = clients(broker)
    client.send_raw(b"*2\r\n$4\r\nECHO\r\n$10\r\nab")
    start = time.monotonic()
    client.read_to_end()
    assert time.monotonic() - start < 5
    idle = clients(broker)
    assert idle.silent(0.6)
    assert idle.cmd("PING") == "PONG"


def test_a_slow_request_does_not_stop_others(one, clients, other):
    slow = clients(one.broker)
    slow.send_raw(b"*1\r\n$4\r\nPI")
    assert other.cmd("PING") == "PONG"
    slow.send_raw(b"NG\r\n")
    assert slow.recv() == "PONG"


def test_many_connections(one, clients):
    many = [clients(one.broker) for _ in range(300)]
    for client in many:
        client.send("PING")
    assert all(client.recv() == "PONG" for client in many)


def test_the_limit_of_clients_is_told(make_broker, masters1, clients):
    broker = make_broker(masters1, args=["-o", "limits.max_clients=5"])
    kept = [clients(broker) for _ in range(4)]
    wait_for("4 clients", lambda: all(c.cmd("PING") == "PONG" for c in kept))
    refused = None
    extra = []
    for _ in range(4):
        client = clients(broker)
        extra.append(client)
        try:
            client.send("PING")
            reply = client.recv()
        except (Closed, NoReply):
            reply = RespError("closed")
        if isinstance(reply, RespError):
            refused = reply
    assert refused is not None
    assert "max" in str(refused).lower() or refused.code in ("LIMIT", "closed")
    assert all(c.cmd("PING") == "PONG" for c in kept)
