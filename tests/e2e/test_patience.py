"""[drop_in] patience: a refused SET NX, or a script that would take the lock, waits for it before it says so."""

import threading
import time

import pytest

from procs import wait_for
from test_dropin import COMPARE_AND_DELETE as RELEASE

TAKE = "if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', 30000) then return 1 end return redis.call('pttl', KEYS[1])"
TAKE_OR_NOT = "if redis.call('exists', KEYS[1]) == 1 then return 0 end redis.call('set', KEYS[1], ARGV[1], 'px', 30000) return 1"


@pytest.fixture
def make(make_broker):
    def brokers(masters, count=2, patience="60s", **options):
        args = ["-o", "drop_in.patience=" + patience] + [word for k, v in options.items() for word in ("-o", "%s=%s" % (k, v))]
        return [make_broker(masters, args=args).wait_masters() for _ in range(count)]
    return brokers


@pytest.fixture(params=["masters1", "masters3"], ids=["one", "three"])
def both(request, make):
    return make(request.getfixturevalue(request.param))


def waiting(broker, count):
    wait_for("%d that wait" % count, lambda: broker.info()["waiters"] == str(count))


@pytest.mark.parametrize("words,reply", [(("SET", "{}", "w", "NX", "PX", 30000), "OK"), (("SETNX", "{}", "w"), 1),
                                         (("EVAL", TAKE, 1, "{}", "w"), 1),
                                         (("EVAL", TAKE_OR_NOT, 1, "{}", "w"), 1)], ids=["set", "setnx", "script", "look"])
@pytest.mark.parametrize("where", [0, 1], ids=["here", "elsewhere"])
def test_what_is_refused_gets_the_lock_when_it_is_free(both, clients, name, words, reply, where):
    holder, waiter = clients(both[where]), clients(both[0])
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    waiter.send(*[name if w == "{}" else w for w in words])
    waiting(both[0], 1)
    assert holder.cmd("GET", name) == "v"
    assert holder.cmd("EVAL", RELEASE, 1, name, "v") == 1
    assert waiter.recv() == reply
    assert holder.cmd("GET", name) == "w"
    assert waiter.cmd("DEL", name) == 1
    waiting(both[0], 0)


def test_they_get_it_one_after_the_other(both, clients, name):
    holder = clients(both[0])
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    waiters = []
    for i in range(6):
        waiters.append(clients(both[0]))
        waiters[i].send("SET", name, "w", "NX", "PX", 50000)     # the same value: it is no re-entry
        waiting(both[0], i + 1)
    for waiter in waiters:
        assert holder.cmd("DEL", name) == 1
        assert waiter.recv() == "OK"
        assert all(other.silent(0.01) for other in waiters if other is not waiter)
        holder = waiter


def test_in_order_with_lock(both, clients, name):
    holder, plain, native, last = [clients(both[0]) for _ in range(4)]
    assert len(holder.cmd("LOCK", name)) == 2
    plain.send("SET", name, "w", "NX", "PX", 50000)
    waiting(both[0], 1)
    native.send("LOCK", name, "WAIT", 50000)
    waiting(both[0], 2)
    last.send("EVAL", TAKE, 1, name, "last")
    waiting(both[0], 3)
    assert holder.cmd("UNLOCK", name) == 1
    assert plain.recv() == "OK"
    assert plain.cmd("DEL", name) == 1
    assert len(native.recv()) == 2
    assert native.cmd("UNLOCK", name) == 1
    assert last.recv() == 1


def test_a_lock_that_lapses(both, clients, name):
    assert clients(both[1]).cmd("SET", name, "v", "NX", "PX", 300) == "OK"
    assert clients(both[0]).cmd("SET", name, "w", "NX", "PX", 30000) == "OK"


def test_the_refusal_comes_when_the_time_is_over(make, masters1, clients, name):
    broker, = make(masters1, 1, "100ms")
    holder, waiter = clients(broker), clients(broker)
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    start = time.monotonic()
    assert waiter.cmd("SET", name, "w", "NX", "PX", 50000) is None
    assert time.monotonic() - start >= 0.09
    assert waiter.cmd("SETNX", name, "w") == 0
    assert 0 < waiter.cmd("EVAL", TAKE, 1, name, "w") <= 50000
    assert broker.info()["waiters"] == "0"
    assert holder.cmd("DEL", name) == 1
    assert waiter.cmd("SET", name, "w", "NX", "PX", 50000) == "OK"


@pytest.mark.parametrize("next_words", [("PING",), ("SET", "other", "w", "NX", "PX", 50000), ("SUBSCRIBE", "c"), ("MULTI",), ("LOCK", "other")])
def test_the_next_command_of_the_connection_ends_the_wait(both, clients, name, next_words):
    next_words = [name + "-other" if w == "other" else w for w in next_words]
    holder, waiter = clients(both[0]), clients(both[0])
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    waiter.send("SET", name, "w", "NX", "PX", 50000)
    waiting(both[0], 1)
    waiter.send(*next_words)
    assert waiter.recv() is None
    assert waiter.recv() is not None
    assert holder.cmd("DEL", name) == 1
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"     # nobody waits any more


def test_a_pipeline_does_not_wait(both, clients, name):
    holder, waiter = clients(both[0]), clients(both[0])
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    replies = waiter.pipeline(*[("SET", name, "w", "NX", "PX", 50000), ("GET", name)] * 3)
    assert replies == [None, "v"] * 3
    assert waiter.cmd("PING") == "PONG"


def test_who_has_gone_waits_no_longer(both, clients, name):
    holder, waiter = clients(both[0]), clients(both[0])
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    waiter.send("SET", name, "w", "NX", "PX", 50000)
    waiting(both[0], 1)
    waiter.close()
    waiting(both[0], 0)
    assert holder.cmd("DEL", name) == 1
    assert holder.cmd("GET", name) is None


def test_who_is_killed_waits_no_longer(both, clients, name):
    holder, waiter = clients(both[0]), clients(both[0])
    number = waiter.cmd("CLIENT", "ID")
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    waiter.send("SET", name, "w", "NX", "PX", 50000)
    waiting(both[0], 1)
    assert holder.cmd("CLIENT", "KILL", "ID", number) == 1
    waiting(both[0], 0)
    assert waiter.recv() is None
    assert holder.cmd("DEL", name) == 1
    assert holder.cmd("GET", name) is None


@pytest.mark.parametrize("words", [("SET", "{}", "w", "XX", "PX", 50000), ("SET", "{}", "w", "IFEQ", "x"), ("GET", "{}"), ("EVAL", RELEASE, 1, "{}", "w"),
                                   ("SET", "{}", "w", "NX", "GET")])
def test_what_does_not_only_want_the_lock_does_not_wait(make, masters1, clients, name, words):
    broker, = make(masters1, 1)
    holder, other = clients(broker), clients(broker)
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    other.cmd(*[name if w == "{}" else w for w in words])       # answered at once
    assert broker.info()["waiters"] == "0"


def test_draining_and_the_end_of_the_broker(make, masters1, clients, name):
    one, two = make(masters1)
    holder, waiter, another = clients(one), clients(one), clients(two)
    assert holder.cmd("SET", name, "v", "NX", "PX", 50000) == "OK"
    waiter.send("SET", name, "w", "NX", "PX", 50000)
    another.send("SET", name, "w", "NX", "PX", 50000)
    waiting(one, 1)
    waiting(two, 1)
    one.terminate()
    assert waiter.recv() is None
    two.kill()


def test_many_polling_workers_take_turns(both, clients, name):
    """As redis-py's Lock does, each on a connection of its own, at both brokers: every one gets it, and no two at once."""
    inside, rounds, errors = [], [0] * 8, []

    def work(i):
        client = clients(both[i % 2])
        try:
            while rounds[i] < 5:
                if client.cmd("SET", name, "w%d" % i, "NX", "PX", 30000) != "OK":
                    continue
                inside.append(i)
                assert inside == [i]
                rounds[i] += 1
                inside.remove(i)
                assert client.cmd("EVAL", RELEASE, 1, name, "w%d" % i) == 1
        except BaseException as err:    # pylint: disable=broad-except
            errors.append(err)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert not errors and rounds == [5] * 8, (errors, rounds)
