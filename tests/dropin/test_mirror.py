"""[drop_in] mirror = yes: libraries on the masters themselves, and libraries and LOCK on brokers, exclude each other.

A redis-server of its own counts who is inside.
"""

import pathlib
import random
import threading
import time

import pytest
import redis

import procs
from holdfastproc import HoldfastProc
from library_programs import npm
from redisproc import RedisProc

OPTIONS = {"lease": "1s", "max_lease": "10s"}


class Fleet:
    """Three masters, two brokers that mirror, and the tally."""

    def __init__(self, directory):
        self.tally = RedisProc("tally", tcp=True).start()
        self.masters = [RedisProc(name, tcp=True).start() for name in "abc"]
        self.brokers = [HoldfastProc(directory, {m.name: m.url for m in self.masters}, options=OPTIONS, name="broker%d" % i,
                                     args=["-o", "drop_in.mirror=yes"]) for i in range(2)]
        for broker in self.brokers:
            broker.start().wait_masters()
        self.until, self.failures, self.threads, self.programs = time.monotonic() + 6, [], [], []

    def node(self, hold_ms):
        words = npm()
        program = procs.spawn([words[0], str(words[1].parent / "contend.js"), str(self.tally.port), str(hold_ms)] +
                              [str(master.port) for master in self.masters])
        self.programs.append(program)
        return program

    def contend(self, program, *args):
        def run():
            tally = redis.Redis(port=self.tally.port)
            try:
                while time.monotonic() < self.until:
                    program(self, tally, *args)
            except Exception as err:  # pylint: disable=broad-except
                self.failures.append("%s: %r" % (program.__name__, err))
        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def rounds(self):
        words = self.tally.cli("HGETALL", "rounds")
        return dict(zip(words[::2], map(int, words[1::2])))

    def join(self):
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures

    def close(self):
        for program in self.programs:
            program.kill()
            program.wait()
        for thread in self.threads:
            thread.join()
        for broker in self.brokers:
            broker.close()
        for server in self.masters + [self.tally]:
            server.close()


@pytest.fixture
def fleet(tmp_path):
    npm()  # fetched before anything runs
    made = Fleet(pathlib.Path(tmp_path))
    yield made
    made.close()


def inside(tally, who):
    if tally.incr("inside") != 1:
        tally.incr("together")
    time.sleep(random.uniform(0, 0.005))
    tally.decr("inside")
    tally.hincrby("rounds", who, 1)


def redis_py(fleet, tally, number):
    """Through a broker; extended while it is held."""
    lock = redis.Redis(port=fleet.brokers[number].port).lock("n", timeout=5, sleep=0.01)
    if lock.acquire(blocking_timeout=1):
        lock.extend(5)
        inside(tally, "redis-py")
        lock.release()


def native(fleet, tally, number):
    with fleet.brokers[number].connect() as client:
        if client.cmd("LOCK", "n", "WAIT", 1000):
            inside(tally, "LOCK")
            assert client.cmd("UNLOCK", "n") == 1


def test_redlock_on_the_masters_and_others_on_brokers(fleet):
    fleet.node(5)
    for number in (0, 1):
        fleet.contend(redis_py, number)
    fleet.contend(native, 0)
    fleet.join()
    assert fleet.tally.cli("GET", "together") is None
    assert len(fleet.rounds()) == 3 and min(fleet.rounds().values()) >= 3, fleet.rounds()


def test_a_redlock_that_is_extended_and_killed(fleet):
    """Its time and no more keeps the others out; as long as it lives it is extended."""
    program = fleet.node(1500)
    procs.wait_for("its lock", lambda: fleet.tally.cli("GET", "inside") == "1", 30)
    with fleet.brokers[0].connect() as client, fleet.brokers[1].connect() as other:
        assert client.cmd("LOCK", "n", "WAIT", 1200) is None
        assert other.cmd("SET", "n", "mine", "NX", "PX", 5000) is None
        program.kill()
        assert client.cmd("LOCK", "n", "WAIT", 10000)[0] > 0
        assert other.cmd("SET", "n", "mine", "NX", "PX", 5000) is None
