"""The proxy itself, proven against a plain redis-server: a test tool that lies is worse than none."""

import time

import pytest

from respclient import Closed, NoReply, RespClient, RespError

pytestmark = pytest.mark.no_daemon


@pytest.fixture
def redis(make_redis):
    return make_redis("a")


@pytest.fixture(params=["unix", "tcp"])
def proxy(request, redis, make_proxy):
    return make_proxy(redis.address, tcp=request.param == "tcp")


@pytest.fixture
def client(proxy):
    with RespClient(proxy.address) as made:
        yield made


def incr(request):
    return request.name == "incr"


def test_passes_everything(client, redis):
    assert client.cmd("PING") == "PONG"
    assert client.cmd("SET", "k", "v" * 100000) == "OK"
    assert client.cmd("GET", "k") == "v" * 100000
    assert client.pipeline(*[("INCR", "n")] * 500) == list(range(1, 501))
    assert redis.cli("GET", "n") == "500"


def test_inline_and_errors_pass(client):
    client.send_raw(b"PING\r\n")
    assert client.recv() == "PONG"
    assert client.err("NOSUCH").code == "ERR"


def test_delay_request(client, proxy, redis):
    rule = proxy.on("delay_request", incr, value=0.3)
    start = time.monotonic()
    client.send("INCR", "n")
    rule.wait()
    assert redis.cli("GET", "n") is None
    assert client.recv() == 1
    assert time.monotonic() - start >= 0.3


def test_delayed_request_arrives_after_the_sender_has_gone(client, proxy, redis):
    rule = proxy.on("hold_request", incr)
    client.send("INCR", "n")
    rule.wait()
    client.close()
    assert redis.cli("GET", "n") is None
    rule.release()
    until = time.monotonic() + 5
    while redis.cli("GET", "n") != "1":
        assert time.monotonic() < until


def test_hold_and_delay_reply(client, proxy, redis):
    rule = proxy.on("hold_reply", incr)
    client.send("INCR", "n")
    rule.wait()
    assert client.silent(0.1)
    assert redis.cli("GET", "n") == "1"
    rule.release()
    assert client.recv() == 1
    proxy.on("delay_reply", incr, value=0.2)
    start = time.monotonic()
    assert client.cmd("INCR", "n") == 2
    assert time.monotonic() - start >= 0.2


def test_drop_request_takes_the_rest_along(client, proxy, redis):
    rule = proxy.on("drop_request", incr)
    client.send("INCR", "n")
    client.send("SET", "later", "1")
    rule.wait()
    with pytest.raises(NoReply):
        client.recv(0.2)
    assert redis.keys() == []
    with RespClient(proxy.address) as other:
        assert other.cmd("PING") == "PONG"


def test_drop_reply_has_run(client, proxy, redis):
    proxy.on("drop_reply", incr)
    client.send("INCR", "n")
    client.send("PING")
    with pytest.raises(NoReply):
        client.recv(0.2)
    assert redis.cli("GET", "n") == "1"


def test_skip_reply_shifts_the_replies(client, proxy):
    proxy.on("skip_reply", incr)
    client.send("INCR", "n")
    client.send("PING")
    assert client.recv() == "PONG"


def test_duplicate_swallows_one_reply(client, proxy, redis):
    rule = proxy.on("duplicate", incr)
    assert client.pipeline(("INCR", "n"), ("PING",), ("GET", "n")) == [1, "PONG", "2"]
    assert len(rule.hits) == 1
    assert redis.cli("GET", "n") == "2"


def test_replay_later(client, proxy, redis):
    rule = proxy.on("replay_later", incr)
    assert client.cmd("INCR", "n") == 1
    assert client.cmd("SET", "n", 10) == "OK"
    assert redis.cli("GET", "n") == "10"
    rule.release()
    until = time.monotonic() + 5
    while redis.cli("GET", "n") != "11":
        assert time.monotonic() < until


def test_cut_before_has_not_run(client, proxy, redis):
    proxy.on("cut_before", incr, nth=2)
    assert client.cmd("INCR", "n") == 1
    client.send("INCR", "n")
    with pytest.raises(Closed):
        client.recv()
    assert redis.cli("GET", "n") == "1"


def test_cut_after_has_run(client, proxy, redis):
    proxy.on("cut_after", incr, nth=2)
    assert client.cmd("INCR", "n") == 1
    client.send("INCR", "n")
    with pytest.raises(Closed):
        client.recv()
    assert redis.cli("GET", "n") == "2"


def test_cut_after_reply(client, proxy):
    proxy.on("cut_after_reply", incr)
    assert client.cmd("INCR", "n") == 1
    with pytest.raises(Closed):
        client.cmd("PING")


def test_replace_keeps_the_order(client, proxy, redis):
    proxy.on("replace", incr, value=b"-OOM command not allowed\r\n")
    replies = client.pipeline(("ECHO", "1"), ("INCR", "n"), ("ECHO", "2"))
    assert replies[0] == "1" and replies[2] == "2"
    assert isinstance(replies[1], RespError) and replies[1].code == "OOM"
    assert redis.cli("GET", "n") is None
    proxy.on("replace_reply", incr, value=b":42\r\n")
    assert client.cmd("INCR", "n") == 42
    assert redis.cli("GET", "n") == "1"


def test_nth_and_times(client, proxy):
    rule = proxy.on("replace", incr, nth=2, times=2, value=b":0\r\n")
    assert [client.cmd("INCR", "n") for _ in range(5)] == [1, 0, 0, 2, 3]
    assert rule.seen == 5 and len(rule.hits) == 2


def test_blackhole_and_back(client, proxy):
    proxy.blackhole()
    client.send("PING")
    assert client.silent(0.2)
    with RespClient(proxy.address) as late:
        late.send("PING")
        assert late.silent(0.1)
        proxy.blackhole(False)
        assert late.recv() == "PONG"
    assert client.recv() == "PONG"


def test_refuse_and_back(client, proxy):
    assert client.cmd("PING") == "PONG"
    proxy.refuse()
    with pytest.raises((Closed, OSError)):
        client.cmd("PING")
    with pytest.raises(OSError):
        RespClient(proxy.address)
    proxy.refuse(False)
    with RespClient(proxy.address) as again:
        assert again.cmd("PING") == "PONG"


def test_knows_scripts_by_their_text(client, proxy):
    rule = proxy.on("count", lambda r: r.runs("my marker"), times=None)
    sha = client.cmd("SCRIPT", "LOAD", "-- my marker\nreturn 7")
    assert client.cmd("EVALSHA", sha, 0) == 7
    assert client.cmd("EVAL", "return 8", 0) == 8
    assert len(rule.hits) == 1
    assert proxy.count(lambda r: r.is_eval) == 2


def test_pubsub_passes(proxy, redis):
    with RespClient(proxy.address) as sub:
        assert sub.cmd("SUBSCRIBE", "c", "d") == ["subscribe", "c", 1]
        assert sub.recv() == ["subscribe", "d", 2]
        redis.cli("PUBLISH", "c", "hello")
        assert sub.recv() == ["message", "c", "hello"]


def test_latency(client, proxy):
    proxy.latency_s = 0.1
    start = time.monotonic()
    assert client.cmd("PING") == "PONG"
    assert time.monotonic() - start >= 0.2


def test_the_server_stops_continues_and_restarts_empty(redis):
    redis.cli("SET", "k", "v")
    first = redis.run_id()
    redis.stop()
    with RespClient(redis.address) as waiting:
        waiting.send("GET", "k")
        assert waiting.silent(0.1)
        redis.cont()
        assert waiting.recv() == "v"
    redis.restart()
    assert redis.run_id() != first
    assert redis.keys() == []


def test_the_server_restarts_with_its_data(make_redis):
    redis = make_redis("p", persist=True, tcp=True)
    redis.cli("SET", "k", "v")
    redis.restart()
    assert redis.cli("GET", "k") == "v"


def test_a_password(make_redis):
    redis = make_redis("p", password="secret", tcp=True)
    assert redis.cli("PING") == "PONG"
    with RespClient(redis.address) as client:
        assert client.err("PING").code == "NOAUTH"
