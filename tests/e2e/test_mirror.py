"""[drop_in] mirror = yes: programs that talk to the masters themselves and programs that talk to a broker exclude each other."""

import random
import threading
import time

import pytest
import redis

from procs import wait_for
from redisproc import broker_rights
from respclient import RespError, as_map
from test_dropin import COMPARE_AND_DELETE, REENTER

MIRROR = ["-o", "drop_in.mirror=yes"]
RIGHTS = ["~*" if word.startswith("~") else word for word in broker_rights()]
OPTIONS = {"lease": "1s", "max_lease": "10s"}
SHARED = "holdfast: shared"
COMPARE_AND_EXTEND = COMPARE_AND_DELETE.replace("'del', KEYS[1]", "'pexpire', KEYS[1], ARGV[2]")


class Mirrored:
    def __init__(self, masters, broker):
        self.masters, self.broker = masters, broker

    def majority(self):
        return self.masters[:len(self.masters) // 2 + 1]

    def all(self, *words):
        """What each master answers."""
        return [master.cli(*words) for master in self.masters]

    def wait_all(self, reply, *words):
        wait_for("%r of %s on all masters" % (reply, words), lambda: self.all(*words) == [reply] * len(self.masters))

    def old_take(self, name, ms, masters=None):
        return [master.cli("SET", name, "old", "NX", "PX", ms) for master in masters or self.masters]


@pytest.fixture(params=[1, 3])
def mirrored(request, make_redis, make_broker):
    masters = [make_redis(name, rights=RIGHTS) for name in "abc"[:request.param]]
    broker = make_broker(masters, options=OPTIONS, args=MIRROR)
    broker.wait_masters()
    return Mirrored(masters, broker)


# From new to old

def test_a_lock_is_a_plain_key(mirrored, clients):
    a = clients(mirrored.broker)
    assert a.cmd("LOCK", "n", "OWNER", "app", "LEASE", 5000)
    mirrored.wait_all("app", "GET", "n")
    assert all(4000 < ms <= 5000 for ms in mirrored.all("PTTL", "n"))
    assert mirrored.old_take("n", 1000) == [None] * len(mirrored.masters)
    assert a.cmd("RENEW", "n", "OWNER", "app", "LEASE", 9000)
    wait_for("the new time", lambda: all(ms > 8000 for ms in mirrored.all("PTTL", "n")))
    assert a.cmd("UNLOCK", "n", "OWNER", "app") == 1
    mirrored.wait_all(0, "EXISTS", "n")
    assert a.cmd("LOCK", "n", "SHARED")
    mirrored.wait_all(SHARED, "GET", "n")
    assert clients(mirrored.broker).cmd("FORCEUNLOCK", "n") == 1
    mirrored.wait_all(0, "EXISTS", "n")
    assert a.cmd("LOCK", "m", "LIMIT", 2)
    mirrored.wait_all(SHARED, "GET", "m")
    assert a.cmd("MLOCK", 2, "p", "q", "OWNER", "app")
    mirrored.wait_all(["app", "app"], "MGET", "p", "q")


def test_a_drop_in_lock_is_the_key_that_it_is_in_redis(mirrored, clients):
    a = clients(mirrored.broker)
    assert a.cmd("SET", "n", "mine", "NX", "PX", 5000) == "OK"
    mirrored.wait_all("mine", "GET", "n")
    assert mirrored.old_take("n", 1000) == [None] * len(mirrored.masters)
    assert a.cmd("PEXPIRE", "n", 9000) == 1
    wait_for("the new time", lambda: all(ms > 8000 for ms in mirrored.all("PTTL", "n")))
    assert a.cmd("EVAL", COMPARE_AND_DELETE, 1, "n", "mine") == 1
    mirrored.wait_all(0, "EXISTS", "n")
    for count in "12":
        assert a.cmd("EVAL", REENTER, 1, "h", 5000, "me") is None
        mirrored.wait_all(["me", count], "HGETALL", "h")
    assert [master.cli("EVAL", REENTER, 1, "h", 5000, "you") > 4000 for master in mirrored.masters]
    assert a.cmd("SELECT", 2) == "OK"
    assert a.cmd("SET", "n", "two", "NX", "PX", 5000) == "OK"
    mirrored.wait_all(0, "EXISTS", "n", "db2:n")
    for master in mirrored.masters:
        with master.connect() as there:
            there.cmd("SELECT", 2)
            wait_for("the key in its database", lambda c=there: c.cmd("GET", "n") == "two")


def test_a_lock_that_is_renewed_keeps_old_programs_out(mirrored, clients):
    """For three times its lease; and not a moment longer than its holder's broker lives."""
    client = clients(mirrored.broker)
    assert client.cmd("LOCK", "n")
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert mirrored.old_take("n", 100, mirrored.majority()) == [None] * len(mirrored.majority())
        time.sleep(0.02)
    mirrored.broker.expect_status = None
    mirrored.broker.kill()
    wait_for("the end of its time", lambda: mirrored.all("EXISTS", "n") == [0] * len(mirrored.masters), 5)
    assert mirrored.old_take("n", 60000) == ["OK"] * len(mirrored.masters)


# From old to new

def test_an_old_lock_keeps_new_programs_out(mirrored, clients):
    a, b, waiting = (clients(mirrored.broker) for _ in range(3))
    assert mirrored.old_take("n", 60000, mirrored.majority())
    assert a.cmd("LOCK", "n") is None
    assert a.cmd("LOCK", "n", "SHARED") is None
    assert a.cmd("LOCK", "n", "LIMIT", 3) is None
    assert a.cmd("MLOCK", 2, "n", "m") is None
    assert a.cmd("SET", "n", "mine", "NX", "PX", 5000) is None
    assert a.cmd("SET", "n", "mine", "NX", "PX", 5000) is None
    assert a.cmd("EVAL", COMPARE_AND_DELETE, 1, "n", "mine") == 0
    assert a.cmd("GET", "n") == "old"
    assert 50000 < a.cmd("PTTL", "n") <= 60000
    assert a.cmd("DEL", "n") == 0
    assert "held by a program that does not use holdfast" in str(a.err("PEXPIRE", "n", 1000))
    assert "held by a program that does not use holdfast" in str(a.err("EVAL", COMPARE_AND_DELETE.replace("'del'", "'persist'"), 1, "n", "old"))
    info = as_map(a.cmd("LOCKINFO", "n"))
    assert as_map(info["holders"][0])["owner"] == "a program that does not use holdfast", info
    assert str(info["masters"]).count("held by a program that does not use holdfast") == len(mirrored.majority()), info
    assert a.cmd("FORCEUNLOCK", "n") == 0
    waiting.send("LOCK", "n", "WAIT", 30000)
    b.send("LOCK", "n", "WAIT", 300)
    assert b.recv() is None
    for master in mirrored.majority():
        assert master.cli("EVAL", COMPARE_AND_DELETE, 1, "n", "old") == 1
    since = time.monotonic()
    assert waiting.recv()[0] > 0
    assert time.monotonic() - since < 2
    assert waiting.cmd("UNLOCK", "n") == 1
    assert a.cmd("SET", "n", "mine", "NX", "PX", 5000) == "OK"


def test_a_refusal_is_not_remembered(mirrored, clients):
    """Nobody tells a broker that an old program has deleted its key."""
    a = clients(mirrored.broker)
    for _ in range(5):
        assert mirrored.old_take("n", 60000)
        assert a.cmd("SET", "n", "mine", "NX", "PX", 5000) is None
        assert a.cmd("LOCK", "n") is None
        mirrored.all("DEL", "n")
        assert a.cmd("SET", "n", "mine", "NX", "PX", 5000) == "OK"
        assert a.cmd("DEL", "n") == 1
        mirrored.wait_all(0, "EXISTS", "n")


def test_the_lock_of_an_old_program_that_was_killed_ends_by_its_time(mirrored, clients):
    client = clients(mirrored.broker)
    assert mirrored.old_take("n", 700)
    since = time.monotonic()
    assert client.cmd("LOCK", "n", "WAIT", 10000)
    assert 0.6 < time.monotonic() - since < 2


def test_a_key_that_was_taken_away_is_written_again(mirrored, clients):
    assert clients(mirrored.broker).cmd("LOCK", "n", "OWNER", "app")
    mirrored.wait_all("app", "GET", "n")
    mirrored.all("DEL", "n")
    mirrored.wait_all("app", "GET", "n")


def test_a_lock_whose_key_was_replaced_is_lost(mirrored, clients):
    """An old program that has deleted the key, and one that has taken it then."""
    holder = clients(mirrored.broker, resp3=True)
    token = holder.cmd("LOCK", "n", "TELL")[0]
    mirrored.wait_all(1, "EXISTS", "n")
    for master in mirrored.majority():
        master.cli("SET", "n", "old", "PX", 60000)
    assert holder.wait_push("lost")[1:3] == ["n", token]
    assert clients(mirrored.broker).cmd("LOCK", "n") is None
    assert [master.cli("GET", "n") for master in mirrored.majority()] == ["old"] * len(mirrored.majority())


def test_a_drop_in_lock_whose_key_was_replaced_is_not_extended(mirrored, clients):
    a = clients(mirrored.broker)
    assert a.cmd("SET", "n", "mine", "NX", "PX", 5000) == "OK"
    mirrored.wait_all("mine", "GET", "n")
    for master in mirrored.majority():
        master.cli("SET", "n", "old", "PX", 60000)
    assert a.cmd("EVAL", COMPARE_AND_EXTEND, 1, "n", "mine", 9000) == 0
    assert a.cmd("EVAL", COMPARE_AND_DELETE, 1, "n", "mine") == 0
    assert [master.cli("GET", "n") for master in mirrored.majority()] == ["old"] * len(mirrored.majority())


def test_brokers_must_all_mirror(make_redis, make_broker, clients):
    master = make_redis("a", rights=RIGHTS)
    make_broker([master], args=MIRROR)
    other = make_broker([master], ready=False)
    client = clients(other)
    row = wait_for("the refusal", lambda: next((r for r in map(as_map, client.cmd("MASTERS")) if r["last_error"]), None))
    assert "mirror nothing here, yes there" in row["last_error"], row
    assert isinstance(client.err("LOCK", "n"), RespError)


def test_an_old_lock_that_is_a_hash(mirrored, clients):
    """Scripts find it as it is in Redis."""
    a = clients(mirrored.broker)
    for master in mirrored.masters:
        master.cli("EVAL", REENTER, 1, "n", 60000, "you")
    assert 50000 < a.cmd("EVAL", REENTER, 1, "n", 5000, "me") <= 60000
    assert a.cmd("HGETALL", "n") == ["you", "1"]
    assert a.cmd("TYPE", "n") == "hash"
    assert a.cmd("LOCK", "n") is None
    mirrored.all("DEL", "n")
    assert a.cmd("EVAL", REENTER, 1, "n", 5000, "me") is None


def test_a_watched_key_of_an_old_program(mirrored, clients):
    a = clients(mirrored.broker)
    assert mirrored.old_take("n", 60000)
    assert a.cmd("WATCH", "n") == "OK"
    mirrored.all("DEL", "n")
    assert a.cmd("MULTI") == "OK"
    assert a.cmd("GET", "n") == "QUEUED"
    assert a.cmd("EXEC") is None


# Both at once

class Tally:
    """Counts who is inside, and who has been."""

    def __init__(self):
        self.mutex, self.inside, self.together = threading.Lock(), 0, 0
        self.rounds = {}

    def hold(self, who):
        with self.mutex:
            self.inside += 1
            self.together = max(self.together, self.inside)
        time.sleep(random.uniform(0, 0.004))
        with self.mutex:
            self.inside -= 1
            self.rounds[who] = self.rounds.get(who, 0) + 1


class Redlock:
    """As https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/ has it, over so many masters."""

    def __init__(self, masters):
        self.links = [master.connect() for master in masters]

    def take(self, name, value, ms):
        since = time.monotonic()
        n = sum(link.cmd("SET", name, value, "NX", "PX", ms) == "OK" for link in self.links)
        if n > len(self.links) // 2 and (time.monotonic() - since) * 1000 < ms * 0.99 - 2:
            return True
        self.release(name, value)
        return False

    def release(self, name, value):
        for link in self.links:
            link.cmd("EVAL", COMPARE_AND_DELETE, 1, name, value)

    def close(self):
        for link in self.links:
            link.close()


def contend_by_redlock(masters, tally, until, number):
    lock, value = Redlock(masters), "old-%d" % number
    while time.monotonic() < until:
        if lock.take("n", value, 20000):
            tally.hold("old")
            lock.release("n", value)
        time.sleep(random.uniform(0, 0.02))
    lock.close()


def contend_by_redis_py(master, tally, until, _number):
    client = redis.Redis(unix_socket_path=master.address)
    while time.monotonic() < until:
        lock = client.lock("n", timeout=20, sleep=0.005)
        if lock.acquire(blocking_timeout=1):
            tally.hold("redis-py")
            lock.release()
    client.close()


def contend_by_lock(broker, tally, until, _number):
    with broker.connect() as client:
        while time.monotonic() < until:
            if client.cmd("LOCK", "n", "WAIT", 500):
                tally.hold("LOCK")
                assert client.cmd("UNLOCK", "n") == 1


def contend_by_set(broker, tally, until, number):
    value = "new-%d" % number
    with broker.connect() as client:
        sha = client.cmd("SCRIPT", "LOAD", COMPARE_AND_DELETE)
        while time.monotonic() < until:
            got = client.cmd("SET", "n", value, "NX", "PX", 20000)
            if got == "OK":
                tally.hold("SET")
                assert client.cmd("EVALSHA", sha, 1, "n", value) == 1
            time.sleep(random.uniform(0, 0.02))


def test_no_two_hold_at_once(mirrored, make_broker):
    second = make_broker(mirrored.masters, options=OPTIONS, args=MIRROR)
    tally, until, failures = Tally(), time.monotonic() + 5, []

    def run(contend, *args):
        try:
            contend(*args)
        except Exception as err:  # pylint: disable=broad-except
            failures.append("%s: %r" % (contend.__name__, err))
    wanted = [(contend_by_redlock, mirrored.masters), (contend_by_lock, mirrored.broker), (contend_by_lock, second),
              (contend_by_set, mirrored.broker), (contend_by_set, second)]
    if len(mirrored.masters) == 1:
        wanted.append((contend_by_redis_py, mirrored.masters[0]))
    threads = [threading.Thread(target=run, args=(contend, what, tally, until, number))
               for number, (contend, what) in enumerate(wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert tally.together == 1
    kinds = 4 if len(mirrored.masters) == 1 else 3
    assert len(tally.rounds) == kinds and min(tally.rounds.values()) >= 3, tally.rounds
