"""What is to happen in random traffic: the steps of a seed."""

import random

import words as w
from world import MASTERS


USUAL = ("lock", "mlock", "unlock", "munlock")


class Plan:
    """The steps of a seed, each with its time; asks the world only which connections there are."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.n_connections = rng.choice([16, 32, 48])
        self.brokers = rng.choice([[0, 1], [0, 1, 1, 1], [1]])  # most at one of them: they meet in its queues
        self.maker = w.Maker(rng, rng.choice([20, 40, 80, 200]), odd_kinds=rng.choice([0.03, 0.3, 1.0]),
                             named=rng.choice([0.0, 0.25]))
        self.gap_s = rng.choice([0, 0.001, 0.003, 0.006])
        self.fault_gap_s = rng.choice([0.5, 2, 5])
        self.commands = [name for name in w.TABLE if name != "quit"]
        rare = rng.choice([0.02, 0.2, 1.0])  # everything but the usual lock commands
        self.weights = [w.TABLE[name].weight * (1 if name in USUAL else rare) for name in self.commands]
        self.first = sorted(self.commands, key=lambda _: rng.random())  # each of them once
        if seed % 3 == 0:
            self.crowd()
        self.last_number = 0
        self.next_fault_s = 2.0
        self.undo = []               # (time, step)
        self.killed = False

    def crowd(self):
        """Nothing but the usual lock commands, all kinds for each name, at one broker: everybody waits for everybody."""
        self.n_connections, self.brokers, self.first = 40, [1], []
        self.maker = w.Maker(self.rng, 30, odd_kinds=1.0, named=0.0)
        self.weights = [w.TABLE[name].weight if name in USUAL else 0 for name in self.commands]
        self.gap_s, self.fault_gap_s = 0, 10

    def login(self, user):
        if user is None:
            return []
        if self.rng.random() < 0.5:
            return [["AUTH", user, w.PASSWORD]]
        return [["HELLO", 3, "AUTH", user, w.PASSWORD]]

    def open(self):
        rng = self.rng
        self.last_number += 1
        number, broker = self.last_number, rng.choice(self.brokers)
        user = rng.choice(["ops"] * 5 + ["app"] * 4 + ["eye"]) if broker == 0 else None
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
        if c.user == "eye" and name in USUAL and self.rng.random() < 0.9:
            name = "lockinfo"   # it would be refused, and has answers before all others
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
        if self.rng.random() < 0.005:
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
        if rng.random() < 0.003:
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
