"""What the tests of this directory share: one watch over each test, and no test without what it needs."""

import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
import recorded  # noqa: E402
import sides  # noqa: E402
from redisproc import find_server  # noqa: E402

TEST_LIMIT_S = 240


def pytest_sessionstart(session):
    if find_server() is None:
        pytest.exit("redis-server is not installed", returncode=77)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """A test that hangs fails instead of stopping the run."""
    def on_alarm(number, frame):
        raise AssertionError("the test ran longer than %d s" % TEST_LIMIT_S)
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(TEST_LIMIT_S)
    yield
    signal.alarm(0)


@pytest.fixture(scope="module")
def model():
    server = sides.Redis(tcp=True)
    yield server
    server.close()


@pytest.fixture(scope="module")
def recorder(model):
    """What the model has been asked since the first test of the file that wants to know."""
    made = recorded.Recorder(model.server.address)
    yield made
    made.close()


@pytest.fixture(scope="module")
def one():
    server = sides.Holdfast(1)
    yield server
    server.close()


@pytest.fixture(scope="module")
def three():
    server = sides.Holdfast(3)
    yield server
    server.close()
