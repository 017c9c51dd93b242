"""What the tests of this directory share: where the tools are, and one watch over each test."""

import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
from holdfastproc import HoldfastProc  # noqa: E402
from redisproc import RedisProc, broker_rights, find_server  # noqa: E402

TEST_LIMIT_S = 120


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


class One:
    """A master and a broker."""

    def __init__(self, directory):
        self.master = RedisProc("a", rights=broker_rights())
        self.broker = HoldfastProc(directory, {"a": self.master.url})


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """One master, one broker, shared by the tests of a file."""
    one = One(tmp_path_factory.mktemp("one"))
    with one.master, one.broker:
        yield one
