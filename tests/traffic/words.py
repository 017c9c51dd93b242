"""The commands of the random traffic: how a request of each is made, and which replies to it are possible.

A new command or option is a line in TABLE and, if it has options, in its function; missing() compares both with
what the broker says of itself.

A reply is judged by its shape alone (a function that takes the value and says whether it fits) and by the code
of its error; what replies mean together is the business of oracle.py.
"""

import collections
import hashlib
import random
import re
import types

from respclient import RespError

PASSWORD = "traffic"
# name: (classes, names); the password of each is PASSWORD
USERS = {"ops": ("lock drop-in inspect admin", None), "app": ("lock drop-in inspect", "[kd]*"), "eye": ("inspect", None)}
TAGS = ["t%d" % i for i in range(8)]    # of LOCK ... ASYNC
CHANNELS = ["lost", "kept", "news", "async:t1"]     # kept: all users with names may use it; lost: nobody publishes there
KEYS = ["d%d" % i for i in range(8)]    # of commands of Redis
OWNERS = ["owner-%d" % i for i in range(12)]


# ---- shapes ------------------------------------------------------------------------------------

def ok(value):
    return value == "OK"


def text(value):
    return isinstance(value, str)


def integer(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def number(value):
    return isinstance(value, int) and not isinstance(value, bool)


def nothing(value):
    return value is None


def one_of(*shapes):
    return lambda value: any(shape(value) for shape in shapes)


def word(*words):
    return lambda value: value in words


def list_of(shape, length=None):
    return lambda value: isinstance(value, list) and (length is None or len(value) == length) and all(map(shape, value))


def row(*shapes):
    return lambda value: (isinstance(value, list) and len(value) == len(shapes)
                          and all(shape(one) for shape, one in zip(shapes, value)))


def pairs(value):
    """A map of either protocol, as a dictionary; None: it is none."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and len(value) % 2 == 0:
        return dict(zip([str(v) for v in value[::2]], value[1::2]))
    return None


def map_with(**fields):
    """A map with exactly these fields, in their shapes."""
    def fits(value):
        found = pairs(value)
        return found is not None and set(found) == set(fields) and all(fields[k](v) for k, v in found.items())
    return fits


def map_of(key, value_shape):
    def fits(value):
        found = pairs(value)
        return found is not None and all(key(k) and value_shape(v) for k, v in found.items())
    return fits


def anything(value):
    return not isinstance(value, RespError)


def flag(value):
    return value in (0, 1, True, False)


TOKEN = integer
GRANT = one_of(nothing, row(TOKEN, integer))
KIND = one_of(nothing, word("exclusive", "shared", "limit"))


def grants(names):
    return one_of(nothing, row(list_of(TOKEN, names), integer))


def holder(value):
    found = pairs(value)
    if found is None or not {"owner", "count", "token", "remaining_ms", "connection"} <= set(found):
        return False
    return set(found) <= {"owner", "count", "token", "remaining_ms", "connection", "held_ms", "watched"}


GROUPS = list_of(map_with(client=text, kind=word("exclusive", "shared", "limit"), count=integer))
CONTENDED = map_with(lock=text, waiting=integer, waited_ms=integer, waiters=GROUPS, holding=integer,
                     held_ms=integer, remaining_ms=integer, holders=GROUPS)
LOCKINFO = map_with(kind=KIND, limit=one_of(nothing, integer), holding=integer, holders=list_of(holder), waiting=integer,
                    waiters=list_of(map_with(owner=text, connection=integer, waited_ms=integer, kind=KIND, fair=flag)),
                    masters=map_of(text, text))

# What a push or a message may look like, by its first word.
PUSHES = {
    "message": row(text, text, text),
    "pmessage": row(text, text, text, text),
    "lost": row(text, text, TOKEN, word("no-quorum", "gone", "moved", "left", "max-hold", "forced", "pause")),
    "renewed": row(text, text, TOKEN, integer),
    "jeopardy": row(text, text, TOKEN, integer),
    "safe": row(text, text, TOKEN, integer),
    "async": one_of(row(word("async"), word(*TAGS), word("granted"), one_of(TOKEN, list_of(TOKEN)), integer, integer),
                    row(word("async"), word(*TAGS), word("timeout", "cancelled")),
                    row(word("async"), word(*TAGS), word("error"), text)),
}
CONFIRMATIONS = ("subscribe", "unsubscribe", "psubscribe", "punsubscribe")
MONITOR_RE = re.compile(r'\d+\.\d+ \[0 [^]]*\] "')
MESSAGE_RE = re.compile(r"said \d$|(timeout|cancelled|error .+|granted \d+(,\d+)* \d+ \d+)$|(granted|released|lost) \d+( \S+)?$|\S+ \d+ (no-quorum|gone|moved|left|max-hold|forced|pause)$")


# ---- making requests ---------------------------------------------------------------------------

class Maker:
    """Chooses words; `conn` is the connection that is to say them (traffic.Connection)."""

    def __init__(self, rng, names, odd_kinds=0.03, named=0.25):
        self.rng, self.odd_kinds, self.named = rng, odd_kinds, named
        self.names = ["k%d" % i for i in range(names)]

    def name(self):
        """Some are asked for more than others."""
        return self.names[int(len(self.names) * self.rng.random() ** 2)]

    def held(self, conn):
        """A name that it has been granted, or may be."""
        if conn.granted and self.rng.random() < 0.7:
            return conn.granted.pop(self.rng.randrange(len(conn.granted)))
        if conn.wanted and self.rng.random() < 0.8:
            return conn.wanted.pop()
        return (self.name(), None)

    def kind(self, name):
        """Each name has a usual kind, so that most requests for it can be granted."""
        kind = int(name[1:]) % 5 if self.rng.random() >= self.odd_kinds else self.rng.randrange(5)
        if kind == 3:
            return ["SHARED"] if self.rng.random() < 0.7 else []
        return ["LIMIT", 2 + int(name[1:]) % 3] if kind == 4 else []

    def owner(self):
        return self.rng.choice(OWNERS) if self.rng.random() < self.named else None

    def options(self, conn, owner, name, fair):
        rng, made = self.rng, []
        if owner:
            made.append(["OWNER", owner])
        if rng.random() < 0.5:
            made.append(["WAIT", rng.choice([1, 20, 100, 400, 1500]) if rng.random() < 0.98 else 0])
        if rng.random() < 0.4:
            made.append(["LEASE", rng.choice([20, 60, 100, 300, 1000, 2000])])
        if rng.random() < 0.15:
            made.append(["MAXHOLD", rng.choice([1, 50, 500, 2000, 10000])])
        if rng.random() < 0.2:
            made.append(["TELL"])
        if rng.random() < 0.15:
            made.append(["ID", "attempt-%d" % rng.randrange(5)])
        if fair and rng.random() < 0.15:
            made.append(["FAIR"])
        if rng.random() < (0.3 if conn.proto == 3 else 0.02):   # else somebody has to listen
            made.append(["ASYNC", rng.choice(TAGS)])
        if fair or rng.random() < 0.4:
            made.append(self.kind(name))
        rng.shuffle(made)
        return [word for option in made for word in option]

    def lock(self, conn):
        name, owner = self.name(), self.owner()
        conn.wanted.append((name, owner))
        return [name] + self.options(conn, owner, name, True)

    def mlock(self, conn):
        owner, some = self.owner(), []
        for _ in range(self.rng.choice([1, 2, 2, 2, 3, 6])):
            name = self.name()
            if name not in some:
                some.append(name)
        conn.wanted.extend((name, owner) for name in some)
        return [len(some)] + some + self.options(conn, owner, some[0], False)

    def unlock(self, conn):
        name, owner = self.held(conn)
        return [name] + (["OWNER", owner] if owner else [])

    def munlock(self, conn):
        some = dict(self.held(conn) for _ in range(self.rng.choice([1, 2, 2, 4])))
        owner = next(iter(some.values()))
        return [len(some)] + list(some) + (["OWNER", owner] if owner else [])

    def renew(self, conn):
        name, owner = self.held(conn)
        conn.wanted.append((name, owner))
        lease = ["LEASE", self.rng.choice([50, 300, 2000])] if self.rng.random() < 0.3 else []
        return [name] + (["OWNER", owner] if owner else []) + lease

    def holds(self, conn):
        name, owner = self.held(conn)
        conn.wanted.append((name, owner))
        return [name] + (["OWNER", owner] if owner else [])

    def locks(self, conn):
        made = [["CURSOR", 0], ["MATCH", self.rng.choice(["k*", "*", "k[1-3]?"])], ["COUNT", self.rng.choice([1, 100])]]
        chosen = [option for option in made if self.rng.random() < 0.5]
        self.rng.shuffle(chosen)
        return [word for option in chosen for word in option]

    def scan(self, conn):
        made = [["MATCH", self.rng.choice(["k*", "*"])], ["COUNT", 10], ["TYPE", self.rng.choice(["lock", "string"])]]
        return [0] + [word for option in made if self.rng.random() < 0.5 for word in option]

    def key(self):
        """A name of its own for commands of Redis: their holds have no connection, so that the oracle knows nothing of them."""
        return self.rng.choice(KEYS)

    def value(self):
        return "v%d" % self.rng.randrange(3)

    def set(self, conn):
        return [self.key(), self.value()] + self.pick(
            ["NX", "PX", 300], ["PX", 300, "NX"], ["NX"], ["NX", "EX", 1, "GET"], ["XX", "PX", 500], ["IFEQ", self.value(), "KEEPTTL"],
            ["NX", "EXAT", 1], ["PXAT", 2000000000000, "NX"], ["PX", 300])

    def getex(self, conn):
        return [self.key()] + self.pick([], ["EX", 1], ["PX", 300], ["EXAT", 1], ["PXAT", 2000000000000], ["PERSIST"])

    def expire(self, time):
        return [self.key(), time] + self.pick([], ["NX"], ["XX"], ["GT"], ["LT"])

    def script(self, first):
        return [first, 1, self.key(), self.value()]

    def channel(self):
        return "lock:" + self.name() if self.rng.random() < 0.7 else self.rng.choice(CHANNELS)

    def pattern(self):
        return self.rng.choice(["lock:*", "lock:k?", "lo*", "lock:k[0-5]", "n*"])

    def some(self, what, most=3):
        return [what() for _ in range(self.rng.randint(1, most))]

    def pick(self, *choices):
        return list(self.rng.choice(choices))

    def maybe(self, *words):
        return list(words) if self.rng.random() < 0.5 else []


def count(m, c):
    return [str(m.rng.randrange(10000))]


def victim(m, c):
    """Words that the driver replaces by what they mean when they are sent, as addresses differ each time."""
    return m.rng.choice(["@addr:%d", "@id:%d"]) % m.rng.choice(c.world.alive_ids())


def kill(m, c):
    target = victim(m, c)
    kind = "ADDR" if "addr" in target else "ID"
    if kind == "ADDR" and m.rng.random() < 0.3:
        return [target]
    more = [["SKIPME", m.rng.choice(["YES", "NO"])], ["TYPE", m.rng.choice(["NORMAL", "MASTER", "REPLICA", "PUBSUB"])],
            ["LADDR", "127.0.0.1:1"], ["USER", "ops"], ["MAXAGE", 1]]
    extra = m.rng.choice(more) if m.rng.random() < 0.5 else []
    return [kind, target] + extra


def config_set(m, c):
    return m.pick(["handover_max_count", 0], ["handover_max_count", 3, "handover_max_time", "20ms"],
                  ["handover_max_count", 16], ["max_waiters_per_lock", 3], ["max_waiters_per_lock", 1000], ["max_waiters_per_lock", 1000],
                  ["on_disconnect", "auto"], ["on_disconnect", "release"], ["on_disconnect", "expire"],
                  ["max_locks_per_client", 5], ["max_locks_per_client", 10000], ["max_locks_per_client", 10000], ["max_pending_requests", 3],
                  ["max_pending_requests", 1024], ["min_validity", "10ms"], ["max_locks", 30], ["max_locks", 100000],
                  ["max_locks", 100000], ["max_locks", 100000])


def hello(m, c):
    proto = m.rng.choice([2, 3])
    login = ["AUTH", c.user, PASSWORD] if c.user and m.rng.random() < 0.1 else []
    return [proto] + login + m.maybe("SETNAME", "n%d" % c.number)


class Command:
    """weight: how often; make(maker, connection): its words; reply: a shape, or a function of the words that gives
    one; errors: the codes that are possible besides those for want of rights."""

    def __init__(self, weight, make=None, reply=ok, errors=(), by_words=False):
        self.weight, self.make, self.reply, self.errors, self.by_words = weight, make, reply, frozenset(errors), by_words

    def fits(self, words, value):
        if isinstance(value, RespError):
            return value.code in self.errors
        return (self.reply(words) if self.by_words else self.reply)(value)


LOCKING = ("NOQUORUM", "DEADLOCK", "HELD", "KIND", "LIMIT", "PAUSED")
ENDING = ("NOTHELD", "NOQUORUM")
HELP = Command(0.2, None, list_of(text))

# Of commands of Redis on locks, ERR besides: a SET that takes the lock away.
DROP_IN = ("NOQUORUM", "TRYAGAIN", "WRONGTYPE", "PAUSED", "LIMIT", "ERR")
BODY = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
STATUS = one_of(nothing, text)


def on_key(weight, reply, *more):
    """A command of Redis with a key and these words."""
    return Command(weight, lambda m, c: [m.key()] + [word() if callable(word) else word for word in more], reply, DROP_IN)


# "name" or "name|sub-command"
TABLE = {
    "set": Command(30, Maker.set, STATUS, DROP_IN),
    "setnx": Command(2, lambda m, c: [m.key(), m.value()], word(0, 1), DROP_IN),
    "get": on_key(10, STATUS), "getdel": on_key(1, STATUS), "getex": Command(2, Maker.getex, STATUS, DROP_IN),
    "strlen": on_key(1, integer), "exists": Command(2, lambda m, c: m.some(m.key), integer, DROP_IN),
    "ttl": on_key(1, number), "pttl": on_key(2, number), "expiretime": on_key(1, number), "pexpiretime": on_key(1, number),
    "persist": on_key(1, word(0, 1)),
    "expire": Command(1, lambda m, c: m.expire(1), word(0, 1), DROP_IN),
    "pexpire": Command(3, lambda m, c: m.expire(300), word(0, 1), DROP_IN),
    "expireat": Command(1, lambda m, c: m.expire(2000000000), word(0, 1), DROP_IN),
    "pexpireat": Command(1, lambda m, c: m.expire(2000000000000), word(0, 1), DROP_IN),
    "del": Command(15, lambda m, c: m.some(m.key), integer, DROP_IN),
    "unlink": Command(2, lambda m, c: m.some(m.key), integer, DROP_IN),
    "delex": Command(2, lambda m, c: [m.key()] + m.pick([], ["IFEQ", m.value()], ["IFNE", m.value()]), word(0, 1), DROP_IN),
    "delifeq": Command(2, lambda m, c: [m.key(), m.value()], word(0, 1), DROP_IN),
    "hget": on_key(1, STATUS, "f"), "hexists": on_key(1, word(0, 1), "f"), "hgetall": on_key(1, map_of(text, text)),
    "hkeys": on_key(1, list_of(text)), "hvals": on_key(1, list_of(text)), "hlen": on_key(1, integer),
    "hmget": on_key(1, list_of(STATUS, 2), "f", "g"),
    "eval": Command(6, lambda m, c: m.script(BODY), word(0, 1), DROP_IN),
    "eval_ro": Command(1, lambda m, c: m.script("return redis.call('get', KEYS[1])"), STATUS, DROP_IN),
    "evalsha": Command(3, lambda m, c: m.script(hashlib.sha1(BODY.encode()).hexdigest()), word(0, 1), DROP_IN + ("NOSCRIPT",)),
    "evalsha_ro": Command(1, lambda m, c: m.script("0" * 40), nothing, ("NOSCRIPT",)),
    "script|load": Command(1, lambda m, c: [BODY], text),
    "script|check": Command(0.3, lambda m, c: [hashlib.sha1(BODY.encode()).hexdigest(), 1, m.key(), m.value()],
                            list_of(row(text, text, text)), ("NOSCRIPT",)),
    "script|exists": Command(1, lambda m, c: ["0" * 40], list_of(word(0), 1)),
    "script|flush": Command(0.5, lambda m, c: m.pick([], ["SYNC"], ["ASYNC"])),
    "script|help": HELP,
    "watch": Command(1, lambda m, c: m.some(m.key), ok, DROP_IN),
    "unwatch": Command(1),
    "lock": Command(100, Maker.lock, lambda words: word("QUEUED") if "ASYNC" in words else GRANT, LOCKING + ("ERR",), True),
    "mlock": Command(50, Maker.mlock, lambda words: word("QUEUED") if "ASYNC" in words else grants(int(words[1])),
                     LOCKING + ("ERR",), True),
    "cancel": Command(8, lambda m, c: [m.rng.choice(TAGS)], word(0, 1)),
    "unlock": Command(150, Maker.unlock, word(0, 1), ENDING),
    "munlock": Command(40, Maker.munlock, lambda words: lambda v: integer(v) and v <= int(words[1]), ("NOQUORUM",), True),
    "renew": Command(15, Maker.renew, row(TOKEN, integer), ENDING),
    "holds": Command(10, Maker.holds, integer, ("NOQUORUM",)),
    "owner": Command(4, lambda m, c: m.maybe(m.rng.choice(OWNERS)),
                     lambda words: ok if len(words) > 1 else text, (), True),
    "lockinfo": Command(6, lambda m, c: [m.name()], LOCKINFO, ("NOQUORUM",)),
    "locks": Command(3, Maker.locks, row(text, list_of(text)), ()),
    "waiting": Command(0.5, lambda m, c: m.pick([], ["COUNT", "100"]),
                       list_of(map_with(lock=text, connection=integer, client=text, waited_ms=integer))),
    "contended": Command(1, lambda m, c: m.pick([], ["COUNT", "1"], ["COUNT", "100"]), list_of(CONTENDED)),
    "jeopardy": Command(0.5, lambda m, c: m.pick([], ["COUNT", "100"]),
                        list_of(map_with(lock=text, connection=integer, held_ms=number, remaining_ms=integer))),
    "dbsize": Command(0.5, None, integer),
    "scan": Command(0.5, Maker.scan, row(text, list_of(text))),
    "type": Command(0.5, lambda m, c: [m.rng.choice([m.name(), m.key()])],
                    word("lock", "none", "string"), ("NOQUORUM", "TRYAGAIN")),
    "forceunlock": Command(1, lambda m, c: [m.name()], word(0, 1), ("NOQUORUM",)),
    "masters": Command(2, None, list_of(lambda v: pairs(v) is not None and "new_locks" in pairs(v), 3)),
    "master": Command(0.3, lambda m, c: m.pick(["b", "TRUST"], ["c", "ADOPT"], ["nobody", "TRUST"]), ok, ("ERR",)),

    "subscribe": Command(5, lambda m, c: m.some(m.channel)),
    "unsubscribe": Command(4, lambda m, c: m.some(m.channel) if m.rng.random() < 0.5 else []),
    "psubscribe": Command(3, lambda m, c: m.some(m.pattern)),
    "punsubscribe": Command(3, lambda m, c: m.some(m.pattern) if m.rng.random() < 0.5 else []),
    "publish": Command(5, lambda m, c: [m.channel(), "said %d" % m.rng.randint(1, 9)], integer, ("ERR",)),
    "pubsub|channels": Command(1, lambda m, c: m.maybe("lock:*"), list_of(text)),
    "pubsub|numpat": Command(1, None, integer),
    "pubsub|numsub": Command(1, lambda m, c: m.some(m.channel), list_of(one_of(text, integer))),
    "pubsub|help": HELP,

    "ping": Command(5, lambda m, c: m.maybe("still here"),
                    lambda words: one_of(word(words[1] if len(words) > 1 else "PONG"), row(word("pong"), text)), (), True),
    "echo": Command(40, count, lambda words: word(str(words[1])), (), True),
    "time": Command(1, None, list_of(text, 2)),
    "select": Command(1, lambda m, c: [0]),
    "hello": Command(2, hello, map_with(server=word("redis"), version=text, proto=word(2, 3), id=integer, mode=text,
                                        role=text, modules=list_of(text), holdfast=text)),
    "auth": Command(0.3, lambda m, c: [c.user or "default", PASSWORD]),
    "reset": Command(1, None, word("RESET")),
    "quit": Command(0.3),
    "monitor": Command(0.3),
    # a few commands follow, and EXEC or DISCARD (traffic.py)
    "multi": Command(1),
    "exec": Command(0.2, None, lambda v: False, ("ERR", "EXECABORT")),
    "discard": Command(0.2, None, ok, ("ERR",)),
    "client|id": Command(1, None, integer),
    "client|getname": Command(1, None, one_of(nothing, text)),
    "client|setname": Command(1, lambda m, c: ["n%d" % c.number]),
    "client|setinfo": Command(1, lambda m, c: m.pick(["LIB-NAME", "traffic"], ["LIB-VER", "1.0"])),
    "client|info": Command(1, None, text),
    "client|list": Command(1, lambda m, c: m.pick([], ["TYPE", "NORMAL"], ["TYPE", "PUBSUB"], ["TYPE", "MASTER"],
                                                  ["TYPE", "REPLICA"], ["ID", 1, 2]), text),
    "client|kill": Command(0.3, kill, one_of(ok, integer), ("ERR",)),
    "client|no-evict": Command(0.5, lambda m, c: m.pick(["ON"], ["OFF"])),
    "client|no-touch": Command(0.5, lambda m, c: m.pick(["ON"], ["OFF"])),
    "client|reply": Command(0.5, lambda m, c: m.pick(["ON"], ["OFF"], ["SKIP"]), ok, ("ERR",)),
    "client|tracking": Command(0.5, lambda m, c: m.pick(["OFF"], ["ON"]), ok, ("ERR",)),
    "client|pause": Command(0.2, lambda m, c: [m.rng.choice([1, 50, 200])] + m.pick([], ["WRITE"], ["ALL"])),
    "client|unpause": Command(0.2),
    "client|tell": Command(0.5, lambda m, c: m.pick(["ON"], ["OFF"])),
    "client|help": HELP,

    "pause": Command(0.2),
    "resume": Command(2),
    "info": Command(1, lambda m, c: m.pick([], ["clients"], ["everything"], ["server", "stats"]), text),
    "config|get": Command(1, lambda m, c: m.pick(["*"], ["max_*", "lease"], ["save"]), map_of(text, text)),
    "config|set": Command(1, config_set),
    "config|resetstat": Command(0.2),
    "config|help": HELP,
    "slowlog|get": Command(0.5, lambda m, c: m.pick([], [3], [-1]), list_of(list_of(anything, 6))),
    "slowlog|len": Command(0.5, None, integer),
    "slowlog|reset": Command(0.2),
    "slowlog|help": HELP,
    "latency|histogram": Command(0.3, lambda m, c: m.pick([], ["lock", "client|id"]), map_of(text, anything)),
    "latency|latest": Command(0.3, None, list_of(anything)),
    "latency|help": HELP,
    "acl|cat": Command(0.3, lambda m, c: m.pick([], ["lock"]), list_of(text), ("ERR",)),
    "acl|list": Command(0.3, None, list_of(text)),
    "acl|log": Command(0.3, lambda m, c: m.pick([], [2], ["RESET"]), one_of(ok, list_of(anything))),
    "acl|users": Command(0.3, None, list_of(text)),
    "acl|whoami": Command(0.5, None, lambda v: v == "default" or v in USERS),
    "acl|help": HELP,
    "command": Command(0.2, None, list_of(list_of(anything))),
    "command|count": Command(0.3, None, integer),
    "command|docs": Command(0.2, lambda m, c: m.pick([], ["lock", "client|kill", "nothing"]), map_of(text, anything)),
    "command|getkeys": Command(0.3, lambda m, c: m.pick(["lock", "k1", "WAIT", 1], ["mlock", 2, "k1", "k2"]), list_of(text),
                               ("ERR",)),
    "command|info": Command(0.2, lambda m, c: m.pick([], ["lock", "nothing"]), list_of(one_of(nothing, list_of(anything)))),
    "command|list": Command(0.2, lambda m, c: m.pick([], ["FILTERBY", "ACLCAT", "lock"], ["FILTERBY", "PATTERN", "c*"],
                                                     ["FILTERBY", "MODULE", "none"]), list_of(text), ("ERR",)),
    "command|help": HELP,
    "cluster": Command(0.3, lambda m, c: ["INFO"], lambda v: False, ("ERR",)),
    "role": Command(0.3, None, one_of(row(word("master"), number, list_of(anything)),
                                      row(word("slave"), text, number, text, number))),
    "sentinel|get-master-addr-by-name": Command(0.3, lambda m, c: m.pick(["holdfast"], ["other"]),
                                                one_of(nothing, list_of(text, 2))),
    "sentinel|master": Command(0.3, lambda m, c: m.pick(["holdfast"], ["other"]), map_of(text, text), ("ERR",)),
    "sentinel|masters": Command(0.3, None, list_of(map_of(text, text))),
    "sentinel|sentinels": Command(0.3, lambda m, c: ["holdfast"], list_of(map_of(text, text))),
    "sentinel|replicas": Command(0.3, lambda m, c: ["holdfast"], list_of(anything)),
    "sentinel|slaves": Command(0.3, lambda m, c: ["holdfast"], list_of(anything)),
    "sentinel|ckquorum": Command(0.3, lambda m, c: ["holdfast"], text, ("NOQUORUM",)),
    "sentinel|help": HELP,
    "help": Command(0.3, lambda m, c: m.maybe("lock"), one_of(text, list_of(text))),
    # it would end everything; NOW is said at the very end (traffic.py)
    "shutdown": Command(0.2, lambda m, c: ["ABORT"], ok, ("ERR",)),
    "nosuchcommand": Command(0.5, lambda m, c: ["k1"], lambda v: False, ("ERR",)),
}
NOT_OURS = ("nosuchcommand",)
# Options that are left out on purpose: they would end the run.
LEFT_OUT = {("shutdown", "NOSAVE"), ("shutdown", "SAVE"), ("shutdown", "FORCE"), ("shutdown", "NOW")}


def full_name(words):
    """The key of TABLE."""
    name = words[0].lower()
    sub = name + "|" + str(words[1]).lower() if len(words) > 1 else None
    return sub if sub in TABLE else name


def words_of(name, rest):
    return [w.upper() for w in name.split("|")] + list(rest)


# ---- completeness ------------------------------------------------------------------------------

def tokens_in(argument):
    found = pairs(argument) or {}
    if found.get("token"):
        yield found["token"].upper()
    for inner in found.get("arguments") or []:
        yield from tokens_in(inner)


def rows_of(docs):
    """{full name: tokens} from the reply to COMMAND DOCS."""
    rows = {}
    for name, about in (pairs(docs) or {}).items():
        about = pairs(about)
        subs = pairs(about.get("subcommands") or [])
        if subs:
            rows.update(rows_of(subs))
        rows[name] = {token for argument in about.get("arguments") or [] for token in tokens_in(argument)}
        if subs and name not in TABLE:
            del rows[name]  # it is nothing without one of them
    return rows


def possible():
    """{full name: the upper case words that may be made for it}"""
    made = collections.defaultdict(set)
    maker = Maker(random.Random(1), 20)
    conn = types.SimpleNamespace(wanted=collections.deque(), granted=[], user="ops", number=1, proto=3,
                                 world=types.SimpleNamespace(alive_ids=lambda: [1]))
    for name, command in TABLE.items():
        for _ in range(500 if command.make else 0):
            conn.wanted.append(("k1", "owner-1"))
            made[name] |= {str(word).upper() for word in command.make(maker, conn)}
    return made


def missing(docs):
    """What of the broker's own table cannot be made here, and what is here and not there; a list of texts."""
    rows, made = rows_of(docs), possible()
    found = ["%s: no row in tests/traffic/words.py" % name for name in sorted(rows) if name not in TABLE]
    found += ["%s: there is no such command" % name for name in TABLE if name not in rows and name not in NOT_OURS]
    for name in sorted(rows):
        found += ["%s ... %s is never made" % (name, token) for token in sorted(rows[name] - made[name])
                  if (name, token) not in LEFT_OUT]
    return found
