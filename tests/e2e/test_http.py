"""Metrics, health checks and the status page, and what the HTTP listener bears."""

import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
from html.parser import HTMLParser

import pytest

import holdfastproc
import procs
from procs import wait_for

HTTP_RE = r"status page and metrics on http://127\.0\.0\.1:(\d+)/"
ON = ("-o", "http.listen=127.0.0.1:0")
CONNS_MAX = 64


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body
        self.text = body.decode("utf-8")


class Http:
    """The HTTP side of a broker."""

    def __init__(self, broker):
        self.broker = broker
        self.port = int(broker.wait_log(HTTP_RE).group(1))

    def ask(self, path, method="GET", body=None, headers=None, timeout=10):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            conn.request(method, path, body, headers or {})
            reply = conn.getresponse()
            return Reply(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            conn.close()

    def status(self):
        reply = self.ask("/status.json")
        assert reply.status == 200 and reply.headers["Content-Type"] == "application/json"
        return json.loads(reply.text)

    def metrics(self):
        reply = self.ask("/metrics")
        assert reply.status == 200
        return parse_metrics(reply.text)

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), 10)
        sock.settimeout(20)
        return sock

    def raw(self, data):
        """Everything that comes back until the broker closes."""
        with self.connect() as sock:
            try:
                sock.sendall(data)
            except OSError:
                pass
            return read_to_end(sock)


def read_to_end(sock):
    got = b""
    while True:
        try:
            chunk = sock.recv(65536)
        except ConnectionResetError:
            return got
        if not chunk:
            return got
        got += chunk


@pytest.fixture
def broker(make_broker, masters1):
    return make_broker(masters1, args=ON)


@pytest.fixture
def web(broker):
    return Http(broker)


@pytest.fixture
def client(broker, clients):
    return clients(broker)


# A strict reader of the text format 0.0.4

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE_RE = re.compile(r"(%s)(?:\{(.*)\})? (\S+)" % NAME)
LABEL_RE = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
KINDS = ("counter", "gauge", "histogram")


def parse_labels(text):
    labels, at = {}, 0
    while at < len(text or ""):
        match = LABEL_RE.match(text, at)
        assert match, "label: %r" % text
        assert match.group(1) not in labels, "label twice: %r" % text
        labels[match.group(1)] = match.group(2)
        at = match.end()
        assert at == len(text) or text[at] == ",", "label: %r" % text
        at += 1
    return labels


def check_histogram(family, samples):
    series = {}
    for name, labels, value in samples:
        rest = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        one = series.setdefault(rest, {"le": [], "sum": None, "count": None})
        if name == family + "_bucket":
            one["le"].append((float(labels["le"].replace("+Inf", "inf")), value))
        else:
            assert one[name[len(family) + 1:]] is None
            one[name[len(family) + 1:]] = value
    for rest, one in series.items():
        bounds = [le for le, _ in one["le"]]
        counts = [count for _, count in one["le"]]
        assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), (family, rest)
        assert counts == sorted(counts), (family, rest)
        assert one["count"] == counts[-1] and one["sum"] is not None, (family, rest)
        assert one["sum"] >= 0


def parse_metrics(text):
    """{(name, (labels...)): value}; fails on whatever Prometheus or its linter would not like."""
    assert text.endswith("\n") and "\r" not in text
    found, families, samples, family, kind = {}, set(), [], None, None
    lines = text.split("\n")[:-1]
    at = 0

    def end_of_family():
        if kind == "histogram":
            check_histogram(family, samples)

    while at < len(lines):
        if lines[at].startswith("#"):
            end_of_family()
            head = re.fullmatch(r"# HELP (%s) (\S.*)" % NAME, lines[at])
            assert head, lines[at]
            family, samples = head.group(1), []
            assert family not in families, "family twice: " + family
            families.add(family)
            typed = re.fullmatch(r"# TYPE (%s) (\w+)" % NAME, lines[at + 1])
            assert typed and typed.group(1) == family and typed.group(2) in KINDS, lines[at + 1]
            kind = typed.group(2)
            assert family.endswith("_total") == (kind == "counter"), family
            assert re.match(r"(holdfast|process)_", family), family
            at += 2
            continue
        match = SAMPLE_RE.fullmatch(lines[at])
        assert match, lines[at]
        name, labels, value = match.group(1), parse_labels(match.group(2)), float(match.group(3))
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        assert name in [family + s for s in suffixes], lines[at]
        assert ("le" in labels) == name.endswith("_bucket"), lines[at]
        assert value >= 0 or "offset" in name, lines[at]
        key = (name, tuple(sorted(labels.items())))
        assert key not in found, "sample twice: " + lines[at]
        found[key] = value
        samples.append((name, labels, value))
        at += 1
    end_of_family()
    return found


def value(metrics, name, **labels):
    return metrics[name, tuple(sorted(labels.items()))]


@pytest.mark.no_daemon
@pytest.mark.parametrize("text", [
    "holdfast_x 1\n",
    "# HELP holdfast_x t\n# TYPE holdfast_x counter\nholdfast_x 1\n",
    "# HELP holdfast_x t\n# TYPE holdfast_x gauge\nholdfast_x 1",
    "# HELP holdfast_x t\n# TYPE holdfast_x gauge\nholdfast_x 1\nholdfast_x 2\n",
    "# HELP holdfast_x t\n# TYPE holdfast_x gauge\nholdfast_y 1\n",
    '# HELP holdfast_x t\n# TYPE holdfast_x gauge\nholdfast_x{a="b} 1\n',
    '# HELP holdfast_x t\n# TYPE holdfast_x gauge\nholdfast_x{a="1",a="2"} 1\n',
    "# HELP holdfast_x t\n# TYPE holdfast_x gauge\nholdfast_x -1\n",
    '# HELP holdfast_x t\n# TYPE holdfast_x histogram\nholdfast_x_bucket{le="1"} 2\n'
    'holdfast_x_bucket{le="+Inf"} 1\nholdfast_x_sum 1\nholdfast_x_count 1\n',
    '# HELP holdfast_x t\n# TYPE holdfast_x histogram\nholdfast_x_bucket{le="1"} 1\nholdfast_x_sum 1\n'
    'holdfast_x_count 1\n',
])
def test_the_reader_is_strict(text):
    with pytest.raises((AssertionError, ValueError, IndexError, TypeError)):
        parse_metrics(text)


# What there is

PATHS = {"/": "text/html; charset=utf-8",
         "/metrics": "text/plain; version=0.0.4; charset=utf-8",
         "/livez": "text/plain; charset=utf-8",
         "/readyz": "text/plain; charset=utf-8",
         "/-/healthy": "text/plain; charset=utf-8",
         "/-/ready": "text/plain; charset=utf-8"}


def test_each_path(web):
    for path, kind in PATHS.items():
        for wanted in (path, path + "?verbose", path + "?x=1&verbose=1"):
            reply = web.ask(wanted)
            assert reply.status == 200, wanted
            assert reply.headers["Content-Type"] == kind
            assert int(reply.headers["Content-Length"]) == len(reply.body) > 0
            assert reply.headers["Cache-Control"] == "no-store"
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert reply.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert reply.headers["Connection"] == "close"


def test_head_has_no_body(web):
    for path in PATHS:
        raw = web.raw(b"HEAD %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
        head, _, body = raw.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ") and body == b"", path
        assert re.search(rb"\r\nContent-Length: [1-9]\d*", head)


def test_what_is_not_there(web):
    for path in ("/nope", "/metrics/", "//metrics", "/..", "/%2e%2e/etc/passwd", "/livez%00", "/index.html",
                 "/favicon.ico", "/" + "a" * 2000):
        reply = web.ask(path)
        assert reply.status in (400, 404), path
        assert "passwd" not in reply.text and "aaaa" not in reply.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods(web, method):
    for path in ("/", "/metrics"):
        reply = web.ask(path, method, body=b"x" * 100 if method != "TRACE" else None)
        assert reply.status == 405
        assert reply.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("data", [
    b"BREW / HTTP/1.1\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n", b"GET\r\n\r\n", b"\r\n\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"*1\r\n$4\r\nPING\r\n", b"GET /\x00\x01 HTTP/1.1\r\n\r\n", b"GET http://[ HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9999999\r\n\r\n",
], ids=range(15))
def test_what_is_no_good_request(web, data):
    with web.connect() as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        got = read_to_end(sock)
    assert got == b"" or re.match(rb"HTTP/1\.[01] (4\d\d|501|100) ", got), got[:200]
    assert web.ask("/livez").status == 200


def test_http_1_0_and_absolute_addresses(web):
    assert web.raw(b"GET /livez HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\nok\n")
    assert web.raw(b"GET http://anything.example/livez HTTP/1.1\r\nHost: other\r\n\r\n").endswith(b"ok\n")


def test_one_request_a_connection(web):
    got = web.raw(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n" * 3)
    assert got.count(b"HTTP/1.1 200") == 1 and got.endswith(b"ok\n")


# Readiness

def test_not_ready_without_quorum(make_broker, masters3):
    broker = make_broker(masters3, args=ON)
    web = Http(broker)
    assert web.ask("/readyz").text.startswith("ready: ")
    masters3[1].stop()
    masters3[2].stop()
    reply = wait_for("503", lambda: (lambda r: r if r.status == 503 else None)(web.ask("/readyz")))
    assert re.match(r"not ready: 1 of 3 masters \(b: .*, c: .*\)", reply.text)
    verbose = web.ask("/-/ready?verbose")
    assert verbose.status == 503
    assert "[+]phase: " in verbose.text and "[-]quorum: missing\n" in verbose.text
    assert "[+]master a: votes\n" in verbose.text and "[-]master b: " in verbose.text
    assert verbose.text.endswith("readyz check failed\n")
    assert web.ask("/livez").status == 200
    metrics = web.metrics()
    assert value(metrics, "holdfast_ready") == 0
    assert value(metrics, "holdfast_quorum_available") == 1
    assert value(metrics, "holdfast_quorum_required") == 2
    assert value(metrics, "holdfast_backend_up", node="a") == 1
    assert value(metrics, "holdfast_backend_up", node="c") == 0
    assert web.status()["state"] == "Not ready"
    masters3[1].cont()
    masters3[2].cont()
    wait_for("200", lambda: web.ask("/readyz").status == 200)


def test_not_ready_while_draining(make_broker, masters1, clients):
    broker = make_broker(masters1, args=ON)
    web = Http(broker)
    client = clients(broker)
    client.cmd("LOCK", "held")
    broker.signal(signal.SIGTERM)
    broker.wait_log("server: draining")
    reply = web.ask("/readyz")
    assert reply.status == 503 and reply.text.startswith("draining, ")
    assert "[-]phase: draining\n" in web.ask("/readyz?verbose").text
    assert web.ask("/livez").status == 200
    metrics = web.metrics()
    assert value(metrics, "holdfast_draining") == 1 and value(metrics, "holdfast_ready") == 0
    assert web.status()["state"] == "Draining"
    client.cmd("UNLOCK", "held")
    assert broker.wait() == 0


# Metrics

def test_metrics_follow_what_happens(web, client, clients, broker):
    before = web.metrics()
    client.cmd("LOCK", "m")
    held = web.metrics()
    assert value(held, "holdfast_locks_held", type="exclusive") == 1
    assert 0 < value(held, "holdfast_lease_min_remaining_seconds") <= holdfastproc.LEASE_MS / 1000
    other = clients(broker)
    other.send("LOCK", "m", "WAIT", 0)
    wait_for("a waiter", lambda: value(web.metrics(), "holdfast_lock_waiters") == 1)
    waited_s = value(web.metrics(), "holdfast_lock_longest_wait_seconds")
    wait_for("a longer wait", lambda: value(web.metrics(), "holdfast_lock_longest_wait_seconds") > waited_s)
    assert value(web.metrics(), "holdfast_clients_waiting") == 1
    client.cmd("UNLOCK", "m")
    other.recv()
    other.cmd("UNLOCK", "m")
    client.err("UNLOCK", "m")
    after = web.metrics()

    def grown(name, **labels):
        return value(after, name, **labels) - value(before, name, **labels)
    assert grown("holdfast_lock_acquires_total", outcome="granted") == 2
    assert grown("holdfast_lock_releases_total", reason="client") == 2
    assert grown("holdfast_lock_handovers_total") == 1
    assert grown("holdfast_lock_wait_seconds_count") == 2
    assert grown("holdfast_lock_hold_seconds_count") == 2
    assert value(after, "holdfast_locks_held", type="exclusive") == 0
    assert value(after, "holdfast_lock_waiters") == 0
    assert value(after, "holdfast_commands_total", command="unlock", outcome="failed") == 1
    assert value(after, "holdfast_errors_total", code="NOTHELD") == 1
    assert value(after, "holdfast_command_duration_seconds_count", command="lock") >= 2
    assert value(after, "holdfast_clients_connected") == 2
    assert value(after, "holdfast_backend_request_duration_seconds_count", node="a") > 0
    assert value(after, "process_open_fds") > 3 and value(after, "process_virtual_memory_bytes") > 1e6
    assert grown("holdfast_http_requests_total") >= 3


def test_metrics_that_alerts_are_made_of(web):
    names = {name for name, _ in web.metrics()}
    for name in ("holdfast_build_info", "holdfast_ready", "holdfast_draining", "holdfast_uptime_seconds",
                 "process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds",
                 "holdfast_clients_connected", "holdfast_clients_waiting", "holdfast_connections_received_total",
                 "holdfast_connections_rejected_total", "holdfast_client_disconnects_total",
                 "holdfast_accept_paused_seconds_total", "holdfast_auth_failures_total",
                 "holdfast_protocol_errors_total", "holdfast_net_input_bytes_total",
                 "holdfast_net_output_bytes_total", "holdfast_commands_total",
                 "holdfast_command_duration_seconds_bucket", "holdfast_locks_held", "holdfast_lock_acquires_total",
                 "holdfast_lock_wait_seconds_bucket", "holdfast_lock_hold_seconds_bucket",
                 "holdfast_lock_releases_total", "holdfast_locks_lost_total", "holdfast_lease_renewals_total",
                 "holdfast_lease_renewal_lateness_seconds_bucket", "holdfast_lock_heals_total",
                 "holdfast_fence_writebacks_total", "holdfast_fence_regressions_total", "holdfast_quorum_required",
                 "holdfast_quorum_available", "holdfast_backend_up", "holdfast_backend_state",
                 "holdfast_backend_quarantine_remaining_seconds", "holdfast_backend_restarts_total",
                 "holdfast_backend_data_loss_total", "holdfast_backend_clock_jumps_total",
                 "holdfast_backend_clock_offset_seconds", "holdfast_backend_requests_total",
                 "holdfast_backend_request_duration_seconds_bucket", "holdfast_backend_inflight",
                 "holdfast_backend_reconnects_total", "holdfast_event_loop_lag_seconds_bucket",
                 "holdfast_pauses_detected_total", "holdfast_memory_bytes", "holdfast_config_reloads_total",
                 "holdfast_config_last_reload_success_timestamp_seconds", "process_open_fds", "process_max_fds",
                 "process_virtual_memory_bytes", "process_virtual_memory_max_bytes"):
        assert name in names, name


@pytest.mark.parametrize("name,label,words", [
    ("holdfast_connections_rejected_total", "reason", "max_clients per_address unauthenticated no_descriptor"),
    ("holdfast_client_disconnects_total", "reason",
     "quit closed reset timeout error idle auth_timeout slow_request protocol tls http output_limit killed lost shutdown"),
    ("holdfast_auth_failures_total", "reason", "password missing permission crowded"),
    ("holdfast_protocol_errors_total", "kind", "resp http tls"),
    ("holdfast_lock_acquires_total", "outcome", "granted busy timeout no_quorum late draining"),
    ("holdfast_lock_releases_total", "reason", "client disconnect expired forced"),
    ("holdfast_locks_lost_total", "reason", "no_quorum max_hold gone moved left forced pause"),
    ("holdfast_lease_renewals_total", "outcome", "ok failed lost"),
    ("holdfast_config_reloads_total", "outcome", "ok failed"),
    ("holdfast_memory_bytes", "kind", "used clients locks"),
])
def test_all_labels_are_there_from_the_start(web, name, label, words):
    """So that rate() and increase() see the first event."""
    metrics = web.metrics()
    for word in words.split():
        assert (name, ((label, word),)) in metrics, word


def test_each_end_is_counted_under_its_own_reason(web, broker, client):
    def ends(reason):
        return value(web.metrics(), "holdfast_client_disconnects_total", reason=reason)
    for reason, data in (("http", b"POST / HTTP/1.1\r\n\r\n"), ("tls", b"\x16\x03\x01\x02\x00\x01"),
                         ("protocol", b"*1\r\n$x\r\n")):
        before = ends(reason)
        with socket.create_connection(("127.0.0.1", broker.port), 10) as sock:
            sock.settimeout(20)
            sock.sendall(data)
            read_to_end(sock)
        wait_for("the end by " + reason, lambda: ends(reason) == before + 1)  # pylint: disable=cell-var-from-loop


def test_promtool_has_nothing_to_say(web, client):
    """Where it is installed; our own reader above looks for the same."""
    client.cmd("LOCK", "p")
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=web.ask("/metrics").text, text=True,
                              capture_output=True, timeout=30, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_no_name_of_a_lock_is_a_label(web, client):
    client.cmd("OWNER", "hidden-owner")
    client.cmd("LOCK", "hidden-lock")
    text = web.ask("/metrics").text
    assert "hidden" not in text


def test_reloads_are_counted(web, broker):
    broker.hup()
    wait_for("a reload", lambda: value(web.metrics(), "holdfast_config_reloads_total", outcome="ok") == 1)
    with open(broker.conf, "a", encoding="utf-8") as conf:
        conf.write("nonsense\n")
    broker.hup()
    wait_for("a failed reload",
             lambda: value(web.metrics(), "holdfast_config_reloads_total", outcome="failed") == 1)


# The status page

class Page(HTMLParser):
    """Text and tags of the page; each tag must be closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def look(web, tmp_path):
    """Opens the page in a browser and gives what is there once its script has filled it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("there is no Chromium")

    def look(part=""):
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir=%s" % tmp_path,
             "--enable-logging=stderr", "--virtual-time-budget=1500", "--dump-dom", "http://127.0.0.1:%d/%s" % (web.port, part)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=120, check=True)
        assert "CONSOLE" not in done.stderr, done.stderr  # an error of the script, or what the policy has refused
        return done.stdout
    return look


def test_the_status_tells_what_happens(web, client, clients, broker):
    client.cmd("CLIENT", "SETNAME", "the-holder")
    client.cmd("OWNER", "secret-owner")
    token = client.cmd("LOCK", "page-lock")[0]
    other = clients(broker)
    other.cmd("CLIENT", "SETNAME", "the-waiter")
    other.send("LOCK", "page-lock", "WAIT", 0)
    wait_for("a waiter", lambda: broker.info()["waiters"] == "1")
    status = web.status()
    assert (status["state"], status["voting"], status["quorum"]) == ("Ready", 1, 1)
    assert (status["held"], status["waiting"], set(status["lost"].values()), status["losses"]) == (1, 1, {0}, [])
    (hold,), (wait,) = status["holds"], status["waits"]
    assert (hold["lock"], hold["client_name"], hold["waiting"]) == ("page-lock", "the-holder", 1)
    assert (wait["lock"], wait["client_name"]) == ("page-lock", "the-waiter")
    assert status["masters"][0]["up"] and status["masters"][0]["state"] == "active"
    assert "secret-owner" not in web.ask("/status.json").text
    wait_for("two seconds of curves", lambda: len(web.status()["curves"]["held"]) >= 2)
    clients(broker).cmd("FORCEUNLOCK", "page-lock")
    other.recv()
    status = web.status()
    # The waiter may have been granted it on the way, and lost it too.
    assert ("page-lock", "forced", str(token)) in [(loss["lock"], loss["reason"], loss["token"]) for loss in status["losses"]]
    assert status["lost"]["forced"] == len(status["losses"]) and status["waits"] == []


def test_the_page_shows_what_happens(web, client, clients, broker, look):
    client.cmd("CLIENT", "SETNAME", "the-holder")
    client.cmd("OWNER", "secret-owner")
    token = client.cmd("LOCK", "page-lock")[0]
    other = clients(broker)
    other.cmd("CLIENT", "SETNAME", "the-waiter")
    other.send("LOCK", "page-lock", "WAIT", 0)
    wait_for("a waiter and curves", lambda: web.status()["waiting"] == 1 and len(web.status()["curves"]["held"]) > 1)
    html = look()
    page = Page(html)
    assert "Ready" in page.text and "1 of 1 vote, a lock needs 1" in page.text
    assert "shortest lease" in page.text and "In jeopardy 0 none" in page.text and "of at most" in page.text
    assert page.text.count("the-waiter") == page.text.count("the-holder") == 2
    assert page.text.count("page-lock") == 3  # contended, waited for, held
    assert "the-holder" in page.text and "the-waiter" in page.text
    assert [attrs for tag, attrs in page.tags if tag == "p" and attrs.get("id") == "no-losses" and "hidden" not in attrs]
    assert [attrs for tag, attrs in page.tags if tag == "p" and attrs.get("id") == "no-waits" and "hidden" in attrs]
    assert not [attrs for tag, attrs in page.tags if tag == "main" and "hidden" in attrs]
    assert [tag for tag, _ in page.tags].count("polyline") == 7
    assert html.partition('id="times"')[2].partition("</tbody>")[0].count("<td") == 7 * 5
    assert "<title>Ready \u00b7 holdfast</title>" in html
    assert "secret-owner" not in page.text
    clients(broker).cmd("FORCEUNLOCK", "page-lock")
    other.recv()
    page = Page(look())
    assert str(token) in page.text and "forced" in page.text and "an administrator said FORCEUNLOCK" in page.text
    assert re.search(r"Lost 0 none, [12] wanted", page.text)  # no alarm
    assert [attrs for tag, attrs in page.tags if tag == "p" and attrs.get("id") == "no-waits" and "hidden" not in attrs]


def test_the_status_groups_who_waits_and_who_holds(web, clients, broker):
    writers, readers = [clients(broker) for _ in range(4)], [clients(broker) for _ in range(3)]
    for reader in readers:
        reader.cmd("CLIENT", "SETNAME", "report")
        reader.cmd("LOCK", "busy", "SHARED")
    for i, writer in enumerate(writers):
        writer.cmd("CLIENT", "SETNAME", "batch" if i else "night")
        writer.send("LOCK", "busy", "WAIT", 0)
    other, late = clients(broker), clients(broker)
    other.cmd("LOCK", "calm")
    late.send("MLOCK", 2, "free", "calm", "WAIT", 0)
    wait_for("five who wait", lambda: web.status()["waiting"] == 5)
    busy, calm = web.status()["contended"]
    assert (busy["lock"], busy["holding"], busy["kind"], busy["waiting"]) == ("busy", 3, "shared", 4)
    assert busy["holders"] == [{"client": "report", "kind": "shared", "n": 3}]
    assert busy["waiters"] == [{"client": "batch", "kind": "exclusive", "n": 3},
                               {"client": "night", "kind": "exclusive", "n": 1}]
    assert (calm["lock"], calm["waiting"], calm["holding"]) == ("calm", 1, 1)
    rows = [{k: v for k, v in zip(row[::2], row[1::2])} for row in other.cmd("CONTENDED")]
    assert [(row["lock"], row["waiting"], row["holding"]) for row in rows] == [("busy", 4, 3), ("calm", 1, 1)]
    assert rows[0]["waiters"] == [["client", "batch", "kind", "exclusive", "count", 3],
                                  ["client", "night", "kind", "exclusive", "count", 1]]
    assert [dict(zip(row[::2], row[1::2]))["lock"] for row in other.cmd("CONTENDED", "COUNT", 1)] == ["busy"]
    assert "COUNT 1..100" in str(other.err("CONTENDED", "COUNT", "101"))
    for reader in readers:
        reader.cmd("UNLOCK", "busy")
    wait_for("the next one's turn", lambda: web.status()["contended"][0]["waiting"] == 3)
    assert web.status()["contended"][0]["holders"] == [{"client": "night", "kind": "exclusive", "n": 1}]
    for one in (*writers, other, late):
        one.close()
    wait_for("nobody who waits", lambda: web.status()["contended"] == [])


def test_refusals_time_outs_and_errors_per_second(web, client, clients, broker):
    other = clients(broker)
    client.cmd("LOCK", "taken")
    for _ in range(3):
        assert other.cmd("LOCK", "taken") is None
    assert other.cmd("LOCK", "taken", "WAIT", 1) is None
    other.err("UNLOCK", "never")
    curves = wait_for("a sample", lambda: (lambda c: c if sum(c["errors"]) else None)(web.status()["curves"]))
    assert (sum(curves["refused"]), sum(curves["timed_out"]), sum(curves["errors"])) == (3, 1, 1)
    status = web.status()
    assert (status["refused"], status["timed_out"], status["errors"]) == (3, 1, 1)


def test_locks_in_jeopardy_are_named(make_broker, masters3, clients):
    broker = make_broker(masters3, args=ON)
    web, client = Http(broker), clients(broker)
    client.cmd("LOCK", "precious")
    assert web.status()["in_jeopardy"] == []
    masters3[0].stop()
    masters3[1].stop()
    status = wait_for("jeopardy", lambda: (lambda s: s if s["in_jeopardy"] else None)(web.status()))
    row, = status["in_jeopardy"]
    assert status["jeopardy"] == 1 and row["lock"] == "precious" and row["left_ms"] > 0
    masters3[0].cont()
    masters3[1].cont()
    wait_for("safety", lambda: web.status()["in_jeopardy"] == [])


def test_masters_tell_their_version_and_since_when(make_broker, masters3, clients):
    broker = make_broker(masters3, args=ON)
    web, client = Http(broker), clients(broker)
    first = web.status()["masters"][0]
    assert re.match(r"\d+\.\d+", first["version"]) and first["since_ms"] >= 0
    wait_for("more time", lambda: web.status()["masters"][0]["since_ms"] > first["since_ms"])
    masters3[0].stop()
    down = wait_for("a master that is stopped", lambda: (lambda m: None if m["up"] else m)(web.status()["masters"][0]))
    wait_for("more time, with all its tries to connect", lambda: web.status()["masters"][0]["since_ms"] > down["since_ms"] + 2000)
    told = {k: v for k, v in zip(*[iter(client.cmd("MASTERS")[0])] * 2)}
    assert told["name"] == "a" and told["since_ms"] > 2000
    masters3[0].cont()
    wait_for("its return", lambda: (lambda m: m["up"] and m["since_ms"] < 2000)(web.status()["masters"][0]))


def find(web, text):
    """All that a search finds: the names of locks, and of those of commands of Redis; and in how many requests."""
    locks, drop_in, cursor, n = set(), set(), "0", 0
    while n == 0 or cursor != "0":
        reply = web.ask("/locks.json?" + urllib.parse.urlencode({"find": text, "cursor": cursor}))
        assert reply.status == 200 and reply.headers["Content-Type"] == "application/json"
        found = json.loads(reply.text)
        locks |= {lock["lock"] for lock in found["locks"]}
        drop_in |= {row["lock"] for row in found["drop_in"]}
        cursor, n = found["cursor"], n + 1
    return locks, drop_in, n


def test_a_search_finds_locks(web, client, clients, broker):
    for i in range(50):
        client.cmd("LOCK", "orders:%d" % i)
    client.cmd("LOCK", "a b&c=*+\u00e9")
    clients(broker).cmd("SET", "redis-orders", "x", "NX", "PX", 20000)
    assert find(web, "orders:4")[:2] == ({"orders:4"} | {"orders:4%d" % i for i in range(10)}, set())
    every = find(web, "orders")
    assert every[:2] == ({"orders:%d" % i for i in range(50)}, {"redis-orders"}) and every[2] > 1
    assert find(web, "orders:?")[0] == {"orders:%d" % i for i in range(10)}
    assert find(web, "b&c=\\*+\u00e9")[0] == set()  # a pattern, and of the whole name
    assert find(web, "*b&c=\\*+\u00e9")[0] == {"a b&c=*+\u00e9"}
    assert find(web, "nothing like that")[:2] == (set(), set())
    for query in ("", "?find=", "?cursor=0", "?find=a&cursor=x", "?find=a&cursor=-1", "?find=" + "a" * 257, "?%"):
        assert web.ask("/locks.json" + query).status == 400, query
    assert web.ask("/locks.json?find=a", headers={"Host": "evil.example"}).status == 421


def test_the_other_brokers(make_broker, masters1):
    other = make_broker(masters1)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        silent = "127.0.0.1:%d" % nobody.getsockname()[1]
        broker = make_broker(masters1, args=(*ON, "-o", "announce=127.0.0.1:1", "-o", "peers=127.0.0.1:%d %s" % (other.port, silent)))
        web = Http(broker)
        wait_for("the peer's word", lambda: web.status()["peers"][0]["up"])
        peers = web.status()["peers"]
        assert [peer["state"] for peer in peers] == ["ready", "silent"] and peers[1]["address"] == silent
        assert 0 <= peers[0]["heard_ms"] < 3000 and peers[1]["heard_ms"] == -1
        assert value(web.metrics(), "holdfast_peer_up", peer="127.0.0.1:%d" % other.port) == 1
        assert value(web.metrics(), "holdfast_peer_up", peer=silent) == 0
        with broker.connect() as client:
            assert "peer0:address=127.0.0.1:%d,state=ready," % other.port in client.cmd("INFO", "holdfast")
            client.cmd("PAUSE")
            wait_for("clients sent to the other", lambda: web.status()["peers"][0]["named"])
        other.stop()
        wait_for("the peer's silence", lambda: web.status()["peers"][0]["state"] == "silent")
        other.cont()


def test_the_page_finds_locks(client, look):
    for lock in ("orders:1", "orders:2", "else"):
        client.cmd("LOCK", lock)
    found = look("#find=rders").partition('id="locks-title"')[2].partition("</section>")[0]
    assert "Found, 2" in found and "orders:1" in found and "orders:2" in found and "else" not in found


EVIL = "</main><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x1b[31m"


@pytest.fixture
def strangers(web, client, clients, broker):
    """Holds and waits for locks with names that try to be more than names."""
    client.cmd("CLIENT", "SETNAME", "<b>bold</b>")
    client.cmd("LOCK", EVIL)
    other = clients(broker)
    other.send("LOCK", EVIL, "WAIT", 0)
    wait_for("a waiter", lambda: broker.info()["waiters"] == "1")
    client.send("LOCK", b"\xff\xfe\x80 raw")
    assert client.recv()


def test_strangers_names_in_the_status(web, strangers):
    text, status = web.ask("/status.json").text, web.status()
    assert "\u202e" not in text and "\x1b" not in text and "\\u202e" not in text and "\\u001b" not in text
    shown = EVIL.replace("\u202e", "\\xe2\\x80\\xae").replace("\x1b", "\\x1b")
    assert {hold["lock"] for hold in status["holds"]} == {shown, "\\xff\\xfe\\x80 raw"}
    assert {hold["client_name"] for hold in status["holds"]} == {"<b>bold</b>"}


def test_strangers_names_stay_text(web, strangers, look):
    page = Page(look("#find=*"))
    assert "<b>bold</b>" in page.text and "Found, 2" in page.text and "img" not in [tag for tag, _ in page.tags]
    html = look()
    page = Page(html)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "img" not in [tag for tag, _ in page.tags] and "b" in [tag for tag, _ in page.tags]
    assert "<b>bold</b>" in page.text and "alert(2)" in page.text
    assert "\u202e" not in html and "\x1b" not in html
    assert "\\xff\\xfe\\x80 raw" in page.text
    for tag, attrs in page.tags:
        assert not any(name.startswith("on") or name == "style" for name in attrs), (tag, attrs)
        assert tag in ("a", "link", "script") or not {"src", "href"} & set(attrs), (tag, attrs)
        assert attrs.get("src", "page.js") == "page.js"


def test_the_page_without_its_script(web):
    page = Page(web.ask("/").text)
    assert "noscript" in [tag for tag, _ in page.tags]
    assert "needs JavaScript" in page.text and "holdfast top" in page.text
    assert [attrs for tag, attrs in page.tags if tag == "main" and "hidden" in attrs]


def test_numbers_for_people():
    """page.js without a page: the browser is a stub that never looks."""
    node = shutil.which("node")
    if not node:
        pytest.skip("there is no node")
    script = os.path.join(os.path.dirname(__file__), "../../src/http/page.js")
    asked = {"us(0)": "0 \u00b5s", "us(999)": "999 \u00b5s", "us(1250)": "1.3 ms", "us(12000)": "12 ms",
             "us(3400000)": "3.4 s", "ms(999)": "999 ms", "ms(9500)": "9.5 s", "ms(59999)": "59 s", "ms(60000)": "1 min",
             "ms(192000)": "3 min 12 s", "ms(7500000)": "2 h 5 min", "ms(86400000)": "1 d", "ms(90061000)": "1 d 1 h",
             "quantileText(undefined, 0)": "\u2013", "quantileText(999, 1000)": "< 1.0 ms", "quantileText(0, 0)": "0 \u00b5s",
             "count(0)": "0", "count(999)": "999", "count(1000)": "1|000", "count(1002003)": "1|002|003",
             # what was seen: of this run of the broker, and no more than there is after CONFIG RESETSTAT
             "countSeen({id: 'a'}, 5)": "3", "countSeen({id: 'a'}, 2)": "2", "countSeen({id: 'b'}, 5)": "0"}
    run = """
        const element = {addEventListener() {}};
        const [script, ...asked] = process.argv.slice(1);
        const context = require('vm').createContext({document: {hidden: true, getElementById: () => element}, setTimeout: () => 0,
            URLSearchParams, location: {hash: ''}, localStorage: {getItem: () => '{"id": "a", "n": 3}'}});
        const evaluate = text => require('vm').runInContext(text, context);
        evaluate(require('fs').readFileSync(script, 'utf-8'));
        console.log(JSON.stringify(asked.map(text => String(evaluate(text)))));
    """
    out = subprocess.run([node, "-e", run, script, *asked], stdout=subprocess.PIPE, timeout=60, check=True).stdout
    got = [text.replace("\u00a0", " ").replace("\u202f", "|") for text in json.loads(out)]
    assert dict(zip(asked, got)) == asked


def test_the_page_answers_to_hosts_of_its_own_only(web, client, clients):
    """A page of elsewhere can have its name lead here; the browser says that name."""
    client.cmd("LOCK", "secret:1")
    for host in ("evil.example", "evil.example:%d" % web.port, "127.0.0.1.evil.example", "<b>\u202e".encode()):
        for path in ("/", "/status.json"):
            reply = web.ask(path, headers={"Host": host})
            assert reply.status == 421 and "secret" not in reply.text
            assert "hosts in section [http]" in reply.text and "\u202e" not in reply.text
            assert reply.headers["Content-Type"].startswith("text/plain")
        for path in ("/metrics", "/livez", "/readyz?verbose", "/-/ready"):  # of any name: they show none of a lock
            reply = web.ask(path, headers={"Host": host})
            assert reply.status == 200 and "secret" not in reply.text
    for host in ("127.0.0.1:%d" % web.port, "localhost", "[::1]:1", "192.0.2.1", socket.gethostname()):
        assert "secret:1" in web.ask("/status.json", headers={"Host": host}).text
        assert web.ask("/", headers={"Host": host}).status == 200
    for path in ("/", "/status.json"):
        assert web.ask(path, headers={"Host": "[::1]evil"}).status == 421
    assert b" 421 Misdirected Request\r\n" in web.raw(b"GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n")
    assert b" 200 OK" in web.raw(b"GET / HTTP/1.0\r\n\r\n")
    for second in (b"localhost", b"evil.example"):
        assert web.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nhost: %s\r\n\r\n" % second).startswith(b"HTTP/1.1 400 ")
    admin = clients(web.broker)
    assert admin.cmd("CONFIG", "SET", "http.hosts", "locks.example, other") == "OK"
    assert "secret:1" in web.ask("/status.json", headers={"Host": "LOCKS.example:80"}).text
    assert web.ask("/", headers={"Host": "evil.example"}).status == 421
    assert "names of hosts" in str(admin.err("CONFIG", "SET", "http.hosts", "locks.example:80"))
    assert admin.cmd("CONFIG", "SET", "http.hosts", "*") == "OK"
    assert web.ask("/", headers={"Host": "evil.example"}).status == 200


def test_the_policy_of_the_page(web):
    files = {"/": "text/html", "/style.css": "text/css", "/page.js": "text/javascript", "/status.json": "application/json",
             "/locks.json?find=x": "application/json"}
    for path, kind in files.items():
        reply = web.ask(path)
        policy = reply.headers["Content-Security-Policy"]
        assert reply.headers["Content-Type"].startswith(kind) and reply.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'; style-src 'self'; script-src 'self'; " in policy
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    tags = Page(web.ask("/").text).tags
    assert any(tag == "meta" and attrs.get("name") == "viewport" for tag, attrs in tags)
    for tag, attrs in tags:
        assert "style" not in attrs and tag != "style" and not any(name.startswith("on") for name in attrs)
        assert tag != "script" or attrs["src"] == "page.js"
        assert not re.match(r"[a-z]+:|//", attrs.get("href", "")) or attrs["href"] == "data:,"


# What it bears

def test_huge_headers(web):
    for data in (b"GET / HTTP/1.1\r\nX: " + b"a" * 100000 + b"\r\n\r\n",
                 b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
                 b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                 b"a" * 1000000):
        got = web.raw(data)
        assert got == b"" or re.match(rb"HTTP/1\.[01] 4\d\d ", got), got[:100]
    assert web.ask("/livez").status == 200


def test_huge_bodies(web):
    got = web.raw(b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + b"b" * 1000000)
    assert got == b"" or got.startswith(b"HTTP/1.1 413 "), got[:100]
    got = web.raw(b"POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 413 "), got[:100]
    assert procs.rss_kb(web.broker.proc.pid) < 500000


def test_a_trickle_of_headers_is_cut(web, client):
    """A byte every 200 ms is never silence: the whole request has its time."""
    start = time.monotonic()
    with web.connect() as sock:
        sock.sendall(b"GET /livez HTTP/1.1\r\nX: ")
        sock.settimeout(0.2)
        while time.monotonic() - start < 20:
            try:
                if sock.recv(100) == b"":
                    break
            except TimeoutError:
                pass
            except OSError:
                break
            try:
                sock.sendall(b"a")
            except OSError:
                break
    took = time.monotonic() - start
    assert 9 < took < 14
    assert value(web.metrics(), "holdfast_http_connections_cut_total") == 1
    assert client.cmd("PING") == "PONG"


def test_silence_is_cut(web):
    start = time.monotonic()
    socks = [web.connect() for _ in range(3)]
    socks[1].sendall(b"GET / HT")
    for sock in socks:
        assert read_to_end(sock) == b""
        sock.close()
    assert time.monotonic() - start < 9


def test_a_reader_that_does_not_read_is_cut(web):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.connect(("127.0.0.1", web.port))
        sock.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        wait_for("the end of it", lambda: open_conns(web) == 1, 14)


def open_conns(web):
    """Descriptors of the broker that are connections of the HTTP port: /metrics itself counts."""
    inodes = set()
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table.readlines()[1:]:
            words = line.split()
            if int(words[1].split(":")[1], 16) == web.port and words[3] != "0A":
                inodes.add(words[9])
    fds = "/proc/%d/fd" % web.broker.proc.pid
    n = 0
    for fd in os.listdir(fds):
        try:
            target = os.readlink("%s/%s" % (fds, fd))
        except OSError:
            continue
        n += target[8:-1] in inodes
    return n + 1


def test_many_connections(web, client):
    """A crowd that says nothing: monitoring waits a little, clients not at all."""
    crowd = [web.connect() for _ in range(3 * CONNS_MAX)]
    wait_for("the crowd", lambda: open_conns(web) >= CONNS_MAX)
    start = time.monotonic()
    assert client.cmd("PING") == "PONG"
    assert time.monotonic() - start < 2
    start = time.monotonic()
    assert web.ask("/livez", timeout=15).status == 200
    assert time.monotonic() - start < 12
    assert open_conns(web) <= CONNS_MAX + 2
    for sock in crowd:
        sock.close()
    wait_for("their end", lambda: open_conns(web) <= 2)
    assert web.ask("/metrics").status == 200


def test_many_requests_one_after_the_other(web):
    fds = len(os.listdir("/proc/%d/fd" % web.broker.proc.pid))
    for i in range(300):
        assert web.ask("/livez" if i % 10 else "/status.json").status == 200
    wait_for("descriptors", lambda: len(os.listdir("/proc/%d/fd" % web.broker.proc.pid)) <= fds + 1)


def test_a_burst_of_requests_is_answered(web):
    socks = [web.connect() for _ in range(CONNS_MAX - 4)]
    for sock in socks:
        sock.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    for sock in socks:
        got = read_to_end(sock)
        parse_metrics(got.partition(b"\r\n\r\n")[2].decode())
        sock.close()


def test_half_closed_and_reset(web):
    with web.connect() as sock:
        sock.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        read_to_end(sock)
    for data in (b"", b"GET", b"GET / HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/1.1\r\n\r\n"):
        sock = web.connect()
        sock.sendall(data)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        sock.close()
    assert web.ask("/livez").status == 200
    wait_for("their end", lambda: open_conns(web) <= 2)


def test_ends_with_connections_open(web, broker):
    """Nothing of them is left over: the leak checker looks at it too."""
    crowd = [web.connect() for _ in range(5)]
    crowd[0].sendall(b"GET / HT")
    crowd[1].sendall(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc")
    wait_for("the crowd", lambda: open_conns(web) >= 6)
    broker.signal(signal.SIGTERM)
    assert broker.wait() == 0
    for sock in crowd:
        assert read_to_end(sock) == b""
        sock.close()


def test_without_descriptors(make_broker, masters1):
    """accept(2) fails: no spin, and it comes back."""
    broker = make_broker(masters1, args=ON)
    web = Http(broker)
    pid = broker.proc.pid
    used = len(os.listdir("/proc/%d/fd" % pid))
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 4, hard))
    crowd = [web.connect() for _ in range(10)]
    broker.wait_log("http: cannot accept a connection")
    # The next line says how often it has tried since: ten times a second.
    again = broker.wait_log(r"http: cannot accept a connection.* swallowed=([1-9]\d*)")
    assert int(again.group(1)) < 40
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    for sock in crowd:
        sock.close()
    wait_for("an answer", lambda: web.ask("/livez").status == 200)


# Addresses

def test_off(make_broker, masters1):
    broker = make_broker(masters1, args=("-o", "http.listen=off"))
    assert "http:" not in broker.log_text()
    with broker.connect() as client:
        assert client.cmd("CONFIG", "GET", "http.listen") == ["http.listen", "off"]


def test_several_addresses(make_broker, masters1):
    broker = make_broker(masters1, args=("-o", "http.listen=127.0.0.1:0 127.0.0.2:0"))
    ports = {host: int(port) for host, port in
             re.findall(r"metrics on http://(127\.0\.0\.[12]):(\d+)/", broker.log_text())}
    assert len(ports) == 2
    for host, port in ports.items():
        conn = http.client.HTTPConnection(host, port, timeout=10)
        conn.request("GET", "/livez")
        assert conn.getresponse().status == 200
        conn.close()


def test_an_address_that_is_taken(make_broker, masters1):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        broker = make_broker(masters1, start=False, args=("-o", "http.listen=127.0.0.1:%d" % port))
        broker.expect_status = 1
        broker.spawn()
        assert broker.wait() == 1
        assert re.search(r"^holdfastd: cannot listen on 127\.0\.0\.1:%d \(http\.listen\): Address already in use$" % port,
                         broker.log_text(), re.M)


def test_a_unix_socket_is_refused():
    status, _, err = holdfastproc.run("-t", "--dev", "-o", "http.listen=unix:/tmp/x")
    assert status == 1 and "http.listen: unix:/tmp/x is no TCP address" in err


def test_an_open_address_is_warned_of():
    status, _, err = holdfastproc.run("-t", "--dev", "-o", "http.listen=*:9625")
    assert status == 0 and "sees the names of locks" in err


def test_a_change_needs_a_restart(broker, client):
    assert "needs a restart" in str(client.err("CONFIG", "SET", "http.listen", "off"))
