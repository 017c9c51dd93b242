"""The tools of tests/traffic, whose faults only show when it has found something: what of a failure is the same when a
trace is made smaller."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "traffic"))

# pylint: disable=wrong-import-position
import traffic  # noqa: E402
from oracle import Oracle, Violation  # noqa: E402
from respclient import RespError  # noqa: E402


class Said:
    """What the oracle wants to know of a connection and of a request."""

    number = 1

    def __init__(self, *words):
        self.words, self.name = words, words[0].lower()


def failure(value, *words):
    try:
        Oracle.impossible(Said(*words), Said(*words), value)
    except Violation as violation:
        return traffic.Failure(violation, [], {})
    raise AssertionError("no violation")


def test_a_smaller_trace_fails_alike():
    """The same command with the same error, whatever the names; not any reply that cannot be."""
    first = failure(RespError("ERR no such thing"), "LOCK", "a")
    assert failure(RespError("ERR no such thing, once more"), "LOCK", "b").is_like(first)
    for value, words in ((RespError("NOAUTH Authentication required."), ("LOCK", "a")),
                         (RespError("ERR no such thing"), ("UNLOCK", "a")), ("OK", ("LOCK", "a"))):
        assert not failure(value, *words).is_like(first)


def test_a_trace_without_its_logins_is_refused_and_no_failure():
    step = {"t": 0.0, "c": 1}
    trace = [dict(step, do="open", b=0, user="ops"),
             dict(step, do="send", requests=[["LOCK", "a"], ["LOCKS"], ["HELLO", 3], ["PING"]])]
    found = traffic.replay(trace)
    assert found is None, found.text
