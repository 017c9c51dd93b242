"""PUBLISH: what clients and their scripts publish reaches the subscribers at all brokers of the same masters, once."""

import pytest

from procs import wait_for

RELEASE = """if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[2])
return 1"""
LISTENING = "holdfast:said:0"


@pytest.fixture(params=["two_brokers", "two_brokers3"], ids=["one", "three"])
def brokers(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(params=[False, True], ids=["resp2", "resp3"])
def resp3(request):
    return request.param


def messages(listener):
    """What comes until the message "end"."""
    got = []
    while True:
        message = listener.recv_push() if listener.resp3 else listener.recv()
        if message[-1] == "end":
            return got
        got.append(message)


@pytest.fixture
def listen(clients):
    def subscribe(broker, *channels, command="SUBSCRIBE", resp3=False):
        listener = clients(broker, resp3=resp3)
        listener.resp3 = resp3
        for channel in channels:
            listener.send(command, channel)
            assert (listener.recv_push() if resp3 else listener.recv())[0] == command.lower()
        return listener
    return subscribe


def test_each_subscriber_at_each_broker_hears_it_once(brokers, clients, listen, resp3):
    here, there = [listen(broker, "c", resp3=resp3) for broker in brokers]
    pattern = listen(brokers[1], "c*", command="PSUBSCRIBE", resp3=resp3)
    publisher = clients(brokers[0])
    for i in range(50):
        assert publisher.cmd("PUBLISH", "c", "m%d" % i) == 1       # those of this broker
        publisher.cmd("PUBLISH", "d", "of no interest")
    publisher.cmd("PUBLISH", "c", "end")
    wanted = [["message", "c", "m%d" % i] for i in range(50)]
    assert messages(here) == wanted
    assert messages(there) == wanted
    assert messages(pattern) == [["pmessage", "c*", "c", "m%d" % i] for i in range(50)]


def test_any_bytes(brokers, clients, listen):
    channel, text = b"c \r\n\0\xff", b"\0 1 2 \r\n$3"
    listener = brokers[1].connect(raw=True)
    listener.send("SUBSCRIBE", channel)
    assert listener.recv() == [b"subscribe", channel, 1]
    clients(brokers[0]).cmd("PUBLISH", channel, text)
    assert listener.recv() == [b"message", channel, text]
    clients(brokers[0]).cmd("PUBLISH", channel, b"")
    assert listener.recv() == [b"message", channel, b""]
    listener.close()


def test_a_waiter_is_woken_by_the_release_at_another_broker(brokers, clients, listen, name):
    holder, waiter = clients(brokers[0]), clients(brokers[1])
    assert holder.cmd("SET", name, "v", "NX", "PX", 30000) == "OK"
    assert waiter.cmd("SET", name, "w", "NX", "PX", 30000) is None
    ear = listen(brokers[1], "freed:" + name)
    assert holder.cmd("EVAL", RELEASE, 2, name, "freed:" + name, "other", "x") == 0      # publishes nothing
    assert holder.cmd("EVAL", RELEASE, 2, name, "freed:" + name, "v", "free") == 1
    assert ear.recv() == ["message", "freed:" + name, "free"]
    assert waiter.cmd("SET", name, "w", "NX", "PX", 30000) == "OK"


def test_in_a_transaction(brokers, clients, listen, name):
    ear = listen(brokers[1], "c")
    client = clients(brokers[0])
    for words in (("MULTI",), ("SET", name, "v", "NX"), ("PUBLISH", "c", "in one step")):
        client.cmd(*words)
    assert client.cmd("EXEC") == ["OK", 0]
    assert ear.recv() == ["message", "c", "in one step"]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_master_that_is_gone_loses_and_doubles_nothing(two_brokers3, masters3, clients, listen, how):
    ear = listen(two_brokers3[1], "c")
    publisher = clients(two_brokers3[0])
    for i in range(30):
        publisher.cmd("PUBLISH", "c", "m%d" % i)
        if i == 10:
            getattr(masters3[0], how)()
    publisher.cmd("PUBLISH", "c", "end")
    assert sorted(m[-1] for m in messages(ear)) == sorted("m%d" % i for i in range(30))
    if how == "stop":
        masters3[0].cont()
    else:
        masters3[0].restart()
    for broker in two_brokers3:
        broker.wait_masters()
    publisher.cmd("PUBLISH", "c", "end")
    assert messages(ear) == []


def test_a_broker_listens_again_when_a_master_is_back(two_brokers, masters1, clients, listen):
    ear = listen(two_brokers[1], "c")
    masters1[0].restart()
    publisher = clients(two_brokers[0])

    def is_heard():
        publisher.cmd("PUBLISH", "c", "again")
        try:
            return ear.recv(deadline_s=0.2) == ["message", "c", "again"]
        except AssertionError:
            return False
    wait_for("a message", is_heard, 20)


def test_who_does_not_use_it_pays_nothing(two_brokers, masters1, clients, listen):
    def listeners():
        return masters1[0].cli("PUBSUB", "NUMSUB", LISTENING)[1]
    listen(two_brokers[0], "lost", "lock:x")
    listen(two_brokers[0], "lock:*", command="PSUBSCRIBE")
    assert listeners() == 0
    listen(two_brokers[0], "lost", "c")
    assert listeners() == 1                     # it has been there when SUBSCRIBE was answered


def test_subscribe_is_answered_without_masters(two_brokers, masters1, clients, listen):
    masters1[0].stop()
    try:
        ear = listen(two_brokers[0], "c")
    finally:
        masters1[0].cont()
    clients(two_brokers[0]).cmd("PUBLISH", "c", "m")
    assert ear.recv() == ["message", "c", "m"]


def test_a_connection_that_ends_while_it_waits_to_subscribe(two_brokers, masters1, clients, listen):
    masters1[0].stop()
    try:
        client = clients(two_brokers[0])
        client.send("SUBSCRIBE", "c")
        client.close()
        wait_for("its end", lambda: two_brokers[0].info()["connected_clients"] == "1")
    finally:
        masters1[0].cont()


@pytest.mark.parametrize("channel", ["lost", "lock:orders:1"])
def test_nobody_fakes_what_holdfast_says(two_brokers, clients, listen, channel):
    ears = [listen(broker, channel) for broker in two_brokers]
    client = clients(two_brokers[0])
    assert "holdfast's own" in str(client.err("PUBLISH", channel, "granted 1"))
    assert client.cmd("EVAL", "return redis.call('publish', KEYS[1], ARGV[1])", 1, channel, "granted 1") == 0
    client.cmd("MULTI")
    assert "holdfast's own" in str(client.err("PUBLISH", channel, "granted 1"))
    assert client.err("EXEC").code == "EXECABORT"
    two_brokers[0].wait_log("drop-in: a message to '%s' was not published" % channel, since=0)
    for i, ear in enumerate(ears):
        ear.cmd("SUBSCRIBE", "c%d" % i)
        client.cmd("PUBLISH", "c%d" % i, "end")
        ear.resp3 = False
        assert messages(ear) == []


def test_rights(make_broker, masters1, clients, listen):
    options = ["users.default=nopass", "users.default.names=orders:*", "users.default.allow=drop-in"]
    broker = make_broker(masters1, ready=False, args=[word for option in options for word in ("-o", option)])
    broker.wait_log("server: ready: 1 of 1 masters", since=0)
    client = clients(broker)
    ear = listen(broker, "orders:freed", "lock:orders:1")
    assert client.cmd("PUBLISH", "orders:freed", "jobs:1") == 1
    assert ear.recv() == ["message", "orders:freed", "jobs:1"]
    for words in (("PUBLISH", "jobs:freed", "m"), ("SUBSCRIBE", "orders:freed", "jobs:freed")):
        assert "may not use the channel 'jobs:freed'" in str(client.err(*words))
    assert "may not use the channel 'lost'" in str(client.err("PUBLISH", "lost", "m"))
    assert "may not use the channel" in str(client.err("PSUBSCRIBE", "orders:*"))
    script = "redis.call('publish', ARGV[1], 'by a script') return 1"
    assert client.cmd("EVAL", script, 0, "jobs:freed") == 1
    broker.wait_log("a message to 'jobs:freed' was not published: the names of this user do not cover that channel, user=default", since=0)
    assert client.cmd("EVAL", script, 0, "orders:freed") == 1
    assert ear.recv() == ["message", "orders:freed", "by a script"]


def test_the_class(make_broker, masters1, clients):
    client = clients(make_broker(masters1, args=["-o", "users.default=nopass", "-o", "users.default.allow=lock inspect"]))
    assert "it lacks the class drop-in" in str(client.err("PUBLISH", "c", "m"))


def test_turned_off(make_broker, masters1, clients, listen):
    broker = make_broker(masters1, args=["-o", "drop_in.enabled=no"])
    assert str(clients(broker).err("PUBLISH", "c", "m")).startswith("ERR unknown command 'PUBLISH'")
    listen(broker, "c")
    assert masters1[0].cli("PUBSUB", "NUMSUB", LISTENING)[1] == 0
