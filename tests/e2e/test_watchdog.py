"""The watchdog: a watched lock lives as long as its connection, and what becomes of it after that."""

import time

import pytest

from holdfastproc import LEASE_MS
from procs import wait_for
from respclient import Closed

LEASE_S = LEASE_MS / 1000


@pytest.fixture
def holder(one, clients):
    return clients(one.broker)


@pytest.fixture
def rival(one, clients):
    return clients(one.broker)


def pttl(one, name):
    keys = list(one.masters[0].holds(name))
    return max((one.masters[0].cli("PTTL", k) for k in keys), default=-2)


def test_lives_past_its_lease_many_times(one, holder, rival, name):
    token = holder.cmd("LOCK", name)[0]
    assert rival.cmd("LOCK", name, "WAIT", 6 * LEASE_MS) is None
    assert holder.cmd("HOLDS", name) == 1
    assert holder.cmd("RENEW", name)[0] == token
    assert pttl(one, name) > 0


def test_many_locks_are_renewed_together(one, holder, rival, name):
    """150 locks of one holder cost far fewer script calls than 150 per third of the lease."""
    count = 150
    holder.pipeline(*[("LOCK", "%s:%d" % (name, i)) for i in range(count)])

    def evals():
        stats = one.masters[0].cli("INFO", "commandstats")
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in stats.splitlines()
                   if line.startswith(("cmdstat_evalsha:", "cmdstat_eval:")))
    before = evals()
    assert rival.cmd("LOCK", name + ":0", "WAIT", 3 * LEASE_MS) is None
    assert evals() - before < 9 * count / 3
    assert holder.pipeline(*[("UNLOCK", "%s:%d" % (name, i)) for i in range(count)]) == [1] * count


@pytest.mark.parametrize("way", ["quit", "close", "half close"])
def test_free_at_once_after_an_orderly_end(make_broker, masters1, clients, name, way):
    """With a long lease only the release can explain that the lock is free."""
    broker = make_broker(masters1, options={"lease": "30s"})
    holder, rival = clients(broker), clients(broker)
    holder.cmd("OWNER", "app")
    holder.cmd("LOCK", name)
    assert holder.cmd("LOCK", name)[1] > 25000, "whatever its count"
    rival.send("LOCK", name, "WAIT", 20000)
    assert rival.silent(0.2)
    start = time.monotonic()
    if way == "quit":
        assert holder.cmd("QUIT") == "OK"
    elif way == "close":
        holder.close()
    else:
        holder.half_close()
    assert rival.recv()[0] > 0
    assert time.monotonic() - start < 1


def test_every_lock_of_a_connection_is_released(make_broker, masters1, clients, name):
    broker = make_broker(masters1, options={"lease": "30s"})
    holder, rival = clients(broker), clients(broker)
    names = ["%s:%d" % (name, i) for i in range(200)]
    holder.pipeline(*[("LOCK", n) for n in names])
    holder.close()
    granted = rival.pipeline(*[("LOCK", n, "WAIT", 5000) for n in names])
    assert all(isinstance(g, list) for g in granted)


def test_after_a_reset_it_stays_until_the_lease_ends(make_broker, masters1, clients, name):
    broker = make_broker(masters1, options={"lease": "1500ms"})
    holder, rival = clients(broker), clients(broker)
    start = time.monotonic()
    validity = holder.cmd("LOCK", name)[1] / 1000
    holder.reset()
    assert rival.cmd("LOCK", name, "WAIT", 600) is None
    assert rival.cmd("LOCK", name, "WAIT", 10000)[0] > 0
    assert validity <= time.monotonic() - start < 1.5 * 2 + 2


@pytest.mark.parametrize("policy, freed", [("release", True), ("expire", False)])
def test_on_disconnect(make_broker, masters1, clients, name, policy, freed):
    broker = make_broker(masters1, options={"lease": "30s", "on_disconnect": policy})
    holder, rival = clients(broker), clients(broker)
    holder.cmd("LOCK", name)
    if freed:
        holder.reset()
    else:
        holder.cmd("QUIT")
    reply = rival.cmd("LOCK", name, "WAIT", 3000 if freed else 500)
    assert (reply is not None) == freed


def test_a_lock_in_the_way_is_not_granted_to_the_dead(one, clients, rival, holder, name):
    """A waiter that ends by reset while the lock comes free never holds it."""
    holder.cmd("LOCK", name)
    gone = clients(one.broker)
    gone.send("LOCK", name, "OWNER", "ghost", "WAIT", 0)
    assert gone.silent(0.1)
    gone.reset()
    assert holder.cmd("UNLOCK", name) == 1
    assert rival.cmd("LOCK", name, "WAIT", 3000)[0] > 0
    assert rival.cmd("HOLDS", name, "OWNER", "ghost") == 0


def test_unlock_ends_the_renewal(one, holder, name):
    holder.cmd("LOCK", name)
    assert holder.cmd("UNLOCK", name) == 1
    wait_for("the key's end", lambda: pttl(one, name) <= 0, LEASE_S + 2)
    assert holder.cmd("HOLDS", name) == 0


def test_reentry_by_a_second_connection_survives_the_first(one, clients, rival, name):
    """Two connections share a hold; the one that says RENEW last is watched."""
    first, second = clients(one.broker), clients(one.broker)
    first.cmd("LOCK", name, "OWNER", "app")
    second.cmd("RENEW", name, "OWNER", "app")
    first.close()
    assert rival.cmd("LOCK", name, "WAIT", 3 * LEASE_MS) is None
    assert second.cmd("UNLOCK", name, "OWNER", "app") == 1


def test_tell_pushes_each_renewal(one, clients, name):
    client = clients(one.broker, resp3=True)
    token = client.cmd("LOCK", name, "TELL")[0]
    for _ in range(3):
        push = client.wait_push("renewed")
        assert push[1] == name and push[2] == token
        assert 0 < push[3] < LEASE_MS
    assert client.cmd("UNLOCK", name) == 1


def test_without_tell_nothing_is_pushed(one, clients, rival, name):
    """Many clients take a push that they did not ask for as the reply to their next request."""
    client = clients(one.broker, resp3=True)
    client.cmd("LOCK", name)
    assert client.silent(2 * LEASE_S)
    assert rival.cmd("FORCEUNLOCK", name) == 1
    assert client.silent(0.2)
    rival.cmd("LOCK", name)
    assert client.cmd("LOCK", name) is None and not client.pushes


def test_client_tell_is_tell_on_each_lock(one, clients, rival, name):
    client = clients(one.broker, resp3=True)
    quiet, told, later = name + ":quiet", name + ":told", name + ":later"
    client.cmd("LOCK", quiet, "WAIT", 5000)
    assert client.cmd("CLIENT", "TELL", "ON") == "OK"
    tokens = {told: client.cmd("LOCK", told)[0], later: client.cmd("MLOCK", 1, later)[0][0]}
    assert client.cmd("CLIENT", "TELL", "off") == "OK"
    assert str(client.err("CLIENT", "TELL", "x")) == "ERR syntax error"
    rival.cmd("FORCEUNLOCK", quiet)
    for one_name in (told, later):
        rival.cmd("FORCEUNLOCK", one_name)
        assert client.wait_push("lost") == ["lost", one_name, tokens[one_name], "forced"]
    client.cmd("CLIENT", "TELL", "ON")
    assert client.cmd("RESET") == "RESET"
    client.cmd("HELLO", 3)
    client.cmd("LOCK", quiet, "WAIT", 5000)
    rival.cmd("FORCEUNLOCK", quiet)
    assert client.silent(0.2)


def test_tell_stays_with_the_connection_that_said_it(one, clients, rival, name):
    """Whoever takes the lock back may be a client that takes a push for a reply."""
    first, second, third = (clients(one.broker, resp3=True) for _ in range(3))
    third.cmd("CLIENT", "TELL", "ON")
    first.cmd("LOCK", name, "OWNER", "app", "TELL")
    second.cmd("RENEW", name, "OWNER", "app")
    assert first.wait_push("lost")[3] == "moved"
    assert second.silent(2 * LEASE_S)
    third.cmd("RENEW", name, "OWNER", "app")
    assert third.wait_push("renewed")[1] == name
    rival.cmd("FORCEUNLOCK", name)
    assert third.wait_push("lost")[3] == "forced"
    assert second.cmd("PING") == "PONG" and not second.pushes


def test_subscribe_does_not_ask_for_pushes(one, clients, rival, name):
    client = clients(one.broker, resp3=True)
    client.send("SUBSCRIBE", "lock:" + name)
    assert client.recv_push()[0] == "subscribe"
    client.cmd("LOCK", name)
    rival.cmd("FORCEUNLOCK", name)
    rival.cmd("LOCK", name, "WAIT", 5000)
    kinds = [client.recv_push() for _ in range(3)]
    assert [k[0] for k in kinds] == ["message"] * 3 and kinds[1][2].startswith("lost ")


# A hold that is lost

def lose(one, name):
    """Takes the lock's keys away on the master, as an operator's mistake does."""
    master = one.masters[0]
    for key in master.keys(name):
        master.cli("DEL", key)


def test_lost_is_pushed_to_a_resp3_holder(one, clients, name):
    client = clients(one.broker, resp3=True, tell=True)
    token = client.cmd("LOCK", name)[0]
    lose(one, name)
    push = client.wait_push("lost")
    assert push[1] == name and push[2] == token and push[3]
    assert client.cmd("HOLDS", name) == 0


def test_lost_is_published_on_the_channel(one, clients, holder, name):
    listener = clients(one.broker)
    assert listener.cmd("SUBSCRIBE", "lost") == ["subscribe", "lost", 1]
    holder.cmd("LOCK", name)
    lose(one, name)
    until = time.monotonic() + 10
    while True:
        message = listener.recv(max(0.01, until - time.monotonic()))
        assert message[:2] == ["message", "lost"]
        if name in message[2]:
            break


def test_lost_is_logged(one, holder, name):
    mark = one.broker.log_size()
    holder.cmd("LOCK", name)
    lose(one, name)
    one.broker.wait_log("lost", since=mark)


def test_lost_by_forceunlock_is_told(one, clients, rival, name):
    client = clients(one.broker, resp3=True, tell=True)
    token = client.cmd("LOCK", name)[0]
    assert rival.cmd("FORCEUNLOCK", name) == 1
    push = client.wait_push("lost")
    assert push[1:3] == [name, token]
    assert rival.cmd("LOCK", name)[0] > token


def test_on_lost_close_ends_the_connection(make_broker, masters1, clients, name):
    broker = make_broker(masters1, options={"on_lost": "close"})
    client = clients(broker)
    client.cmd("LOCK", name)
    for key in masters1[0].keys(name):
        masters1[0].cli("DEL", key)
    client.read_to_end()
    other = clients(broker)
    assert other.cmd("PING") == "PONG"


def test_told_before_the_validity_ends_when_the_master_stands_still(broker1, masters1, clients, name):
    client = clients(broker1, resp3=True, tell=True)
    client.cmd("LOCK", name)
    token, validity = client.cmd("RENEW", name)
    start = time.monotonic()
    masters1[0].stop()
    push = client.wait_push("lost")
    assert push[1:3] == [name, token]
    # The last renewal may be later than our RENEW: at most one lease, plus slack of a loaded machine.
    assert time.monotonic() - start < validity / 1000 + LEASE_S + 1
    masters1[0].cont()


def test_jeopardy_and_safe(make_broker, masters1, clients, name):
    broker = make_broker(masters1, options={"lease": "6s"})
    client = clients(broker, resp3=True, tell=True)
    client.cmd("LOCK", name)
    masters1[0].stop()
    push = client.wait_push("jeopardy", 8)
    assert push[1] == name
    masters1[0].cont()
    assert client.wait_push("safe", 6)[1] == name
    assert client.cmd("HOLDS", name) == 1


def test_the_broker_stopped_past_the_lease_reports_its_holds_lost(broker1, clients, name):
    """SIGSTOP for three leases: no late OK, the hold is reported lost, the next token is larger."""
    client, asker = clients(broker1, resp3=True, tell=True), clients(broker1)
    token = client.cmd("LOCK", name)[0]
    broker1.stop()
    asker.send("HOLDS", name, "OWNER", "nobody")
    assert asker.silent(3 * LEASE_S)
    broker1.cont()
    asker.recv()
    assert client.wait_push("lost")[1:3] == [name, token]
    assert client.cmd("HOLDS", name) == 0
    assert asker.cmd("LOCK", name)[0] > token


def test_a_request_in_a_stopped_broker_is_not_granted_late(broker1, masters1, clients, name):
    """The master answers while the broker stands still past the lease: that answer is no grant."""
    client = clients(broker1)
    masters1[0].stop()
    client.send("LOCK", name, "LEASE", 300)
    assert client.silent(0.05)
    broker1.stop()
    masters1[0].cont()
    assert client.silent(1.0)
    broker1.cont()
    reply = client.recv()
    if isinstance(reply, list):
        # Only by a fresh try: then it holds now.
        assert client.cmd("HOLDS", name) == 1


def test_a_stopped_client_is_renewed_until_maxhold(one, clients, rival, name):
    """A client that hangs (its connection lives) holds on, MAXHOLD bounds it."""
    client = clients(one.broker)
    client.cmd("LOCK", name, "MAXHOLD", 3 * LEASE_MS)
    assert rival.cmd("LOCK", name, "WAIT", 2 * LEASE_MS) is None
    assert rival.cmd("LOCK", name, "WAIT", 10000)[0] > 0
    assert client.err("UNLOCK", name).code == "NOTHELD"


def test_killing_the_broker_closes_its_clients(broker1, clients):
    client = clients(broker1)
    assert client.cmd("PING") == "PONG"
    broker1.kill()
    with pytest.raises(Closed):
        client.cmd("PING")
