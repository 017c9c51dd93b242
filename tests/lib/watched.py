"""What every conftest.py does: it looks for redis-server first, and has one watch over each test."""

import signal

import pytest

from redisproc import find_server


def begin_session():
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:  # as after nohup: programs under test inherit it
            signal.signal(number, signal.SIG_DFL)
    if find_server() is None:
        pytest.exit("redis-server is not installed", returncode=77)


def within(limit_s):
    """The hook pytest_runtest_protocol, with which a test that hangs fails instead of stopping the run."""
    def on_alarm(number, frame):
        raise AssertionError("the test ran longer than %d s" % limit_s)

    @pytest.hookimpl(hookwrapper=True)
    def watch(item, nextitem):
        signal.signal(signal.SIGALRM, on_alarm)
        signal.alarm(limit_s)
        yield
        signal.alarm(0)
    return watch
