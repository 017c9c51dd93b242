"""Masters that come back empty, as clients and operators see it: what is held stays held, who waits is served."""

import json
import re
import socket
import threading

from procs import wait_for
from respclient import as_map
from test_cli import cli, ok
from test_http import Http, value

ON = ("-o", "http.listen=127.0.0.1:0")


class Closing:
    """A master's address at which every connection is closed at once; counts them."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.name, self.url = "a", "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.tries = 0
        self.enough = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                self.listener.accept()[0].close()
            except OSError:
                return
            self.tries += 1
            if self.tries == 100:
                self.enough.set()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_a_master_that_is_away_is_tried_often(make_broker):
    """Else nobody gets a lock for a second or two after its return. Doubling up to 2 s, 100 tries take a minute."""
    with Closing() as master:
        make_broker([master], ready=False)
        assert master.enough.wait(15), master.tries


# What operators see

def masters_of(broker):
    with broker.connect() as client:
        return [as_map(row) for row in client.cmd("MASTERS")]


def test_operators_see_who_has_not_signed(make_broker, masters1):
    """A broker of the list that was never there, and one that has only just come: nobody has signed."""
    broker = make_broker(masters1, ready=False, args=ON, options={
        "quarantine": "auto", "name": "left", "brokers": "left right"})
    wait_for("the answer of the master", lambda: masters_of(broker)[0]["missing"] == "left,right")
    web, row = Http(broker), masters_of(broker)[0]
    assert row["quarantine_left_ms"] > 0 and row["signed"] == "" and row["no_roll_call"] == ""
    ready = web.ask("/readyz?verbose")
    assert ready.status == 503
    assert re.search(r"master a: quarantined \S+, waits for left,right; not by this broker: \w+", ready.text), ready.text
    assert re.search(r"^\[-\]roll call: this broker cannot sign for \S+ more", ready.text, re.M), ready.text
    assert "waits for left,right" in web.ask("/readyz").text
    shown = web.status()["masters"][0]
    assert shown["missing"] == "left,right" and shown["signed"] == "" and shown["unsigned_why"]
    metrics = web.metrics()
    for name in "left", "right":
        assert value(metrics, "holdfast_backend_roll_call_missing", node="a", broker=name) == 1
    assert value(metrics, "holdfast_roll_call") == 1
    assert value(metrics, "holdfast_roll_call_memory_left_seconds") > 0
    assert "waits for left,right" in ok(broker, "masters")
    assert json.loads(ok(broker, "masters", "--json"))[0]["missing"] == "left,right"
    assert "waits for left,right" in cli(broker, "ping")[1]


def test_without_a_list_there_is_no_roll_call(make_broker, masters1):
    broker = make_broker(masters1, ready=False, args=ON, options={"quarantine": "auto"})
    wait_for("the quarantine", lambda: masters_of(broker)[0]["state"] == "quarantine")
    web = Http(broker)
    ready = web.ask("/readyz?verbose").text
    assert "waits for" not in ready and "roll call" not in ready and "signed" not in ready
    assert not any(name == "holdfast_backend_roll_call_missing" for name, _ in web.metrics())
    assert value(web.metrics(), "holdfast_roll_call") == 0


# Who waits

def test_who_waits_is_asked_for_as_soon_as_a_majority_is_back(make_broker, masters1, clients):
    """And not when his next retry is due: all have what they want before one who asks anew has had 150 grants."""
    broker = make_broker(masters1)
    master, = masters1
    master.kill()
    wait_for("the end of the link", lambda: broker.info()["quorum_available"] == "0")
    waiting = [clients(broker) for _ in range(20)]
    for i, client in enumerate(waiting):
        client.send(*(("LOCK", "w%d" % i) if i % 2 else ("MLOCK", 2, "w%d" % i, "m%d" % i)), "WAIT", 50000)
    wait_for("the waiters", lambda: broker.info()["waiters"] == "20")
    master.start()
    other, grants = clients(broker), 0
    while grants < 150:
        other.send("LOCK", "n%d" % grants, "LEASE", 5000)
        grants += isinstance(other.recv(), list)
    for client in waiting:
        assert isinstance(client.recv(0.001), list)


def test_who_does_not_wait_is_told_at_once(make_broker, masters1, clients):
    broker = make_broker(masters1)
    client = clients(broker)
    masters1[0].kill()
    wait_for("the end of the link", lambda: broker.info()["quorum_available"] == "0")
    for words in ("LOCK", "n"), ("MLOCK", 2, "n", "m"):
        for wait in (), ("WAIT", 300):
            assert client.err(*words, *wait).code == "NOQUORUM"
    assert broker.info()["waiters"] == "0"
