"""Two brokers behind HAProxy, by the configuration that comes along: etc/haproxy/holdfast.cfg."""

import os
import re
import shutil
import subprocess

import pytest

from procs import free_ports, spawn, wait_for
from respclient import Closed, RespClient, RespError

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "etc", "haproxy", "holdfast.cfg")

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed")


class Behind:
    """Brokers a and b behind a proxy; each reaches the masters through proxies of its own."""

    def __init__(self, tmp_path, make_broker, make_proxy, masters, on_disconnect):
        self.proxies, self.brokers, servers = {}, [], {}
        for letter in "ab":
            proxies = [make_proxy(m.address) for m in masters]
            broker = make_broker({m.name: p.url for m, p in zip(masters, proxies)}, name="broker-" + letter,
                                 listen="127.0.0.1:0 proxy://127.0.0.1:0",
                                 options={"lease": "60s", "drain_timeout": "1s", "on_disconnect": on_disconnect,
                                          "protected_mode": "no"})
            self.proxies[broker] = proxies
            self.brokers.append(broker)
            servers[letter] = broker.wait_log(r"listening on proxy://127\.0\.0\.1:(\d+)").group(1)
        [self.port] = free_ports(1)
        with open(CONFIG, encoding="utf-8") as file:
            text = file.read().replace("bind :5625", "bind 127.0.0.1:%d" % self.port)
        # so short that a test can outlast them
        text = re.sub(r"timeout (client|server) 30s", r"timeout \1 300ms", text)
        for letter, port in servers.items():
            text = text.replace("locks-%s.example.com:5627" % letter, "127.0.0.1:%s" % port)
        assert "example.com" not in text and text.count("300ms") == 2
        path = tmp_path / "haproxy.cfg"
        path.write_text(text)
        subprocess.run(["haproxy", "-c", "-f", path], check=True, capture_output=True)
        with open(tmp_path / "haproxy.log", "wb") as log:
            # pylint: disable=consider-using-with
            self.proc = spawn(["haproxy", "-db", "-f", path], stdout=log, stderr=log)
        wait_for("haproxy", self.try_to_connect)

    def try_to_connect(self):
        try:
            client = RespClient(("127.0.0.1", self.port))
        except OSError:
            return None
        try:
            client.cmd("PING")
            return client
        except (Closed, OSError):
            client.close()
            return None

    def connect(self):
        return wait_for("a broker", self.try_to_connect)

    def broker_of(self, client):
        number = client.cmd("CLIENT", "ID")
        address = client.sock.getsockname()
        for broker in self.brokers:
            with broker.connect() as direct:
                if "id=%d addr=%s:%d " % (number, *address) in direct.cmd("CLIENT", "LIST"):
                    return broker
        raise AssertionError("no broker has client %d from %s:%d" % (number, *address))

    def harm(self, broker, how):
        broker.harm(how, self.proxies[broker])

    def close(self):
        self.proc.kill()
        self.proc.wait()


@pytest.fixture
def behind(tmp_path, make_broker, make_proxy, masters1):
    made = []

    def make(on_disconnect="expire"):
        made.append(Behind(tmp_path, make_broker, make_proxy, masters1, on_disconnect))
        return made[-1]
    yield make
    for one in made:
        one.close()


def renew_elsewhere(behind, name, first):
    """Through the proxy, until another broker than the first one has the lock; its new token."""
    def renewed():
        try:
            with behind.connect() as client:
                token = client.cmd("RENEW", name, "OWNER", "app")[0]
                return behind.broker_of(client) is not first and token
        except (Closed, OSError):
            return None
    return wait_for("the lock at the other broker", renewed, 20.0)


@pytest.mark.parametrize("how", ["kill", "stop", "drain", "pause", "cut"])
def test_a_lock_goes_along(behind, name, how):
    behind = behind()
    holder = behind.connect()
    token = holder.cmd("LOCK", name, "OWNER", "app")[0]
    first = behind.broker_of(holder)
    behind.harm(first, how)
    holder.read_to_end(20.0)
    assert renew_elsewhere(behind, name, first) > token


def test_by_default_what_the_proxy_closes_is_freed(behind, masters1, name):
    """Why the brokers behind it have on_disconnect = expire."""
    def stands():
        return masters1[0].hold("holdfast:{%s}" % name)
    behind = behind("auto")
    holder = behind.connect()
    holder.cmd("LOCK", name, "OWNER", "app")
    assert stands()
    first = behind.broker_of(holder)
    behind.harm(first, "pause")
    holder.read_to_end(20.0)
    # the proxy tells the broker when it will, and the first one to reach the master has the lock: RENEW waits for
    # the release, which comes long before the end of the lease
    wait_for("the release", lambda: not stands())
    with behind.connect() as client, pytest.raises(RespError, match="NOTHELD"):
        client.cmd("RENEW", name, "OWNER", "app")


def test_who_is_there_before_the_release_keeps_his_lock(behind, name):
    """By that default too: a broker that hears late that the proxy has closed frees nothing of its successor's."""
    behind = behind("auto")
    holder = behind.connect()
    token = holder.cmd("LOCK", name, "OWNER", "app")[0]
    first = behind.broker_of(holder)
    here = "addr=%s:%d " % holder.sock.getsockname()
    first.stop()
    holder.read_to_end(20.0)
    with behind.connect() as client:
        renewed = client.cmd("RENEW", name, "OWNER", "app")[0]
        assert renewed > token and behind.broker_of(client) is not first
        first.cont()
        with first.connect() as late:
            wait_for("the end of the connection", lambda: here not in late.cmd("CLIENT", "LIST"))
        first.wait_quorum()   # what it sent before has reached the master, too
        assert client.cmd("RENEW", name, "OWNER", "app")[0] == renewed


def test_who_is_silent_keeps_his_lock(behind, name):
    behind = behind()
    holder = behind.connect()
    holder.cmd("LOCK", name, "MAXHOLD", 1500)
    with behind.broker_of(holder).connect() as rival:
        assert rival.cmd("LOCK", name, "WAIT", 20000)[0] > 0   # at the end of that hold
    assert holder.cmd("PING") == "PONG"                          # five times the time-outs of before the tunnel
