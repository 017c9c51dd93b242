"""Kinds of lock: readers together and a writer alone, permits, and names that are taken all or none."""

import pytest

from holdfastproc import LEASE_MS
from procs import wait_for
from respclient import as_map, encode

LONG = 30000


@pytest.fixture(params=[1, 3], ids=["one master", "three masters"])
def masters(request, make_redis):
    return [make_redis(n) for n in "abc"[:request.param]]


@pytest.fixture(params=[1, 2], ids=["one broker", "two brokers"])
def brokers(request, make_broker, masters):
    made = [make_broker(masters).wait_masters() for _ in range(request.param)]
    for master in masters:
        wait_for("the brokers to listen to %s" % master.name,
                 lambda m=master: len(m.cli("PUBSUB", "CHANNELS", "holdfast:wake:*")) == len(made))
    return made


def call(client, owner):
    """Only who has a name may have a lock in two ways, or twice."""
    assert client.cmd("OWNER", owner) == "OK"
    return client


@pytest.fixture
def people(brokers, clients):
    """people(i): a client; they are spread over the brokers."""
    return lambda i: clients(brokers[i % len(brokers)])


def counter(key, *brokers):
    return sum(int(broker.info()[key]) for broker in brokers)


def waits(broker, n):
    wait_for("%d waiters" % n, lambda: counter("waiters", broker) == n)


def waiting(client, broker, n, *words):
    client.send(*words)
    waits(broker, n)
    return client


def in_line(masters, name):
    """His broker counts him as soon as he waits; others know of him by the masters."""
    wait_for("his place in the line", lambda: all(m.cli("LLEN", "holdfast:{%s}:line" % name) for m in masters))


def read(client, name, *more):
    return client.cmd("LOCK", name, "SHARED", "LEASE", LONG, *more)


# Readers and writers

def test_readers_come_together(people, name):
    tokens = [read(people(i), name)[0] for i in range(5)]
    assert len(set(tokens)) == 5
    assert people(5).cmd("LOCK", name, "LEASE", LONG) is None


def test_kinds_are_counted(people, brokers, name):
    a, keys = people(0), ("locks_held", "locks_held_shared", "locks_held_limited")
    a.cmd("LOCK", name)
    for i in range(2):
        assert read(people(0), name + ":read")
    for i in range(3):
        assert people(0).cmd("LOCK", name + ":permits", "LIMIT", 3)
    assert [counter(key, brokers[0]) for key in keys] == [6, 2, 3]
    assert brokers[0].info()["db0"].startswith("keys=3,") and a.cmd("DBSIZE") == 3
    a.cmd("FORCEUNLOCK", name + ":read")
    a.cmd("FORCEUNLOCK", name + ":permits")
    assert [counter(key, brokers[0]) for key in keys] == [1, 0, 0]


def test_a_writer_is_alone(people, name):
    writer = people(0)
    assert writer.cmd("LOCK", name, "LEASE", LONG)
    for i in range(2):
        assert read(people(i), name) is None
        assert people(i).cmd("LOCK", name) is None
    assert writer.cmd("UNLOCK", name) == 1
    assert read(people(1), name)


def test_a_writer_waits_for_all_readers(people, brokers, name):
    readers = [people(i) for i in range(4)]
    tokens = [read(r, name)[0] for r in readers]
    writer = waiting(people(1), brokers[1 % len(brokers)], 1, "LOCK", name, "WAIT", 0, "LEASE", LONG)
    for r in readers:
        assert writer.silent(0.02)
        assert r.cmd("UNLOCK", name) == 1
    assert writer.recv()[0] > max(tokens)


def test_readers_do_not_overtake_a_waiting_writer(people, brokers, masters, name):
    first, late = people(0), people(1)
    assert read(first, name)
    writer = waiting(people(0), brokers[0], 1, "LOCK", name, "WAIT", 0, "LEASE", LONG)
    in_line(masters, name)
    assert read(late, name) is None  # also at the other broker
    late.send("LOCK", name, "SHARED", "WAIT", 0, "LEASE", LONG)
    assert first.cmd("UNLOCK", name) == 1
    token = writer.recv()[0]
    assert late.silent(0.02)
    assert writer.cmd("UNLOCK", name) == 1
    assert late.recv()[0] > token


def test_waiting_readers_come_together(people, brokers, name):
    writer = people(0)
    assert writer.cmd("LOCK", name, "LEASE", LONG)
    readers = [people(i) for i in range(6)]
    for r in readers:
        r.send("LOCK", name, "SHARED", "WAIT", 0, "LEASE", LONG)
    for broker in brokers:
        waits(broker, 6 // len(brokers))
    assert writer.cmd("UNLOCK", name) == 1
    assert len({r.recv()[0] for r in readers}) == 6


def test_a_reader_enters_again_and_leaves_once(people, name):
    reader, writer = call(people(0), "reader"), people(1)
    token = read(reader, name)[0]
    assert read(reader, name)[0] == token
    assert reader.cmd("HOLDS", name) == 2
    assert reader.cmd("UNLOCK", name) == 0
    assert writer.cmd("LOCK", name) is None
    assert reader.cmd("UNLOCK", name) == 1
    assert writer.cmd("LOCK", name)[0] > token


@pytest.mark.parametrize("kind", [("SHARED",), ("LIMIT", 40)], ids=["readers", "permits"])
def test_many_are_known_at_every_broker(people, name, kind):
    """More than a master lists: each of them can be asked for, renewed and given back elsewhere."""
    here, elsewhere, owners = people(0), people(1), ["owner%d" % i for i in range(40)]
    for owner in owners:
        assert here.cmd("LOCK", name, *kind, "LEASE", LONG, "OWNER", owner)
    assert [elsewhere.cmd("HOLDS", name, "OWNER", owner) for owner in owners] == [1] * 40
    assert elsewhere.cmd("HOLDS", name, "OWNER", "nobody") == 0
    for owner in owners[::13]:
        assert elsewhere.cmd("RENEW", name, "OWNER", owner, "LEASE", LONG)
        assert here.cmd("UNLOCK", name, "OWNER", owner) == 1
        assert here.cmd("HOLDS", name, "OWNER", owner) == 0
    assert elsewhere.cmd("FORCEUNLOCK", name) == 1
    for client in here, elsewhere:  # who had them hears of it
        wait_for("none to be left", lambda c=client: not any(c.cmd("HOLDS", name, "OWNER", o) for o in owners))


def test_a_readers_lease_is_its_own(people, name):
    short, long_ = people(0), people(1)
    assert short.cmd("LOCK", name, "SHARED", "LEASE", 300)
    assert long_.cmd("LOCK", name, "SHARED", "LEASE", 5000)
    writer = people(0)
    writer.send("LOCK", name, "WAIT", 30000)
    wait_for("the end of the short one", lambda: short.cmd("HOLDS", name) == 0)
    assert long_.cmd("HOLDS", name) == 1 and writer.silent(0.01)
    assert long_.cmd("UNLOCK", name) == 1
    assert writer.recv()


def test_watched_readers_are_renewed_and_freed(people, brokers, name):
    readers = [people(i) for i in range(2)]
    for r in readers:
        assert r.cmd("LOCK", name, "SHARED")
    before = counter("renewals_ok", *brokers)
    wait_for("renewals", lambda: counter("renewals_ok", *brokers) >= before + 4)
    writer = people(1)
    assert writer.cmd("LOCK", name) is None
    for r in readers:
        r.cmd("QUIT")
    writer.send("LOCK", name, "WAIT", 0)
    assert writer.recv()


def test_from_exclusive_to_shared(people, name):
    writer, reader = call(people(0), "writer"), people(1)
    token = writer.cmd("LOCK", name, "LEASE", LONG)[0]
    assert read(writer, name)[0] > token
    assert read(reader, name) is None
    assert writer.cmd("UNLOCK", name) == 1  # the exclusive one first
    assert read(reader, name)
    assert people(1).cmd("LOCK", name) is None
    assert writer.cmd("UNLOCK", name) == 1
    assert writer.err("UNLOCK", name).code == "NOTHELD"


def test_from_shared_to_exclusive(people, name):
    reader, other = call(people(0), "reader"), people(1)
    token = read(reader, name)[0]
    assert read(other, name)
    assert reader.cmd("LOCK", name, "LEASE", LONG) is None
    reader.send("LOCK", name, "WAIT", 0, "LEASE", LONG)
    assert reader.silent(0.02)
    assert other.cmd("UNLOCK", name) == 1
    assert reader.recv()[0] > token
    assert read(other, name) is None


def test_two_readers_who_both_want_it_alone(people, brokers, masters, name):
    a, b = call(people(0), "a"), call(people(1), "b")
    assert read(a, name) and read(b, name)
    waiting(a, brokers[0], 1, "LOCK", name, "WAIT", 0, "LEASE", LONG)
    in_line(masters, name)  # else b may be the first
    error = b.err("LOCK", name, "WAIT", 0, "LEASE", LONG)
    assert error.code == "DEADLOCK" and name in str(error)
    assert b.cmd("UNLOCK", name) == 1
    assert a.recv()


def test_a_reader_is_taken_back_at_another_broker(people, name):
    first, again, other = people(0), people(1), people(0)
    token = read(first, name, "OWNER", "app")[0]
    assert read(other, name)
    assert again.cmd("RENEW", name, "OWNER", "app", "LEASE", LONG)[0] >= token
    assert again.cmd("HOLDS", name, "OWNER", "app") == 1
    assert other.cmd("UNLOCK", name) == 1
    assert people(1).cmd("LOCK", name) is None
    assert again.cmd("UNLOCK", name, "OWNER", "app") == 1
    wait_for("the broker that had it to hear of it", lambda: first.cmd("HOLDS", name, "OWNER", "app") == 0)
    assert people(0).cmd("LOCK", name)


# Permits

def permit(client, name, n, *more):
    return client.cmd("LOCK", name, "LIMIT", n, "LEASE", LONG, *more)


def test_as_many_as_there_are_permits(people, name):
    holders = [people(i) for i in range(3)]
    tokens = [permit(h, name, 3)[0] for h in holders]
    assert len(set(tokens)) == 3
    assert permit(people(3), name, 3) is None
    assert holders[1].cmd("UNLOCK", name) == 1
    assert permit(people(4), name, 3)[0] > max(tokens)
    assert permit(people(5), name, 3) is None


def test_waiters_for_permits(people, brokers, name):
    holders = [people(i) for i in range(2)]
    for h in holders:
        assert permit(h, name, 2)
    queue = [people(i) for i in range(6)]
    for q in queue:
        q.send("LOCK", name, "LIMIT", 2, "WAIT", 0, "LEASE", LONG)
    for broker in brokers:
        waits(broker, 6 // len(brokers))
    have = list(holders)
    while have:
        assert have.pop(0).cmd("UNLOCK", name) == 1
        granted = [q for q in queue if not q.silent(0.001)]
        assert len(have) + len(granted) <= 2
        for q in granted:
            assert q.recv()
            queue.remove(q)
            have.append(q)
        if not have and queue:
            have.append(wait_for("a grant", lambda: next((q for q in queue if not q.silent(0.001)), None)))
            assert have[0].recv()
            queue.remove(have[0])
    assert not queue


def test_a_permit_lapses_by_itself(people, name):
    assert people(0).cmd("LOCK", name, "LIMIT", 1, "LEASE", 200)
    late = people(1)
    late.send("LOCK", name, "LIMIT", 1, "WAIT", 0, "LEASE", LONG)
    assert late.recv()


def test_an_owner_has_one_permit(people, name):
    a = people(0)
    token = permit(a, name, 2, "OWNER", "app")[0]
    assert permit(a, name, 2, "OWNER", "app")[0] == token
    assert a.cmd("HOLDS", name, "OWNER", "app") == 2
    assert permit(people(1), name, 2)
    assert permit(people(2), name, 2) is None


def test_a_permit_is_taken_back(people, name):
    token = permit(people(0), name, 1, "OWNER", "app")[0]
    again = people(1)
    assert again.cmd("RENEW", name, "OWNER", "app", "LEASE", LONG)[0] >= token
    assert permit(people(0), name, 1) is None
    assert again.cmd("UNLOCK", name, "OWNER", "app") == 1
    assert permit(people(0), name, 1)


# Kinds do not mix

def test_kinds_do_not_mix(people, brokers, name):
    a, b = people(0), people(1)
    assert permit(a, name, 3)
    for words, is_ in ((("LIMIT", 4), "3 permits"), ((), "3 permits"), (("SHARED",), "3 permits")):
        error = b.err("LOCK", name, "LEASE", LONG, *words)
        assert error.code == "KIND" and is_ in str(error) and name in str(error)
    assert a.cmd("UNLOCK", name) == 1
    assert a.cmd("LOCK", name, "LEASE", LONG)
    assert "an exclusive lock" in str(b.err("LOCK", name, "LIMIT", 3))
    assert a.cmd("UNLOCK", name) == 1
    assert read(a, name)
    assert "a shared lock" in str(b.err("LOCK", name, "LIMIT", 3))
    assert counter("acquires_kind", *brokers) >= 5


@pytest.mark.parametrize("words", [("SHARED", "LIMIT", 2), ("LIMIT", 0), ("LIMIT", 4097), ("LIMIT", "x"), ("LIMIT",),
                                   ("SHARED", "SHARED")])
def test_wrong_words(people, name, words):
    assert people(0).err("LOCK", name, *words).code == "ERR"


def test_lockinfo_tells_the_kind(people, name):
    a, b = people(0), people(1)
    free = as_map(a.cmd("LOCKINFO", name))
    assert (free["kind"], free["limit"], free["holding"]) == (None, None, 0)
    assert permit(a, name, 3) and permit(b, name, 3)
    for client in (a, b):
        info = as_map(client.cmd("LOCKINFO", name))
        assert (info["kind"], info["limit"], info["holding"], len(info["holders"])) == ("limit", 3, 2, 2)
    a.cmd("UNLOCK", name), b.cmd("UNLOCK", name)
    assert read(a, name) and read(b, name)
    info = as_map(a.cmd("LOCKINFO", name))
    assert (info["kind"], info["limit"], info["holding"], len(info["holders"])) == ("shared", None, 2, 2)


def test_forceunlock_frees_all_shares(people, name):
    readers = [people(i) for i in range(20)]
    for r in readers:
        assert read(r, name)
    assert people(0).cmd("FORCEUNLOCK", name) == 1
    assert people(1).cmd("LOCK", name, "WAIT", 5 * LEASE_MS)


def test_nothing_is_left_behind(people, masters, name):
    for words in (("SHARED",), ("LIMIT", 2)):
        a, b = people(0), people(1)
        assert a.cmd("LOCK", name, *words) and b.cmd("LOCK", name, *words)
        assert a.cmd("UNLOCK", name) == 1 and b.cmd("UNLOCK", name) == 1
        for m in masters:
            wait_for("no keys on %s" % m.name, lambda m=m: not [k for k in m.keys(name) if ":gone:" not in k])


# Several names at once

def names_of(name, n):
    return ["%s-%d" % (name, i) for i in range(n)]


def test_all_or_none(people, masters, name):
    a, b, c = people(0), people(1), people(0)
    names = names_of(name, 5)
    tokens, validity = a.cmd("MLOCK", 5, *names, "LEASE", LONG)
    assert len(tokens) == 5 and 0 < validity <= LONG
    for one in names:
        assert b.cmd("LOCK", one) is None
    assert a.cmd("MUNLOCK", 5, *names) == 5
    held = c.cmd("LOCK", names[3], "LEASE", LONG)[0]
    assert b.cmd("MLOCK", 5, *names, "LEASE", LONG) is None
    for one in names[:3] + names[4:]:
        assert a.cmd("LOCK", one, "LEASE", LONG), one  # nothing of it was taken
        assert a.cmd("UNLOCK", one) == 1
    assert held > tokens[3]


def test_mlock_waits_and_holds_nothing_meanwhile(people, brokers, name):
    first, second = names_of(name, 2)
    holder, many, other = people(0), people(1), people(0)
    assert holder.cmd("LOCK", second, "LEASE", LONG)
    waiting(many, brokers[1 % len(brokers)], 1, "MLOCK", 2, first, second, "WAIT", 0, "LEASE", LONG)
    assert other.cmd("LOCK", first, "LEASE", LONG)  # free, although it is waited for
    assert holder.cmd("UNLOCK", second) == 1
    assert many.silent(0.05)
    assert other.cmd("UNLOCK", first) == 1
    tokens, _ = many.recv()
    assert len(tokens) == 2
    assert holder.cmd("LOCK", first) is None and holder.cmd("LOCK", second) is None


def test_mlock_gives_up_in_time(people, name):
    names = names_of(name, 3)
    holder = people(0)
    assert holder.cmd("LOCK", names[1], "LEASE", LONG)
    assert people(1).cmd("MLOCK", 3, *names, "WAIT", 100) is None
    assert people(0).cmd("LOCK", names[0]) and people(1).cmd("LOCK", names[2])


def test_no_deadlock_whatever_the_order(people, name):
    """Each takes the same names in another order, again and again, all at once."""
    names = names_of(name, 3)
    orders = [names, names[::-1], names[1:] + names[:1], [names[1], names[0], names[2]]]
    clients = [people(i) for i in range(4)]
    left = [5] * 4
    for c, order in zip(clients, orders):
        c.send("MLOCK", 3, *order, "WAIT", 0, "LEASE", LONG)
    seen = []
    while any(left):
        for i, c in enumerate(clients):
            if left[i] and not c.silent(0.001):
                seen.append(max(c.recv()[0]))
                assert all(other.silent(0) for j, other in enumerate(clients) if j != i and left[j])
                left[i] -= 1
                c.send("MUNLOCK", 3, *names)
                assert c.recv() == 3
                if left[i]:
                    c.send("MLOCK", 3, *orders[i], "WAIT", 0, "LEASE", LONG)
    assert seen == sorted(seen) and len(seen) == 20


def test_mlock_enters_again_what_it_has(people, name):
    names = names_of(name, 3)
    a = call(people(0), "a")
    token = a.cmd("LOCK", names[1], "LEASE", LONG)[0]
    tokens, _ = a.cmd("MLOCK", 3, *names, "LEASE", LONG)
    assert tokens[1] == token
    assert a.cmd("HOLDS", names[1]) == 2 and a.cmd("HOLDS", names[0]) == 1
    assert a.cmd("MUNLOCK", 3, *names) == 2
    assert a.cmd("HOLDS", names[1]) == 1
    assert people(1).cmd("MLOCK", 3, *names) is None


def test_mlock_of_shares(people, name):
    names = names_of(name, 2)
    a, b = call(people(0), "a"), people(1)
    assert a.cmd("MLOCK", 2, *names, "SHARED", "LEASE", LONG)
    assert b.cmd("MLOCK", 2, *names, "SHARED", "LEASE", LONG)
    assert a.err("LOCK", names[0], "LIMIT", 2).code == "KIND"
    assert people(0).err("MLOCK", 2, *names, "LIMIT", 3).code == "KIND"
    assert a.cmd("MUNLOCK", 2, *names) == 2 and b.cmd("MUNLOCK", 2, *names) == 2
    for i in range(2):
        assert people(i).cmd("MLOCK", 2, *names, "LIMIT", 2, "LEASE", LONG)
    assert people(2).cmd("MLOCK", 2, *names, "LIMIT", 2, "LEASE", LONG) is None


def test_mlock_ends_with_its_connection(people, name):
    names = names_of(name, 4)
    a = people(0)
    assert a.cmd("MLOCK", 4, *names)
    a.cmd("QUIT")
    assert people(1).cmd("MLOCK", 4, *names, "WAIT", 10000)


def test_mlock_of_sixty_four(people, name):
    names = names_of(name, 64)
    a = people(0)
    assert len(a.cmd("MLOCK", 64, *names)[0]) == 64
    assert a.cmd("MUNLOCK", 64, *names) == 64
    assert a.err("MLOCK", 65, *names, name).code == "ERR"


def test_a_grant_that_cannot_be_told_is_given_back(make_broker, make_proxy, masters1, clients, name):
    """One of the names is released by another connection before the reply can leave; giving back the other
    one sends a message to the very connection whose reply is being written."""
    proxy = make_proxy(masters1[0].address)
    here = make_broker({"a": proxy.url}, options={"request_timeout": "10s"}).wait_masters()
    there = make_broker(masters1, options={"request_timeout": "10s"}).wait_masters()
    m1, m2 = names_of(name, 2)
    a, b = clients(here, resp3=True), clients(here)
    a.send("SUBSCRIBE", "lock:" + m2)
    a.recv_push()
    rule = proxy.on("hold_reply", lambda request: request.is_eval and request.mentions(m1))
    a.send("MLOCK", 2, m1, m2, "OWNER", "o", "LEASE", LONG)
    rule.wait()
    b.send("UNLOCK", m1, "OWNER", "o")
    clients(here).cmd("PING")  # it has been read, and waits for the grant
    rule.release()
    assert b.recv() == 1
    assert a.recv() is None
    messages = [a.recv_push()[2].split()[0] for _ in range(2)]
    assert messages == ["granted", "released"]
    assert clients(there).cmd("LOCK", m2, "WAIT", 10000)


def test_a_queue_that_changes_while_it_is_served(make_broker, masters1, clients, name):
    """MLOCK's turn comes in one queue, it goes to wait in another one, and a request that had to wait for it
    comes in where the first queue is being served: the one behind it is then refused twice."""
    broker = make_broker(masters1, options={"request_timeout": "10s"})
    x, y = names_of(name, 2)
    holder, reader, many, late = [clients(broker) for _ in range(4)]
    assert holder.cmd("LOCK", y, "LEASE", LONG)
    call(reader, "reader")
    masters1[0].stop()
    reader.send_raw(encode("LOCK", x, "SHARED", "LEASE", LONG) + encode("LOCK", x, "LIMIT", 2))
    waits(broker, 1)
    waiting(many, broker, 2, "MLOCK", 2, x, y, "WAIT", 0, "LEASE", LONG)
    waiting(late, broker, 3, "LOCK", x, "LIMIT", 2)
    masters1[0].cont()
    assert reader.recv()
    assert reader.recv().code == "KIND" and late.recv().code == "KIND"
    assert reader.cmd("UNLOCK", x) == 1
    assert holder.cmd("UNLOCK", y) == 1
    assert len(many.recv()[0]) == 2


def test_what_follows_a_waiting_mlock_keeps_its_order(two_brokers, clients, name):
    """Said in one write, before it is known that the first one has to wait: the LOCK must not overtake the
    MUNLOCK, which would then release what the LOCK was granted."""
    here, there = two_brokers
    k1, k2 = names_of(name, 2)
    elsewhere, a = clients(there), clients(here)
    assert elsewhere.cmd("LOCK", k2, "LEASE", LONG)
    owner = ("OWNER", "o")
    replies = a.pipeline(("MLOCK", 2, k1, k2, "WAIT", 200, *owner), ("MUNLOCK", 2, k2, k1, *owner),
                         ("LOCK", k1, "LEASE", LONG, *owner))
    assert replies[:2] == [None, 0] and replies[2][0] > 0
    assert a.cmd("HOLDS", k1, *owner) == 1
    assert elsewhere.cmd("LOCK", k1) is None


def test_an_unlock_does_not_wait_for_what_follows_it(make_broker, masters1, clients, name):
    """It waits for the end of a re-entry, and the LOCK of another owner behind it waits for it."""
    broker = make_broker(masters1, options={"request_timeout": "10s"})
    a, b, watcher = clients(broker), clients(broker), clients(broker)
    number = b.cmd("CLIENT", "ID")
    assert a.cmd("LOCK", name, "LEASE", LONG, "OWNER", "o")
    masters1[0].stop()
    b.send("LOCK", name, "OWNER", "o")
    wait_for("the re-entry", lambda: "cmd=lock" in watcher.cmd("CLIENT", "LIST", "ID", number))
    a.send_raw(encode("UNLOCK", name, "OWNER", "o") + encode("LOCK", name, "OWNER", "p", "WAIT", 5000, "LEASE", LONG))
    waits(broker, 1)
    masters1[0].cont()
    assert b.recv()
    assert a.recv() == 0
    assert b.cmd("UNLOCK", name, "OWNER", "o") == 1
    assert a.recv()[0] > 0


@pytest.mark.parametrize("words", [(0,), ("x", "a"), (2, "a"), (2, "a", "a"), (1, "a", "FAIR"), (2, "a", "b", "WAIT"),
                                   (-1, "a")])
def test_wrong_words_of_mlock(people, words):
    assert people(0).err("MLOCK", *words).code == "ERR"


def test_wrong_words_are_named(people):
    a = people(0)
    assert str(a.err("MLOCK", 3, "a", "b", "a")) == "ERR the name 'a' stands there twice"
    assert str(a.err("LOCK", "a", "wait", 1, "WAIT", 2)) == "ERR syntax error: 'WAIT' stands there twice"
    assert str(a.err("LOCK", "a", "FOR", 1)) == "ERR syntax error: unknown option 'FOR'"


def test_munlock_counts_what_was_held(people, name):
    names = names_of(name, 3)
    a = people(0)
    assert a.cmd("LOCK", names[1])
    assert a.cmd("MUNLOCK", 3, *names) == 1
