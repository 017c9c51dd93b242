#!/usr/bin/python3
"""Counts, by callgrind, the instructions of the longest turn of the loop that each command can cause.

    tests/cost/worst.py               every command, and what follows from several: 1 when a turn is over the budget
    tests/cost/worst.py LOCKS drain   those alone

A turn is to take no more than 10 ms whatever a client sends; instructions do not depend on what else the machine does,
and 20 million of them take some 6 ms. Before the requests the broker is brought into a bad state: many connections,
locks with long names, channels and costly patterns. Then each row of the command table is asked for what costs most
within the limits, in a pipeline. A row without a request here fails.
"""

import glob
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

# pylint: disable=wrong-import-position
from holdfastproc import HoldfastProc  # noqa: E402
from redisproc import RedisProc, find_server  # noqa: E402
from respclient import Closed, RespError, encode  # noqa: E402

BUDGET = 20_000_000
SKIP = 77
CLIENTS = 4000              # connections that do nothing, or hold something
HOLDERS, HELD = 4, 5000     # of them hold so many locks each
LISTENERS = 3000            # listen to one channel
PATTERNS = 120              # costly ones, of each of two connections
SENDERS, PIPELINE = 3, 34   # connections that ask, and how often; a turn runs 32 of one client
FEW = 4                     # of what takes a turn by itself
ENDLESS = ("QUIT", "MONITOR", "SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE")   # replies are not one by one
READERS = 10000             # of one lock
CONTENDED = 100             # locks for which many wait,
GROUPS, OF_A_GROUP = 25, 10 # so many clients, and so many requests of each; as many have it
EACH = 10                   # requests of each connection, when all send some at once
OWNER = "o" * 240
LONG = "n" * 480
COSTLY = ["*" + "n*" * 500 + "z", "*" + "?" * 400 + "[^a-z]", "*[" + "ab" * 500 + "]z", "*" + "n" * 400 + "z"]
WORD = "w" * 500
BIG = "v" * 4000            # as long as the value of a lock may be
SLOW = "local n = 0 while true do n = n + 1 end"    # ends at the bound of steps
MANY = ["m%03d" % i + "m" * 400 for i in range(115)]

# What costs most of each row of the command table: one request, or several that take turns.
ROWS = {
    "acl|cat": [["ACL", "CAT", "lock"]], "acl|help": [["ACL", "HELP"]], "acl|list": [["ACL", "LIST"]],
    "acl|log": [["ACL", "LOG", "1000"]], "acl|users": [["ACL", "USERS"]], "acl|whoami": [["ACL", "WHOAMI"]],
    "auth": [["AUTH", "default", "x" * 16000]],
    "client|getname": [["CLIENT", "GETNAME"]], "client|help": [["CLIENT", "HELP"]], "client|id": [["CLIENT", "ID"]],
    "client|info": [["CLIENT", "INFO"]], "client|kill": [["CLIENT", "KILL", "USER", "default", "MAXAGE", "1000000"]],
    "client|list": [["CLIENT", "LIST"], ["CLIENT", "LIST", "ID"] + [str(i) for i in range(1000000, 1000120)]],
    "client|no-evict": [["CLIENT", "NO-EVICT", "ON"]], "client|no-touch": [["CLIENT", "NO-TOUCH", "ON"]],
    "client|pause": [["CLIENT", "PAUSE", "1"]], "client|reply": [["CLIENT", "REPLY", "ON"]],
    "client|setinfo": [["CLIENT", "SETINFO", "LIB-NAME", "x" * 100]], "client|setname": [["CLIENT", "SETNAME", "x" * 100]],
    "client|tell": [["CLIENT", "TELL", "ON"]],
    "client|tracking": [["CLIENT", "TRACKING", "OFF"]], "client|unpause": [["CLIENT", "UNPAUSE"]],
    "cluster": [["CLUSTER", "INFO"] + [WORD] * 100],
    "command": [["COMMAND"]], "command|count": [["COMMAND", "COUNT"]],
    "command|docs": [["COMMAND", "DOCS"], ["COMMAND", "DOCS"] + ["client"] * 120],
    "command|getkeys": [["COMMAND", "GETKEYS", "MLOCK", "100"] + MANY[:100]],
    "command|help": [["COMMAND", "HELP"]], "command|info": [["COMMAND", "INFO"] + ["client"] * 120],
    "command|list": [["COMMAND", "LIST", "FILTERBY", "PATTERN", COSTLY[0]], ["COMMAND", "LIST"]],
    "contended": [["CONTENDED", "COUNT", "100"]],   # and "contended locks" below, when somebody waits
    "config|get": [["CONFIG", "GET"] + ["*" + "?" * 20 + "*" * 400 + str(i) for i in range(120)], ["CONFIG", "GET"] + ["*"] * 120],
    "config|help": [["CONFIG", "HELP"]], "config|resetstat": [["CONFIG", "RESETSTAT"]],
    "config|set": [["CONFIG", "SET"] + ["pause_limit", "10s"] * 16],
    "discard": [["DISCARD"]], "dbsize": [["DBSIZE"]],
    "del": [["DEL"] + MANY[:16]], "delex": [["DELEX", LONG, "IFEQ", BIG]], "delifeq": [["DELIFEQ", LONG, BIG]],
    "eval": [["EVAL", SLOW, "16"] + MANY[:16]], "eval_ro": [["EVAL_RO", SLOW, "16"] + MANY[:16]],
    "evalsha": [["EVALSHA", hashlib.sha1(SLOW.encode()).hexdigest(), "16"] + MANY[:16]],
    "evalsha_ro": [["EVALSHA_RO", hashlib.sha1(SLOW.encode()).hexdigest(), "16"] + MANY[:16]],
    "exists": [["EXISTS"] + MANY[:16]], "expire": [["EXPIRE", LONG, "1"]], "expireat": [["EXPIREAT", LONG, "1"]],
    "expiretime": [["EXPIRETIME", LONG]], "get": [["SET", LONG, BIG, "NX", "PX", "1000"], ["GET", LONG]],
    "getdel": [["SET", LONG, BIG, "NX", "PX", "1000"], ["GETDEL", LONG]], "getex": [["GETEX", LONG, "PX", "1000"]],
    "hexists": [["HEXISTS", LONG, BIG]], "hget": [["HGET", LONG, BIG]], "hgetall": [["HGETALL", LONG]], "hkeys": [["HKEYS", LONG]],
    "hlen": [["HLEN", LONG]], "hmget": [["HMGET", LONG] + [WORD] * 120], "hvals": [["HVALS", LONG]],
    "persist": [["PERSIST", LONG]], "pexpire": [["PEXPIRE", LONG, "1"]], "pexpireat": [["PEXPIREAT", LONG, "1"]],
    "pexpiretime": [["PEXPIRETIME", LONG]], "pttl": [["PTTL", LONG]],
    "script|check": [["SCRIPT", "CHECK", hashlib.sha1(SLOW.encode()).hexdigest(), "16"] + MANY[:16]],
    "script|exists": [["SCRIPT", "EXISTS"] + ["0" * 40] * 120], "script|flush": [["SCRIPT", "FLUSH"]],
    "script|help": [["SCRIPT", "HELP"]], "script|load": [["SCRIPT", "LOAD", SLOW]],
    "set": [["SET", LONG, BIG, "NX", "PX", "1000"]], "setnx": [["SETNX", LONG, BIG]], "strlen": [["STRLEN", LONG]],
    "ttl": [["TTL", LONG]], "unlink": [["UNLINK"] + MANY[:16]], "unwatch": [["UNWATCH"]], "watch": [["WATCH"] + MANY[:16], ["WATCH"] + MANY],
    "echo": [["ECHO", "e" * 16000]], "exec": [["MULTI"]] + [["DEL"] + MANY[:16]] * 15 + [["EXEC"]],     # twice in a pipeline
    "forceunlock": [["FORCEUNLOCK", LONG + "-none"]],
    "hello": [["HELLO", "2", "SETNAME", "x" * 100]], "help": [["HELP"]],
    "holds": [["HOLDS", LONG + "-none"]], "info": [["INFO", "everything"]],
    "latency|help": [["LATENCY", "HELP"]],
    "latency|latest": [["LATENCY", "LATEST"]],
    "latency|histogram": [["LATENCY", "HISTOGRAM"], ["LATENCY", "HISTOGRAM"] + ["lock"] * 120],
    "cancel": [["CANCEL", "t" * 64]],
    "lock": [["LOCK", LONG + "-%d", "LEASE", "1000", "OWNER", "o" * 250]],
    "lockinfo": [["LOCKINFO", LONG + "-none"]],
    "locks": [["LOCKS", "COUNT", "100000", "MATCH", pattern] for pattern in COSTLY] + [["LOCKS", "COUNT", "100000"]],
    "master": [["MASTER", "nobody", "TRUST"]], "masters": [["MASTERS"]],
    "mlock": [["MLOCK", str(len(MANY))] + MANY + ["LEASE", "1000", "OWNER", "mine"]],
    "monitor": [["MONITOR"]], "multi": [["MULTI"], ["DISCARD"]],
    "munlock": [["MUNLOCK", str(len(MANY))] + MANY + ["OWNER", "mine"]],
    "owner": [["OWNER", "o" * 256]], "pause": [["PAUSE"]], "ping": [["PING", "p" * 16000]],
    "publish": [["PUBLISH", "crowd", "m" * 300], ["PUBLISH", WORD, "m" * 16000]],
    "psubscribe": [["PSUBSCRIBE"] + [WORD + str(i) for i in range(120)]],
    "pubsub|channels": [["PUBSUB", "CHANNELS", pattern] for pattern in COSTLY] + [["PUBSUB", "CHANNELS"]],
    "pubsub|help": [["PUBSUB", "HELP"]], "pubsub|numpat": [["PUBSUB", "NUMPAT"]],
    "pubsub|numsub": [["PUBSUB", "NUMSUB"] + [WORD] * 120],
    "punsubscribe": [["PUNSUBSCRIBE"]], "quit": [["QUIT"]],
    "renew": [["RENEW", LONG + "-none"]], "reset": [["RESET"]], "resume": [["RESUME"]], "role": [["ROLE"]],
    "scan": [["SCAN", "0", "MATCH", COSTLY[0], "COUNT", "100000"]],
    "select": [["SELECT", "0"]], "shutdown": [["SHUTDOWN", "ABORT"]],
    "sentinel|ckquorum": [["SENTINEL", "CKQUORUM", "holdfast"]], "sentinel|help": [["SENTINEL", "HELP"]],
    "sentinel|get-master-addr-by-name": [["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "holdfast"]],
    "sentinel|master": [["SENTINEL", "MASTER", "holdfast"]], "sentinel|masters": [["SENTINEL", "MASTERS"]],
    "sentinel|replicas": [["SENTINEL", "REPLICAS", "holdfast"]], "sentinel|slaves": [["SENTINEL", "SLAVES", "holdfast"]],
    "sentinel|sentinels": [["SENTINEL", "SENTINELS", "holdfast"]],
    "slowlog|get": [["SLOWLOG", "GET", "-1"]], "slowlog|help": [["SLOWLOG", "HELP"]], "slowlog|len": [["SLOWLOG", "LEN"]],
    "slowlog|reset": [["SLOWLOG", "RESET"]],
    "subscribe": [["SUBSCRIBE"] + [WORD + str(i) for i in range(120)]],
    "time": [["TIME"]], "type": [["TYPE", LONG + "-none"]],
    "unlock": [["UNLOCK", LONG + "-none"]], "unsubscribe": [["UNSUBSCRIBE"] + [WORD] * 120, ["UNSUBSCRIBE"]],
    "waiting": [["WAITING", "COUNT", "100"]],
    "jeopardy": [["JEOPARDY", "COUNT", "100"]],
}
HEAVY = ("COMMAND DOCS", "COMMAND", "LATENCY HISTOGRAM", "CONFIG SET", "LOCKS COUNT", "SCAN 0", "CLIENT LIST",
         "PUBSUB CHANNELS", "INFO everything", "PUBLISH crowd")
# A container has no function of its own: without a sub-command each is an error.
CONTAINERS = {"acl", "client", "config", "latency", "pubsub", "script", "sentinel", "slowlog", "command"}


def raise_files():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class Counted:
    """A broker under callgrind, which writes a file for each turn of the loop once it has been told to count: a turn begins
    with broker_next_ms()."""

    def __init__(self, directory, redis, **options):
        self.out = os.path.join(directory, "turns")
        wrapper = ["valgrind", "--tool=callgrind", "-q", "--instr-atstart=no", "--dump-before=broker_next_ms",
                   "--compress-strings=yes", "--callgrind-out-file=%s" % self.out]
        self.proc = HoldfastProc(directory, {"a": redis.url}, {
            "lease": "10m", "max_lease": "10m", "request_timeout": "20s", "claim_timeout": "1m", "pause_limit": "60s", **options},
            args=["-o", "limits.max_clients_per_address=100000", "-o", "limits.max_clients=100000",
                  "-o", "limits.max_locks=10000000", "-o", "limits.max_locks_per_client=1000000",
                  "-o", "limits.tcp_keepalive=0", "-o", "limits.tcp_user_timeout=0",   # all that counts is slow
                  "-o", "limits.request_time=1h", "-o", "limits.output_buffer_soft_time=1h",   # nor what PUBLISH sends
                  "-o", "http.listen=127.0.0.1:0"], wrapper=wrapper)
        self.proc.start()

    def count(self, switch):
        subprocess.run(["callgrind_control", "-i", switch, str(self.proc.proc.pid)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        settle(self)
        self.turns()   # the one in which it began is not whole

    def turns(self):
        """The instructions of each turn since the last call."""
        counts = []
        for path in glob.glob(self.out + ".*"):
            with open(path, encoding="ascii", errors="replace") as text:
                found = re.search(r"^(?:summary|totals): (\d+)", text.read(), re.M)
            os.unlink(path)
            if found:
                counts.append(int(found.group(1)))
        return counts

    def connect(self, **kwargs):
        return self.proc.connect(deadline_s=60, **kwargs)


class State:
    """What makes each request cost as much as it can."""

    def __init__(self, broker):
        self.broker = broker
        self.crowd = [broker.connect() for _ in range(CLIENTS)]
        self.holders = self.crowd[:HOLDERS]
        for i, holder in enumerate(self.holders):
            for part in range(0, HELD, 250):
                replies = holder.pipeline(*(("LOCK", "%s-%d-%d" % (LONG, i, n)) for n in range(part, part + 250)))
                assert all(isinstance(reply, list) for reply in replies), replies[0]
        for listener in self.crowd[HOLDERS:HOLDERS + LISTENERS]:
            listener.send("SUBSCRIBE", "lock:crowd", "crowd")
        for listener in self.crowd[HOLDERS:HOLDERS + LISTENERS]:
            listener.recv()
            listener.recv()
        for i in range(2):
            listener = self.crowd[HOLDERS + LISTENERS + i]
            for n in range(PATTERNS):
                listener.send("PSUBSCRIBE", ("%s%d.%d" % (COSTLY[n % 4], i, n))[-1024:])
            for _ in range(PATTERNS):
                listener.recv()
        channels = self.crowd[HOLDERS + LISTENERS + 2]
        for part in range(0, 1000, 100):
            channels.send("SUBSCRIBE", *["%s%d" % (WORD, n) for n in range(part, part + 100)])
        for _ in range(1000):
            channels.recv()


def settle(broker):
    """Everything that was begun has come to its end: some turns without work."""
    with broker.connect() as client:
        for _ in range(3):
            client.cmd("PING")
            time.sleep(0.02)


def pipeline(requests, number):
    data = b""
    for i in range(FEW if len(requests[0]) > 50 or " ".join(requests[0][:2]) in HEAVY else PIPELINE):
        words = requests[i % len(requests)]
        data += encode(*[word.replace("-%d", "-%d-w%d" % (number, i)) for word in words])
    return data + (b"" if requests[0][0] in ENDLESS else encode("PING", "end-of-pipeline"))


def ask(broker, requests):
    """Some connections send them at the same time, each a pipeline of them in turn. One that is cut off because it does
    not take its replies has had its turns."""
    senders = [broker.connect() for _ in range(SENDERS)]
    for number, sender in enumerate(senders):
        try:
            sender.send_raw(pipeline(requests, number))
        except Closed:
            pass
    for sender in senders:
        reply = None
        while reply != "end-of-pipeline":
            try:
                reply = sender.recv(60)
            except RespError as err:
                reply = err
            except Closed:
                break
            if requests[0][0] in ENDLESS:
                break
    for sender in senders:
        sender.close()
    settle(broker)


# ---- what follows from several ----

def at_once(state, sent):
    """Each of these connections sends its bytes while the broker stands still: all sockets are ready in the same
    moment."""
    os.kill(state.broker.proc.proc.pid, signal.SIGSTOP)
    for client, data in sent.items():
        client.send_raw(data)
    os.kill(state.broker.proc.proc.pid, signal.SIGCONT)


def receive_all(state, clients, n):
    for client in clients:
        for _ in range(n):
            client.recv(60)
    settle(state.broker)


def requests_at_once(state):
    listeners, others = state.crowd[HOLDERS:][:LISTENERS], state.crowd[HOLDERS + LISTENERS + 3:]
    sent = {client: encode("PING") * EACH for client in listeners}
    for i, client in enumerate(others):
        sent[client] = b"".join(encode("LOCK", "at-once-%d-%d" % (i, n)) for n in range(EACH))
    at_once(state, sent)
    receive_all(state, sent, EACH)


def watches_at_once(state):
    """Each connection watches as many names as it may, all in one moment."""
    others = state.crowd[HOLDERS + LISTENERS + 3:]
    at_once(state, {client: encode("WATCH", *["%s-%d" % (name, i) for name in MANY[:16]]) for i, client in enumerate(others)})
    receive_all(state, others, 1)


def bytes_at_once(state):
    """Halves of requests: there is nothing to run."""
    request = encode("PING", "p" * 16000)
    at_once(state, {client: request[:-1000] for client in state.crowd})
    settle(state.broker)
    at_once(state, {client: request[-1000:] for client in state.crowd})
    receive_all(state, state.crowd, 1)


def message_to_many(state):
    with state.broker.connect() as client:
        client.pipeline(*[("LOCK", "crowd", "LEASE", 1000), ("UNLOCK", "crowd")] * 16)
    settle(state.broker)


def held(client):
    return int(re.search(r"locks_held:(\d+)", client.cmd("INFO", "holdfast")).group(1))


def wait_until(what, probe):
    deadline = time.monotonic() + 90
    while not probe():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def end_holder(state, end):
    with state.broker.connect() as client:
        before = held(client)
        end(state.holders.pop())
        wait_until("not released", lambda: held(client) <= before - HELD)


def leaving_holder(state):
    end_holder(state, lambda holder: holder.close())


def leaving_waiters(state):
    """One connection stands in line for all the locks of another, and for one of them 10000 times."""
    for fair in ([], ["FAIR"]):
        waiter, name = state.broker.connect(resp3=True), "%s-0" % LONG
        for part in range(0, 20000, 250):
            names = ["%s-%d" % (name, n % HELD) if n < 10000 else name + "-0" for n in range(part, part + 250)]
            replies = waiter.pipeline(*(["LOCK", one, "WAIT", 0, "OWNER", "w%d" % n, "ASYNC", "t%d" % n] + fair
                                        for n, one in enumerate(names, part)))
            assert replies == ["QUEUED"] * 250, replies
        settle(state.broker)
        state.broker.turns()
        waiter.close()
        with state.broker.connect() as client:
            wait_until("still in line", lambda c=client: re.search(r"\nwaiters:0\r", c.cmd("INFO", "holdfast")))


def resetting_holder(state):
    end_holder(state, lambda holder: holder.cmd("RESET"))


def pause_and_resume(state):
    with state.broker.connect() as client:
        assert client.cmd("PAUSE") == "OK" and client.cmd("RESUME") == "OK"
    settle(state.broker)


def readers_let_in(state):
    """One has a lock alone, 900 wait to read it."""
    readers = state.crowd[HOLDERS + LISTENERS + 3:][:900]
    with state.broker.connect() as client:
        assert client.cmd("LOCK", "read", "LEASE", 600000)
        for reader in readers:
            reader.send("LOCK", "read", "SHARED", "WAIT", 0, "LEASE", 600000)
        settle(state.broker)
        assert client.cmd("UNLOCK", "read") == 1
        for reader in readers:
            assert reader.recv(60)


def readers_of_one_lock(state, name):
    """So many readers of one lock, whatever their connections."""
    with_lease = ["LEASE", "600000"]
    with state.broker.connect() as client:
        for part in range(0, READERS, 250):
            replies = client.pipeline(*(["LOCK", name, "SHARED", "OWNER", "%s-%d" % (OWNER, n)] + with_lease
                                        for n in range(part, part + 250)))
            assert all(isinstance(reply, list) for reply in replies), replies[0]
    settle(state.broker)
    state.broker.turns()


def look_at_readers(state):
    readers_of_one_lock(state, "looked-at")
    ask(state.broker, [["LOCKINFO", "looked-at"]])
    ask(state.broker, [["HOLDS", "looked-at", "OWNER", OWNER]])


def contended_locks(state):
    """As many locks as one look shows, each with many readers and many who wait, of clients with long names: each is of a
    group of its own."""
    state.broker.count("off")
    with state.broker.connect() as client:
        before = held(client)
    clients = [state.broker.connect(resp3=True) for _ in range(GROUPS)]
    for i, client in enumerate(clients):
        assert client.cmd("CLIENT", "SETNAME", "c" * 125 + "%03d" % i) == "OK"
        for n in range(CONTENDED):
            lock, owners = "%s-contended-%d" % (LONG, n), ["o%d" % owner for owner in range(OF_A_GROUP)]
            readers = client.pipeline(*(["LOCK", lock, "SHARED", "OWNER", owner] for owner in owners))
            assert all(isinstance(reply, list) for reply in readers), readers[0]
    for client in clients:
        for n in range(CONTENDED):
            lock, owners = "%s-contended-%d" % (LONG, n), ["w%d" % owner for owner in range(OF_A_GROUP)]
            waiters = client.pipeline(*(["LOCK", lock, "WAIT", 0, "OWNER", owner, "ASYNC", "%d-%s" % (n, owner)]
                                        for owner in owners))
            assert waiters == ["QUEUED"] * OF_A_GROUP, waiters
    state.broker.count("on")
    for count in "10", "100":
        ask(state.broker, [["CONTENDED", "COUNT", count]])
    pages(state)
    for client in clients:
        client.close()
    with state.broker.connect() as client:
        wait_until("not released", lambda: held(client) <= before)


def force_readers(state):
    readers_of_one_lock(state, "forced")
    with state.broker.connect() as client:
        assert client.cmd("FORCEUNLOCK", "forced") > 0
    settle(state.broker)


def pages(state):
    port = re.search(r"http://127.0.0.1:(\d+)", state.broker.proc.log_text())
    if port is None:
        port = re.search(r"http.*127\.0\.0\.1:(\d+)", state.broker.proc.log_text())
    for path in ("/metrics", "/", "/livez", "/readyz?verbose"):
        try:
            urllib.request.urlopen("http://127.0.0.1:%s%s" % (port.group(1), path), timeout=30).read()
        except urllib.error.HTTPError:
            pass


def reload(state):
    state.broker.proc.hup()
    state.broker.proc.wait_log("configuration read again|unchanged", 30)
    settle(state.broker)


def kill_all(state):
    with state.broker.connect() as client:
        client.cmd("CLIENT", "KILL", "TYPE", "PUBSUB")
        client.cmd("CLIENT", "KILL", "SKIPME", "YES")
        wait_until("not gone", lambda: "connected_clients:1\r" in client.cmd("INFO", "clients"))


# In this order: the last ones take the state apart.
FLOWS = {"requests at once": requests_at_once, "watches at once": watches_at_once, "bytes at once": bytes_at_once, "message to many": message_to_many,
         "readers looked at": look_at_readers, "contended locks": contended_locks, "readers forced": force_readers, "pages": pages,
         "reload": reload, "readers let in": readers_let_in, "pause and resume": pause_and_resume, "waiters leave": leaving_waiters,
         "holder leaves": leaving_holder, "holder resets": resetting_holder, "kill all": kill_all}


def rows_of(client):
    """The names of all rows of the command table, sub-commands as "client|list"."""
    names = []
    for entry in client.cmd("COMMAND"):
        names.append(entry[0])
        names += [sub[0] for sub in entry[9]]
    return names


def judge(name, counts):
    worst = max(counts, default=0)
    print("%-24s %10d instructions in its longest turn of %d%s" % (
        name, worst, len(counts), "   MORE THAN %d" % BUDGET if worst > BUDGET else ""), flush=True)
    return worst > BUDGET


def main():
    wanted = [word.lower() for word in sys.argv[1:]]
    if not find_server() or not shutil.which("valgrind"):
        print("needs redis-server and valgrind")
        return SKIP
    if raise_files() < CLIENTS + 200:
        print("needs %d descriptors" % (CLIENTS + 200))
        return SKIP
    directory, failed = tempfile.mkdtemp(prefix="hfw-"), []
    try:
        with RedisProc() as redis:
            broker = Counted(directory, redis)
            state = State(broker)
            with broker.connect() as client:
                rows = rows_of(client)
            missing = [name for name in rows if name not in ROWS and name not in CONTAINERS]
            broker.count("on")
            for name in rows:
                if name in ROWS and (not wanted or name in wanted):
                    broker.turns()
                    for request in ROWS[name] if ROWS[name][0][0] not in ("MULTI",) else [None]:
                        ask(broker, [request] if request else ROWS[name])
                    failed += [name] if judge(name, broker.turns()) else []
            for name, flow in FLOWS.items():
                if not wanted or name in wanted:
                    broker.turns()
                    flow(state)
                    failed += [name] if judge(name, broker.turns()) else []
            broker.proc.kill()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if failed:
        print("over the budget of %d: %s" % (BUDGET, ", ".join(failed)))
    for name in missing:
        print("%s: there is no worst request for it in tests/cost/worst.py" % name)
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
