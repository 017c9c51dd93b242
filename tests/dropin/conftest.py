"""What the tests of this directory share: one watch over each test, and no test without what it needs."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
import recorded  # noqa: E402
import sides  # noqa: E402
from watched import begin_session, within  # noqa: E402

def pytest_sessionstart(session):
    begin_session()


pytest_runtest_protocol = within(240)


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
