#!/usr/bin/python3
"""Random valid traffic of all commands against real brokers, whose masters are stopped, killed and restarted.

    tests/traffic/traffic.py --daemon build/holdfastd --seconds 60 [--seed N]
    tests/traffic/traffic.py --daemon build/holdfastd --replay FILE
    tests/traffic/traffic.py --daemon build/holdfastd --shrink FILE

Two brokers, one with users and one without, over three masters. Some dozens of connections say what words.py can
make, in RESP2, in RESP3 and as typed lines, in pipelines of 1 to 10, and end in order, by a reset or half. The
daemon must not end, no sanitizer may say anything, each reply must be possible (oracle.py), and when all is healed
every request must have its answer and nothing may be held.

What was sent is written to a trace, a line for each step with its time. --replay does the same again; --shrink
replays less and less of it for as long as it fails in the same way, and leaves the smallest one in FILE.small.
The seed decides what is said and when; which meets which is up to the machine.

Exit status: 0 all is well, 1 something is wrong, 77 no redis-server.
"""

import argparse
import collections
import errno
import json
import os
import random
import re
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
import procs  # noqa: E402
import words as w  # noqa: E402
from holdfastproc import SANITIZER_RE, HoldfastProc, daemon_path  # noqa: E402
from oracle import Oracle, Violation  # noqa: E402
from redisproc import RedisProc, find_server  # noqa: E402
from respclient import Incomplete, ProtocolViolation, encode, parse, text  # noqa: E402

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
        self.generation = 0
        self.owner = self.own_owner()
        self.acted_for = {self.owner}
        self.channels, self.patterns = set(), set()
        self.wanted = []            # (name, owner) that it may have, for the maker
        self.client_id = None
        self.quiet_at = now()       # nothing had come until then that has not been read
        self.proto = 2              # as it was asked for, for the maker
        self.may_listen = False     # likewise
        self.monitors = self.was_reset = self.doomed = self.half = self.quits = self.in_multi = False
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
            self.monitors, self.was_reset = False, self.user is not None
        elif e.name in ("auth", "hello") and value == "OK" or (e.name == "hello" and w.pairs(value)):
            self.was_reset = False
            if e.name == "hello":
                self.client_id = w.pairs(value)["id"]
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
            c.waits_for_ever |= "WAIT 0" in " ".join(str(word).upper() for word in words)
            if name == "hello":
                c.proto = int(words[1])
            elif name == "reset":
                c.proto, c.may_listen, c.was_reset = 2, False, c.user is not None
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
            try:
                procs.wait_for("everything is free at %s" % broker.name, lambda b=broker: self.is_free(b), FREE_S, 0.1)
            except AssertionError as err:
                raise Violation("left", "%s: %s" % (err, self.left_at(broker))) from None
            with broker.connect() as admin:
                procs.wait_for("a lock", lambda a=admin: a.pipeline(["LOCK", "k0"])[0], FREE_S, 0.1)

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


# ---- what is to happen -------------------------------------------------------------------------

class Plan:
    """The steps of a seed, each with its time; asks the world only which connections there are."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.n_connections = rng.choice([12, 24, 36, 48])
        self.maker = w.Maker(rng, rng.choice([20, 40, 80, 200]))
        self.gap_s = rng.choice([0.001, 0.003, 0.006])
        self.fault_gap_s = rng.choice([0.5, 2, 5])
        self.commands = [name for name in w.TABLE if name != "quit"]
        self.weights = [w.TABLE[name].weight for name in self.commands]
        self.first = sorted(self.commands, key=lambda _: rng.random())  # each of them once
        self.last_number = 0
        self.next_fault_s = 2.0
        self.undo = []               # (time, step)
        self.killed = False

    def login(self, user):
        if user is None:
            return []
        if self.rng.random() < 0.5:
            return [["AUTH", user, w.PASSWORD]]
        return [["HELLO", 3, "AUTH", user, w.PASSWORD]]

    def open(self):
        rng = self.rng
        self.last_number += 1
        number, broker = self.last_number, rng.randrange(2)
        user = rng.choice(["ops", "ops", "app", "eye"]) if broker == 0 else None
        first = self.login(user)
        if rng.random() < 0.5:
            first.append(["HELLO", 3])
        if rng.random() < 0.2:
            first.append(["OWNER", rng.choice(w.OWNERS)])
        yield {"do": "open", "c": number, "b": broker, "user": user}
        if first:
            yield {"do": "send", "c": number, "requests": first}

    def command(self, c):
        """One request, or those that go together."""
        name = self.first.pop() if self.first else self.rng.choices(self.commands, self.weights)[0]
        if name == "master" and self.killed:
            name = "masters"    # TRUST while data may be missing breaks promises, as the manual says
        if c.may_listen and c.proto == 2:  # it may say little else; nothing that would count as said
            name = self.rng.choice(["subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ping", "client|getname",
                                    "reset"])
        if name == "monitor" and c.may_listen:
            name = "ping"
        make = w.TABLE[name].make
        made = [w.words_of(name, make(self.maker, c) if make else [])]
        if name == "reset":
            made += self.login(c.user)
        elif name == "monitor":
            made += [["PING"], ["RESET"]] + self.login(c.user)
        elif name == "multi":
            made += [["LOCK", self.maker.name()], ["ECHO", "not run"], [self.rng.choice(["EXEC", "DISCARD"])]]
        return made

    def talk(self, c):
        requests = []
        for _ in range(self.rng.randint(1, 10)):
            requests += self.command(c)
            if requests[-1][0] in ("RESET", "HELLO", "SUBSCRIBE", "PSUBSCRIBE"):
                break       # what may follow depends on it
        if self.rng.random() < 0.02:
            requests.append(["QUIT"])
        inline = self.rng.random() < 0.1 and not any(" " in str(word) for r in requests for word in r)
        yield {"do": "send", "c": c.number, "requests": requests, "inline": inline}

    def steps(self, world, at_s):
        """What happens now."""
        rng = self.rng
        while self.undo and self.undo[0][0] <= at_s:
            yield self.undo.pop(0)[1]
        if at_s >= self.next_fault_s:
            yield from self.fault(at_s)
        alive = [c for c in world.connections.values() if not c.half and not c.quits]
        if len(alive) < self.n_connections:
            yield from self.open()
        if not alive:
            return
        c = rng.choice(alive)
        if rng.random() < 0.01:
            yield {"do": "end", "c": c.number, "how": rng.choice(["close", "reset", "half"])}
        elif len(c.expected) < 20:
            yield from self.talk(c)

    def fault(self, at_s):
        rng, m = self.rng, self.rng.randrange(len(MASTERS))
        self.next_fault_s = at_s + rng.uniform(0.5, 1.5) * self.fault_gap_s
        if rng.random() < 0.75:
            yield {"do": "fault", "m": m, "what": "stop"}
            self.later(at_s + rng.choice([0.02, 0.2, 0.4, 1, 3]), {"do": "fault", "m": m, "what": "cont"})
        else:
            self.killed = True
            yield {"do": "fault", "m": m, "what": "kill"}
            self.later(at_s + rng.choice([0.05, 0.5, 2]), {"do": "fault", "m": m, "what": "start"})
            self.next_fault_s += 3

    def later(self, at_s, step):
        self.undo.append((at_s, step))
        self.undo.sort(key=lambda one: one[0])


# ---- runs --------------------------------------------------------------------------------------

class Failure:
    def __init__(self, violation, trace, logs):
        self.kind, self.text, self.trace, self.logs = violation.kind, str(violation), trace, logs

    def is_like(self, other):
        """Crashes count as the same wherever they are: memory that was freed shows in many places."""
        return self.kind == other.kind


def in_world(drive, finish=True, judge=None):
    """The failure, or None."""
    directory = tempfile.mkdtemp(prefix="hft-")
    world = World(directory)
    try:
        world.start()
        drive(world)
        if finish:
            world.finish()
            world.close_and_judge()
        if judge:
            judge(world)
        return None
    except Violation as violation:
        logs = {b.name: b.log_text() for b in world.brokers}
        return Failure(violation, world.trace, logs)
    finally:
        world.close()
        shutil.rmtree(directory, ignore_errors=True)


def random_run(seed, seconds):
    plan = Plan(seed)

    def drive(world):
        with world.brokers[1].connect() as client:
            missing = w.missing(client.cmd("COMMAND", "DOCS"))
        if missing:
            raise Violation("incomplete", "; ".join(missing))
        end = now() + seconds
        while now() < end:
            for step in plan.steps(world, now() - world.begun):
                world.perform(step)
            world.run(now() + plan.rng.expovariate(1 / plan.gap_s))

    def judge(world):
        c = world.counts
        print("traffic: seed %d: %d requests on %d connections, %d grants, %d faults" %
              (seed, c["requests"], c["open"], world.oracle.grants, c["fault"]), flush=True)

    return in_world(drive, judge=judge)


def replay(trace, finish=True):
    def drive(world):
        for step in trace:
            world.run(world.begun + step["t"])
            world.perform(step)
        world.run(now() + 0.5)
    return in_world(drive, finish)


def save(trace, path):
    with open(path, "w", encoding="utf-8") as out:
        for step in trace:
            out.write(json.dumps(step) + "\n")


def load(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def report(failure, path):
    print("traffic: FAILED: %s" % failure.text)
    for name, log in failure.logs.items():
        found = re.search(SANITIZER_RE, log)
        print("--- log of %s\n%s" % (name, log[found.start():][:5000] if found else log[-3000:]))
    if path:
        save(failure.trace, path)
        print("traffic: what was sent is in %s; make it small: tests/traffic/traffic.py --shrink %s" % (path, path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--daemon", help="the daemon under test (default: $HOLDFASTD, or build/holdfastd)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="default: by chance")
    parser.add_argument("--runs", type=int, default=2, help="so many seeds, one after the other, share the time")
    parser.add_argument("--results", default=".", help="where traffic.trace is left after a failure")
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--shrink", metavar="FILE")
    options = parser.parse_args()
    os.makedirs(options.results, exist_ok=True)
    if find_server() is None:
        print("traffic: redis-server is not installed")
        return 77
    if options.daemon:
        os.environ["HOLDFASTD"] = os.path.abspath(options.daemon)
    if options.shrink:
        import shrink  # pylint: disable=import-outside-toplevel
        return shrink.shrink(options.shrink)
    if options.replay:
        failure = replay(load(options.replay))
        if failure:
            report(failure, None)
        return 1 if failure else 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10 ** 6)
    print("traffic: seeds from %d on" % seed, flush=True)
    for i in range(options.runs):
        failure = random_run(seed + i, options.seconds / options.runs)
        if failure:
            report(failure, os.path.join(options.results, "traffic.trace"))
            print("traffic: again: tests/traffic/traffic.py --seed %d --runs 1 --seconds %g" %
                  (seed + i, options.seconds / options.runs))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
