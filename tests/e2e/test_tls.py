"""TLS: clients at tls:// addresses, masters behind rediss://, certificates and their reload.

The certificates are made by openssl when the tests run.
"""

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request

import pytest

import procs
from holdfastproc import HoldfastProc, run, write_config
from redisproc import RedisProc
from respclient import Closed, RespClient, encode

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")

TLS_RE = r"listening on tls://127\.0\.0\.1:(\d+)"


class Authority:
    """A certificate authority of the test's own in one directory."""

    def __init__(self, directory, name="ca"):
        self.dir = str(directory)
        self.name = name
        self.cert, self.key = self.path(name + ".crt"), self.path(name + ".key")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-keyout", self.key, "-out", self.cert, "-days", "2", "-subj", "/CN=%s" % name)

    def path(self, name):
        return os.path.join(self.dir, name)

    @staticmethod
    def openssl(*args):
        subprocess.run(["openssl", *args], check=True, stdin=subprocess.DEVNULL, capture_output=True)

    def issue(self, name, cn="broker", names="IP:127.0.0.1,DNS:localhost", days=1):
        """Writes name.crt and name.key; returns their paths. days=-1: expired already."""
        cert, key, request = self.path(name + ".crt"), self.path(name + ".key"), self.path(name + ".csr")
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-keyout", key, "-out", request, "-subj", "/CN=%s" % cn)
        extensions = self.path(name + ".ext")
        with open(extensions, "w", encoding="ascii") as out:
            out.write("subjectAltName=%s\n" % names if names else "\n")
        self.openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
                     "-days", str(days), "-extfile", extensions, "-out", cert)
        return cert, key


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"), "other")


@pytest.fixture(scope="module")
def server_files(ca):
    return ca.issue("server")


class TlsProc(HoldfastProc):
    """A broker that listens on a plain port and, with a section [tls], with TLS at tls_port. Options of
    masters ("a.ca") may stand among their addresses."""

    def __init__(self, directory, masters, tls=None, **kwargs):
        self.tls = dict(tls or {})
        self.users = {}
        self.master_options = {k: v for k, v in masters.items() if "." in k}
        kwargs.setdefault("listen", "127.0.0.1:0 tls://127.0.0.1:0" if tls else "127.0.0.1:0")
        super().__init__(directory, {k: v for k, v in masters.items() if "." not in k}, **kwargs)

    def configure(self, **options):
        super().configure(**options)
        with open(self.conf, "a", encoding="utf-8") as out:
            for section, options in (("tls", self.tls), ("users", self.users),
                                     ("masters", self.master_options)):
                out.write("\n[%s]\n" % section + "".join("%s = %s\n" % item for item in options.items()))

    @property
    def tls_port(self):
        return int(self.wait_log(TLS_RE).group(1))


@pytest.fixture
def make_tls_broker(request, tmp_path, make_redis):
    made = []
    request.node.holdfast_brokers = made

    def make(masters, tls=None, start=True, **kwargs):
        if not isinstance(masters, dict):
            masters = {m.name: m.url for m in masters}
        broker = TlsProc(tmp_path, masters, tls, name="broker%d" % len(made), **kwargs)
        made.append(broker)
        return broker.start() if start else broker
    yield make
    for broker in made:
        broker.close()


def client_context(authority, files=None, verify=True):
    context = ssl.create_default_context(cafile=authority.cert)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files:
        context.load_cert_chain(*files)
    return context


class TlsClient(RespClient):
    def __init__(self, port, context, **kwargs):
        super().__init__(("127.0.0.1", port), **kwargs)
        try:
            self.sock = context.wrap_socket(self.sock, server_hostname="127.0.0.1")
        except BaseException:
            self.sock.close()
            raise

    def goodbye(self):
        """Ends TLS as it should be, and the connection."""
        try:
            self.sock = self.sock.unwrap()
        except (OSError, ssl.SSLError):
            pass
        self.sock.close()


@pytest.fixture
def broker(make_tls_broker, masters1, server_files):
    return make_tls_broker(masters1, {"certificate": server_files[0], "key": server_files[1]})


@pytest.fixture
def connect(broker, ca):
    made = []

    def make(**kwargs):
        made.append(TlsClient(broker.tls_port, client_context(ca, **kwargs)))
        return made[-1]
    yield make
    for client in made:
        client.close()


def redis_cli(broker, ca, *args):
    return subprocess.run(["redis-cli", "--tls", "--cacert", ca.cert, "-h", "127.0.0.1", "-p",
                           str(broker.tls_port), *args], capture_output=True, text=True, timeout=20, check=False)


# ---- clients ----

def test_a_lock_over_tls(connect, broker, name):
    client = connect()
    assert client.sock.version() == "TLSv1.3"
    token, validity = client.cmd("LOCK", name)
    assert token > 0 and validity > 0
    with broker.connect() as plain:
        assert plain.cmd("LOCK", name) is None
        assert client.cmd("UNLOCK", name) == 1


def test_redis_cli(broker, ca):
    assert redis_cli(broker, ca, "PING").stdout == "PONG\n"
    assert redis_cli(broker, ca, "LOCK", "x", "LEASE", "100").returncode == 0
    assert "certificate" in redis_cli(broker, Authority(os.path.dirname(broker.conf), "wrong"), "PING").stderr


def test_tls12_and_nothing_older(broker, ca):
    context = client_context(ca)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with TlsClient(broker.tls_port, context) as client:
        assert client.sock.version() == "TLSv1.2"
        assert client.cmd("PING") == "PONG"
    context = client_context(ca)
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, OSError)):
        TlsClient(broker.tls_port, context)


def test_no_renegotiation(broker, ca):
    shell = procs.spawn(["openssl", "s_client", "-connect", "127.0.0.1:%d" % broker.tls_port, "-tls1_2",
                         "-CAfile", ca.cert], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT)
    out, _ = shell.communicate(b"R\n", timeout=20)
    assert b"no renegotiation" in out.lower() or b"Secure Renegotiation IS supported" in out
    with TlsClient(broker.tls_port, client_context(ca)) as client:
        assert client.cmd("PING") == "PONG"


def test_large_pipelines_come_back_whole(connect):
    """More than fits into a record, a read and the socket's buffers: nothing may stay behind."""
    client = connect()
    size, count = 16000, 300
    words = [os.urandom(size // 2).hex() for _ in range(8)]
    data = b"".join(encode("ECHO", words[i % 8]) for i in range(count))
    sent = 0
    client.sock.settimeout(20)
    received = bytearray()
    client.sock.setblocking(False)
    until = time.monotonic() + 30
    total = sum(len("$%d\r\n" % size) + size + 2 for _ in range(count))
    while len(received) < total and time.monotonic() < until:
        try:
            if sent < len(data):
                sent += client.sock.send(data[sent:sent + 100000])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        try:
            received += client.sock.recv(1 << 20)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            time.sleep(0.001)
    expected = b"".join(b"$%d\r\n%s\r\n" % (size, words[i % 8].encode()) for i in range(count))
    assert bytes(received) == expected


def test_many_requests_in_one_record_and_one_in_many(connect):
    client = connect()
    client.send_raw(encode("PING") * 500)
    assert [client.recv() for _ in range(500)] == ["PONG"] * 500
    for byte in encode("ECHO", "slow"):
        client.send_raw(bytes([byte]))
    assert client.recv() == "slow"


def test_the_last_bytes_of_a_record_are_answered_before_the_next(connect):
    """A request whose end comes with the beginning of the next one, over and over."""
    client = connect()
    data = encode("ECHO", "a" * 100) * 50
    for start in range(0, len(data), 37):
        client.send_raw(data[start:start + 37])
    assert [client.recv() for _ in range(50)] == ["a" * 100] * 50


def test_an_orderly_end_is_that_of_tcp(connect, broker, name):
    """A FIN releases at once, whether or not a close_notify came before it: many clients, and every program that is
    killed, end without one. After a reset the lock lapses."""
    with broker.connect() as plain:
        for end in (TlsClient.goodbye, lambda client: client.sock.close(),
                    lambda client: client.sock.shutdown(socket.SHUT_WR)):
            client = connect()
            client.cmd("LOCK", name)
            released = int(broker.info()["releases_disconnect"])
            end(client)
            token = plain.cmd("LOCK", name, "WAIT", 5000)[0]
            assert token and int(broker.info()["releases_disconnect"]) == released + 1
            assert plain.cmd("UNLOCK", name) == 1
        client = connect()
        client.cmd("LOCK", name)
        client.reset()
        procs.wait_for("the end", lambda: int(broker.info()["disconnects_reset"]))
        assert plain.cmd("LOCK", name, "WAIT", 100) is None


def test_quit_is_orderly(connect, broker, name):
    client = connect()
    client.cmd("LOCK", name)
    assert client.cmd("QUIT") == "OK"
    assert client.sock.recv(1) == b""  # an end of TLS, or ssl would raise
    with broker.connect() as plain:
        assert plain.cmd("LOCK", name, "WAIT", 100)


def test_a_push_reaches_a_client_over_tls(connect, broker, name):
    client = connect()
    client.cmd("HELLO", 3)
    client.cmd("LOCK", name, "TELL")
    with broker.connect() as plain:
        assert plain.cmd("FORCEUNLOCK", name) == 1
    assert client.wait_push("lost")[1] == name


# ---- those who do it wrong ----

def test_a_slow_handshake_is_ended(make_tls_broker, masters1, server_files):
    broker = make_tls_broker(masters1, {"certificate": server_files[0], "key": server_files[1]})
    broker.configure()
    with broker.connect() as plain:
        plain.cmd("CONFIG", "SET", "limits.request_time", "1s")
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", broker.tls_port)) as silent:
        with socket.create_connection(("127.0.0.1", broker.tls_port)) as half:
            half.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            silent.settimeout(10)
            half.settimeout(10)
            for sock in (silent, half):
                try:
                    assert sock.recv(1) == b""
                except ConnectionResetError:
                    pass
    assert 0.9 < time.monotonic() - start < 6
    broker.wait_log("did not finish the handshake of TLS in time")


def test_plain_bytes_on_the_tls_port(broker):
    for data in (b"PING\r\n", encode("LOCK", "x"), b"GET / HTTP/1.1\r\n\r\n", b"\0" * 50):
        with socket.create_connection(("127.0.0.1", broker.tls_port)) as sock:
            sock.settimeout(10)
            sock.sendall(data)
            got = b""
            try:
                while more := sock.recv(4096):
                    got += more
            except ConnectionResetError:
                pass
            assert b"PONG" not in got and not got.startswith((b"+", b"-", b"*"))
    assert int(broker.info()["protocol_errors_tls"]) == 4
    broker.wait_log(r"client \d+: closed: TLS: ")


def test_random_bytes_on_the_tls_port(broker, ca):
    for size in (1, 5, 6, 100, 5000):
        with socket.create_connection(("127.0.0.1", broker.tls_port)) as sock:
            sock.sendall(b"\x16\x03\x01" + os.urandom(size))
    with TlsClient(broker.tls_port, client_context(ca)) as client:
        assert client.cmd("PING") == "PONG"


def test_a_tls_hello_on_the_plain_port(broker, ca):
    for _ in range(3):
        with pytest.raises((ssl.SSLError, OSError)):
            TlsClient(broker.port, client_context(ca))
    assert int(broker.info()["protocol_errors_tls"]) == 3
    broker.wait_log("speaks TLS to 127.0.0.1:%d, where it is not spoken" % broker.port)
    assert broker.log_text().count("where it is not spoken") == 1


def test_a_storm_of_handshakes_delays_nobody_much(broker, ca):
    """60 clients begin at once: the others are served in between."""
    context = client_context(ca)
    socks = []
    for _ in range(60):
        raw = socket.create_connection(("127.0.0.1", broker.tls_port))
        raw.setblocking(False)
        socks.append(context.wrap_socket(raw, server_hostname="127.0.0.1", do_handshake_on_connect=False))
    for sock in socks:
        with contextlib.suppress(ssl.SSLWantReadError):
            sock.do_handshake()
    worst = 0.0
    with broker.connect() as plain:
        for _ in range(100):
            start = time.monotonic()
            assert plain.cmd("PING") == "PONG"
            worst = max(worst, time.monotonic() - start)
    for sock in socks:
        sock.settimeout(20)
        sock.do_handshake()
        sock.sendall(b"PING\r\n")
    for sock in socks:
        assert sock.recv(100) == b"+PONG\r\n"
        sock.close()
    print("worst round trip meanwhile: %.1f ms" % (worst * 1000))
    assert worst < 1.0


# ---- certificates ----

def server_serial(port):
    return ssl.get_server_certificate(("127.0.0.1", port))


def test_certificates_are_read_again(make_tls_broker, masters1, ca, tmp_path):
    cert, key = ca.issue("again")
    broker = make_tls_broker(masters1, {"certificate": cert, "key": key})
    before = server_serial(broker.tls_port)
    old = TlsClient(broker.tls_port, client_context(ca))
    mark = broker.log_size()
    ca.issue("again")
    broker.hup()
    broker.wait_log("configuration read again", since=mark)
    after = server_serial(broker.tls_port)
    assert after != before
    assert old.cmd("PING") == "PONG"  # its connection goes on

    mark = broker.log_size()
    with open(key, "w", encoding="ascii") as out:
        out.write("no key\n")
    broker.hup()
    broker.wait_log("tls: key %s: " % key, since=mark)
    broker.wait_log("configuration unchanged", since=mark)
    assert server_serial(broker.tls_port) == after
    with TlsClient(broker.tls_port, client_context(ca)) as client:
        assert client.cmd("PING") == "PONG"
        assert int(broker.info()["config_reloads_failed"]) == 1

        # A key that belongs to another certificate is no better.
        _, other_key = ca.issue("other")
        broker.tls["key"] = other_key
        broker.configure()
        mark = broker.log_size()
        broker.hup()
        broker.wait_log("key values mismatch", since=mark)
        assert "values mismatch" in str(client.err("CONFIG", "SET", "tls.key", other_key))
        assert server_serial(broker.tls_port) == after
    old.close()


def http_text(broker, path):
    port = broker.wait_log(r"metrics on http://127\.0\.0\.1:(\d+)/").group(1)
    with urllib.request.urlopen("http://127.0.0.1:%s%s" % (port, path), timeout=10) as reply:
        return reply.read().decode()


def expiry_metric(broker):
    found = re.search(r"(?m)^holdfast_tls_certificate_expiry_timestamp_seconds (\d+)$", http_text(broker, "/metrics"))
    return found and int(found.group(1)) - time.time()


DAY_S = 86400


def test_the_end_of_the_certificate_is_told(make_tls_broker, masters1, ca, tmp_path):
    """In the metrics always; in the log, on the status page and by -t when it is near."""
    cert, key = ca.issue("ends", days=30)
    broker = make_tls_broker(masters1, {"certificate": cert, "key": key}, args=["-o", "http.listen=127.0.0.1:0"])
    assert 29 * DAY_S < expiry_metric(broker) <= 30 * DAY_S
    assert "expires" not in http_text(broker, "/status.json") and "expires" not in broker.log_text()
    assert "expires" not in run("-t", "-c", broker.conf)[2]

    mark = broker.log_size()
    ca.issue("ends", days=5)
    broker.hup()
    broker.wait_log(r"warn  tls: the certificate for clients expires in [45] days, at \d{4}-", since=mark)
    assert 4 * DAY_S < expiry_metric(broker) <= 5 * DAY_S
    assert re.search("the certificate for clients expires in [45] days", http_text(broker, "/status.json"))
    status, _, err = run("-t", "-c", broker.conf)
    assert status == 0 and re.search("warning: the certificate for clients expires in [45] days", err)

    # One of the chain ends earlier than the certificate itself: that of the authority, in two days.
    ca.issue("ends", days=30)
    with open(cert, "a", encoding="ascii") as out, open(ca.cert, encoding="ascii") as chain:
        out.write(chain.read())
    mark = broker.log_size()
    broker.hup()
    broker.wait_log(r"tls: the certificate for clients expires in \d+ hours", since=mark)
    assert expiry_metric(broker) <= 2 * DAY_S

    ca.issue("ends", days=-1)
    mark = broker.log_size()
    broker.hup()
    broker.wait_log("tls: the certificate for clients has expired at", since=mark)
    uptime = int(broker.info()["uptime_in_seconds"])
    procs.wait_for("two rounds more", lambda: int(broker.info()["uptime_in_seconds"]) >= uptime + 2)
    assert broker.log_text(mark).count("has expired") == 1, "once a day is enough"


def test_how_early_the_end_is_told(make_tls_broker, masters1, ca):
    cert, key = ca.issue("short", days=5)
    broker = make_tls_broker(masters1, {"certificate": cert, "key": key, "expiry_warning": "2d"},
                             args=["-o", "http.listen=127.0.0.1:0"])
    assert "expires" not in http_text(broker, "/status.json") and "expires" not in broker.log_text()
    assert "expires" not in run("-t", "-c", broker.conf)[2]
    with broker.connect() as client:
        client.cmd("CONFIG", "SET", "tls.expiry_warning", "6d")
    assert re.search("the certificate for clients expires in [45] days", http_text(broker, "/status.json"))


def test_no_certificate_no_end(make_tls_broker, masters1):
    broker = make_tls_broker(masters1, args=["-o", "http.listen=127.0.0.1:0"])
    assert expiry_metric(broker) is None


def test_the_certificate_and_its_key_in_one_file(make_tls_broker, masters1, ca, server_files, tmp_path):
    both = tmp_path / "both.pem"
    both.write_text("".join(open(f, encoding="ascii").read() for f in server_files))
    broker = make_tls_broker(masters1, {"certificate": "%d/both.pem"},
                             env={"CREDENTIALS_DIRECTORY": str(tmp_path)})
    with TlsClient(broker.tls_port, client_context(ca)) as client:
        assert client.cmd("PING") == "PONG"


@pytest.mark.parametrize("tls, word", [
    ({}, "tls:// needs a certificate in section [tls]"),
    ({"certificate": "/nowhere/x.pem"}, "tls: certificate /nowhere/x.pem: No such file or directory"),
    ({"certificate": "/dev/null"}, "tls: certificate /dev/null: "),
    ({"certificate": "%d/x"}, "there are no credentials"),
    ({"certificate": "SERVER", "key": "KEY", "client_certificates": "required"}, "needs a ca"),
    ({"key": "KEY"}, "key: has no certificate"),
    ({"certificate": "x.pem"}, "must be an absolute path"),
])
def test_bad_settings_are_named(tmp_path, server_files, tls, word):
    tls = {k: v.replace("SERVER", server_files[0]).replace("KEY", server_files[1]) for k, v in tls.items()}
    path = write_config(str(tmp_path / "x.ini"), {"a": "redis://127.0.0.1:1"},
                        listen="127.0.0.1:0 tls://127.0.0.1:0")
    with open(path, "a", encoding="utf-8") as out:
        out.write("[tls]\n" + "".join("%s = %s\n" % item for item in tls.items()))
    for args in (["-c", path, "-t"], ["-c", path]):
        status, _, err = run(*args)
        assert status == 1
        assert word in err


def test_a_key_with_a_passphrase_asks_nobody(tmp_path, ca, server_files):
    locked = str(tmp_path / "locked.key")
    ca.openssl("ec", "-in", server_files[1], "-aes128", "-passout", "pass:secret", "-out", locked)
    path = write_config(str(tmp_path / "x.ini"), {"a": "redis://127.0.0.1:1"}, listen="tls://127.0.0.1:0")
    with open(path, "a", encoding="utf-8") as out:
        out.write("[tls]\ncertificate = %s\nkey = %s\n" % (server_files[0], locked))
    status, _, err = run("-c", path, "-t")
    assert status == 1 and "tls: key %s" % locked in err


def test_client_certificates(make_tls_broker, masters1, ca, other_ca, server_files):
    settings = {"certificate": server_files[0], "key": server_files[1], "ca": ca.cert,
                "client_certificates": "required"}
    broker = make_tls_broker(masters1, settings)
    good, bad = ca.issue("client", cn="app", names=None), other_ca.issue("client", cn="app", names=None)
    old = ca.issue("expired", cn="app", names=None, days=-1)

    def works(files):
        try:
            with TlsClient(broker.tls_port, client_context(ca, files)) as client:
                return client.cmd("PING") == "PONG"
        except (ssl.SSLError, Closed, ConnectionError):
            return False
    assert works(good)
    assert not works(None)
    assert not works(bad)
    assert not works(old)
    broker.wait_log("certificate has expired")
    broker.wait_log("peer did not return a certificate")
    broker.tls["client_certificates"] = "optional"
    broker.configure()
    mark = broker.log_size()
    broker.hup()
    broker.wait_log("configuration read again", since=mark)
    assert works(good)
    assert works(None)
    assert not works(bad)


def test_a_certificate_is_a_user(make_tls_broker, masters1, ca, server_files):
    settings = {"certificate": server_files[0], "key": server_files[1], "ca": ca.cert,
                "client_certificates": "optional"}
    broker = make_tls_broker(masters1, settings, start=False)
    broker.wait_quorum = lambda *args: None
    broker.users = {"app": "none", "app.certificate": "app.example", "app.names": "mine:*"}
    broker.start()
    files = ca.issue("app-client", cn="app.example", names=None)
    with TlsClient(broker.tls_port, client_context(ca, files)) as client:
        assert client.cmd("ACL", "WHOAMI") == "app"
        procs.wait_for("a quorum", lambda: client.send("LOCK", "mine:1") or isinstance(client.recv(), list))
        assert client.err("LOCK", "other").code == "NOPERM"
        client.cmd("RESET")
        assert client.cmd("ACL", "WHOAMI") == "app"
    other = ca.issue("other-client", cn="app.example.org", names=None)
    for files in (other, None):
        with TlsClient(broker.tls_port, client_context(ca, files)) as client:
            assert client.err("ACL", "WHOAMI").code == "NOAUTH"


# ---- masters ----

class TlsRedis(RedisProc):
    """A redis-server on --tls-port, and on a Unix socket for the test itself."""

    def __init__(self, name, files, authority, auth="no", **kwargs):
        super().__init__(name, **kwargs)
        self.files, self.authority, self.auth = files, authority, auth
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.tls_port = probe.getsockname()[1]
        self.args += ["--bind", "127.0.0.1", "--tls-port", str(self.tls_port), "--tls-cert-file", files[0],
                      "--tls-key-file", files[1], "--tls-ca-cert-file", authority.cert,
                      "--tls-auth-clients", auth]

    @property
    def url(self):
        return "rediss://127.0.0.1:%d" % self.tls_port


@pytest.fixture
def make_tls_redis():
    made = []

    def make(name="a", files=None, authority=None, **kwargs):
        made.append(TlsRedis(name, files, authority, **kwargs))
        return made[-1].start()
    yield make
    for server in made:
        server.close()


def masters_of(*servers, **options):
    """[masters]: the addresses, and the same options for each."""
    entries = {}
    for server in servers:
        entries[server.name] = server.url
        for key, value in options.items():
            entries["%s.%s" % (server.name, key)] = value
    return entries


def test_a_master_by_tls(make_tls_broker, make_tls_redis, server_files, ca, clients, name):
    redis = make_tls_redis("a", server_files, ca)
    broker = make_tls_broker(masters_of(redis, ca=ca.cert))
    client = clients(broker)
    assert client.cmd("LOCK", name)
    assert redis.keys(name)
    # The link for wake-ups is there too: another broker's release reaches a waiter through it.
    other = make_tls_broker(masters_of(redis, ca=ca.cert))
    waiter = clients(other)
    waiter.send("LOCK", name, "WAIT", 8000)
    time.sleep(0.2)
    client.cmd("UNLOCK", name)
    assert waiter.recv()
    redis.restart()
    broker.wait_quorum()


def test_three_masters_by_tls_and_bulk(make_tls_broker, make_tls_redis, server_files, ca, clients):
    servers = [make_tls_redis(n, server_files, ca) for n in "abc"]
    broker = make_tls_broker(masters_of(*servers, ca=ca.cert))
    client = clients(broker)
    replies = client.pipeline(*[("LOCK", "n%d" % i, "LEASE", 5000) for i in range(2000)])
    assert all(isinstance(r, list) for r in replies)
    assert client.pipeline(*[("UNLOCK", "n%d" % i) for i in range(2000)]) == [1] * 2000


def refused(broker, word):
    """Starts a broker that must not get a quorum, and looks for the reason in its log and in MASTERS."""
    broker.start(ready=False)
    broker.wait_log(word)
    with broker.connect() as client:
        assert client.err("LOCK", "x").code == "NOQUORUM"


def test_masters_are_verified(make_tls_broker, make_tls_redis, server_files, ca, other_ca):
    redis = make_tls_redis("a", server_files, ca)
    refused(make_tls_broker(masters_of(redis), start=False), "certificate of the peer is not good")
    refused(make_tls_broker(masters_of(redis, ca=other_ca.cert), start=False), "certificate of the peer is not good")
    refused(make_tls_broker(masters_of(redis, ca=ca.cert, server_name="redis-b.example"), start=False),
            "hostname mismatch")
    by_name = {"a": "rediss://localhost:%d" % redis.tls_port, "a.ca": ca.cert}
    make_tls_broker(by_name)


def test_a_master_under_the_name_of_another(make_tls_broker, make_tls_redis, ca):
    redis = make_tls_redis("a", ca.issue("named", names="DNS:redis-a.example"), ca)
    refused(make_tls_broker(masters_of(redis, ca=ca.cert), start=False), "IP address mismatch")
    make_tls_broker(masters_of(redis, ca=ca.cert, server_name="redis-a.example"))


def test_an_expired_master(make_tls_broker, make_tls_redis, ca):
    redis = make_tls_redis("a", ca.issue("stale", days=-1), ca)
    refused(make_tls_broker(masters_of(redis, ca=ca.cert), start=False), "certificate has expired")


def test_a_master_that_wants_a_certificate(make_tls_broker, make_tls_redis, server_files, ca, other_ca):
    redis = make_tls_redis("a", server_files, ca, auth="yes")
    refused(make_tls_broker(masters_of(redis, ca=ca.cert), start=False), "master a: .*(TLS|reset|cut)")
    cert, key = ca.issue("broker-client", cn="holdfast", names=None)
    make_tls_broker(masters_of(redis, ca=ca.cert, certificate=cert, key=key))


def test_plain_where_tls_is_and_the_reverse(make_tls_broker, make_tls_redis, make_redis, server_files, ca):
    redis = make_tls_redis("a", server_files, ca)
    plain = make_redis("a", tcp=True)
    refused(make_tls_broker({"a": "redis://127.0.0.1:%d" % redis.tls_port}, start=False), "master a: cannot be used")
    refused(make_tls_broker({"a": "rediss://127.0.0.1:%d" % plain.port, "a.ca": ca.cert}, start=False),
            "master a: cannot be used: ")


def test_files_of_a_master_are_read_again(make_tls_broker, make_tls_redis, ca, other_ca, server_files, tmp_path):
    trusted = tmp_path / "trusted.crt"
    shutil.copy(other_ca.cert, trusted)
    redis = make_tls_redis("a", server_files, ca)
    broker = make_tls_broker(masters_of(redis, ca=trusted), start=False)
    refused(broker, "certificate of the peer is not good")
    shutil.copy(ca.cert, trusted)
    broker.hup()
    broker.wait_quorum()
    trusted.write_text("nothing\n")
    mark = broker.log_size()
    broker.hup()
    broker.wait_log("masters: a.ca %s: " % trusted, since=mark)
    broker.wait_log("configuration unchanged", since=mark)
    broker.wait_quorum()
