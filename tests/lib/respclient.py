"""A small raw RESP2/RESP3 client for tests.

It has its own parser, so that it can judge the server's bytes, keeps push messages apart from replies,
and can misbehave: send raw bytes, half close, reset, leave replies unread.
"""

import collections
import socket
import struct
import time

DEADLINE_S = 10.0


class RespError(Exception):
    """An error reply; str() is its text, code its first word."""

    @property
    def code(self):
        return str(self).split(" ", 1)[0]


class ProtocolViolation(AssertionError):
    """The server sent bytes that are not RESP."""


class Closed(Exception):
    """The server closed or reset the connection."""


class NoReply(AssertionError):
    """Nothing came within the deadline."""


class Incomplete(Exception):
    """More bytes are needed."""


class Push(list):
    """A RESP3 push message."""


class Verbatim(str):
    """A RESP3 verbatim string without its three letter format."""


def encode(*args):
    """One request as a multibulk."""
    out = [b"*%d\r\n" % len(args)]
    for arg in args:
        if not isinstance(arg, bytes):
            arg = str(arg).encode("utf-8", "surrogateescape")
        out.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(out)


def text(value):
    """Bytes to str, through containers; tests compare with plain text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, Push):
        return Push(text(v) for v in value)
    if isinstance(value, list):
        return [text(v) for v in value]
    if isinstance(value, dict):
        return {text(k): text(v) for k, v in value.items()}
    return value


def hashable(value):
    return tuple(hashable(v) for v in value) if isinstance(value, list) else value


def parse(data, pos=0):
    """One reply from data at pos: (value, end). Raises Incomplete or ProtocolViolation."""
    end = data.find(b"\r\n", pos)
    if end < 0:
        if len(data) - pos > 1 << 20:
            raise ProtocolViolation("a line without an end")
        raise Incomplete()
    line = data[pos:end]
    if not line or b"\n" in line or b"\r" in line:
        raise ProtocolViolation("bad line %r" % line)
    kind, rest, pos = line[:1], line[1:], end + 2
    if kind == b"+":
        return text(bytes(rest)), pos
    if kind == b"-":
        return RespError(text(bytes(rest))), pos
    try:
        if kind == b":":
            return int(rest), pos
        if kind == b",":
            return float(rest), pos
        if kind == b"(":
            return int(rest), pos
        if kind == b"#":
            return {b"t": True, b"f": False}[bytes(rest)], pos
        if kind == b"_":
            if rest:
                raise ProtocolViolation("bad null %r" % line)
            return None, pos
        if kind in b"$=!":
            size = int(rest)
            if size < 0:
                return None, pos
            if len(data) < pos + size + 2:
                raise Incomplete()
            body = bytes(data[pos:pos + size])
            if data[pos + size:pos + size + 2] != b"\r\n":
                raise ProtocolViolation("bulk without an end: %r" % body)
            pos += size + 2
            if kind == b"=":
                return Verbatim(text(body[4:])), pos
            if kind == b"!":
                return RespError(text(body)), pos
            return body, pos
        if kind in b"*~>%|":
            count = int(rest)
            if count < 0:
                return None, pos
            items = []
            for _ in range(count * 2 if kind in b"%|" else count):
                item, pos = parse(data, pos)
                items.append(item)
            if kind == b"%":
                return {hashable(k): v for k, v in zip(items[::2], items[1::2])}, pos
            if kind == b"|":
                return parse(data, pos)
            return (Push(items) if kind == b">" else items), pos
    except (KeyError, ValueError):
        raise ProtocolViolation("bad line %r" % line) from None
    raise ProtocolViolation("unknown type in %r" % line)


class RespClient:
    """One connection. Replies are text unless raw=True was given; errors raise in cmd(), not in recv().
    With resp3=True and tell=True it gets pushes about its locks."""

    def __init__(self, address, deadline_s=DEADLINE_S, raw=False, resp3=False, tell=False):
        self.deadline_s = deadline_s
        self.raw = raw
        self.data = bytearray()
        self.pushes = collections.deque()
        self.eof = False
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(deadline_s)
        self.sock.connect(address)
        if self.sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if resp3:
            self.cmd("HELLO", 3)
        if tell:
            self.cmd("CLIENT", "TELL", "ON")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # Sending

    def send(self, *args):
        """A request whose reply is read later by recv()."""
        self.send_raw(encode(*args))

    def send_raw(self, data):
        try:
            self.sock.sendall(data)
        except ConnectionError as err:
            raise Closed(str(err)) from None

    # Receiving

    def _fill(self, until):
        left = until - time.monotonic()
        if left <= 0:
            raise NoReply("no reply in time; unparsed so far: %r" % bytes(self.data[:200]))
        self.sock.settimeout(left)
        try:
            more = self.sock.recv(65536)
        except socket.timeout:
            raise NoReply("no reply in time; unparsed so far: %r" % bytes(self.data[:200])) from None
        except ConnectionError as err:
            raise Closed(str(err)) from None
        if not more:
            self.eof = True
            raise Closed("end of stream; unparsed: %r" % bytes(self.data[:200]))
        self.data += more

    def _next(self, until):
        while True:
            try:
                value, end = parse(self.data)
            except Incomplete:
                self._fill(until)
                continue
            del self.data[:end]
            return value if self.raw else text(value)

    def recv(self, deadline_s=None):
        """The next reply; an error is returned as a RespError. Push messages go to self.pushes."""
        until = time.monotonic() + (self.deadline_s if deadline_s is None else deadline_s)
        while True:
            value = self._next(until)
            if isinstance(value, Push):
                self.pushes.append(value)
            else:
                return value

    def recv_push(self, deadline_s=None):
        """The next push message (one that came earlier first)."""
        if self.pushes:
            return self.pushes.popleft()
        until = time.monotonic() + (self.deadline_s if deadline_s is None else deadline_s)
        value = self._next(until)
        if not isinstance(value, Push):
            raise ProtocolViolation("a reply where a push was due: %r" % (value,))
        return value

    def wait_push(self, kind, deadline_s=None):
        """The next push of that kind; others before it are thrown away."""
        until = time.monotonic() + (self.deadline_s if deadline_s is None else deadline_s)
        while True:
            push = self.recv_push(max(0.001, until - time.monotonic()))
            if push and push[0] == kind:
                return push

    def silent(self, for_s):
        """True when nothing arrives for that long (and nothing was unread before)."""
        if self.data:
            return False
        try:
            self._fill(time.monotonic() + for_s)
        except NoReply:
            return True
        return False

    def read_to_end(self, deadline_s=None):
        """All bytes until the server closes; a reset counts as the end."""
        until = time.monotonic() + (self.deadline_s if deadline_s is None else deadline_s)
        try:
            while True:
                self._fill(until)
        except Closed:
            return bytes(self.data)

    # Calling

    def cmd(self, *args, deadline_s=None):
        """One request and its reply; an error reply is raised."""
        self.send(*args)
        value = self.recv(deadline_s)
        if isinstance(value, RespError):
            raise value
        return value

    def err(self, *args):
        """One request that must fail: the RespError."""
        self.send(*args)
        value = self.recv()
        assert isinstance(value, RespError), "no error but %r for %r" % (value, args)
        return value

    def pipeline(self, *requests):
        """Several requests in one write; their replies, errors as values."""
        self.send_raw(b"".join(encode(*r) for r in requests))
        return [self.recv() for _ in requests]

    # Leaving

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """Ends the connection by RST (TCP only)."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()


def as_map(reply):
    """A map reply of RESP2 (flat) or RESP3, one level."""
    if isinstance(reply, dict):
        return reply
    assert isinstance(reply, list) and len(reply) % 2 == 0, "not a map: %r" % (reply,)
    return dict(zip(reply[::2], reply[1::2]))


def flat(reply):
    """All leaves of a reply as text, to look for a word anywhere in it."""
    if isinstance(reply, dict):
        return [leaf for k, v in reply.items() for leaf in flat(k) + flat(v)]
    if isinstance(reply, (list, tuple)):
        return [leaf for v in reply for leaf in flat(v)]
    return [str(text(reply))]
