"""The PROXY protocol: who a client behind a proxy is, and what becomes of those who do not speak it; health checks."""

import socket
import ssl
import struct
import subprocess

import pytest

from holdfastproc import HoldfastProc
from procs import wait_for
from respclient import RespClient

V1 = b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 5625\r\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
V2 = SIGNATURE + bytes([0x21, 0x21]) + struct.pack(
    "!H16s16sHH", 36 + 7, socket.inet_pton(socket.AF_INET6, "2001:db8::1"),
    socket.inet_pton(socket.AF_INET6, "::1"), 4711, 5625) + b"\x04\0\x04name"
LOCAL = SIGNATURE + b"\x20\0\0\0"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    paths = str(directory / "a.crt"), str(directory / "a.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", paths[1], "-out", paths[0], "-days", "2", "-subj", "/CN=broker"],
                   check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return paths


@pytest.fixture
def broker(tmp_path, masters1, certificate):
    broker = HoldfastProc(tmp_path, {m.name: m.url for m in masters1}, args=[
        "-o", "protected_mode=no", "-o", "tls.certificate=" + certificate[0], "-o", "tls.key=" + certificate[1]],
        listen="127.0.0.1:0 proxy://127.0.0.1:0 proxy+tls://127.0.0.1:0")
    yield broker.start()
    broker.close()


def port(broker, kind):
    return int(broker.wait_log(r"listening on %s127\.0\.0\.1:(\d+)" % kind.replace("+", r"\+")).group(1))


class Behind(RespClient):
    """A client behind a proxy that sends this header, a byte at a time if asked to, before what the client says."""

    def __init__(self, broker, header, tls=False, step=None):
        super().__init__(("127.0.0.1", port(broker, "proxy+tls://" if tls else "proxy://")))
        for start in range(0, len(header), step or len(header)):
            self.sock.sendall(header[start:start + (step or len(header))])
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.sock = context.wrap_socket(self.sock)

    def address(self):
        return dict(f.split("=", 1) for f in self.cmd("CLIENT", "INFO").split())["addr"]


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("header, address", [(V1, "192.0.2.7:4711"), (V2, "[2001:db8::1]:4711")], ids=["v1", "v2"])
def test_the_address_is_the_clients(broker, name, header, address, tls):
    for step in (None, 1):
        client = Behind(broker, header, tls, step)
        assert client.address() == address
        assert client.cmd("LOCK", name)[0] > 0 and client.cmd("UNLOCK", name) == 1
        client.close()


@pytest.mark.parametrize("header", [b"PROXY UNKNOWN\r\n", LOCAL], ids=["v1", "v2"])
def test_the_proxy_itself(broker, header):
    assert Behind(broker, header).address().startswith("127.0.0.1:")


def test_what_follows_the_header_at_once(broker):
    client = Behind(broker, V1 + b"PING\r\n" * 3)
    assert [client.recv() for _ in range(3)] == ["PONG"] * 3


def test_those_without_a_header_are_closed(broker):
    for header in (b"PING\r\n", b"PROXY TCP4 x y 1 2\r\n", b"PROXY " + b"x" * 200, SIGNATURE + b"\x99\0\0\0",
                   b"\x16\x03\x01\0\0"):
        Behind(broker, header).read_to_end()
    broker.wait_log("a connection from 127.0.0.1:[0-9]+ is closed: it does not begin with a PROXY header")
    assert int(broker.info()["protocol_errors_proxy"]) == 5
    # A header is nothing to say at an address that wants none.
    client = RespClient(broker.address)
    client.send_raw(V1)
    assert client.recv().code == "ERR"


def test_a_header_does_not_take_its_time(broker):
    slow = [Behind(broker, header) for header in (b"P", V2[:-1])]
    for client in slow:
        client.read_to_end(15)
    RespClient(("127.0.0.1", port(broker, "proxy://"))).read_to_end(15)  # the log says only the first that ends in a minute
    assert int(broker.info()["protocol_errors_proxy"]) == 3
    assert "did not end in time" in broker.log_text()


def test_limits_count_the_clients_address(broker):
    with broker.connect() as admin:
        admin.cmd("CONFIG", "SET", "max_clients_per_address", 2)
        first = [Behind(broker, V1) for _ in range(2)]
        assert [c.cmd("PING") for c in first] == ["PONG"] * 2
        third = Behind(broker, V1)
        third.read_to_end()
        assert Behind(broker, V2).cmd("PING") == "PONG"


def test_a_health_check_is_not_logged(broker):
    """Of a proxy or an orchestrator: it connects, and closes in order or by a reset."""
    admin = broker.connect()
    seen = int(broker.info()["total_connections_received"])
    mark = broker.log_size()
    for kind in ("", "proxy://", "proxy+tls://"):
        for reset in (False, True):
            client = RespClient(("127.0.0.1", port(broker, kind)))
            if reset:
                client.reset()
            else:
                client.close()
    wait_for("the two that are accepted", lambda: int(broker.info()["total_connections_received"]) >= seen + 2)
    wait_for("their end", lambda: int(broker.info()["connected_clients"]) == 2)
    assert broker.log_text()[mark:] == ""
    assert admin.cmd("PING") == "PONG"


def test_behind_a_proxy_are_others(tmp_path, masters1):
    """Without users such an address is as open as any other, wherever the proxy is."""
    broker = HoldfastProc(tmp_path, {m.name: m.url for m in masters1}, listen="proxy://127.0.0.1:0")
    with pytest.raises(AssertionError, match="proxy://127.0.0.1 is open to other machines, as the clients of a proxy come from anywhere"):
        broker.start(ready=False)


def test_certificates_protect_behind_a_proxy_too(tmp_path, masters1, certificate):
    broker = HoldfastProc(tmp_path, {m.name: m.url for m in masters1}, listen="proxy+tls://127.0.0.1:0", args=[
        "-o", "tls.certificate=" + certificate[0], "-o", "tls.key=" + certificate[1], "-o", "tls.ca=" + certificate[0],
        "-o", "tls.client_certificates=required"])
    broker.spawn()
    assert port(broker, "proxy+tls://")
    broker.close()
