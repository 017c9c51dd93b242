"""Runs one scenario of clients/scenarios: brokers, masters, proxies and agents; steps; what all that is told must add up to."""

import json
import os
import queue
import random
import signal
import subprocess
import threading
import time

from chaosproxy import ChaosProxy
from holdfastproc import HoldfastProc
from procs import free_ports, spawn, wait_for
from redisproc import RedisProc, broker_rights
from respclient import as_map

ENDS = {"granted", "timeout", "cancelled", "error"}
WITHIN_S = 20.0
OVERLAP_S = 1.0     # between two pipes that the driver reads, on a busy machine
SILENCE_MS = 1000   # after which clients give a connection up


class Hold:
    """What has been told of one hold; events that nobody has expected yet are in `unread`."""

    def __init__(self, name, agent, request):
        self.name = name
        self.agent = agent
        self.request = request
        self.alone = not (request.get("shared") or request.get("limit"))
        self.unread = []
        self.tokens = None
        self.granted_at = self.lost_at = None
        self.keeps_s = 0
        self.state = None
        self.ends = 0


class Agent:
    """A process with one client of the package under test."""

    def __init__(self, name, argv, env, events, stderr):
        self.name = name
        self.was_stopped = False
        self.proc = spawn([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                          env=dict(os.environ, **env), text=True)
        threading.Thread(target=self._read, args=(events,), daemon=True).start()

    def _read(self, events):
        for line in self.proc.stdout:
            events.put((self, json.loads(line)))
        events.put((self, {"event": "ended"}))

    def tell(self, **request):
        self.proc.stdin.write(json.dumps(request) + "\n")
        self.proc.stdin.flush()

    def close(self):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdin.close()


class Scenario:
    def __init__(self, table, directory, argv, env):
        self.table = table
        self.directory = directory
        self.argv, self.env = argv, env
        self.events = queue.Queue()
        self.agents, self.holds, self.closed = {}, {}, set()
        self.active = {}       # name: the holds that are held alone, as far as was told
        self.keeps = lambda: 0
        self.overlaps = []     # (hold, when another one was told that it holds)
        self.proxies = []
        self.masters = [RedisProc(name, rights=broker_rights()) for name in "abcde"[:table.get("masters", 1)]]
        ports = free_ports(table.get("brokers", 1))
        if table.get("proxy"):
            self.proxies = [ChaosProxy(("127.0.0.1", port), tcp=True) for port in ports]
        self.direct = ["127.0.0.1:%d" % port for port in ports]
        self.announced = ["%s:%d" % proxy.address for proxy in self.proxies] or self.direct
        lease = table.get("lease", 10000)
        self.brokers = [HoldfastProc(directory, {m.name: m.url for m in self.masters}, listen=listen, name="broker%d" % i,
                                     options={"lease": "%dms" % lease, "announce": announce, "drain_timeout": "20s",
                                              "peers": " ".join(self.announced), "request_timeout": "500ms"})
                        for i, (listen, announce) in enumerate(zip(self.direct, self.announced))]

    # ---- start and end

    def run(self):
        try:
            for master in self.masters:
                master.start()
            for broker in self.brokers:
                broker.start().wait_masters()
            for step in self.table["steps"]:
                self.step(step)
            self.judge_overlaps()
        except AssertionError as err:
            raise AssertionError("%s\nstep: %s\n%s" % (err, step, self.told())) from None
        finally:
            self.close()

    def told(self):
        lines = ["%s: %s" % (name, open(self.stderr(name), encoding="utf-8").read()[-3000:]) for name in self.agents]
        return "\n".join(lines + [broker.log_text()[-3000:] for broker in self.brokers])

    def stderr(self, agent):
        return os.path.join(str(self.directory), "agent-%s.err" % agent)

    def close(self):
        for agent in self.agents.values():
            agent.close()
        for proxy in self.proxies:
            proxy.close()
        try:
            for broker in self.brokers:
                broker.close()
        finally:
            for master in self.masters:
                master.close()

    # ---- agents and what they say

    def agent(self, step, hold=None):
        name = step.get("agent") or (hold.agent.name if hold else "a")
        if name not in self.agents:
            with open(self.stderr(name), "wb") as err:
                agent = self.agents[name] = Agent(name, self.argv, self.env, self.events, err)
            at = step.get("at", 1)
            list_ = self.direct if at == 0 else self.announced[at - 1:] + self.announced[:at - 1]
            agent.tell(do="connect", brokers=["redis://" + address for address in list_], timeout=SILENCE_MS)
            self.wait("connected", lambda: agent.name in self.closed)
            self.closed.discard(agent.name)
        return self.agents[name]

    def wait(self, what, probe, within_s=WITHIN_S):
        """Takes in events until probe() is true."""
        until = time.monotonic() + within_s
        while not probe():
            try:
                self.take(*self.events.get(timeout=max(0, min(0.05, until - time.monotonic()))))
            except queue.Empty:
                assert time.monotonic() < until, "%s: not within %d s" % (what, within_s)

    def take(self, agent, event):
        kind = event["event"]
        if kind in ("connected", "closed"):
            self.closed.add(agent.name)
            return
        if kind == "ended":
            assert agent.proc.wait() == -signal.SIGKILL, "agent %s ended: %s" % (agent.name, agent.proc.returncode)
            return
        hold = self.holds[event["hold"]]
        if kind == "state":
            hold.state = event
            return
        if kind in ENDS:
            hold.ends += 1
            assert hold.ends == 1, "%s: told twice how it ended: %s" % (event["hold"], event)
        if kind == "granted":
            self.granted(hold, event["tokens"])
        elif kind == "lost":
            assert hold.lost_at is None, "%s: lost twice" % event["hold"]
            hold.lost_at = time.monotonic()
            self.ended(hold)
        hold.unread.append(event)

    def granted(self, hold, tokens):
        hold.tokens = hold.granted = tokens
        hold.granted_at = time.monotonic()
        assert len(tokens) == len(hold.request["names"]), tokens
        if hold.alone:
            for name in hold.request["names"]:
                holders = self.active.setdefault(name, [])
                self.overlaps += [(other, time.monotonic()) for other in holders]
                holders.append(hold)

    def ended(self, hold):
        for holders in self.active.values():
            if hold in holders:
                holders.remove(hold)

    def judge_overlaps(self):
        """A name that is held alone is held by one, until he gives it back or is told that it is lost."""
        for hold, at in self.overlaps:
            self.wait("%s: another one got it, and it is not told that it is lost" % hold.name,
                      lambda hold=hold: hold.lost_at is not None, OVERLAP_S)
            assert hold.lost_at < at + OVERLAP_S or hold.agent.was_stopped, "%s: told too late that it is lost" % hold.name

    # ---- steps

    def step(self, step):
        kind = next(iter(step))
        method = getattr(self, "step_" + kind)
        if step.get("times"):
            for i in range(step["times"]):
                method({key: value.replace("%", str(i)) if isinstance(value, str) else value for key, value in step.items()})
        else:
            method(step)

    def step_do(self, step):
        hold = self.holds.get(step.get("hold"))
        agent = self.agent(step, hold)
        what = step["do"]
        request = {key: value for key, value in step.items() if key not in ("agent", "at", "times")}
        if what in ("lock", "nested"):
            if what == "lock" and "name" in request:
                request["names"] = [request.pop("name")]
            self.holds[step["hold"]] = Hold(step["hold"], agent, dict(request))
        elif what == "unlock":
            self.ended(hold)
        elif what == "close":
            for one in self.holds.values():
                if one.agent is agent:
                    self.ended(one)
        agent.tell(**request)
        if what == "close":
            self.wait("the client to close", lambda: agent.name in self.closed)

    def step_expect(self, step):
        hold, kinds = self.holds[step["hold"]], step["expect"].split(" or ")
        self.wait("%s: %s" % (hold.name, step["expect"]), lambda: hold.unread, step.get("within", WITHIN_S))
        event = hold.unread.pop(0)
        assert event["event"] in kinds and step.get("text", "") in event.get("text", ""), event

    def state(self, step):
        hold = self.holds[step["hold"]]
        hold.state = None
        hold.agent.tell(do="state", hold=hold.name)
        self.wait("what %s is like" % hold.name, lambda: hold.state)
        hold.tokens = hold.state["tokens"] or hold.tokens
        return hold, hold.state

    def step_check(self, step):
        getattr(self, "check_" + step["check"].replace(" ", "_"))(step)

    def check_held(self, step):
        hold, state = self.state(step)
        assert state["held"] and state["remaining"] > 0 and hold.lost_at is None, state

    def check_not_held(self, step):
        assert not self.state(step)[1]["held"]

    def check_silent(self, step):
        hold, _ = self.state(step)     # what was on its way before this answer is here
        assert not hold.unread, hold.unread

    def check_tokens_grow(self, step):
        tokens = [self.holds[name].tokens[0] for name in step["holds"]]
        assert tokens == sorted(set(tokens)), tokens

    def check_remaining(self, step):
        remaining = self.state(step)[1]["remaining"]
        assert step["at_least"] <= remaining <= step["at_most"], remaining

    def check_holding(self, step):
        assert self.holding(step["name"]) == step["count"]

    def check_connections(self, step):
        count = int(self.brokers[0].info()["connected_clients"]) - 1    # who asks
        assert count <= step["at_most"] * len(self.agents), count

    def check_held_by_one(self, step):
        for name in step["holds"]:
            hold, state = self.state({"hold": name})
            assert hold.lost_at is not None or (state["held"] and self.holding(step["name"]) == 1), state

    def holding(self, name):
        with self.living()[0].connect() as client:
            return as_map(client.cmd("LOCKINFO", name))["holding"]

    def living(self):
        return [broker for broker in self.brokers if broker.proc.poll() is None]

    def step_until(self, step):
        def probe():
            self.wait("", lambda: self.events.empty())
            return getattr(self, "is_" + step["until"].replace(" ", "_"))(step)
        wait_for(str(step), probe, WITHIN_S, 0.02)

    def is_waiting(self, step):
        brokers = [self.brokers[step["broker"] - 1]] if "broker" in step else self.living()
        return sum(int(broker.info()["waiters"]) for broker in brokers) == step["count"]

    def is_free(self, step):
        with self.living()[0].connect() as client:
            return as_map(client.cmd("LOCKINFO", step["name"]))["kind"] is None

    def is_taken_back(self, step):
        hold, state = self.state(step)
        assert state["held"], state
        return all(new > old for new, old in zip(state["tokens"], hold.granted))

    def is_taken_back_or_lost(self, step):
        hold, state = self.state(step)
        if state["held"]:
            return all(new > old for new, old in zip(state["tokens"], hold.granted))
        return hold.lost_at is not None

    def step_fault(self, step):
        what = step["fault"]
        if "masters" in step:
            for i in step["masters"]:
                {"kill": self.masters[i].kill, "stop": self.masters[i].stop, "continue": self.masters[i].cont}[what]()
        elif "agent" in step:
            agent = self.agents[step["agent"]]
            agent.was_stopped |= what == "stop"
            agent.proc.send_signal({"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "continue": signal.SIGCONT}[what])
        elif what in ("kill", "stop", "continue", "drain"):
            broker = self.brokers[step["broker"] - 1]
            if what == "drain":
                broker.signal(signal.SIGTERM)
            else:
                {"kill": broker.kill, "stop": broker.stop, "continue": broker.cont}[what]()
        else:
            self.on_the_way(step, self.proxies[step["broker"] - 1])

    def on_the_way(self, step, proxy):
        what = step["fault"]
        if what == "cut":
            proxy.cut_all()
        elif what == "latency":
            proxy.latency_s = step["ms"] / 1000
        elif what == "lose reply":
            proxy.resets = True
            proxy.on("drop_reply", lambda request: request.name == step["to"].lower())
        else:
            proxy.keeps_open = step.get("keeps_open", False)
            proxy.blackhole(what == "silence")

    def step_command(self, step):
        with self.brokers[0].connect() as client:
            client.cmd(*step["command"])

    def step_pause(self, step):
        until = time.monotonic() + step["pause"] / 1000
        self.wait("", lambda: time.monotonic() > until)

    # ---- at random

    def step_random(self, step):
        seed = int(os.environ.get("CLIENTS_SEED", "0")) or random.randrange(1 << 30)
        print("CLIENTS_SEED=%d" % seed)
        chance = random.Random(seed)
        until = time.monotonic() + step["random"]
        self.keeps = lambda: chance.choice([0, 0, 0.5, 3])
        numbers = dict.fromkeys(step["agents"], 0)
        for name in numbers:
            self.next_lock(step, name, numbers)
        while time.monotonic() < until:
            undo = self.random_fault(chance)
            self.turn_for(chance.uniform(0.05, 4), step, numbers)
            undo()
            self.turn_for(chance.uniform(0.05, 1), step, numbers)
        self.keeps = lambda: 0
        before = dict(numbers)
        for _ in range(int(WITHIN_S / 0.5)):
            self.turn_for(0.5, step, numbers)
            if all(numbers[name] > before[name] + 1 for name in numbers):
                return
        raise AssertionError("not all get the lock any more: %s, %s" % (before, numbers))

    def turn_for(self, seconds, step, numbers):
        """Who has had the lock for as long as he wants gives it back and asks anew."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.step_pause({"pause": 5})
            self.judge_overlaps()
            self.overlaps.clear()
            for name in numbers:
                hold = self.holds["%s%d" % (name, numbers[name])]
                if not hold.unread:
                    continue
                kinds = [event["event"] for event in hold.unread]
                assert kinds[0] in ("granted", "error"), hold.unread
                if kinds[0] == "granted" and "lost" not in kinds and time.monotonic() < hold.granted_at + hold.keeps_s:
                    continue
                if kinds[0] == "granted" and "lost" not in kinds:
                    self.step_do({"do": "unlock", "hold": hold.name})
                self.next_lock(step, name, numbers)

    def next_lock(self, step, name, numbers):
        numbers[name] += 1
        self.step_do({"do": "lock", "hold": "%s%d" % (name, numbers[name]), "name": step["name"], "agent": name})
        self.holds["%s%d" % (name, numbers[name])].keeps_s = self.keeps()

    def random_fault(self, chance):
        """Causes one; returns what ends it."""
        i = chance.randrange(len(self.brokers))
        broker, proxy = self.brokers[i], self.proxies[i]
        what = chance.choice(["cut", "reset", "silence", "lose reply", "stop", "kill", "latency"])
        if what in ("cut", "reset"):
            proxy.resets = what == "reset"
            proxy.cut_all()
            return lambda: None
        if what == "silence":
            proxy.blackhole()
            return lambda: proxy.blackhole(False)
        if what == "lose reply":
            word = chance.choice(["lock", "unlock", "renew", "ping"])
            proxy.on("cut_after", lambda request: request.name == word)
            return proxy.clear
        if what == "latency":
            proxy.latency_s = 0.05
            return lambda: setattr(proxy, "latency_s", 0)
        if what == "stop":
            broker.stop()
            return broker.cont
        broker.kill()
        return lambda: self.start_again(broker)

    @staticmethod
    def start_again(broker):
        broker.expect_status = 0
        broker.start(ready=False)
