"""The alerts and the dashboard that come along: right by themselves, and about what a broker really tells Prometheus."""

import http.client
import json
import os
import re
import shutil
import subprocess
import urllib.parse

import pytest

import procs
from procs import free_ports, wait_for
from test_http import ON, Http
from test_tls import Authority, make_tls_broker  # noqa: F401

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RULES = os.path.join(TOP, "etc", "prometheus", "holdfast.rules.yml")
DASHBOARD = os.path.join(TOP, "etc", "grafana", "holdfast.json")
MANUAL = os.path.join(TOP, "man", "holdfast.ini.5")

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="prometheus is not installed")


def promtool(*args):
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rule_expressions():
    """As they stand in the file, each on one line: {name of the alert, or of what is recorded: expression}."""
    return dict(re.findall(r"- (?:alert|record): (\S+)\n +expr: (.+)\n", read(RULES)))


def dashboard_expressions():
    dashboard = json.loads(read(DASHBOARD))
    found = [t["expr"] for panel in dashboard["panels"] for t in panel.get("targets", [])]
    assert len(found) > 20
    return found


def names_in(expressions):
    found = set()
    for text in expressions:
        text = re.sub(r'"[^"]*"', "", text)                       # values of labels
        found.update(re.findall(r"\b((?:holdfast|process)_\w+)", re.sub(r"instance(?:_node)?:\S+", "", text)))
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in found}


def test_rules():
    assert "SUCCESS" in promtool("check", "rules", RULES)
    promtool("test", "rules", os.path.join(TOP, "tests", "prometheus", "holdfast.test.yml"))


def test_each_alert_is_tried():
    tried = read(os.path.join(TOP, "tests", "prometheus", "holdfast.test.yml"))
    for alert in re.findall(r"- alert: (\S+)", read(RULES)):
        assert alert in tried, alert


def test_the_manual_has_the_same():
    """What to alert on, in holdfast.ini(5)."""
    section = read(MANUAL).partition(".Ss What to alert on")[2].partition(".Sh ")[0]
    told = [line.partition("Li ")[2].replace(r"\(ti", "~").replace('""', '"')
            for line in section.split("\n") if line.startswith(".It Li ")]
    told = [text.strip('"') if text.count('"') % 2 else text for text in told]
    alerts = [expr for name, expr in rule_expressions().items() if ":" not in name]
    assert sorted(told) == sorted(alerts)


@pytest.fixture
def tls_broker(make_redis, make_tls_broker, tmp_path):
    """Over TLS, so that it has a certificate to tell of, and with a request that waits."""
    authority = Authority(tmp_path)
    cert, key = authority.issue("server")
    return make_tls_broker([make_redis("a")], {"certificate": cert, "key": key}, args=ON)


def families(http):
    return set(re.findall(r"^# TYPE (\S+) ", http.ask("/metrics").text, re.M))


def test_what_they_name_is_there(tls_broker, clients, name):
    clients(tls_broker).cmd("LOCK", name)
    clients(tls_broker).send("LOCK", name, "WAIT", 0)
    http_side = Http(tls_broker)
    named = names_in(list(rule_expressions().values()) + dashboard_expressions())
    assert "holdfast_lock_longest_wait_seconds" in named
    wait_for("the one that waits", lambda: "holdfast_lock_longest_wait_seconds" in families(http_side))
    # of a quarantine alone
    missing = named - families(http_side) - {"holdfast_backend_roll_call_missing"}
    assert not missing, missing


def test_dashboard():
    dashboard = json.loads(read(DASHBOARD))
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    assert {v["name"] for v in dashboard["templating"]["list"]} == {"datasource", "job", "instance"}
    boxes = [p["gridPos"] for p in dashboard["panels"]]
    cells = [(x, y) for b in boxes for x in range(b["x"], b["x"] + b["w"]) for y in range(b["y"], b["y"] + b["h"])]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert max(x for x, _ in cells) == 23
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] == panel["datasource"]["uid"] == "${datasource}"


class Prometheus:
    """A real one, which scrapes brokers four times a second."""

    def __init__(self, where, ports):
        self.port = free_ports(1)[0]
        config = where / "prometheus.yml"
        config.write_text("global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}\n"
                          "rule_files: [%s]\n"
                          "scrape_configs: [{job_name: holdfast, static_configs: [{targets: [%s]}]}]\n" % (
                              os.path.realpath(RULES), ", ".join("'127.0.0.1:%d'" % port for port in ports)))
        with open(where / "prometheus.log", "wb") as log:
            self.proc = procs.spawn(["prometheus", "--config.file=%s" % config, "--storage.tsdb.path=%s" % (where / "data"),
                                     "--web.listen-address=127.0.0.1:%d" % self.port], stdout=log, stderr=log)
        wait_for("Prometheus", self.is_ready, 30)

    def ask(self, path, **query):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            conn.request("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))
            reply = conn.getresponse()
            return reply.status, reply.read()
        finally:
            conn.close()

    def data(self, path, **query):
        status, body = self.ask(path, **query)
        assert status == 200, body
        return json.loads(body)["data"]

    def is_ready(self):
        try:
            return self.ask("/-/ready")[0] == 200
        except OSError:
            return False

    def values(self, expr):
        return self.data("/api/v1/query", query=expr)["result"]

    def close(self):
        self.proc.kill()
        self.proc.wait()


@pytest.fixture
def make_prometheus(tmp_path):
    made = []

    def make(*ports):
        made.append(Prometheus(tmp_path, ports))
        return made[-1]
    yield make
    for prometheus in made:
        prometheus.close()


def rules_of(prometheus):
    return [rule for group in prometheus.data("/api/v1/rules")["groups"] for rule in group["rules"]]


def alert_of(prometheus, name):
    return next(rule for rule in rules_of(prometheus) if rule["name"] == name)["state"]


def test_a_real_prometheus(make_redis, make_broker, clients, make_prometheus, name):
    """Each expression can be evaluated, and an outage of the master is seen."""
    redis = make_redis("a")
    broker = make_broker([redis], args=ON)
    http_side = Http(broker)
    with_lock = clients(broker)
    with_lock.cmd("LOCK", name)
    prometheus = make_prometheus(http_side.port)
    wait_for("a scrape", lambda: prometheus.values("holdfast_ready == 1"))
    wait_for("an evaluation", lambda: all(rule["health"] == "ok" for rule in rules_of(prometheus)))
    assert prometheus.values("sum(holdfast_locks_held)")[0]["value"][1] == "1"
    for expr in dashboard_expressions():
        expr = expr.replace("$instance", ".+").replace("$job", ".+").replace("$__rate_interval", "5m")
        prometheus.values(expr)
    assert alert_of(prometheus, "HoldfastNotReady") == "inactive"
    redis.kill()
    wait_for("the outage", lambda: alert_of(prometheus, "HoldfastNotReady") == "pending", 30)
