"""Three masters and a quorum of two: what may fail, and what is left behind."""

import re
import time

import pytest

from holdfastproc import LEASE_MS
from procs import wait_for
from respclient import as_map, flat

LEASE_S = LEASE_MS / 1000


def owners_on(master, name):
    return [hold["owner"] for hold in master.holds(name).values()]


def test_a_grant_and_a_refusal(three, clients, name):
    a, b = clients(three.broker), clients(three.broker)
    token, validity = a.cmd("LOCK", name)
    assert token > 0 and 0 < validity < LEASE_MS
    assert b.cmd("LOCK", name) is None
    assert a.cmd("UNLOCK", name) == 1
    assert b.cmd("LOCK", name)[0] > token


def test_the_hold_stands_on_every_master(three, clients, name):
    """The quorum answers; the rest is topped up."""
    clients(three.broker).cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    for master in three.masters:
        wait_for("the hold on %s" % master.name, lambda m=master: owners_on(m, name))
        assert owners_on(master, name) == ["app"]


def in_the_way(master, name, ms):
    """Somebody's hold that nobody else has, for so long."""
    key = "holdfast:{%s}" % name
    master.cli("SET", key, "op=else.1 token=1 count=1 seq=0 lease=%d end=0 taken=0 owner=else" % ms, "PX", ms)
    return key


def test_a_hold_that_missed_a_master_gets_there(three, clients, name):
    """As after a release that reaches one master late: a lock that nobody renews is completed, too."""
    late = three.masters[2]
    key = in_the_way(late, name, 5)
    clients(three.broker).cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    wait_for("the hold on %s" % late.name, lambda: owners_on(late, name) == ["app"])
    assert 0 < late.cli("PTTL", key) <= 20000


def test_a_hold_that_could_not_reach_a_master_gets_there(make_redis, make_proxy, make_broker, clients, name):
    """A lock that nobody renews, too: it stands on a bare majority no longer than it must."""
    masters = [make_redis(n) for n in "abc"]
    proxy = make_proxy(masters[2].address)
    broker = make_broker({"a": masters[0].url, "b": masters[1].url, "c": proxy.url})
    proxy.refuse()
    proxy.cut_all()
    broker.wait_masters(2)
    clients(broker).cmd("LOCK", name, "OWNER", "app", "LEASE", 9000)
    proxy.refuse(False)
    wait_for("the hold on c", lambda: owners_on(masters[2], name) == ["app"], 8)


def test_a_renewal_by_the_client_completes_the_hold(three, clients, name):
    late = three.masters[1]
    key = in_the_way(late, name, 60000)
    client = clients(three.broker)
    token = client.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)[0]
    late.cli("DEL", key)
    assert client.cmd("RENEW", name, "OWNER", "app", "LEASE", 20000)[0] == token
    wait_for("the hold on %s" % late.name, lambda: owners_on(late, name) == ["app"])
    assert late.hold(key)["token"] == str(token)


def test_unlock_frees_every_master(three, clients, name):
    client = clients(three.broker)
    client.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    assert client.cmd("UNLOCK", name, "OWNER", "app") == 1
    for master in three.masters:
        wait_for("the release on %s" % master.name, lambda m=master: not owners_on(m, name))


def test_tokens_rise(three, clients, name):
    a, b = clients(three.broker), clients(three.broker)
    tokens = []
    for client in [a, b] * 15:
        tokens.append(client.cmd("LOCK", name, "WAIT", 2000)[0])
        client.cmd("UNLOCK", name)
    assert tokens == sorted(set(tokens))


def test_one_script_per_master_for_lock_and_unlock(broker3, masters3, clients, name):
    def evals(master):
        stats = master.cli("INFO", "commandstats")
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in stats.splitlines()
                   if line.startswith(("cmdstat_evalsha:", "cmdstat_eval:")))
    client = clients(broker3)
    client.cmd("LOCK", name, "LEASE", 5000)
    client.cmd("UNLOCK", name)
    before = [evals(m) for m in masters3]
    for _ in range(10):
        client.cmd("LOCK", name, "LEASE", 5000)
        client.cmd("UNLOCK", name)
    wait_for("the last master", lambda: all(evals(m) - b >= 20 for m, b in zip(masters3, before)))
    assert all(evals(m) - b <= 24 for m, b in zip(masters3, before))


def test_reentry(three, clients, name):
    client = clients(three.broker)
    client.cmd("OWNER", "app")
    token = client.cmd("LOCK", name)[0]
    assert client.cmd("LOCK", name)[0] == token
    assert client.cmd("HOLDS", name) == 2
    assert [client.cmd("UNLOCK", name), client.cmd("UNLOCK", name)] == [0, 1]
    assert client.err("UNLOCK", name).code == "NOTHELD"


# More masters

def test_growing_from_one_master_to_three(make_broker, masters3, clients, name):
    """As holdfastd(8) tells it: the old brokers end first, one with the new list adopts the old master."""
    options = {"max_lease": "2s", "quarantine": "auto"}
    old = make_broker(masters3[:1], options=options, ready=False)
    with old.connect() as admin:
        wait_for("the old master's quarantine", lambda: admin.cmd("MASTER", "a", "TRUST") == "OK")
        old.wait_quorum()
        holder = clients(old)
        token = holder.cmd("LOCK", name, "OWNER", "before", "LEASE", 2000)[0]
        assert admin.cmd("PAUSE") == "OK"
        assert clients(old).err("LOCK", "other").code == "PAUSED"
    old.close()
    new = make_broker(masters3, options=options, ready=False)
    client = clients(new)
    wait_for("a is refused", lambda: as_map(client.cmd("MASTERS")[0])["state"] == "refused")
    assert client.err("LOCK", name).code == "NOQUORUM"
    assert client.cmd("MASTER", "a", "ADOPT") == "OK"
    new.wait_masters(3)
    assert client.cmd("LOCK", name, "OWNER", "after", "WAIT", 10000)[0] > token
    second = make_broker(masters3, options=options).wait_masters(3)
    assert clients(second).cmd("LOCK", name) is None
    left_behind = make_broker(masters3[:1], options=options, ready=False)
    stranger = clients(left_behind)
    wait_for("who has the old list is refused", lambda: as_map(stranger.cmd("MASTERS")[0])["state"] == "refused")
    assert stranger.err("LOCK", name).code == "NOQUORUM"


# One master out

def out_stopped(master):
    master.stop()


def out_killed(master):
    master.kill()


@pytest.mark.parametrize("harm", [out_stopped, out_killed], ids=["stopped", "killed"])
def test_one_master_out_harms_nobody(broker3, masters3, clients, name, harm):
    holder, other = clients(broker3), clients(broker3)
    token = holder.cmd("LOCK", name)[0]
    harm(masters3[1])
    assert other.cmd("LOCK", name, "WAIT", 4 * LEASE_MS) is None
    assert holder.cmd("HOLDS", name) == 1
    assert holder.cmd("LOCK", name + "2")[0] > 0
    assert holder.cmd("UNLOCK", name) == 1
    assert other.cmd("LOCK", name)[0] > token


@pytest.mark.parametrize("harm", [out_stopped, out_killed], ids=["stopped", "killed"])
def test_one_master_out_costs_no_time(broker3, masters3, clients, name, harm):
    client = clients(broker3)
    harm(masters3[2])
    client.cmd("LOCK", name)
    client.cmd("UNLOCK", name)
    start = time.monotonic()
    for i in range(20):
        client.cmd("LOCK", "%s:%d" % (name, i), "LEASE", 5000)
    # 20 times request_timeout would be 3 s.
    assert time.monotonic() - start < 1.5


def test_a_master_restarted_empty_gets_the_hold_again(broker3, masters3, clients, name):
    holder, other = clients(broker3), clients(broker3)
    token = holder.cmd("LOCK", name)[0]
    masters3[0].restart()
    wait_for("the hold on the new master", lambda: owners_on(masters3[0], name))
    assert other.cmd("LOCK", name) is None
    assert holder.cmd("RENEW", name)[0] == token


def test_every_master_restarted_in_turn(broker3, masters3, clients, name):
    """Top-up and re-planting carry a watched lock through the restart of every master, one by one."""
    holder, other = clients(broker3, resp3=True, tell=True), clients(broker3)
    token = holder.cmd("LOCK", name)[0]
    for master in masters3:
        master.restart()
        wait_for("the hold on %s" % master.name, lambda m=master: owners_on(m, name))
        assert other.cmd("LOCK", name) is None
    assert not [p for p in holder.pushes if p[0] == "lost"]
    assert holder.cmd("RENEW", name)[0] == token
    assert holder.cmd("UNLOCK", name) == 1
    assert other.cmd("LOCK", name)[0] > token


def test_stopped_killed_and_restarted_at_once(broker3, masters3, clients, name):
    """One stands still and comes back, then another is killed and comes back empty: the lock stays."""
    holder, other = clients(broker3), clients(broker3)
    token = holder.cmd("LOCK", name)[0]
    masters3[0].stop()
    assert other.cmd("LOCK", name, "WAIT", 2 * LEASE_MS) is None
    masters3[0].cont()
    wait_for("the hold on a", lambda: owners_on(masters3[0], name))
    masters3[1].kill()
    assert other.cmd("LOCK", name, "WAIT", 2 * LEASE_MS) is None
    masters3[1].start()
    wait_for("the hold on b", lambda: owners_on(masters3[1], name))
    assert holder.cmd("RENEW", name)[0] == token


def test_a_stopped_master_is_stalled_until_it_answers(make_broker, masters3, clients):
    """Also while the broker connects to it anew, which its kernel lets it; and when it is gone it is down."""
    broker = make_broker(masters3, args=["-vv"]).wait_masters()
    client = clients(broker)

    def state():
        return as_map(client.cmd("MASTERS")[1])["state"]

    def figure():
        return re.search(r"name=b,.*state=(\w+),", broker.info()["master1"]).group(1)
    masters3[1].stop()
    wait_for("b is stalled", lambda: state() == "stalled")
    mark, states, figures = broker.log_size(), set(), set()

    def connected_twice():
        states.add(state())
        figures.add(figure())
        return broker.log_text(mark).count("master b: state connecting -> greeting") >= 2
    wait_for("two connections more", connected_twice, 30)
    assert states == {"stalled"} and figures == {"stalled"}
    assert "b: no answer: stalled" in ": ".join(flat(client.cmd("LOCKINFO", "x")))
    masters3[1].cont()
    wait_for("b is active", lambda: state() == "active")
    masters3[1].stop()
    wait_for("b is stalled again", lambda: state() == "stalled")
    masters3[1].kill()
    wait_for("b is down", lambda: state() == "down")


# Two masters out

@pytest.mark.parametrize("harm", [out_stopped, out_killed], ids=["stopped", "killed"])
def test_two_masters_out_is_noquorum_and_names_them(broker3, masters3, clients, name, harm):
    client = clients(broker3)
    harm(masters3[1])
    harm(masters3[2])
    start = time.monotonic()
    err = client.err("LOCK", name)
    assert time.monotonic() - start < 2
    assert err.code == "NOQUORUM"
    assert "1 of 3" in str(err) and str(err).endswith("; '%s' was not taken" % name)
    assert "b:" in str(err) and "c:" in str(err) and "a:" not in str(err)
    assert client.cmd("PING") == "PONG"


def test_all_masters_out(broker3, masters3, clients, name):
    client = clients(broker3)
    for master in masters3:
        master.kill()
    err = client.err("LOCK", name)
    assert err.code == "NOQUORUM" and "0 of 3" in str(err)
    for master in masters3:
        master.start()
    broker3.wait_quorum()
    assert client.cmd("LOCK", name)[0] > 0


def test_a_failed_acquire_is_undone_everywhere(broker3, masters3, clients, name):
    """b and c get the request when they wake; the undo that follows must free a, b and c."""
    client = clients(broker3)
    masters3[1].stop()
    masters3[2].stop()
    assert client.err("LOCK", name, "OWNER", "ghost", "LEASE", 50000).code == "NOQUORUM"
    masters3[1].cont()
    masters3[2].cont()
    for master in masters3:
        wait_for("the undo on %s" % master.name, lambda m=master: "ghost" not in owners_on(m, name))
    broker3.wait_quorum()
    other = clients(broker3)
    assert other.cmd("LOCK", name, "OWNER", "next", "WAIT", 3000)[0] > 0
    assert other.cmd("HOLDS", name, "OWNER", "ghost") == 0


def test_a_failed_acquire_of_a_reentered_lock_keeps_the_hold(broker3, masters3, clients, name):
    client = clients(broker3)
    client.cmd("OWNER", "app")
    token = client.cmd("LOCK", name, "LEASE", 50000)[0]
    masters3[1].stop()
    masters3[2].stop()
    assert client.err("LOCK", name, "LEASE", 50000).code == "NOQUORUM"
    masters3[1].cont()
    masters3[2].cont()
    broker3.wait_quorum()
    assert client.cmd("HOLDS", name) == 1
    assert client.cmd("LOCK", name, "LEASE", 50000)[0] == token
    assert client.cmd("UNLOCK", name) == 0
    assert client.cmd("UNLOCK", name) == 1


def test_two_masters_out_past_the_lease_loses_the_hold(broker3, masters3, clients, name):
    holder = clients(broker3, resp3=True, tell=True)
    token = holder.cmd("LOCK", name)[0]
    masters3[0].stop()
    masters3[1].stop()
    push = holder.wait_push("lost")
    assert push[1:3] == [name, token]
    masters3[0].cont()
    masters3[1].cont()
    broker3.wait_quorum()
    other = clients(broker3)
    assert other.cmd("LOCK", name, "WAIT", 5000)[0] > token
    assert holder.cmd("HOLDS", name) == 0


def test_a_short_outage_does_not_lose_the_hold(make_broker, masters3, clients, name):
    broker = make_broker(masters3, options={"lease": "5s"})
    holder = clients(broker, resp3=True, tell=True)
    token = holder.cmd("LOCK", name)[0]
    masters3[0].stop()
    masters3[1].stop()
    assert holder.wait_push("jeopardy", 6)[1] == name
    masters3[0].cont()
    masters3[1].cont()
    assert holder.wait_push("safe", 5)[1] == name
    assert holder.cmd("RENEW", name)[0] == token


def test_a_waiter_outlives_an_outage(broker3, masters3, clients, name):
    holder, waiter = clients(broker3), clients(broker3)
    holder.cmd("LOCK", name, "LEASE", 600)
    waiter.send("LOCK", name, "WAIT", 30000)
    assert waiter.silent(0.1)
    masters3[0].stop()
    masters3[1].stop()
    assert waiter.silent(1.0)
    masters3[0].cont()
    masters3[1].cont()
    reply = waiter.recv(15)
    assert isinstance(reply, list), reply


# Starting without masters

def test_starts_without_its_masters(make_redis, make_broker, clients, name):
    masters = [make_redis(n) for n in "abc"]
    for master in masters:
        master.kill()
    broker = make_broker(masters, ready=False)
    client = clients(broker)
    assert client.cmd("PING") == "PONG"
    assert client.err("LOCK", name).code == "NOQUORUM"
    masters[0].start()
    masters[2].start()
    broker.wait_quorum()
    assert client.cmd("LOCK", name)[0] > 0


def test_masters_tells_the_state(broker3, masters3, clients):
    client = clients(broker3)
    reply = client.cmd("MASTERS")
    assert len(reply) == 3
    words = flat(reply)
    for master in masters3:
        assert any(master.path in word for word in words)
    masters3[2].kill()

    def state_changed():
        now = client.cmd("MASTERS")
        return flat(now)[:4] and flat(now[2]) != flat(reply[2]) and "refused" in " ".join(flat(now[2])).lower()
    wait_for("MASTERS to tell of the refused connection", state_changed)


def test_lockinfo_tells_what_each_master_says(three, clients, name):
    client = clients(three.broker)
    client.cmd("LOCK", name, "OWNER", "app", "LEASE", 20000)
    info = as_map(client.cmd("LOCKINFO", name))
    words = " ".join(flat(info["masters"]))
    assert all(master.name in words for master in three.masters)
