"""What the tests of this directory share: where the tools are, and one watch over each test."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
from holdfastproc import HoldfastProc  # noqa: E402
from redisproc import RedisProc, broker_rights  # noqa: E402
from watched import begin_session, within  # noqa: E402

def pytest_sessionstart(session):
    begin_session()


pytest_runtest_protocol = within(120)


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
