"""A short run of tests/bench/soak, and that its checker finds what it is there to find."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys

import pytest

from holdfastproc import daemon_env, daemon_path

SOAK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "soak")


def load():
    loader = importlib.machinery.SourceFileLoader("soak", SOAK)
    spec = importlib.util.spec_from_loader("soak", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


soak = load()


def history(*lines):
    made = soak.History()
    for line in lines:
        made.add(line.split())
    return made


def told(call, owner, token, validity_ms=1000, watched=1, client="c1", broker="A", took=0.001, kind="alone"):
    return "told %f %f %s %s n %s %d %d %d %s" % (call, call + took, client, broker, owner, token, validity_ms, watched,
                                                  kind)


def share(call, owner, token, *how):
    return told(call, owner, token, *how, kind="shared")


def permit(call, owner, token, *how):
    return told(call, owner, token, *how, kind="permit")


def drop_in(call, owner, **how):
    return told(call, owner, 0, watched=0, kind="drop-in", **how)


def verdict(made, floors=None):
    return soak.check(made, {} if floors is None else floors)


def test_nothing_is_wrong_with_holds_one_after_the_other():
    floors = {}
    assert not verdict(history(
        told(1, "x", 10), told(1.1, "x", 10), "end 1.2 n x",
        told(1.3, "y", 11, 500),         # lapses
        told(1.9, "z", 12), "push 1.9 2.3 c1 A n z 12 1000 1", "end 3.2 n z",
        told(3.3, "x", 13)), floors)
    assert floors == {"n": 13}


@pytest.mark.parametrize("lines, word", [
    ((told(1, "x", 10), told(1.5, "y", 11)), "two holders"),
    ((told(1, "x", 10), "end 1.5 n x", told(1.4, "y", 11)), "two holders"),
    # the short one in between hides neither of the others
    ((told(1, "x", 10, 1500), told(1.1, "x", 10, 200), told(1.4, "y", 11)), "two holders"),
    ((told(1, "x", 10), told(1.1, "x", 10), told(1.2, "x", 10, 100), told(1.9, "y", 11)), "two holders"),
    # a renewal that was told makes it longer
    ((told(1, "x", 10), "push 1 1.8 c1 A n x 10 1000 1", told(2.3, "y", 11)), "two holders"),
    ((told(1, "x", 11), "end 1.1 n x", told(1.2, "y", 10)), "goes back"),
    ((told(1, "x", 10), "end 1.1 n x", told(1.2, "y", 10)), "two owners"),
    # the holder of old is told again, after another one was
    ((told(1, "x", 10, 100), told(1.2, "y", 11, 100), told(1.5, "x", 10, 100)), "goes back"),
    ((told(1, "x", 5),), "earlier round"),
    ((told(1, "x", 10, 2000),), "above the lease"),
    ((share(1, "x", 10), told(1.5, "y", 11)), "two holders"),
    ((told(1, "x", 10), share(1.5, "y", 11)), "two holders"),
    # the short one in between hides neither of the others
    ((share(1, "x", 10), share(1.1, "y", 11, 200), told(1.5, "z", 12)), "two holders"),
    ((share(1, "x", 11), "end 1.1 n x", share(1.2, "y", 10)), "goes back"),
    ((permit(1, "x", 10), permit(1.1, "y", 11), permit(1.2, "z", 12)), "more than 2"),
    ((permit(1, "x", 10), permit(1.1, "y", 11, 200), permit(1.2, "y", 11), permit(1.8, "z", 12)), "more than 2"),
    ((drop_in(1, "x"), drop_in(1.5, "y")), "two holders"),
    ((drop_in(1, "x"), told(1.5, "y", 11)), "two holders"),
    ((told(1, "x", 11), drop_in(1.5, "y")), "two holders"),
    (("closed 1 2 c1 A",), "closed the connection"),
    (("wrong c1 does not like it",), "does not like it"),
])
def test_the_checker_finds(lines, word):
    found = verdict(history(*lines), {"n": 5})
    assert found and any(word in line for line in found), found


@pytest.mark.parametrize("lines", [
    (share(1, "x", 10), share(1.1, "y", 11), share(1.2, "x", 10), "end 1.3 n x", "end 1.3 n y", told(1.4, "z", 12)),
    (permit(1, "x", 10), permit(1.1, "y", 11), permit(1.2, "x", 10), "end 1.3 n y", permit(1.4, "z", 12)),
    # of three that overlap one another in pairs only two are there at a time
    (permit(1, "x", 10, 300), permit(1.1, "y", 11), permit(1.4, "z", 12)),
    (drop_in(1, "x"), "end 1.5 n x", drop_in(1.6, "y"), "end 1.7 n y", told(1.8, "z", 12)),
], ids=["readers", "permits", "permits in turn", "commands of Redis"])
def test_nothing_is_wrong_with(lines):
    assert not verdict(history(*lines))


def test_the_time_of_commands_of_redis_counts_from_the_call():
    """Asked at 1 and answered at 1.5: its client lets go at 2."""
    assert not verdict(history(drop_in(1, "x", took=0.5), drop_in(2.1, "y")))
    assert verdict(history(drop_in(1, "x", took=0.5), drop_in(1.9, "y")))


def test_a_stop_in_the_middle_of_a_turn_blurs_the_deadline():
    """Asked at 1, told at 3 by a broker that stood still in between: it may have been said at 1."""
    lines = told(1, "x", 10, 1000, took=2), told(3.1, "y", 11)
    assert verdict(history(*lines))
    made = history(*lines)
    made.stops["A"].append((1.1, 2.9))
    assert not verdict(made)


def test_a_watched_lock_ends_with_its_client_and_a_lease_does_not():
    for watched in (0, 1):
        made = history(told(1, "x", 10, watched=watched), told(1.6, "y", 11, client="c2"))
        made.kills["c1"].append((1.5, 2.5))
        assert bool(verdict(made)) == (watched == 0)


def test_a_broker_that_was_killed_may_close():
    made = history("closed 1 2 c1 A")
    made.kills["A"].append((1.5, 2.5))
    assert not verdict(made)


def test_grants_in_windows_are_counted():
    made = history(told(1, "x", 10), told(3, "x", 10), told(5, "x", 10), "push 1 3 c1 A n x 10 1000 1")
    made.windows = [(0.5, 2), (4.5, 4.8), (4.7, 6)]
    assert made.in_windows() == 2


def run_soak(*args):
    done = subprocess.run([sys.executable, SOAK, "--daemon", daemon_path(), *args], env=daemon_env(),
                          capture_output=True, text=True, timeout=55, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("where", ["--masters=5", "--sentinel"])
def test_a_short_run(where):
    status, out = run_soak("--seconds", "12", "--seed", "5", "--min-grants", "50", where)
    assert status == 0, out


def test_brokers_with_masters_of_their_own_are_caught():
    """Broken on purpose: nothing keeps the locks of one broker from those of the other."""
    status, out = run_soak("--seconds", "2", "--seed", "1", "--masters", "1", "--names", "2", "--split",
                           "--min-grants", "0")
    assert status == 1 and "two holders" in out, out


def test_too_few_grants_are_void():
    status, out = run_soak("--seconds", "1", "--seed", "1", "--masters", "1", "--min-grants", "1000000")
    assert status == 3 and "void" in out, out
