"""holdfast, the companion command, with rediss:// addresses."""

import json
import signal

import pytest

from procs import wait_for
from test_cli import LOST, NO_BROKER, USAGE, cli, cli_env, is_held, ok, running  # noqa: F401
from test_tls import ca, make_tls_broker, other_ca, pytestmark, server_files  # noqa: F401

# pylint: disable=redefined-outer-name


@pytest.fixture
def broker(make_tls_broker, masters1, server_files):  # noqa: F811
    return make_tls_broker(masters1, {"certificate": server_files[0], "key": server_files[1]},
                           options={"lease": "20s", "request_timeout": "10s"})


def url_of(broker):
    return "rediss://127.0.0.1:%d" % broker.tls_port


@pytest.fixture
def env(broker, ca):  # noqa: F811
    return {"HOLDFAST_URL": url_of(broker), "HOLDFAST_CACERT": ca.cert}


def test_looking(broker, clients, ca, env):  # noqa: F811
    client = clients(broker)
    client.pipeline(*(("LOCK", "tls:%04d" % i) for i in range(2000)))
    assert "ready: 1 of 1" in ok(None, "ping", "-u", url_of(broker), "--cacert", ca.cert)
    assert len(json.loads(ok(None, "ls", "--json", **env))) == 2000
    assert "tls:0000" in ok(None, "show", "tls:0000", **env)
    assert "ready" in ok(None, "top", **env)


def test_whom_to_believe(broker, other_ca, make_tls_broker, masters1, ca):  # noqa: F811
    for more in ({}, {"HOLDFAST_CACERT": other_ca.cert}):
        status, out, err = cli(None, "ping", HOLDFAST_URL=url_of(broker), **more)
        assert (status, out) == (NO_BROKER, "") and "certificate of the peer is not good" in err
    status, _, err = cli(None, "ping", "--cacert", "/no/such/file", HOLDFAST_URL=url_of(broker))
    assert status == USAGE and "/no/such/file" in err
    cert, key = ca.issue("elsewhere", names="DNS:elsewhere.example")
    elsewhere = make_tls_broker(masters1, {"certificate": cert, "key": key})
    status, _, err = cli(None, "ping", HOLDFAST_URL=url_of(elsewhere), HOLDFAST_CACERT=ca.cert)
    assert status == NO_BROKER and "certificate of the peer is not good" in err


def test_a_port_without_tls_and_the_other_way_round(broker, ca):  # noqa: F811
    for url in ("rediss://127.0.0.1:%d" % broker.port, "redis://127.0.0.1:%d" % broker.tls_port):
        status, out, err = cli(None, "ping", HOLDFAST_URL=url, HOLDFAST_CACERT=ca.cert)
        assert (status, out) == (NO_BROKER, "") and err.startswith("holdfast: no broker: 127.0.0.1:")


def test_client_certificates(make_tls_broker, masters1, server_files, ca):  # noqa: F811
    broker = make_tls_broker(masters1, {"certificate": server_files[0], "key": server_files[1], "ca": ca.cert,
                                        "client_certificates": "required"})
    cert, key = ca.issue("me", cn="me", names="")
    trust = {"HOLDFAST_URL": url_of(broker), "HOLDFAST_CACERT": ca.cert}
    assert cli(None, "ping", **trust)[0] == NO_BROKER
    assert "ready" in ok(None, "ping", "--cert", cert, "--key", key, **trust)
    assert "ready" in ok(None, "ping", HOLDFAST_CERT=cert, HOLDFAST_KEY=key, **trust)
    assert cli(None, "ping", "--cert", cert, **trust)[0] == USAGE  # there is no key in it


@pytest.mark.parametrize("kind", [[], ["--shared"]], ids=["exclusive", "shared"])
def test_run(broker, clients, running, name, env, kind):  # noqa: F811
    job = running(None, *kind, name, "sh", "-c", "echo up; read line; exit 6", env=cli_env(**env))
    assert job.line() == "up"
    client = clients(broker)
    assert client.cmd("LOCK", name) is None
    job.proc.stdin.write("\n")
    assert job.end()[0] == 6
    assert client.cmd("LOCK", name)[0] > 0


def test_run_that_is_told(broker, running, name, env):  # noqa: F811
    job = running(None, name, "sh", "-c", "echo up; sleep 60", env=cli_env(**env))
    assert job.line() == "up"
    ok(broker, "unlock", "-f", name)
    status, _, err = job.end(10)
    assert status == LOST and "forced" in err


def test_run_takes_its_lock_back(broker, running, name, ca, env):  # noqa: F811
    job = running(None, "--lease", "10s", name, "sh", "-c", "echo up; read line; exit 6", env=cli_env(**env))
    assert job.line() == "up"
    with broker.connect() as client:
        client.cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert "taking the lock back" in job.proc.stderr.readline()
    wait_for("the lock", lambda: is_held(broker, name))
    job.proc.stdin.write("\n")
    assert job.end()[0] == 6
    assert not is_held(broker, name)


def test_run_ended_while_it_waits(broker, clients, running, name, env):  # noqa: F811
    client = clients(broker)
    client.cmd("LOCK", name)
    job = running(None, name, "echo", "ran", env=cli_env(**env))
    waiting = lambda n: json.loads(ok(broker, "ls", "--json", name))[0]["waiting"] == n  # noqa: E731
    wait_for("the waiter", lambda: waiting(1))
    job.proc.send_signal(signal.SIGTERM)
    assert job.end()[:2] == (143, "")
    wait_for("no waiter", lambda: waiting(0))


def test_bench(broker, clients, env):  # noqa: F811
    told = json.loads(ok(None, "bench", "-c", "40", "-n", "5", "--hold", "30ms", "--duration", "3s", "--json", **env))
    assert told["errors"] == told["disconnects"] == 0 and told["grant_us"]["count"] > 40
    # those who held at the end have said goodbye, so that nothing waits for a lease
    wait_for("nothing to be left", lambda: clients(broker).cmd("LOCKS", "MATCH", "bench:*") == ["0", []], 10)
