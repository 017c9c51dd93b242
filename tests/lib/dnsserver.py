"""A name server on loopback whose answers a test changes as it likes; A and AAAA over UDP, nothing else."""

import ipaddress
import socket
import struct
import threading

A, AAAA = 1, 28
NXDOMAIN = 3


class DnsServer:
    """answers: {name: [addresses]}, in the order in which they are told. mute: types that get no answer at all."""

    def __init__(self, answers=None, ttl_s=3600, mute=()):
        self.answers = dict(answers or {})
        self.ttl_s = ttl_s
        self.mute = set(mute)
        self.questions = []  # (name, type)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def line(self):
        """For resolv.conf; libevent takes a port there."""
        return "nameserver 127.0.0.1:%d\n" % self._socket.getsockname()[1]

    def _serve(self):
        while True:
            try:
                query, peer = self._socket.recvfrom(4096)
            except OSError:
                return
            reply = self._answer(query)
            if reply:
                self._socket.sendto(reply, peer)

    def _answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("ascii"))
            at += 1 + query[at]
        name = ".".join(labels).lower()
        kind, = struct.unpack(">H", query[at + 1:at + 3])
        self.questions.append((name, kind))
        if kind in self.mute:
            return None
        found = self.answers.get(name)
        packed = [ipaddress.ip_address(a).packed for a in found or []]
        packed = [p for p in packed if len(p) == {A: 4, AAAA: 16}.get(kind)]
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | (NXDOMAIN if found is None else 0), 1, len(packed), 0, 0)
        records = [struct.pack(">HHHIH", 0xC00C, kind, 1, self.ttl_s, len(p)) + p for p in packed]
        return head + query[12:at + 5] + b"".join(records)

    def close(self):
        self._socket.close()
