"""Locks taken by commands and scripts of Redis while masters, brokers and links fail: no two hold at once, counts are exact."""

import random
import threading
import time

import pytest

from procs import wait_for
from respclient import Closed, RespClient, RespError

LEASE_MS = 600
SAFE_S = LEASE_MS / 1000 - 0.05  # drift, and what it takes to look at the clock
OPTIONS = {"lease": "600ms", "max_lease": "1s", "request_timeout": "150ms", "quarantine": "auto",
           "pause_limit": "150ms"}
END = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0"
ENTER = """if redis.call('exists',KEYS[1])==0 or redis.call('hexists',KEYS[1],ARGV[1])==1 then
local n=redis.call('hincrby',KEYS[1],ARGV[1],1) redis.call('pexpire',KEYS[1],ARGV[2]) return n end return -1"""
LEAVE = """if redis.call('hexists',KEYS[1],ARGV[1])==0 then return -1 end
local n=redis.call('hincrby',KEYS[1],ARGV[1],-1) if n>0 then return n end redis.call('del',KEYS[1]) return 0"""


class Unknown(Exception):
    """It may be done or not."""


class Program(threading.Thread):
    """Takes the lock, keeps it for a moment and gives it back, as long as it may."""

    def __init__(self, broker, number, history):
        super().__init__(daemon=True)
        self.broker, self.number, self.history = broker, number, history
        self.me = "me%d" % number
        self.random = random.Random(number)
        self.ends = threading.Event()
        self.conn = None

    def ask(self, *words):
        try:
            if self.conn is None:
                self.conn = RespClient(self.broker.address, deadline_s=10)
            return self.conn.cmd(*words)
        except RespError as err:
            if err.code == "TRYAGAIN":
                return None
            raise Unknown from err
        except (OSError, Closed) as err:
            self.conn = None
            raise Unknown from err

    def run(self):
        while not self.ends.is_set():
            try:
                (self.by_string if self.number % 2 else self.by_hash)()
            except Unknown:
                time.sleep(0.02)
            except Exception as err:  # pylint: disable=broad-except
                self.history.wrong.append("%s: %r" % (self.me, err))
                return
            time.sleep(self.random.random() * 0.02)

    def note(self, asked, told, gives_up):
        self.history.held(self.me, told, min(asked + SAFE_S, gives_up))

    def by_string(self):
        asked = time.monotonic()
        if self.ask("SET", "lock", self.me, "NX", "PX", LEASE_MS) is None:
            return
        told = time.monotonic()
        if self.random.random() < 0.2:
            self.history.is_kept.set()
            time.sleep(0.5)
        gives_up = time.monotonic()
        self.note(asked, told, gives_up)
        ended = self.ask("EVAL", END, 1, "lock", self.me)
        if ended == 0 and time.monotonic() < asked + SAFE_S:
            self.history.wrong.append("%s lost its lock %.3f s after it was told" % (self.me, gives_up - told))

    def by_hash(self):
        """Enters twice; the hold has the time of the last entry."""
        asked = time.monotonic()
        first = self.ask("EVAL", ENTER, 1, "lock", self.me, LEASE_MS)
        if first is None or first < 1:
            return
        told = time.monotonic()
        counts = [self.ask("EVAL", LEAVE, 1, "lock", self.me) if i else
                  self.ask("EVAL", ENTER, 1, "lock", self.me, LEASE_MS) for i in range(2)]
        gives_up = time.monotonic()
        self.note(asked, told, gives_up)
        if first == 1 and None not in counts and counts != [2, 1] and gives_up < asked + SAFE_S:
            self.history.wrong.append("%s entered %s times" % (self.me, [first] + counts))
        while gives_up < asked + 3 and (self.ask("EVAL", LEAVE, 1, "lock", self.me) or 0) > 0:
            pass


class History:
    def __init__(self):
        self.lock = threading.Lock()
        self.spans, self.wrong = [], []
        self.is_kept = threading.Event()  # somebody has just got the lock, and keeps it for a while

    def held(self, who, since, until):
        with self.lock:
            self.spans.append((since, until, who))

    def overlaps(self):
        spans = sorted(self.spans)
        return [(a, b) for a, b in zip(spans, spans[1:]) if b[0] < a[1] and a[2] != b[2]]


def test_overlaps_are_found():
    made = History()
    made.held("x", 1, 2)
    made.held("y", 2.5, 3)
    assert not made.overlaps()
    made.held("z", 1.9, 2.1)
    assert made.overlaps()


def masters_die(made, masters):
    """Without their data, while somebody has the lock."""
    made.is_kept.clear()
    assert made.is_kept.wait(20)
    for master in masters:
        master.kill()
    for master in masters:
        master.start()


def stop(thing):
    thing.stop()
    time.sleep(0.4)
    thing.cont()


def broker_dies(broker):
    broker.kill()
    time.sleep(0.1)
    broker.expect_status = 0
    broker.start()


def links_are_cut(proxies):
    for proxy in proxies[-2:]:
        proxy.blackhole()
    time.sleep(0.5)
    for proxy in proxies[-2:]:
        proxy.blackhole(False)


@pytest.mark.parametrize("count", [1, 3])
def test_no_two_hold_at_once(make_redis, make_proxy, make_broker, count):
    """Two clients of each of two brokers. After each fault somebody gets the lock again."""
    masters = [make_redis(n) for n in "abc"[:count]]
    proxies = [make_proxy(m.address) for m in masters]
    brokers = [make_broker({m.name: p.url for m, p in zip(masters, proxies)}, ready=False, options=OPTIONS),
               make_broker(masters, ready=False, options=OPTIONS)]
    for broker in brokers:
        broker.wait_masters()
    made = History()
    programs = [Program(brokers[i % 4 // 2], i, made) for i in range(4)]
    for program in programs:
        program.start()
    faults = [lambda: masters_die(made, masters[:1]), lambda: stop(masters[0]), lambda: broker_dies(brokers[1]),
              lambda: links_are_cut(proxies), lambda: stop(brokers[0]), lambda: masters_die(made, masters)]
    for fault in faults:
        fault()
        before = len(made.spans)
        wait_for("locks after a fault", lambda n=before + 12: len(made.spans) >= n or made.wrong, 30)
    for program in programs:
        program.ends.set()
    for program in programs:
        program.join(20)
        assert not program.is_alive()
    assert not made.overlaps() and not made.wrong, (made.overlaps(), made.wrong)
    assert {who for _, _, who in made.spans} == {p.me for p in programs}
