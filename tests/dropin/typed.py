"""A connection whose replies keep their kind: (kind, value) as RESP has them, so that $-1 is not *-1 and +OK is not $2 OK.

Nothing is translated: what two servers answer is compared as it came.
"""

import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
from respclient import encode  # noqa: E402

DEADLINE_S = 20.0
AGGREGATES = {b"*": 1, b"~": 1, b">": 1, b"%": 2, b"|": 2}


class Gone(Exception):
    """The server closed the connection, or has not answered in time."""


class Typed:
    def __init__(self, address):
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.settimeout(DEADLINE_S)
        self.sock.connect(address)
        if self.sock.family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")

    def send(self, argv):
        try:
            self.sock.sendall(encode(*argv))
        except OSError as err:
            raise Gone(str(err)) from None

    def recv(self):
        try:
            return self._reply()
        except OSError as err:
            raise Gone(str(err) or "no reply in time") from None

    def ask(self, *argv):
        self.send(argv)
        return self.recv()

    def _reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise Gone("the connection was closed after %r" % line)
        kind, rest = line[:1], line[1:-2]
        if kind in (b"$", b"=", b"!"):
            size = int(rest)
            return kind, None if size < 0 else self.file.read(size + 2)[:-2]
        if kind in AGGREGATES:
            size = int(rest)
            return kind, None if size < 0 else tuple(self._reply() for _ in range(size * AGGREGATES[kind]))
        return kind, int(rest) if kind == b":" else rest

    def close(self):
        self.file.close()
        self.sock.close()


def shown(reply):
    """A reply for people, on one line."""
    kind, value = reply
    if isinstance(value, tuple):
        return "%s[%s]" % (kind.decode(), ", ".join(shown(item) for item in value))
    if value is None:
        return kind.decode() + "-1"
    if kind in (b"$", b"+", b"-", b"="):
        return kind.decode() + repr(value)[1:]
    return kind.decode() + (value.decode() if isinstance(value, bytes) else str(value))
