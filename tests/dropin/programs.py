"""Programs for the differential test: what several clients ask in turn. The same seed makes the same program."""

import hashlib
import random

from bodies import all_bodies
import made

CLIENTS = 4
VALUES = ["1", "owner-a", "owner-b", b"\x00bin\r\n\xff\xfe", "", "a b", "x" * 1000, "7"]
OWNERS = ["owner-a", "owner-b", "1", "a:b:7"]
# so far from one another, and so long, that a slow machine does not make one look like another
LEASES_MS = [20000, 35000, 50000, 90000, 300000]
LEASES_S = [20, 35, 50, 90, 300]
HELPERS = all_bodies()
SCRIPTS_AT_ONCE = 12
# so many programs in a row have run every script by hand
SEEDS_FOR_EACH_SCRIPT = -(-len(HELPERS) // SCRIPTS_AT_ONCE)


class Step:
    """One request of one client. In argv, a pair ("ms" or "s", n) stands for the time in n milliseconds or seconds."""

    def __init__(self, client, *argv, has_time=False, until_gone=None):
        self.client, self.argv, self.has_time = client, list(argv), has_time
        self.until_gone = until_gone   # a key: wait on both sides until it has expired

    def __str__(self):
        if self.until_gone:
            return "client %d: waits until %s has expired" % (self.client, self.until_gone)
        return "client %d: %s" % (self.client, " ".join(_word(word) for word in self.argv))


def _word(word):
    if isinstance(word, tuple):
        return "<now + %d %s>" % (word[1], word[0])
    text = word.decode("utf-8", "backslashreplace") if isinstance(word, bytes) else str(word)
    if len(text) > 60 and "\n" not in text:
        text = text[:50] + "...(%d)" % len(text)
    return "'%s'" % text if not text or " " in text or "\n" in text else text


class Program:
    """The steps of one run; `bodies` are recorded scripts, for programs of the kind "recorded"."""

    def __init__(self, kind, seed, number, bodies=None):
        self.bodies = bodies
        self.rng = random.Random("%s-%d" % (kind, seed))
        self.kind, self.seed = kind, seed
        self.prefix = "p%d:%s:" % (number, kind)
        self.keys = [self.prefix + name for name in ("k", "l", "m")]
        self.queues = [[] for _ in range(CLIENTS)]
        (KINDS.get(kind) or recorded)(self)
        self.steps = self.in_random_order() + self.last_looks()

    def key(self):
        return self.rng.choice(self.keys[:2] + self.keys[:1] * 2)

    def any(self, *choices):
        return self.rng.choice(choices)

    def add(self, client, *argv, has_time=False, until_gone=None):
        self.queues[client].append(Step(client, *argv, has_time=has_time, until_gone=until_gone))

    def in_random_order(self):
        """The clients' steps as they come: each client's stay in their order."""
        queues, steps = [list(queue) for queue in self.queues], []
        while any(queues):
            queue = self.rng.choice([queue for queue in queues if queue])
            steps += [queue.pop(0) for _ in range(min(len(queue), self.rng.choice([1, 1, 1, 2, 3])))]
        return steps

    def last_looks(self):
        looks = []
        for key in self.keys:
            looks += [Step(0, "TYPE", key), Step(1, "GET", key), Step(2, "HGETALL", key), Step(3, "PTTL", key, has_time=True)]
        return looks


# Plain commands

def _case(rng, word):
    return rng.choice([word, word.lower(), word.title()])


def _time_option(p):
    return p.any(("PX", p.any(*LEASES_MS)), ("EX", p.any(*LEASES_S)), ("PXAT", ("ms", p.any(*LEASES_MS))),
                 ("EXAT", ("s", p.any(*LEASES_S))))


def _set(p):
    options = [[_case(p.rng, "NX")], [_case(p.rng, word) if isinstance(word, str) and word.isupper() else word
                                      for word in _time_option(p)]]
    if p.rng.random() < 0.2:
        options.append(["GET"])
    if p.rng.random() < 0.1:
        options[0] = ["XX"]
    elif p.rng.random() < 0.15:
        del options[1]
    p.rng.shuffle(options)
    return ["SET", p.key(), p.any(*VALUES)] + [word for option in options for word in option]


def _odd_ms(p):
    """A time that no key has been given otherwise, to be compared with what is left of one."""
    return p.rng.randrange(22500, 300000, 5000)


def _prolong(p):
    word, when = p.any(("EXPIRE", p.any(*LEASES_S)), ("PEXPIRE", p.any(*LEASES_MS)), ("EXPIREAT", ("s", p.any(*LEASES_S))),
                       ("PEXPIREAT", ("ms", p.any(*LEASES_MS))), ("PEXPIRE", p.any(*LEASES_MS)))
    option = p.any([], [], [], ["NX"], ["XX"], ["GT"], ["lt"])
    if option in (["GT"], ["lt"]):
        word, when = "PEXPIRE", _odd_ms(p)
    return [_case(p.rng, word), p.key(), when] + option


def _conditional(p):
    key, value = p.key(), p.any(*VALUES[:3])
    return p.any(["SET", key, p.any(*VALUES[:3]), "IFEQ", value, "PX", p.any(*LEASES_MS)], ["DELEX", key, "IFEQ", value],
                 ["DELEX", key], ["DELIFEQ", key, value])


def _faulty(p):
    key = p.key()
    return p.any(["SET", key], ["SET", key, "v", "NX", "XX"], ["SET", key, "v", "NX", "PX", "soon"], ["SET", key, "v", "PX"],
                 ["SET", key, "v", "NX", "EX", "0"], ["SET", key, "v", "NX", "PX", "-5"], ["SET", key, "v", "NX", "BOGUS"],
                 ["SET", key, "v", "NX", "PX", "5", "EX", "5"], ["SETNX", key], ["PEXPIRE", key, "x"], ["PEXPIRE", key],
                 ["PEXPIRE", key, "50000", "SOON"], ["PEXPIRE", key, "50000", "NX", "GT"], ["GET"], ["GET", key, key],
                 ["DEL"], ["TTL"], ["TTL", key, key], ["HGET", key], ["PERSIST"], ["EXISTS"], ["TYPE", key, key],
                 ["SET", key, "v", "NX", "PX", "9223372036854775807"], ["EXPIRE", key, "9223372036854775807"],
                 ["GETEX", key, "PX", "x"], ["GETEX", key, "PX", "1000", "PERSIST"], ["SETNX", key, "a", "b"])


def _plain_step(p, client):
    chance, key = p.rng.random(), p.key()
    if chance < 0.28:
        p.add(client, *_set(p))
    elif chance < 0.32:
        p.add(client, "SETNX", key, p.any(*VALUES))
    elif chance < 0.45:
        p.add(client, *_prolong(p))
    elif chance < 0.48:
        p.add(client, "PERSIST", key)
    elif chance < 0.60:
        p.add(client, p.any("GET", "EXISTS", "TYPE", "STRLEN", "HGETALL", "HLEN", "get"), key)
    elif chance < 0.70:
        p.add(client, p.any("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "pttl"), key, has_time=True)
    elif chance < 0.73:
        p.add(client, p.any("HGET", "HEXISTS"), key, "f")
    elif chance < 0.84:
        p.add(client, *p.any(["DEL", key], ["UNLINK", key], ["DEL", key, p.key()], ["EXISTS", key, p.key(), key], ["GETDEL", key]))
    elif chance < 0.87:
        p.add(client, *p.any(["GETEX", key], ["GETEX", key, "PX", p.any(*LEASES_MS)], ["GETEX", key, "PERSIST"]))
    elif chance < 0.94:
        p.add(client, *_conditional(p))
    elif chance < 0.98:
        p.add(client, *_faulty(p))
    else:
        p.add(client, p.any("PEXPIRE", "EXPIRE"), key, p.any(0, -1))


def plain(p):
    for client in range(CLIENTS):
        for _ in range(p.rng.randint(8, 20)):
            _plain_step(p, client)


def expiry(p):
    """A short time, and what comes after it; nothing is asked in between."""
    key = p.keys[0]
    for client in range(3):
        p.add(0, *p.any(["SET", key, "a", "NX", "PX", 80], ["EVAL", "return redis.call('set', KEYS[1], ARGV[1], 'PX', 80)", 1, key, "a"],
                        ["EVAL", "redis.call('hincrby', KEYS[1], ARGV[1], 1) return redis.call('pexpire', KEYS[1], 80)", 1, key, "a"]))
        p.add(0, "GET", p.keys[1], until_gone=key)
        for _ in range(4):
            p.add(0, *p.any(["GET", key], ["PTTL", key], ["DEL", key], ["PEXPIRE", key, 20000],
                            ["EVAL", HELPERS_BY_NAME["release_if_mine"].text, 1, key, "a"],
                            ["EVAL", HELPERS_BY_NAME["prolong_if_mine"].text, 1, key, "a", 20000]))
        p.add(0, *p.any(["SET", key, "b", "NX", "PX", 20000], ["EVAL", HELPERS_BY_NAME["enter"].text, 1, key, "b", 20000]))
        p.add(0, "DEL", key)


def databases(p):
    """The same names in several databases."""
    for client in range(CLIENTS):
        for _ in range(12):
            if p.rng.random() < 0.3:
                p.add(client, "SELECT", p.any(0, 1, 2))
            else:
                _plain_step(p, client)
        p.add(client, "SELECT", 0)


# Transactions

def _queued(p):
    key = p.key()
    return p.any(["PEXPIRE", key, p.any(*LEASES_MS)], ["DEL", key], ["GET", key], ["EXPIRE", key, p.any(*LEASES_S)],
                 ["SET", key, p.any(*VALUES[:3]), "NX", "PX", p.any(*LEASES_MS)], ["EXISTS", key], ["UNLINK", key])


def _transaction(p, client):
    watched = [p.key() for _ in range(p.any(0, 1, 1, 1, 2))]
    if watched:
        p.add(client, "WATCH", *watched)
        p.add(client, "GET", watched[0])
    if p.rng.random() < 0.1:
        p.add(client, "UNWATCH")
    p.add(client, "MULTI")
    for _ in range(p.any(0, 1, 1, 2, 3)):
        p.add(client, *_queued(p))
    if p.rng.random() < 0.1:
        p.add(client, *p.any(["MULTI"], ["WATCH", p.key()], ["GET"], ["PEXPIRE", p.key()]))
    p.add(client, p.any("EXEC", "EXEC", "EXEC", "exec", "DISCARD"))
    if p.rng.random() < 0.05:
        p.add(client, p.any("EXEC", "DISCARD", "UNWATCH"))


def transactions(p):
    for client in range(CLIENTS):
        for _ in range(5):
            if p.rng.random() < 0.6:
                _transaction(p, client)
            else:
                _plain_step(p, client)


# Scripts

HELPERS_BY_NAME = {body.name: body for body in HELPERS}
ALSO_BY_ANYBODY = ["release_for_anyone", "leave_for_all", "release_if_mine"]


def _arguments(p, body, owner):
    made_of = {"odd": lambda: _odd_ms(p), "owner": lambda: owner, "other": lambda: p.any(owner, *OWNERS),
               "ms": lambda: p.any(*LEASES_MS), "s": lambda: p.any(*LEASES_S), "flag": lambda: p.any("0", "1")}
    return [word.strip('"') if word.startswith('"') else made_of[word]() for word in body.args]


def _keys_of(p, body):
    """S and H share names, so that a script also meets what it is not made for; each key stands there once."""
    names = {"S": [p.keys[0], p.keys[1], p.keys[2]], "H": [p.keys[1], p.keys[2], p.keys[0]], "M": [p.keys[2]]}
    chosen = []
    for kind in body.keys:
        free = [name for name in names[kind] if name not in chosen] or [p.rng.choice(p.keys)]
        chosen.append(free[0] if p.rng.random() < 0.8 else p.rng.choice(free))
    return chosen


def _call(p, client, body, owner, by_sha):
    keys, args = _keys_of(p, body), _arguments(p, body, owner)
    word = p.any("EVAL_RO", "EVAL") if body.is_read_only else "EVAL"
    what = body.text
    if by_sha:
        word, what = word.replace("EVAL", "EVALSHA"), body.sha
    p.add(client, word, what, len(keys), *keys, *args, has_time=body.has_time)


def scripts(p):
    """A library's few scripts by several owners, with plain commands among them."""
    family = p.any("strings", "strings", "hashes", "hashes", "several", "replies")
    chosen = p.rng.sample([body for body in HELPERS if body.family == family], 5)
    if family != "several":
        chosen.append(p.rng.choice(HELPERS))
    chosen.append(HELPERS_BY_NAME[p.any(*ALSO_BY_ANYBODY)])
    by_sha = p.rng.random() < 0.5
    for client in range(CLIENTS):
        owner = p.any(*OWNERS)
        if by_sha:
            for body in chosen:
                p.add(client, "SCRIPT", "LOAD", body.text)
        for _ in range(p.rng.randint(6, 14)):
            if p.rng.random() < 0.85:
                _call(p, client, p.rng.choice(chosen), owner, by_sha)
            else:
                _plain_step(p, client)


def each_script(p):
    """Every script by hand, twice in a row by one owner and once by another, in a state that others left."""
    first = p.seed * SCRIPTS_AT_ONCE
    chosen = [HELPERS[(first + i) % len(HELPERS)] for i in range(SCRIPTS_AT_ONCE)]
    for body in p.rng.sample(chosen, SCRIPTS_AT_ONCE):
        for client, owner in ((0, "owner-a"), (0, "owner-a"), (1, "owner-b")):
            _call(p, client, body, owner, False)
        if p.rng.random() < 0.3:
            p.add(0, "DEL", *p.keys)


def made_scripts(p):
    texts = [made.script(p.rng) for _ in range(3)]
    for client in range(CLIENTS):
        owner = p.any("owner-a", "owner-b", "7")
        for _ in range(p.rng.randint(4, 9)):
            if p.rng.random() < 0.8:
                p.add(client, "EVAL", p.rng.choice(texts), 2, *p.rng.sample(p.keys, 2), owner, p.any("owner-b", "3"),
                      p.any(*LEASES_MS))
            else:
                _plain_step(p, client)


def recorded(p):
    """The scripts that a library was seen to send, on states and with arguments of every kind."""
    for client in range(CLIENTS):
        owner = p.any(*OWNERS)
        for body in p.rng.sample(p.bodies, min(3, len(p.bodies))) * 3:
            _call(p, client, body, owner, False)
        p.add(client, "DEL", p.key())


def handling(p):
    """SCRIPT and its errors, and the words of EVAL."""
    body = "return {KEYS[1], ARGV[1], '%s'}" % p.prefix
    sha = hashlib.sha1(body.encode()).hexdigest()
    key = p.keys[0]
    p.add(0, "EVALSHA", sha, 1, key, "a")
    p.add(0, "SCRIPT", "EXISTS", sha, "0" * 40)
    p.add(0, "SCRIPT", "LOAD", body)
    p.add(0, "SCRIPT", "EXISTS", sha, "0" * 40)
    p.add(0, "EVALSHA", sha.upper(), 1, key, "a")
    p.add(0, "EVALSHA", sha[:39], 1, key, "a")
    p.add(0, "EVAL", body, 1, key, "a")
    p.add(0, "EVAL", body, 2, key)
    p.add(0, "EVAL", body, -1, key)
    p.add(0, "EVAL", body, "x", key)
    p.add(0, "EVAL", body)
    p.add(0, "EVAL_RO", "return redis.call('set', KEYS[1], 'x', 'PX', 20000)", 1, key)
    p.add(0, "EVAL", "return this is no Lua", 0)
    p.add(0, "SCRIPT", "LOAD", "also not")
    p.add(0, "EVAL", "return 1", 0)
    p.add(0, "SCRIPT", "NOSUCH")
    p.add(0, "SCRIPT", "LOAD")


KINDS = {"plain": plain, "expiry": expiry, "databases": databases, "transactions": transactions, "scripts": scripts,
         "each_script": each_script, "made_scripts": made_scripts, "handling": handling}
