"""Fixtures of the end-to-end tests: real redis-servers, real brokers, one watch over each test.

HOLDFASTD names the daemon under test (default build/holdfastd).
"""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
from chaosproxy import ChaosProxy  # noqa: E402
from holdfastproc import HoldfastProc, daemon_path  # noqa: E402
from redisproc import RedisProc, broker_rights  # noqa: E402
from respclient import Closed, RespError  # noqa: E402
from watched import begin_session, within  # noqa: E402

def pytest_configure(config):
    config.addinivalue_line("markers", "no_daemon: needs no holdfastd")


def pytest_sessionstart(session):
    begin_session()


def pytest_collection_modifyitems(config, items):
    if os.access(daemon_path(), os.X_OK):
        return
    if any("no_daemon" not in item.keywords for item in items):
        pytest.exit("no daemon at %s (set HOLDFASTD)" % daemon_path(), returncode=2)


pytest_runtest_protocol = within(60)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        shared = [arg.broker for arg in item.funcargs.values()
                  if isinstance(getattr(arg, "broker", None), HoldfastProc)]
        for broker in getattr(item, "holdfast_brokers", []) + shared:
            report.sections.append(("log of %s" % broker.name, broker.log_text()[-20000:]))


@pytest.fixture
def make_redis():
    """make_redis("a", tcp=..., persist=...): a started redis-server, ended with the test.

    Brokers that come by its url have the rights that the manual lists, and ask for nothing beyond them.
    """
    made = []

    def make(name="a", **kwargs):
        kwargs.setdefault("rights", broker_rights())
        server = RedisProc(name, **kwargs)
        made.append(server)
        return server.start()
    yield make
    denied = []
    for server in made:
        try:
            denied += server.denied()
        except (OSError, Closed, RespError):
            pass   # as a test leaves it
        server.close()
    assert not denied


@pytest.fixture
def make_proxy():
    made = []

    def make(upstream, **kwargs):
        proxy = ChaosProxy(upstream, **kwargs)
        made.append(proxy)
        return proxy
    yield make
    for proxy in made:
        proxy.close()


@pytest.fixture
def make_broker(request, tmp_path, make_redis):
    """make_broker(masters, options={...}): a started broker; its end is judged when the test is over.

    masters: a list of things that have .name and .url, or a dictionary. start=False leaves it unstarted.
    Depends on make_redis, so that brokers end before their masters do.
    """
    made = []
    request.node.holdfast_brokers = made

    def make(masters, start=True, ready=True, **kwargs):
        if not isinstance(masters, dict):
            masters = {m.name: m.url for m in masters}
        kwargs.setdefault("name", "broker%d" % len(made))
        broker = HoldfastProc(tmp_path, masters, **kwargs)
        made.append(broker)
        return broker.start(ready) if start else broker
    yield make
    errors = []
    for broker in made:
        try:
            broker.close()
        except AssertionError as err:
            errors.append(str(err))
    assert not errors, "\n".join(errors)


@pytest.fixture
def clients():
    """clients(broker, ...): a connection that is closed with the test."""
    made = []

    def connect(broker, **kwargs):
        client = broker.connect(**kwargs)
        made.append(client)
        return client
    yield connect
    for client in made:
        client.close()


class Shared:
    """A broker and its masters that live as long as one test file: for tests that do them no harm."""

    def __init__(self, directory, count, options):
        self.masters = [RedisProc(name, rights=broker_rights()).start() for name in "abcde"[:count]]
        self.broker = HoldfastProc(directory, {m.name: m.url for m in self.masters}, options=options)

    def close(self):
        try:
            self.broker.close()
            assert not [entry for master in self.masters for entry in master.denied()]
        finally:
            for master in self.masters:
                master.close()


def _shared(request, tmp_path_factory, count):
    shared = Shared(tmp_path_factory.mktemp("shared"), count, getattr(request.module, "SHARED_OPTIONS", None))
    try:
        shared.broker.start().wait_masters()
        yield shared
    finally:
        shared.close()


@pytest.fixture(scope="module")
def one(request, tmp_path_factory):
    """One master, one broker, shared by the tests of a file."""
    yield from _shared(request, tmp_path_factory, 1)


@pytest.fixture(scope="module")
def three(request, tmp_path_factory):
    """Three masters, one broker, shared by the tests of a file."""
    yield from _shared(request, tmp_path_factory, 3)


@pytest.fixture(params=["one", "three"])
def setup(request):
    """What is true of one master and of three."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def client(setup, clients):
    return clients(setup.broker)


@pytest.fixture
def other(setup, clients):
    return clients(setup.broker)


@pytest.fixture
def masters1(make_redis):
    return [make_redis("a")]


@pytest.fixture
def masters3(make_redis):
    return [make_redis(name) for name in "abc"]


@pytest.fixture
def broker1(make_broker, masters1):
    """A broker of the test's own over one master."""
    return make_broker(masters1)


@pytest.fixture
def broker3(make_broker, masters3):
    """A broker of the test's own over three masters."""
    return make_broker(masters3).wait_masters()


@pytest.fixture
def two_brokers(make_broker, masters1):
    """Two brokers in front of the same single master."""
    return make_broker(masters1), make_broker(masters1)


@pytest.fixture
def two_brokers3(make_broker, masters3):
    """Two brokers in front of the same three masters."""
    return make_broker(masters3).wait_masters(), make_broker(masters3).wait_masters()


@pytest.fixture
def name(request):
    """A lock name of the test's own."""
    return "n:%s" % request.node.name
