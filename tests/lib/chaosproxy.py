"""A proxy between a broker and one master that understands RESP and does damage on request.

Each connection has two threads: one carries requests up, one carries replies down. Requests and their
replies are matched by order, so a rule can act on the reply of the request that it matched. Bytes stay
in order in each direction, as on a real connection: what is dropped takes everything after it along
(but for skip_reply, which is a master that lies).

    rule = proxy.on("cut_after", lambda r: r.mentions("stock"), nth=2)
    ...
    rule.wait()

Actions on a request: delay_request, hold_request, drop_request, duplicate, replay_later, replace,
cut_before. On its reply: delay_reply, hold_reply, drop_reply, skip_reply, replace_reply, edit_reply, cut_after (the
master has run it, the reply is lost), cut_after_reply. None of these: count.
"""

import collections
import os
import shutil
import socket
import struct
import tempfile
import threading
import time

from respclient import Incomplete, ProtocolViolation, parse

ON_REQUEST = {"delay_request", "hold_request", "drop_request", "duplicate", "replay_later", "replace",
              "cut_before"}
ON_REPLY = {"delay_reply", "hold_reply", "drop_reply", "skip_reply", "replace_reply", "edit_reply", "cut_after",
            "cut_after_reply"}
PUBSUB = {"subscribe", "psubscribe", "unsubscribe", "punsubscribe", "ssubscribe", "sunsubscribe", "monitor"}


class Request:
    def __init__(self, args, raw, conn, script):
        self.args = args
        self.raw = raw
        self.conn = conn
        self.name = args[0].decode("latin-1").lower() if args else ""
        self.script = script

    def mentions(self, part):
        """Whether an argument contains part (a lock's name, say)."""
        part = part.encode() if isinstance(part, str) else part
        return any(part in arg for arg in self.args[1:])

    def runs(self, part):
        """Whether it runs a script whose text contains part."""
        return self.script is not None and part.encode() in self.script

    @property
    def is_eval(self):
        return self.name in ("eval", "evalsha", "fcall")

    def __repr__(self):
        return "<%s>" % b" ".join(a[:40] for a in self.args).decode("latin-1")


class Rule:
    def __init__(self, action, match, nth, times, value):
        self.action = action
        self.match = match
        self.nth = nth
        self.times = times
        self.value = value
        self.seen = 0
        self.hits = []
        self._hit = threading.Condition()
        self._released = threading.Event()
        self.active = True

    def take(self, request):
        """Counts a matching request; True when the rule is to act on it."""
        if not self.active or not self.match(request):
            return False
        self.seen += 1
        if self.seen < self.nth or (self.times is not None and self.seen >= self.nth + self.times):
            return False
        with self._hit:
            self.hits.append(request)
            self._hit.notify_all()
        return True

    def wait(self, count=1, deadline_s=10.0):
        """Until the rule has acted that often."""
        with self._hit:
            if not self._hit.wait_for(lambda: len(self.hits) >= count, deadline_s):
                raise AssertionError("%s: acted %d times, not %d" % (self.action, len(self.hits), count))
        return self.hits[count - 1]

    def release(self):
        """Lets go what hold_request or hold_reply keeps back."""
        self._released.set()

    def stop(self):
        """The rule acts no more."""
        self.active = False
        self._released.set()

    def wait_released(self):
        self._released.wait()


class _Pending:
    """A reply that is due: what to do with it when it is first in the line."""

    def __init__(self, request, rule=None, swallow=False, canned=None):
        self.request = request
        self.rule = rule
        self.swallow = swallow
        self.canned = canned


class _Conn:
    def __init__(self, proxy, client, number):
        self.proxy = proxy
        self.client = client
        self.number = number
        self.server = None
        self.lock = threading.Lock()
        self.pending = collections.deque()
        self.pubsub = False
        self.queues = False   # between MULTI and EXEC
        self.up_dead = False
        self.down_dead = False

    def run(self):
        self.proxy.wait_open()
        try:
            self.server = connect(self.proxy.upstream)
        except OSError:
            self.cut()
            return
        threading.Thread(target=self._down, daemon=True).start()
        self._up()

    def cut(self):
        for sock in (self.client, self.server):
            if sock is not None:
                try:
                    if self.proxy.resets:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.shutdown(socket.SHUT_RD if self.proxy.resets else socket.SHUT_RDWR)
                except OSError:
                    pass
                sock.close()

    # Upward

    def _up(self):
        data = bytearray()
        try:
            while True:
                more = self.client.recv(65536)
                if not more:
                    break
                data += more
                while True:
                    taken = _take_request(data)
                    if taken is None:
                        break
                    self._request(*taken)
            if self.up_dead or self.proxy.keeps_open:
                return
            if self.proxy.resets:
                self.cut()
                return
            self.server.shutdown(socket.SHUT_WR)
        except OSError:
            if self.proxy.keeps_open:
                return
            if self.proxy.resets:
                self.cut()
                return
            # The broker has cut: what was under way still reaches the master, nothing more.
            try:
                self.server.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def _request(self, args, raw):
        request = Request(args, raw, self.number, self.proxy.script_of(args))
        rule = self.proxy.judge(request)
        if self.up_dead:
            return
        action = rule.action if rule else None
        delay_s = self.proxy.latency_s + (rule.value if action == "delay_request" else 0)
        if delay_s:
            time.sleep(delay_s)
        if action == "hold_request":
            rule.wait_released()
        self.proxy.wait_open()
        if action == "drop_request":
            self.up_dead = True
        elif action == "cut_before":
            self.cut()
        elif action == "replace":
            self._expect(_Pending(request, canned=rule.value))
        elif action == "duplicate":
            self._forward(request, _Pending(request), _Pending(request, swallow=True))
        else:
            if action == "replay_later":
                threading.Thread(target=self.proxy.replay, args=(request, rule), daemon=True).start()
            self._forward(request, _Pending(request, rule if action in ON_REPLY else None))

    def _forward(self, request, *due):
        if request.name in ("multi", "exec", "discard"):
            self.queues = request.name == "multi"
        if request.name in PUBSUB and not self.queues:
            self.pubsub = True
        for one in due:
            with self.lock:
                self.pending.append(one)
            self.server.sendall(request.raw)

    def _expect(self, due):
        with self.lock:
            self.pending.append(due)
            self._flush_canned()

    def _flush_canned(self):
        while self.pending and self.pending[0].canned is not None:
            self._answer(self.pending.popleft().canned)

    # Downward

    def _down(self):
        data = bytearray()
        try:
            while True:
                more = self.server.recv(65536)
                if not more:
                    break
                data += more
                while True:
                    try:
                        value, end = parse(data)
                    except Incomplete:
                        break
                    raw = bytes(data[:end])
                    del data[:end]
                    self._reply(value, raw)
        except (OSError, ProtocolViolation):
            pass
        if not self.down_dead:
            self.cut()

    def _reply(self, value, raw):
        if self.proxy.latency_s:
            time.sleep(self.proxy.latency_s)
        with self.lock:
            due = None
            if not self.pubsub and raw[:1] != b">" and self.pending:
                due = self.pending.popleft()
        if due is not None:
            self.proxy.learn(due.request, value)
        if due is not None and due.swallow:
            self._after_reply()
            return
        rule = due.rule if due else None
        action = rule.action if rule else None
        if action == "delay_reply":
            time.sleep(rule.value)
        elif action == "hold_reply":
            rule.wait_released()
        self.proxy.wait_open()
        if self.pubsub and self.proxy.deaf:
            self.down_dead = True
        if action == "drop_reply":
            self.down_dead = True
        elif action == "cut_after":
            self.cut()
        elif action == "replace_reply":
            self._answer(rule.value)
        elif action == "edit_reply":
            self._answer(rule.value(raw))
        elif action != "skip_reply":
            self._answer(raw)
            if action == "cut_after_reply":
                self.cut()
        self._after_reply()

    def _after_reply(self):
        with self.lock:
            self._flush_canned()

    def _answer(self, raw):
        if self.down_dead:
            return
        try:
            self.client.sendall(raw)
        except OSError:
            pass  # the broker is gone; the master's replies are still read


class ChaosProxy:
    def __init__(self, upstream, tcp=False):
        self.upstream = upstream
        self.dir = tempfile.mkdtemp(prefix="hfp-")
        self.tcp = tcp
        self.latency_s = 0.0
        self.keeps_open = False   # that a client has closed its connection is not passed on
        self.resets = False  # what is cut is reset, not closed in order
        self.deaf = False  # what subscribers are told gets lost, and no link is closed
        self.conns = []
        self.requests = []
        self._rules = []
        self._scripts = {}
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        self._listener = None
        self._port = 0
        self._closing = False
        self._listen()

    @property
    def address(self):
        return ("127.0.0.1", self._port) if self.tcp else os.path.join(self.dir, "s")

    @property
    def url(self):
        return "redis://127.0.0.1:%d" % self._port if self.tcp else "unix://%s" % self.address

    def _listen(self):
        if self.tcp:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._port))
            self._port = listener.getsockname()[1]
        else:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            if os.path.exists(self.address):
                os.unlink(self.address)
            listener.bind(self.address)
        listener.listen(128)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                conn = _Conn(self, client, len(self.conns))
                self.conns.append(conn)
            threading.Thread(target=conn.run, daemon=True).start()

    # What the tests say

    def on(self, action, match=None, nth=1, times=1, value=None):
        """From the nth request that matches, and for that many of them (None: for ever), do action."""
        assert action in ON_REQUEST | ON_REPLY | {"count"}, action
        rule = Rule(action, match or (lambda request: True), nth, times, value)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self):
        """Takes all rules away; what they hold goes on."""
        with self._lock:
            rules, self._rules = self._rules, []
        for rule in rules:
            rule.stop()

    def blackhole(self, on=True):
        """Nothing passes either way, nothing is closed; what came meanwhile passes when it ends."""
        if on:
            self._open.clear()
        else:
            self._open.set()

    def refuse(self, on=True):
        """Refuses new connections and cuts those that are there; or listens again."""
        if on and self._listener is not None:
            # shutdown() wakes the accepting thread; close() alone would leave it there, accepting
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
            self.cut_all()
        elif not on and self._listener is None:
            self._listen()

    def cut_all(self):
        with self._lock:
            conns = list(self.conns)
        for conn in conns:
            conn.cut()

    def count(self, match):
        """How many requests so far match."""
        with self._lock:
            return sum(1 for request in self.requests if match(request))

    def close(self):
        self._closing = True
        self.clear()
        self.refuse()
        self._open.set()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # What its connections ask

    def judge(self, request):
        """The first rule that acts on the request; every rule counts it."""
        with self._lock:
            self.requests.append(request)
            acting = [rule for rule in self._rules if rule.take(request)]
        acting = [rule for rule in acting if rule.action != "count"]
        return acting[0] if acting else None

    def wait_open(self):
        self._open.wait()

    def script_of(self, args):
        if len(args) > 1 and args[0].lower() == b"eval":
            return args[1]
        if len(args) > 1 and args[0].lower() == b"evalsha":
            return self._scripts.get(args[1].lower())
        return None

    def learn(self, request, reply):
        """SCRIPT LOAD's reply names the script that EVALSHA will run."""
        if request.name == "script" and len(request.args) == 3 and isinstance(reply, bytes):
            self._scripts[reply.lower()] = request.args[2]

    def replay(self, request, rule):
        """The same bytes once more, later, on a connection of their own."""
        if rule.value is None:
            rule.wait_released()
        else:
            time.sleep(rule.value)
        with connect(self.upstream) as server:
            server.sendall(request.raw)
            server.settimeout(5)
            server.recv(65536)


def connect(address):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.connect(address)
    return sock


def _take_request(data):
    """One request from the front of data: (args, raw); None: not whole yet."""
    if not data:
        return None
    if data[:1] == b"*":
        try:
            args, end = parse(data)
        except Incomplete:
            return None
    else:
        end = data.find(b"\n") + 1
        if end == 0:
            return None
        args = bytes(data[:end]).split()
    raw = bytes(data[:end])
    del data[:end]
    return args, raw
