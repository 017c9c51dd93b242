"""Scripts made at random within what is served: reads, conditions over them and over arguments, writes, replies.

Times stand only where any two servers agree: against bounds that no time of a program comes near, or in the reply itself.
"""

KEYS, LEASES_MS = 2, (20000, 35000, 50000, 90000, 300000)


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.variables = []
        self.lines = []

    def any(self, *choices):
        return self.rng.choice(choices)

    def key(self):
        return "KEYS[%d]" % self.rng.randint(1, KEYS)

    def argument(self):
        return self.any("ARGV[1]", "ARGV[1]", "ARGV[1]", "ARGV[2]", "'fixed'")

    def field(self):
        return self.any("ARGV[1]", "ARGV[2]", "'count'")

    def lease(self):
        return self.any("ARGV[3]", "ARGV[3]", str(self.rng.choice(LEASES_MS)))

    def call(self, how, *words):
        first = "redis.%s('%s'" % (how, self.any(str.lower, str.upper)(words[0]))
        return ", ".join([first] + list(words[1:])) + ")"

    def read(self):
        how, key = self.any("call", "pcall", "pcall"), self.key()
        return self.any(
            lambda: self.call(how, "get", key),
            lambda: self.call(how, "get", key),
            lambda: self.call(how, "exists", key),
            lambda: self.call(how, "hget", key, self.field()),
            lambda: self.call(how, "hexists", key, self.field()),
            lambda: self.call(how, "hlen", key),
            lambda: self.call(how, "strlen", key),
            lambda: self.call(how, "mget", key, self.key()))()

    def variable(self):
        return self.rng.choice(self.variables) if self.variables else "nil"

    def condition(self):
        key = self.key()
        return self.any(
            lambda: "%s == %s" % (self.call("pcall", "get", key), self.argument()),
            lambda: "%s == 1" % self.call("call", "exists", key),
            lambda: "%s == 0" % self.call("call", "exists", key),
            lambda: "%s == 1" % self.call("pcall", "hexists", key, self.field()),
            lambda: "%s > 5000" % self.call("call", "pttl", key),
            lambda: "%s == %s" % (self.variable(), self.argument()),
            lambda: "not %s" % self.variable(),
            lambda: self.variable(),
            lambda: "type(%s) == '%s'" % (self.variable(), self.any("table", "string", "number", "boolean")),
            lambda: "(tonumber(tostring(%s) == 'nil' and 0 or 1) or 0) > 0" % self.argument(),
            lambda: "#ARGV[1] > #ARGV[2]",
            lambda: "%s['ok'] == '%s'" % (self.call("call", "type", key), self.any("none", "string", "hash")))()

    def write(self):
        how, key = self.any("call", "pcall"), self.key()
        return self.any(
            lambda: self.call(how, "set", key, self.argument(), "'PX'", self.lease()),
            lambda: self.call(how, "set", key, self.argument(), "'NX'", "'PX'", self.lease()),
            lambda: self.call(how, "set", key, self.argument(), "'nx'", "'ex'", "'300'"),
            lambda: self.call(how, "set", key, self.argument(), "'XX'", "'KEEPTTL'"),
            lambda: self.call(how, "setnx", key, self.argument()),
            lambda: self.call(how, "pexpire", key, self.lease()),
            lambda: self.call(how, "pexpire", key, self.lease(), self.any("'NX'", "'XX'")),
            lambda: self.call(how, "expire", key, self.any("60", "'90'")),
            lambda: self.call(how, "persist", key),
            lambda: self.call(how, "del", key),
            lambda: self.call(how, "unlink", key, self.key()),
            lambda: self.call(how, "hset", key, self.field(), self.any("1", "ARGV[2]")),
            lambda: self.call(how, "hincrby", key, self.field(), self.any("1", "-1", "2")),
            lambda: self.call(how, "hincrby", key, self.field(), "1"),
            lambda: self.call(how, "hdel", key, self.field()),
            lambda: self.call(how, "hsetnx", key, self.field(), "1"),
            lambda: self.call(how, "getdel", key),
            lambda: self.call(how, "getset", key, self.argument()))()

    def value(self):
        return self.any(
            lambda: str(self.rng.randint(-2, 3)), self.argument, self.variable, self.variable, self.read,
            lambda: "{%s, %s}" % (self.argument(), self.variable()),
            lambda: "{ok = 'FINE'}", lambda: "redis.error_reply('NO thanks')",
            lambda: self.any("true", "false", "nil"))()

    def block(self, depth, indent):
        for _ in range(self.rng.randint(1, 3)):
            self.statement(depth, indent)

    def statement(self, depth, indent):
        pad = "    " * indent
        kind = self.rng.random()
        if kind < 0.25 and indent == 0:
            name = "abcdefgh"[len(self.variables) % 8]
            made = self.write() if self.rng.random() < 0.3 else self.read()
            self.lines.append("%slocal %s = %s" % (pad, name, made))
            self.variables.append(name)
        elif kind < 0.6 and depth > 0:
            self.lines.append("%sif %s then" % (pad, self.condition()))
            self.block(depth - 1, indent + 1)
            if self.rng.random() < 0.5:
                self.lines.append(pad + "else")
                self.block(depth - 1, indent + 1)
            self.lines.append(pad + "end")
        elif kind < 0.7 and indent > 0:
            self.lines.append("%sdo return %s end" % (pad, self.value()))
        elif kind < 0.75:
            self.lines.append("%sfor _, key in ipairs(KEYS) do %s end" % (pad, self.write()))
        else:
            self.lines.append(pad + self.write())


def script(rng):
    """The text of a script over two keys, an owner, another owner and a time in ms."""
    maker = Maker(rng)
    for _ in range(rng.randint(1, 4)):
        maker.statement(2, 0)
    maker.lines.append("return %s" % maker.value())
    return "\n".join(maker.lines)
