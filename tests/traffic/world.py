"""The processes and the connections of the random traffic, and all that can happen to them: World.perform().

A step is a dictionary, a line of the trace: "do" is open, send, end or fault, "t" the seconds since the beginning.
"""

import collections
import errno
import os
import re
import selectors
import socket
import struct
import subprocess
import time

import procs
import words as w
from holdfastproc import SANITIZER_RE, HoldfastProc, daemon_path
from oracle import Oracle, Violation, names_in, option
from redisproc import RedisProc
from respclient import Incomplete, ProtocolViolation, encode, parse, text

OPTIONS = {"lease": "1s", "max_lease": "2s", "quarantine": "auto", "request_timeout": "250ms",
           "pause_limit": "500ms", "log_level": "warn"}
MASTERS = "abc"
ANSWER_S = 20.0    # after everything is healed, until each request has its answer
FREE_S = 20.0      # until nothing is held any more
now = time.monotonic


# ---- the daemons -------------------------------------------------------------------------------

def password_hash():
    done = subprocess.run([daemon_path(), "--hash-password"], input=w.PASSWORD + "\n", capture_output=True, text=True,
                          check=True, timeout=20)
    return done.stdout.strip()


class UsersProc(HoldfastProc):
    """A broker with the users of words.py; uid: this process is "ops" over its Unix socket."""

    hashed = None

    def configure(self, **options):
        super().configure(**options)
        UsersProc.hashed = UsersProc.hashed or password_hash()
        with open(self.conf, "a", encoding="utf-8") as out:
            out.write("\n[users]\n")
            for name, (classes, names) in w.USERS.items():
                out.write("%s = %s\n%s.allow = %s\n" % (name, UsersProc.hashed, name, classes))
                if names:
                    out.write("%s.names = %s\n" % (name, names))
            out.write("ops.uid = %d\n" % os.getuid())

    def connect(self, **kwargs):
        client = super().connect(**kwargs)
        client.cmd("AUTH", "ops", w.PASSWORD)
        return client


# ---- connections -------------------------------------------------------------------------------

class Connection:
    """One connection: what has been asked on it, and what it is by what was answered."""

    def __init__(self, world, number, broker, user):
        self.world, self.number, self.broker, self.user = world, number, broker, user
        self.sock = socket.create_connection(world.brokers[broker].address, 10)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.local = "%s:%d" % self.sock.getsockname()
        self.out, self.data = bytearray(), bytearray()
        self.expected = collections.deque()
        self.was_resp2 = False      # with open requests that have a tag, whose ends it may not have seen
        self.asyncs = {}            # tag: the request that was answered QUEUED, until its end is told
        self.generation = 0
        self.owner = self.own_owner()
        self.acted_for = {self.owner}
        self.channels, self.patterns = set(), set()
        self.wanted = collections.deque([], 20)     # (name, owner) that it has asked for, for the maker
        self.granted = []           # (name, owner) that it has been told to have, likewise
        self.client_id = None
        self.quiet_at = now()       # nothing had come until then that has not been read
        self.proto = 2              # as it was asked for, for the maker
        self.may_listen = False     # likewise
        self.monitors = self.doomed = self.half = self.quits = self.in_multi = False
        self.may_be_nobody = user is not None       # where there are users, until it has said who it is
        self.waits_for_ever = self.asked_for_pushes = False

    def own_owner(self):
        return "connection %d.%d" % (self.number, self.generation)

    @property
    def listens(self):
        return bool(self.channels or self.patterns)

    def send(self, requests, inline):
        for request in requests:
            line = " ".join(str(word) for word in request)
            self.out += line.encode() + b"\r\n" if inline else encode(*request)
        self.flush()

    def flush(self):
        try:
            while self.out:
                del self.out[:self.sock.send(self.out)]
        except BlockingIOError:
            pass
        except OSError:
            self.out.clear()    # the end is seen where it is read
        self.world.watch(self)

    def replied(self, e, value):
        if e.name in ("multi", "exec", "discard", "reset", "hello"):
            self.in_multi = e.name == "multi" and value == "OK"
        if e.name == "reset" and value == "RESET":
            self.channels.clear()
            self.patterns.clear()
            self.monitors, self.may_be_nobody = False, self.user is not None
        elif e.name in ("auth", "hello") and value == "OK" or (e.name == "hello" and w.pairs(value)):
            self.may_be_nobody = False
            if e.name == "hello":
                self.client_id = w.pairs(value)["id"]
        elif e.name in ("lock", "mlock") and isinstance(value, list):
            owner = option(e.words, "OWNER")
            self.granted += [(name, owner) for name in names_in(e.words)]
        elif e.name == "monitor" and value == "OK":
            self.monitors = True
        elif e.name == "client|id" and isinstance(value, int):
            self.client_id = value


# ---- the world ---------------------------------------------------------------------------------

class World:
    """The processes, the connections and the oracle; perform() is all that ever happens to them."""

    def __init__(self, directory):
        self.directory = directory
        self.selector = selectors.DefaultSelector()
        self.oracle = Oracle()
        self.connections = {}
        self.masters = [RedisProc(name) for name in MASTERS]
        self.brokers = []
        self.trace = []
        self.counts = collections.Counter()
        self.begun = None

    def start(self):
        for master in self.masters:
            master.start()
        urls = {m.name: m.url for m in self.masters}
        self.brokers = [UsersProc(self.directory, urls, OPTIONS, name="with-users"),
                        HoldfastProc(self.directory, urls, OPTIONS, name="open")]
        for broker in self.brokers:
            broker.args = ["-o", "holdfast.log_level=info"]
            broker.start().wait_masters()
        self.begun = now()
        return self

    def alive_ids(self):
        return list(self.connections) or [0]

    # -- steps

    def perform(self, step):
        """Does it and writes it down. A step on a connection that has ended is left out."""
        do = step["do"]
        if do == "open":
            self.connections[step["c"]] = c = Connection(self, step["c"], step["b"], step["user"])
            self.watch(c)
        elif do == "fault":
            self.fault(self.masters[step["m"]], step["what"])
        elif step["c"] not in self.connections:
            return
        elif do == "send":
            self.send(self.connections[step["c"]], step["requests"], step.get("inline", False))
        elif do == "end":
            self.end(self.connections[step["c"]], step["how"])
        self.trace.append(dict(step, t=round(now() - self.begun, 4)))
        self.counts[do] += 1

    def fault(self, master, what):
        up = master.proc.poll() is None
        if what == "stop" and up and not master.stopped:
            master.stop()
        elif what == "cont" and up and master.stopped:
            master.cont()
        elif what == "kill" and up:
            master.kill()
            self.oracle.killed_at = now()
        elif what == "start" and not up:
            master.start()
            self.oracle.killed_at = now()

    def send(self, c, requests, inline):
        if c.half or c.quits:
            return
        said = []
        for words in requests:
            words = [self.resolve(c, word) for word in words]
            c.expected.append(self.oracle.asked(c, words, now()))
            name = w.full_name(words)
            self.counts["requests"] += 1
            c.quits |= name == "quit"
            c.may_listen |= name in ("subscribe", "psubscribe")
            c.waits_for_ever |= "WAIT 0" in " ".join(str(word).upper() for word in words) and "ASYNC" not in words
            if name == "hello":
                c.was_resp2 |= c.proto == 2 and bool(c.asyncs or c.expected)
                c.proto = int(words[1])
            elif name == "reset":
                c.proto, c.may_listen, c.may_be_nobody = 2, False, c.user is not None
            said.append(words)
        c.send(said, inline)

    def resolve(self, c, word):
        """@addr:N and @id:N: of connection N, which is to be killed."""
        match = re.match(r"@(addr|id):(\d+)$", str(word))
        if not match:
            return word
        target = self.connections.get(int(match.group(2)))
        if not target:
            return "127.0.0.1:2" if match.group(1) == "addr" else 999999
        if match.group(1) == "addr":
            self.oracle.doomed(target, now())
            return target.local
        if not target.client_id or target.broker != c.broker:  # numbers are of one broker
            return 999999
        self.oracle.doomed(target, now())
        return target.client_id

    def end(self, c, how):
        if how == "half":
            c.half = True
            try:
                c.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            for owner in c.acted_for:
                self.oracle.cut((owner,), owners=True)
            self.oracle.doomed(c, now())
            return
        if how == "reset":
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.forget(c)

    def forget(self, c):
        self.oracle.ended(c, now())
        self.selector.unregister(c.sock)
        c.sock.close()
        del self.connections[c.number]

    # -- what comes

    def watch(self, c):
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if c.out else 0)
        try:
            if self.selector.get_key(c.sock).events != events:
                self.selector.modify(c.sock, events, c)
        except KeyError:
            self.selector.register(c.sock, events, c)

    def run(self, until):
        """Takes in what comes, until this time."""
        while True:
            ready = {key.data: mask for key, mask in self.selector.select(max(0, min(0.05, until - now())))}
            at = now()
            for c in list(self.connections.values()):
                if not ready.get(c, 0) & selectors.EVENT_READ:
                    c.quiet_at = at
            for c, mask in ready.items():
                if c.number not in self.connections:
                    continue
                if mask & selectors.EVENT_WRITE:
                    c.flush()
                if mask & selectors.EVENT_READ:
                    self.read(c)
            if now() >= until:
                break
        self.look_at_brokers()

    def read(self, c):
        try:
            more = c.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError as err:
            if err.errno not in (errno.ECONNRESET, errno.EPIPE):
                raise
            more = b""
        if not more:
            self.closed(c)
            return
        c.data += more
        pos = 0
        try:
            while pos < len(c.data):
                value, pos = parse(c.data, pos)
                self.counts["replies"] += 1
                self.oracle.answered(c, text(value), now())
        except Incomplete:
            pass
        except ProtocolViolation as err:
            raise Violation("protocol", "connection %d: %s" % (c.number, err)) from None
        del c.data[:pos]

    def closed(self, c):
        self.look_at_brokers(0.5 if not (c.half or c.doomed or c.quits) else 0)
        if c.quits and not c.half and not c.doomed and c.expected:
            raise Violation("unanswered", "connection %d ended before its reply to %r" % (c.number, c.expected[0].words))
        if not (c.half or c.doomed or c.quits):
            raise Violation("closed", "connection %d was closed; expected: %r" %
                            (c.number, [e.words for e in list(c.expected)[:3]]))
        self.forget(c)

    def look_at_brokers(self, wait_s=0.0):
        for broker in self.brokers:
            try:
                broker.proc.wait(wait_s)
            except subprocess.TimeoutExpired:
                continue
            raise Violation("crash", self.crash_of(broker))

    @staticmethod
    def crash_of(broker):
        log = broker.log_text()
        found = re.search(SANITIZER_RE, log)
        places = re.findall(r"#\d+ 0x\w+ in (\w+) ", log[found.start():] if found else "")
        return "%s ended with status %s in %s" % (broker.name, broker.proc.returncode, " < ".join(places[:4]) or "?")

    # -- the end

    def heal(self):
        for m in range(len(self.masters)):
            self.perform({"do": "fault", "m": m, "what": "cont"})
            self.perform({"do": "fault", "m": m, "what": "start"})
        for c in list(self.connections.values()):
            if c.waits_for_ever or c.half:
                self.end(c, "close")
        for broker in self.brokers:
            with broker.connect() as admin:
                for command in ("RESUME", "CLIENT UNPAUSE", "CONFIG SET max_locks 100000 max_locks_per_client 10000"):
                    admin.cmd(*command.split())

    def finish(self):
        """Everything is healed: each request is answered, and then nothing is left."""
        self.heal()
        until = now() + ANSWER_S
        while any(c.expected for c in self.connections.values()):
            if now() > until:
                c = next(c for c in self.connections.values() if c.expected)
                raise Violation("unanswered", "connection %d has no reply to %r after %.1f s" %
                                (c.number, c.expected[0].words, now() - c.expected[0].at))
            self.run(now() + 0.05)
        for c in list(self.connections.values()):
            self.end(c, "close")
        for broker in self.brokers:
            with broker.connect() as admin:     # what commands of Redis hold ends with no connection, and may have no time
                # one that too many masters have lost for a majority, as the manual says, is freed by force alone
                procs.wait_for("an end of drop-in", lambda a=admin: self.are_deleted(a), FREE_S, 0.1)
            try:
                procs.wait_for("everything is free at %s" % broker.name, lambda b=broker: self.is_free(b), FREE_S, 0.1)
            except AssertionError as err:
                raise Violation("left", "%s: %s" % (err, self.left_at(broker))) from None
            with broker.connect() as admin:
                procs.wait_for("a lock", lambda a=admin: a.pipeline(["LOCK", "k0"])[0], FREE_S, 0.1)

    @staticmethod
    def are_deleted(admin):
        admin.pipeline(*[["FORCEUNLOCK", key] for key in w.KEYS])
        return isinstance(admin.pipeline(["DEL"] + w.KEYS)[0], int)

    @staticmethod
    def left_at(broker):
        info = broker.info()
        return {key: info[key] for key in ("locks_held", "waiters") if key in info}

    def is_free(self, broker):
        return all(int(value) == 0 for value in self.left_at(broker).values())

    def close(self):
        for broker in self.brokers:
            if broker.proc and broker.proc.poll() is None:
                broker.proc.kill()
                broker.proc.wait()
        for master in self.masters:
            master.close()
        for c in self.connections.values():
            c.sock.close()
        self.selector.close()

    def close_and_judge(self):
        """One broker is told to go by a command, the other one by a signal."""
        with self.brokers[0].connect() as admin:
            admin.send("SHUTDOWN", "NOW")
            admin.read_to_end()
        try:
            self.brokers[0].wait(20)
            for broker in self.brokers:
                broker.close()
        except AssertionError as err:
            raise Violation("crash", str(err)) from None
