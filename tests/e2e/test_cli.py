"""holdfast, the companion command: what it prints, and what `run` does with a lock and a command."""

import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest

import procs
from holdfastproc import LEASE_MS, SANITIZER_RE, daemon_env, daemon_path
from procs import wait_for
from respclient import as_map

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CLI = os.path.abspath(os.environ.get("HOLDFAST", os.path.join(os.path.dirname(daemon_path()), "holdfast")))
KINDS = [[], ["--shared"], ["--limit", "3"]]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=["exclusive", "shared", "limit"])
COMMANDS = ["run", "ls", "show", "masters", "top", "unlock", "script", "ping", "bench"]
NO_BROKER, REFUSED, NOT_GRANTED, DENIED, LOST, USAGE = 69, 65, 75, 77, 79, 64


def url_of(broker):
    return "redis://127.0.0.1:%d" % broker.port


def cli_env(broker=None, **extra):
    env = daemon_env(LC_ALL="C.UTF-8")
    env.pop("HOLDFAST_URL", None)
    if broker is not None:
        env["HOLDFAST_URL"] = url_of(broker)
    env.update(extra)
    return env


def judged(status, out, err):
    assert not re.search(SANITIZER_RE, err), err
    return status, out, err


def cli(broker, *args, stdin="", deadline_s=20.0, **extra):
    """Runs it to its end: (status, stdout, stderr)."""
    done = subprocess.run([CLI, *args], input=stdin, capture_output=True, text=True, timeout=deadline_s,
                          env=cli_env(broker, **extra), check=False)
    return judged(done.returncode, done.stdout, done.stderr)


def ok(broker, *args, **kwargs):
    status, out, err = cli(broker, *args, **kwargs)
    assert status == 0, (status, out, err)
    return out


class Running:
    """A `holdfast run` that goes on beside the test."""

    def __init__(self, broker, *args, env=None):
        self.proc = procs.spawn([CLI, "run", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=env or cli_env(broker))

    def line(self):
        return self.proc.stdout.readline().rstrip("\n")

    def end(self, deadline_s=20.0):
        out, err = self.proc.communicate(timeout=deadline_s)
        return judged(self.proc.returncode, out, err)


@pytest.fixture
def running():
    """running(broker, args...): ended with the test."""
    made = []

    def start(broker, *args, **kwargs):
        made.append(Running(broker, *args, **kwargs))
        return made[-1]
    yield start
    for one in made:
        if one.proc.poll() is None:
            one.proc.kill()
        one.proc.communicate()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_held(broker, name):
    return json.loads(ok(broker, "show", "--json", name))["holders"] != []


# --- the command line -----------------------------------------------------------------------------

@pytest.mark.parametrize("args", [
    [], ["nothing"], ["--nothing"], ["ls", "-x"], ["ls", "a", "b"], ["show"], ["show", ""], ["show", "a\nb"],
    ["unlock", "--force"], ["unlock", "a"], ["masters", "a"], ["run"], ["run", "a"], ["run", "a", "--"],
    ["run", "--", "true"], ["run", "--wait", "soon", "a", "true"], ["run", "--on-lost", "cry", "a", "true"],
    ["run", "--wait"], ["run", "-E", "256", "a", "true"], ["run", "--limit", "0", "a", "true"],
    ["run", "--limit", "4097", "a", "true"], ["run", "--shared", "a", "--limit", "2", "true"],
    ["bench", "--shared", "--limit", "2"], ["bench", "-c", "0"], ["bench", "--hold", "2xs"],
    ["-u", "http://a", "ls"], ["-u", "redis://a:0", "ls"], ["-u", "rediss://", "ls"], ["-u", "rediss://a", "--cacert", "/", "ls"],
    ["-u", "unix://a", "ls"], ["-u", "", "ls"], ["ls", "--url", ","], ["-u", "redis://a,,redis://b", "ls"],
    ["-u", "redis://:secret@", "ls"],
], ids=" ".join)
def test_mistakes(args):
    status, out, err = cli(None, *args)
    assert status == USAGE and out == ""
    assert err.startswith("holdfast: ") and "holdfast" in err and err.count("\n") == 1
    assert "secret" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_is_documented(command):
    """What -h shows is in the manual page and in both completions."""
    text = ok(None, command, "-h")
    options = set(re.findall(r"(?<![\w-])--?[A-Za-z1][a-z-]*", text.split("\n", 1)[1])) - {"-u"}
    assert len(options) >= 2
    with open(os.path.join(ROOT, "man", "holdfast.1"), encoding="utf-8") as file:
        manual = set(re.findall(r"Fl (-?[\w-]+)", file.read()))
    shells = []
    for name in ("holdfast.bash", "_holdfast"):
        with open(os.path.join(ROOT, "completion", name), encoding="utf-8") as file:
            shells.append(set(re.findall(r"(?<![\w-])--?\w[\w-]*", file.read())))
    for option in options:
        assert option[1:] in manual, option
        assert all(option in shell for shell in shells), option


def test_help_lists_the_commands():
    text = ok(None, "-h")
    assert re.findall(r"^  ([a-z]+) ", text, re.M) == COMMANDS
    assert ok(None, "help", "run") == ok(None, "run", "--help")
    assert re.fullmatch(r"holdfast \d+\.\d+\.\d+\S*\n", ok(None, "-V"))


def test_no_broker():
    port = free_port()
    for args in (["ls"], ["ping"], ["top"], ["show", "a"], ["run", "--wait", "0", "a", "true"], ["bench"]):
        status, out, err = cli(None, *args, HOLDFAST_URL="redis://127.0.0.1:%d" % port)
        assert (status, out) == (NO_BROKER, "") and "Connection refused" in err, args


def test_addresses_are_tried_in_turn(one):
    dead = "redis://127.0.0.1:%d" % free_port()
    assert "ready" in ok(None, "ping", "-u", "%s,%s" % (dead, url_of(one.broker)))
    assert "ready" in ok(None, "-u", dead, "ping", "-u", url_of(one.broker))
    assert ok(None, "run", "-u", dead, "-u", url_of(one.broker), "turn", "echo", "x") == "x\n"


def test_a_password_that_is_refused(one):
    url = "redis://me:secr%%65t@127.0.0.1:%d" % one.broker.port
    for args in (["ls"], ["run", "a", "true"]):
        status, _, err = cli(None, *args, "-u", url) if args[0] == "ls" else cli(None, "-u", url, *args)
        assert status == DENIED and "secret" not in err and "secr%65t" not in err


# --- looking --------------------------------------------------------------------------------------

def test_ping(one):
    told = json.loads(ok(one.broker, "ping", "--json"))
    assert told["ready"] is True and told["masters"] == 1 and told["latency_us"] > 0
    assert "ready: 1 of 1 masters" in ok(one.broker, "ping")


def test_ping_without_a_quorum(broker1, masters1):
    masters1[0].kill()
    wait_for("not ready", lambda: cli(broker1, "ping")[0] == NO_BROKER)
    told = cli(broker1, "ping")[1]
    assert "not ready: 0 of 1" in told and re.search(r"(?m)^  a: \w+", told), told


def test_ls_and_show(one, clients):
    holder, waiter, free = (clients(one.broker) for _ in range(3))
    token = holder.cmd("LOCK", "job:a", "OWNER", "me")[0]
    free.cmd("LOCK", "job:b", "LEASE", 50000)
    waiter.send("LOCK", "job:a", "OWNER", "you", "WAIT", 20000)
    wait_for("the waiter", lambda: json.loads(ok(one.broker, "ls", "--json", "job:a"))[0]["waiting"] == 1)
    a, b = json.loads(ok(one.broker, "ls", "--json", "job:*"))
    assert (a["name"], a["owner"], a["token"], a["watched"]) == ("job:a", "me", token, True)
    assert b["name"] == "job:b" and b["watched"] is False and 0 < b["remaining_ms"] <= 50000
    lines = ok(one.broker, "ls", "job:*").splitlines()
    assert lines[0].split() == ["NAME", "KIND", "HOLDER", "HELD", "LEFT", "WAITING"]
    assert lines[1].split()[:3] == ["job:a", "exclusive", "me"] and lines[1].split()[-1] == "1"
    assert ok(one.broker, "ls", "-1", "job:*") == "job:a\njob:b\n"
    shown = json.loads(ok(one.broker, "show", "job:a", "--json"))
    assert shown["holders"][0]["owner"] == "me" and shown["waiters"][0]["owner"] == "you"
    assert list(shown["masters"]) == ["a"]
    text = ok(one.broker, "show", "job:a")
    assert str(token) in text and "you" in text and "1 waiting" in text
    assert "\033" not in text
    holder.cmd("UNLOCK", "job:a", "OWNER", "me")
    waiter.recv()
    waiter.cmd("UNLOCK", "job:a", "OWNER", "you")
    assert "free" in ok(one.broker, "show", "job:a")


def test_nobody_knows_without_a_majority(broker3, masters3, clients):
    """No holder is known: that is no news of a free lock when the masters that would know are silent."""
    waiter = clients(broker3)
    waiter.cmd("LOCK", "known")
    assert "state    free" in ok(broker3, "show", "unheard:of")
    masters3[0].kill()
    assert "state    free" in ok(broker3, "show", "unheard:of")
    masters3[1].kill()
    wait_for("two masters down", lambda: "not ready" in cli(broker3, "ping")[1])
    text = ok(broker3, "show", "unheard:of")
    assert "state    unknown: 1 of 3 masters answer" in text and "free" not in text.split("MASTER")[0], text
    told = json.loads(ok(broker3, "show", "--json", "unheard:of"))
    assert (told["state"], told["holders"]) == ("unknown", [])
    wait_for("the end of the lock", lambda: json.loads(ok(broker3, "show", "--json", "known"))["state"] == "unknown")
    clients(broker3).send("LOCK", "wanted", "WAIT", 0)
    masters3[0].start()
    wait_for("free again", lambda: json.loads(ok(broker3, "show", "--json", "unheard:of"))["state"] == "free")


def test_who_is_in_quarantine_calls_no_lock_free(make_broker, masters3, clients):
    """A master that may have forgotten a lock does not know, until the broker of the holder has told it."""
    brokers = [make_broker(masters3, ready=False, options={"quarantine": "auto"}) for _ in "xy"]
    holder, other = map(clients, brokers)

    def all_are(masters, state, asked):
        return [as_map(row)["state"] for c in asked for row in c.cmd("MASTERS")
                if as_map(row)["name"] in [m.name for m in masters]] == [state] * len(asked) * len(masters)

    wait_for("quarantine", lambda: all_are(masters3, "quarantine", (holder, other)))
    for master in masters3:
        holder.cmd("MASTER", master.name, "TRUST")
    wait_for("its end", lambda: all_are(masters3, "active", (holder, other)))
    holder.cmd("LOCK", "n", "OWNER", "one", "LEASE", 60000)
    clients(brokers[1]).send("LOCK", "n", "WAIT", 0)
    brokers[0].signal(signal.SIGSTOP)
    for restarted in masters3[1:], masters3[:1]:
        for master in restarted:
            master.restart()
        wait_for("quarantine", lambda ms=restarted: all_are(ms, "quarantine", (other,)))
        assert other.err("HOLDS", "n", "OWNER", "one").code == "NOQUORUM"
        told = json.loads(ok(brokers[1], "show", "--json", "n"))
        assert (told["state"], told["kind"], told["limit"]) == ("unknown", None, None)
        assert all(told["masters"][m.name].startswith("no answer: quarantined") for m in restarted), told
        assert "unknown" in ok(brokers[1], "ls") and json.loads(ok(brokers[1], "ls", "--json"))[0]["state"] == "unknown"
    brokers[0].signal(signal.SIGCONT)
    wait_for("the holder's broker", lambda: other.pipeline(("HOLDS", "n", "OWNER", "one")) == [1])
    assert holder.cmd("HOLDS", "n", "OWNER", "one") == 1
    assert all("state    held" in ok(b, "show", "n") for b in brokers)


def test_readers_and_permits_are_shown(one, clients, terminal):
    client, writer = clients(one.broker), clients(one.broker)
    for i in range(12):
        client.cmd("LOCK", "kinds:data", "SHARED", "OWNER", "reader-%d" % i)
    for i in range(3):
        client.cmd("LOCK", "kinds:slots", "LIMIT", 5, "OWNER", "worker-%d" % i, "LEASE", 50000)
    writer.send("LOCK", "kinds:data", "OWNER", "writer", "WAIT", 0)
    wait_for("the writer", lambda: json.loads(ok(one.broker, "ls", "--json", "kinds:data"))[0]["waiting"] == 1)
    data, slots = json.loads(ok(one.broker, "ls", "--json", "kinds:*"))
    assert (data["kind"], data["limit"], data["holding"]) == ("shared", None, 12)
    assert (slots["kind"], slots["limit"], slots["holding"]) == ("limit", 5, 3)
    for text in (ok(one.broker, "ls", "kinds:*"), ok(one.broker, "top")):
        assert re.search(r"^kinds:data +shared 12 +reader-\d+ and 11 more ", text, re.M), text
        assert re.search(r"^kinds:slots +limit 3/5 +worker-\d and 2 more ", text, re.M), text
    shown = json.loads(ok(one.broker, "show", "--json", "kinds:data"))
    assert (shown["kind"], shown["limit"], shown["holding"]) == ("shared", None, 12)
    assert {h["owner"] for h in shown["holders"]} == {"reader-%d" % i for i in range(12)}
    assert shown["waiters"][0]["kind"] == "exclusive"
    text = ok(one.broker, "show", "kinds:data")
    assert re.search(r"^kind +shared 12$", text, re.M) and "1 waiting" in text
    assert len(re.findall(r"^reader-\d+ +\d+ +\S+ +\S+ +1 +yes +\d+$", text, re.M)) == 12
    assert re.search(r"^writer +\S+ +\d+ +exclusive +here$", text, re.M)
    assert re.search(r"^kind +limit 3/5$", ok(one.broker, "show", "kinds:slots"), re.M)
    screen = terminal(one.broker, "show", "kinds:data", NO_COLOR="1")
    screen.wait()
    assert "reader-1" in screen.text and max(len(line) for line in screen.text.splitlines()) <= 80


def test_more_holders_than_are_listed(one, clients):
    client = clients(one.broker)
    for i in range(40):
        client.cmd("LOCK", "crowd", "SHARED", "OWNER", "reader-%d" % i)
    assert "and 24 more" in ok(one.broker, "show", "crowd")
    assert json.loads(ok(one.broker, "show", "--json", "crowd"))["holding"] == 40
    ok(one.broker, "unlock", "-f", "crowd")
    free = json.loads(ok(one.broker, "show", "--json", "crowd"))
    assert (free["kind"], free["limit"], free["holding"], free["holders"]) == (None, None, 0, [])


def test_odd_names(one, clients):
    names = [b"esc\x1b[31m", "ümläut 日本".encode(), b"bad\xff\xc3", b'quote"\\', b"tab\t"]
    with clients(one.broker) as client:
        for name in names:
            client.cmd("LOCK", name)
        told = json.loads(ok(one.broker, "ls", "--json", "--names"))
        seen = {entry["name"] for entry in told}
        assert {name.decode("utf-8", "replace") for name in names} <= seen
        text = ok(one.broker, "ls")
        assert "\x1b" not in text and r"esc\x1b[31m" in text and r"bad\xff\xc3" in text and "日本" in text
        raw = subprocess.run([CLI, "ls", "-1"], capture_output=True, env=cli_env(one.broker), check=True).stdout
        assert set(names) <= set(raw.split(b"\n"))


def test_what_turns_the_direction_reaches_no_screen(one, clients):
    """Characters that hide or rearrange what stands beside them, in tables, messages and JSON."""
    odd = "turn\u202egnp\u2066\u200b\ufeff\U000e0041"
    with clients(one.broker) as client:
        client.cmd("LOCK", odd, "OWNER", odd)
        texts = [ok(one.broker, "ls"), ok(one.broker, "ls", "--json"), ok(one.broker, "show", odd),
                 cli(one.broker, "run", "--wait", "1ms", odd, "true")[2]]
        assert {entry["name"] for entry in json.loads(texts[1])} >= {odd}
        for text in texts:
            assert not re.search("[\u200b\u202e\u2066\ufeff\U000e0041]", text), ascii(text)
        assert r"turn\xe2\x80\xaegnp" in texts[0]


def test_many_locks(one, clients):
    with clients(one.broker) as client:
        missing = ["many:%04d" % i for i in range(3000)]
        while missing:  # a busy machine
            replies = client.pipeline(*(("LOCK", name, "LEASE", 50000) for name in missing))
            missing = [name for name, reply in zip(missing, replies) if not isinstance(reply, list)]
        assert ok(one.broker, "ls", "-1", "many:*").split() == ["many:%04d" % i for i in range(3000)]
        told = json.loads(ok(one.broker, "ls", "--json", "many:0*"))
        assert len(told) == 1000 and all(entry["held"] for entry in told)
        client.pipeline(*(("UNLOCK", "many:%04d" % i) for i in range(3000)))


def test_masters(three):
    told = json.loads(ok(three.broker, "masters", "--json"))
    assert [(m["name"], m["state"]) for m in told] == [("a", "active"), ("b", "active"), ("c", "active")]
    lines = ok(three.broker, "masters").splitlines()
    assert len(lines) == 4 and lines[0].startswith("MASTER  STATE") and lines[1].split()[:2] == ["a", "active"]
    assert lines[0].split()[2] == "FOR" and re.fullmatch(r"[0-9.]+(ms|s|m\d\ds)", lines[1].split()[2])
    assert all(0 < m["since_ms"] < 600000 and m["redis_version"] in line.split() for m, line in zip(told, lines[1:]))


def test_unlock(one, clients):
    client = clients(one.broker, resp3=True, tell=True)
    client.cmd("LOCK", "taken")
    assert cli(one.broker, "unlock", "taken")[0] == USAGE
    ok(one.broker, "unlock", "--force", "taken")
    assert client.wait_push("lost")[1] == "taken"
    status, _, err = cli(one.broker, "unlock", "-f", "taken")
    assert status == 1 and "nobody holds 'taken'" in err


RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


def test_script_shows_what_it_would_do(tmp_path):
    path = tmp_path / "release.lua"
    path.write_text(RELEASE)
    lines = ok(None, "script", str(path)).splitlines()
    assert lines[0].split() == ["STATE", "WHAT", "IT", "DOES", "REPLY"], lines
    assert any(re.match(r"held by ARGV\[1\] +frees KEYS\[1\] +1$", line) for line in lines), lines
    assert any(re.match(r"held by somebody else +looks at KEYS\[1\] +0$", line) for line in lines), lines


def test_script_with_keys_and_arguments():
    rows = json.loads(ok(None, "script", "--json", "-", "a", "b", ",", "me",
                         stdin="redis.call('set', KEYS[2], ARGV[1], 'px', 5) return KEYS[1]"))
    assert rows[0] == {"state": "all keys free", "does": "takes KEYS[2] for 5 ms", "reply": "'a'", "refused": False,
                       "error": False}


def test_script_that_is_not_served(tmp_path):
    status, out, _ = cli(None, "script", "-", stdin="return redis.call('zadd', KEYS[1], 1, 'x')")
    assert status == REFUSED and "refused: the script calls zadd" in out and "LIMIT" in out, out
    status, out, err = cli(None, "script", "-", stdin="return (")
    assert (status, out) == (REFUSED, "") and "Error compiling script" in err, err
    status, _, err = cli(None, "script", str(tmp_path / "none"))
    assert status == 71 and "No such file" in err, err
    assert cli(None, "script", "-", "a", "a")[0] == USAGE
    assert cli(None, "script")[0] == USAGE


def test_top_without_a_terminal(one, clients):
    client = clients(one.broker)
    client.cmd("LOCK", "seen:by:top")
    text = ok(one.broker, "top")
    assert "ready: 1 of 1 masters" in text and "seen:by:top" in text and "\033" not in text


def test_top_names_locks_in_jeopardy(make_broker, masters3, clients):
    broker = make_broker(masters3, options={"lease": "10s"})  # they stay in jeopardy for seconds
    client = clients(broker)
    names = {"lost %d" % i for i in range(6)}
    for name in sorted(names):
        client.cmd("LOCK", name)
        time.sleep(0.005)  # so that they differ in what remains
    client.cmd("LOCK", "not watched", "LEASE", 50000)
    assert client.cmd("JEOPARDY") == [] and "IN JEOPARDY" not in ok(broker, "top")
    masters3[0].stop()
    masters3[1].stop()
    wait_for("all in jeopardy", lambda: len(client.cmd("JEOPARDY")) == len(names))
    rows = [as_map(row) for row in client.cmd("JEOPARDY")]
    order, remaining = [row["lock"] for row in rows], [row["remaining_ms"] for row in rows]
    assert set(order) == names and remaining == sorted(remaining) and remaining[0] < remaining[-1]
    assert {row["connection"] for row in rows} == {client.cmd("CLIENT", "ID")}
    assert [as_map(row)["lock"] for row in client.cmd("JEOPARDY", "COUNT", 2)] == order[:2]
    assert "JEOPARDY [COUNT 1..100]" in str(client.err("JEOPARDY", "COUNT", 101))
    lines = ok(broker, "top").splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("IN JEOPARDY"))
    assert [line.split("  ")[0] for line in lines[head + 1:head + 6]] == order[:5] and lines[head + 6] == ""
    for master in masters3[:2]:
        master.cont()
    wait_for("safety", lambda: client.cmd("JEOPARDY") == [])


class Terminal:
    """A program that leads a session on a terminal of its own."""

    def __init__(self, argv, env, columns=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                if columns:
                    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
                os.execve(argv[0], argv, env)
            finally:
                os._exit(127)
        self.text = ""
        self.status = None

    def read(self):
        ready, _, _ = select.select([self.fd], [], [], 0.05)
        if ready:
            try:
                self.text += os.read(self.fd, 65536).decode("utf-8", "replace")
            except OSError:
                pass
        return self.text

    def expect(self, regex, deadline_s=15.0):
        return wait_for("%r on the terminal" % regex, lambda: re.search(regex, self.read()), deadline_s)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def wait(self, options=0):
        def probe():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG | options)
            if pid and not os.WIFSTOPPED(status):
                self.status = status
            return (status,) if pid else None
        return wait_for("the end of the program on the terminal", probe, 15)[0]

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGCONT)
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def terminal():
    made = []

    def start(broker, *args, columns=None, **extra):
        made.append(Terminal([CLI, *args], cli_env(broker, TERM="xterm", **extra), columns))
        return made[-1]
    yield start
    for one in made:
        one.close()


def test_top_on_a_terminal(one, terminal):
    screen = terminal(one.broker, "top", "--delay", "100ms")
    screen.expect(r"\033\[\?1049h")
    wait_for("three screens", lambda: screen.read().count("ready: 1 of 1 masters") >= 3)
    screen.type("q")
    assert os.waitstatus_to_exitcode(screen.wait()) == 0
    assert screen.text.rstrip().endswith("\033[?1049l") and "\033[?25h" in screen.text


def picture(text, columns=80, rows=24):
    """What a terminal without line wrap shows after text: its rows. What is written to the last column leaves the
    cursor there, on what was written."""
    cells, row, column = [[" "] * columns for _ in range(rows)], 0, 0
    for control, argument, letter, char in re.findall(r"(\x1b\[([?\d;]*)([A-Za-z]))|(.)", text, re.S):
        if control and letter == "H":
            row = column = 0
        elif control and letter in "KJ":
            cells[row][column:] = [" "] * (columns - column)
            if letter == "J":
                cells[row + 1:] = [[" "] * columns for _ in range(rows - row - 1)]
        elif char == "\r":
            column = 0
        elif char == "\n":
            row = min(row + 1, rows - 1)
        elif char:
            cells[row][column] = char
            column = min(column + 1, columns - 1)
    return ["".join(line) for line in cells]


def test_top_shows_the_last_column(one, clients, terminal):
    """Where the table is as wide as the screen."""
    holder, waiters = clients(one.broker), [clients(one.broker) for _ in range(3)]
    holder.cmd("LOCK", "last:" + "x" * 300, "OWNER", "o" * 200)
    for waiter in waiters:
        waiter.send("LOCK", "last:" + "x" * 300, "WAIT", 0)
    screen = terminal(one.broker, "top", "--delay", "100ms", NO_COLOR="1")

    def row():
        lines = [line for line in picture(screen.read().rpartition("\033[H")[0]) if line.startswith("last:")]
        return len(lines) == 1 and lines[0]
    wait_for("the lock on the screen", row)
    wait_for("three who wait, in the last column", lambda: row() and row()[78:] == " 3")


def rows_of(screen, *names):
    """The rows of these locks on the last whole screen, from the top."""
    shown = picture(screen.read().rpartition("\033[H")[0], columns=120)
    return [line for line in shown if line.split(" ")[0] in names]


@pytest.fixture
def busy_top(make_broker, masters1, clients, terminal):
    """A top on a broker where b is waited for by two, and a and c are held for longer."""
    broker = make_broker(masters1)
    held = [clients(broker) for _ in range(3)]
    for client, lock in zip(held, ("top:a", "top:c", "top:b")):  # pylint: disable=cell-var-from-loop
        client.cmd("CLIENT", "SETNAME", "holder-of-" + lock)
        client.cmd("LOCK", lock)
        # each is held for visibly longer than the next
        wait_for("its age", lambda: json.loads(ok(broker, "show", "--json", lock))["holders"][0]["held_ms"] > 300)
    for _ in range(2):
        waiter = clients(broker)
        waiter.cmd("CLIENT", "SETNAME", "patient")
        waiter.send("LOCK", "top:b", "WAIT", 0)
    screen = terminal(broker, "top", "--delay", "100ms", columns=120, NO_COLOR="1")
    screen.broker = broker
    return screen


LOCKS = ("top:a", "top:b", "top:c")


def order_of(screen):
    return [line.split(" ")[0] for line in rows_of(screen, *LOCKS)]


def test_top_sorts_and_tells_who_waits(busy_top):
    wait_for("the most contended first", lambda: order_of(busy_top) == ["top:b", "top:a", "top:c"])
    wait_for("who waits", lambda: rows_of(busy_top, "top:b")[0].rstrip().endswith("2  2 patient"))
    for key, order in (("n", ["top:a", "top:b", "top:c"]), ("h", ["top:a", "top:c", "top:b"]),
                       ("w", ["top:b", "top:a", "top:c"])):
        busy_top.type(key)
        wait_for("the order by " + key, lambda: order_of(busy_top) == order)  # pylint: disable=cell-var-from-loop
    busy_top.type("l")
    busy_top.expect("shortest lease first")


def test_top_finds_locks(busy_top):
    wait_for("all", lambda: len(order_of(busy_top)) == 3)
    busy_top.type("/")
    busy_top.type("p:cc\x7f")
    wait_for("the one", lambda: order_of(busy_top) == ["top:c"])
    busy_top.expect(r"names with p:c_")
    busy_top.type("\r")
    busy_top.expect(r"names with p:c  ")
    busy_top.type("n")  # a key again, and no letter
    busy_top.expect(r"by name; names with p:c  ")
    busy_top.type("\033")
    wait_for("all again", lambda: len(order_of(busy_top)) == 3)
    busy_top.type("/top:[ab]\r")
    wait_for("what matches the pattern", lambda: order_of(busy_top) == ["top:a", "top:b"])
    busy_top.type("q")
    assert os.waitstatus_to_exitcode(busy_top.wait()) == 0


def test_top_helps(busy_top):
    wait_for("locks", lambda: len(order_of(busy_top)) == 3)
    busy_top.type("?")
    wait_for("help", lambda: "the next screen at once" in "".join(picture(busy_top.read().rpartition("\033[H")[0]))
             and order_of(busy_top) == [])
    busy_top.type("?")
    wait_for("locks again", lambda: len(order_of(busy_top)) == 3)


@pytest.mark.parametrize("harm", ["stop", "kill"])
def test_top_says_since_when_a_broker_is_silent(busy_top, harm):
    broker = busy_top.broker
    wait_for("locks", lambda: len(order_of(busy_top)) == 3)
    if harm == "stop":
        broker.stop()
    else:
        broker.kill()
    busy_top.expect(r"no answer since \d\d:\d\d:\d\d \([\d.]+m?s\): 127\.0\.0\.1:\d+" +
                    (" stands still or is overloaded" if harm == "stop" else ": Connection refused"))
    assert order_of(busy_top) == ["top:b", "top:a", "top:c"]  # as it was
    first = re.findall(r"no answer since (\S+) \(", busy_top.read())[-1]
    wait_for("some time more", lambda: re.search(r"no answer since %s \([2-9]\.\ds\)" % first, busy_top.read()))
    if harm == "stop":
        broker.cont()
        wait_for("its answer", lambda: "ready: 1 of 1 masters" in picture(busy_top.read().rpartition("\033[H")[0])[0])
        broker.stop()
        busy_top.expect(r"(?s)ready: 1.*no answer since.*ready: 1.*no answer since")
    busy_top.type("q")
    assert os.waitstatus_to_exitcode(busy_top.wait()) == 0
    if harm == "stop":
        broker.cont()


def test_colours_only_when_wanted(three, terminal):
    for extra, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        screen = terminal(three.broker, "masters", **extra)
        assert os.waitstatus_to_exitcode(screen.wait()) == 0
        assert ("\033[32m" in screen.text) is coloured
        assert "active" in screen.text


def test_tables_fit_a_terminal(one, clients, terminal):
    client = clients(one.broker)
    client.cmd("LOCK", "long:" + "x" * 300, "OWNER", "o" * 200)
    screen = terminal(one.broker, "ls", "long:*", NO_COLOR="1")
    screen.wait()
    rows = [line for line in screen.text.splitlines() if line.startswith("long:")]
    assert len(rows) == 1 and len(rows[0]) <= 80 and ".." in rows[0]


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("kind", [[], ["SHARED"]], ids=["one", "several"])
def test_show_fits_a_terminal(one, clients, terminal, name, kind, columns):
    lock, owners = "wide:" + name + "x" * 300, ["o" * 200, "p" * 200][:1 + len(kind)]
    for owner in owners:
        assert clients(one.broker).cmd("LOCK", lock, "OWNER", owner, *kind)
    waiter = clients(one.broker)
    waiter.send("LOCK", lock, "WAIT", 0, "OWNER", "q" * 200)
    wait_for("somebody who waits", lambda: json.loads(ok(one.broker, "show", "--json", lock))["waiting"] == 1)
    screen = terminal(one.broker, "show", lock, columns=columns, NO_COLOR="1")
    assert os.waitstatus_to_exitcode(screen.wait()) == 0
    lines = screen.text.splitlines()
    assert max(map(len, lines)) <= columns, screen.text
    for begin in ("name     wide:", "state    held, 1 waiting here", "MASTER"):
        assert any(line.startswith(begin) for line in lines), screen.text
    for owner in owners + ["q" * 200]:
        assert any(owner[:4] in line and ".." in line for line in lines), screen.text


# --- run: the command -----------------------------------------------------------------------------

def test_run_gives_the_status_of_the_command(one, name):
    for script, expected in (("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
        assert cli(one.broker, "run", name, "--", "sh", "-c", script)[0] == expected
    assert cli(one.broker, "run", name, "/no/such/program")[0] == 127
    assert cli(one.broker, "run", name, "/etc/passwd")[0] == 126
    assert not is_held(one.broker, name)


def test_run_tells_the_token(one, name):
    out = ok(one.broker, "run", name, "--", "sh", "-c",
             'echo "$HOLDFAST_TOKEN $HOLDFAST_LOCK"; %s show --json "$HOLDFAST_LOCK"' % shlex.quote(CLI))
    line, _, shown = out.partition("\n")
    token, _, told = line.partition(" ")
    holder = json.loads(shown)["holders"][0]
    assert told == name and int(token) == holder["token"] and holder["watched"] is True
    assert not is_held(one.broker, name)


def test_run_leaves_standard_streams_alone(one, name):
    status, out, err = cli(one.broker, "run", name, "sh", "-c", "cat; echo oops >&2", stdin="some\ninput")
    assert (status, out, err) == (0, "some\ninput", "oops\n")


def test_run_options_on_either_side_of_the_name(one, name):
    assert ok(one.broker, "run", "--wait", "1s", name, "--lease", "5s", "--", "echo", "-v", "--") == "-v --\n"


def test_run_not_granted(one, clients, name):
    client = clients(one.broker)
    client.cmd("LOCK", name)
    assert cli(one.broker, "run", "--wait", "0", name, "echo", "ran") == (NOT_GRANTED, "", "")
    assert cli(one.broker, "run", "--wait=0", "-E", "0", name, "echo", "ran") == (0, "", "")
    start = time.monotonic()
    assert cli(one.broker, "run", "--wait", "400ms", name, "echo", "ran")[:2] == (NOT_GRANTED, "")
    assert time.monotonic() - start >= 0.4
    assert "somebody else" in cli(one.broker, "run", "-v", "--wait", "0", name, "echo")[2]


def test_run_waits(one, clients, running, name):
    client = clients(one.broker)
    client.cmd("LOCK", name)
    job = running(one.broker, name, "echo", "ran")
    wait_for("the waiter", lambda: json.loads(ok(one.broker, "ls", "--json", name))[0]["waiting"] == 1)
    client.cmd("UNLOCK", name)
    assert job.end()[:2] == (0, "ran\n")


def test_run_says_who_holds_what_it_waits_for(one, clients, running, terminal, name):
    """On a terminal, or with -v; a log is left alone."""
    client = clients(one.broker)
    client.cmd("LOCK", name, "OWNER", "web-7\x1b[31m")
    quiet = running(one.broker, name, "echo", "ran")
    wait_for("the waiter", lambda: json.loads(ok(one.broker, "ls", "--json", name))[0]["waiting"] == 1)
    job = running(one.broker, "-v", name, "echo", "ran")
    said = job.proc.stderr.readline()
    assert re.fullmatch(r"holdfast: %s: waiting: held by web-7\\x1b\[31m, for \S+; 1 more waits\n" % re.escape(name), said), said
    screen = terminal(one.broker, "run", name, "echo", "ran")
    screen.expect(r"waiting: held by web-7\\x1b\[31m, for \S+; 2 more wait\r")
    client.cmd("UNLOCK", name, "OWNER", "web-7\x1b[31m")
    assert quiet.end() == (0, "ran\n", "")
    assert job.end()[:2] == (0, "ran\n")
    screen.expect("ran")
    assert os.waitstatus_to_exitcode(screen.wait()) == 0
    for _ in range(3):
        client.cmd("LOCK", name, "SHARED", "OWNER", "reader-%d" % _)
    job = running(one.broker, "-v", name, "echo", "ran")
    assert re.search(r"held by reader-\d and 2 more, for \S+\n", job.proc.stderr.readline())
    for _ in range(3):
        client.cmd("UNLOCK", name, "OWNER", "reader-%d" % _)
    assert job.end()[:2] == (0, "ran\n")


def test_run_waits_through_another_broker(two_brokers, clients, running, name):
    client = clients(two_brokers[0])
    client.cmd("LOCK", name, "OWNER", "far")
    job = running(two_brokers[1], "-v", name, "echo", "ran")
    assert "waiting: held by far, through another broker\n" in job.proc.stderr.readline()
    client.cmd("UNLOCK", name, "OWNER", "far")
    assert job.end()[:2] == (0, "ran\n")


def test_run_waits_and_is_told_nothing(make_broker, masters1, clients, running, name):
    """Its user may lock, but not look."""
    broker = make_broker(masters1, args=["-o", "users.default=nopass", "-o", "users.default.allow=lock"])
    client = clients(broker)
    client.cmd("LOCK", name)
    job = running(broker, "-v", name, "echo", "ran")
    assert job.proc.stderr.readline() == "holdfast: %s: waiting\n" % name
    client.cmd("UNLOCK", name)
    assert job.end()[:2] == (0, "ran\n")


def test_runs_take_turns(one, running, name, tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    script = 'read n <"$0"; sleep 0.02; echo $((n + 1)) >"$0"'
    jobs = [running(one.broker, name, "sh", "-c", script, str(counter)) for _ in range(15)]
    assert [job.end()[0] for job in jobs] == [0] * 15
    assert int(counter.read_text()) == 15


def test_run_readers_together_and_a_writer_alone(one, running, name):
    readers = [running(one.broker, "--shared", name, "sh", "-c", "echo up; read line") for _ in range(3)]
    assert [job.line() for job in readers] == ["up"] * 3
    assert cli(one.broker, "run", "--wait", "0", name, "echo", "ran") == (NOT_GRANTED, "", "")
    writer = running(one.broker, name, "echo", "ran")
    wait_for("the writer", lambda: json.loads(ok(one.broker, "ls", "--json", name))[0]["waiting"] == 1)
    for job in readers:
        assert writer.proc.poll() is None
        job.proc.stdin.write("\n")
        assert job.end()[0] == 0
    assert writer.end()[:2] == (0, "ran\n")


def test_run_so_many_at_a_time(one, running, name):
    jobs = [running(one.broker, "--limit", "2", name, "sh", "-c", "echo up; read line") for _ in range(2)]
    assert [job.line() for job in jobs] == ["up"] * 2
    assert cli(one.broker, "run", "--limit", "2", "--wait", "0", name, "echo", "ran") == (NOT_GRANTED, "", "")
    third = running(one.broker, "--limit", "2", name, "echo", "ran")
    jobs[0].proc.stdin.write("\n")
    assert jobs[0].end()[0] == 0
    assert third.end()[:2] == (0, "ran\n")


def test_run_of_another_kind(one, clients, name):
    client = clients(one.broker)
    client.cmd("LOCK", name, "SHARED")
    for wait in ([], ["--wait", "0"]):
        status, out, err = cli(one.broker, "run", *wait, "--limit", "3", name, "echo", "ran")
        assert (status, out) == (REFUSED, "")
        assert re.fullmatch(r"holdfast: '%s' is held as .*shared.*\n" % re.escape(name), err), err


def test_run_does_not_start_without_a_quorum(broker1, masters1, name):
    masters1[0].kill()
    for wait in ("0", "500ms"):
        status, out, err = cli(broker1, "run", "--wait", wait, name, "echo", "ran")
        assert (status, out) == (NO_BROKER, "") and "NOQUORUM" in err


def test_run_with_a_lease_that_is_refused(one, name):
    status, out, err = cli(one.broker, "run", "--lease", "1h", name, "echo", "ran")
    assert (status, out) == (REFUSED, "") and "max_lease" in err


@pytest.mark.parametrize("lease", [[], ["--lease", "500ms"]], ids=["watched", "lease"])
def test_run_holds_for_longer_than_a_lease(one, clients, running, name, lease):
    job = running(one.broker, *lease, name, "sh", "-c", "echo up; read line")
    assert job.line() == "up"
    client = clients(one.broker)
    until = time.monotonic() + 3 * LEASE_MS / 1000
    while time.monotonic() < until:
        assert client.cmd("LOCK", name) is None
        time.sleep(0.05)
    job.proc.stdin.write("\n")
    assert job.end()[0] == 0
    assert client.cmd("LOCK", name)[0] > 0


# --- run: signals ---------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_run_passes_signals_on(one, running, name, number):
    script = 'trap "echo got; exit 5" %d; echo up; while :; do sleep 0.05; done' % number
    job = running(one.broker, name, "sh", "-c", script)
    assert job.line() == "up"
    job.proc.send_signal(number)
    assert job.end()[:2] == (5, "got\n")
    assert not is_held(one.broker, name)


def test_run_ended_while_it_waits(one, clients, running, name):
    client = clients(one.broker)
    client.cmd("LOCK", name)
    for args in ([], ["--lease", "30s"]):
        job = running(one.broker, *args, name, "echo", "ran")
        wait_for("the waiter", lambda: json.loads(ok(one.broker, "ls", "--json", name))[0]["waiting"] == 1)
        job.proc.send_signal(signal.SIGTERM)
        assert job.end()[:2] == (143, "")
        wait_for("no waiter", lambda: json.loads(ok(one.broker, "ls", "--json", name))[0]["waiting"] == 0)
    client.cmd("UNLOCK", name)
    assert not is_held(one.broker, name)


@each_kind
def test_run_killed_frees_the_lock_and_ends_the_command(one, running, name, kind):
    job = running(one.broker, *kind, name, "sh", "-c", "echo $$; exec sleep 60")
    pid = int(job.line())
    job.proc.kill()
    wait_for("the end of the command", lambda: not procs.alive(pid), 5)
    wait_for("the lock to be free", lambda: not is_held(one.broker, name), LEASE_MS / 1000 + 2)


def test_run_gives_its_command_no_descriptor(one, running, name):
    """One of the connection would keep the lock for as long as anything runs that the command has started."""
    job = running(one.broker, name, "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; wait")
    left = int(job.line())
    try:
        wait_for("no more than the standard streams",  # a shell that starts something may have more
                 lambda: sorted(os.listdir("/proc/%d/fd" % left)) == ["0", "1", "2"])
        job.proc.kill()
        wait_for("the lock to be free", lambda: not is_held(one.broker, name), LEASE_MS / 1000 + 2)
        assert procs.alive(left)
    finally:
        os.kill(left, signal.SIGKILL)


@each_kind
def test_run_killed_with_a_lease(one, running, name, kind):
    job = running(one.broker, "--lease", "1500ms", *kind, name, "sh", "-c", "echo $$; exec sleep 60")
    pid = int(job.line())
    job.proc.kill()
    wait_for("the end of the command", lambda: not procs.alive(pid), 5)
    wait_for("the lock to be free", lambda: not is_held(one.broker, name), 1.5 + 2)


def test_run_on_a_terminal(one, terminal, name):
    """Ctrl-Z stops both, and the lock is kept; input goes to the command; Ctrl-C ends it."""
    job = terminal(one.broker, "run", name, "--", "sh", "-c",
                   'tty; read _ _ _ _ group _ _ front _ </proc/$$/stat; echo $group $front; '
                   'read line; echo "read $line"; exec cat')
    job.expect(r"/dev/pts/\d+")
    group, foreground = job.expect(r"(\d+) +(\d+)\r").groups()
    assert group == foreground == str(os.getpgid(job.pid))
    job.type("words\n")
    job.expect("read words")
    # A session leader's group is orphaned: the terminal cannot stop it, but this can.
    child = next(iter(procs.children(job.pid)))
    os.kill(child, signal.SIGSTOP)
    assert os.WIFSTOPPED(job.wait(os.WUNTRACED))
    time.sleep(1.5 * LEASE_MS / 1000)
    assert is_held(one.broker, name)
    os.kill(job.pid, signal.SIGCONT)
    job.type("more words\n")
    job.expect(r"more words\r\nmore words")
    job.type("\003")
    assert os.waitstatus_to_exitcode(job.wait()) == 130
    assert not is_held(one.broker, name)


def test_run_follows_a_stop_once(one, running, name):
    """News of its children that waits when it is continued is no reason to stop again."""
    job = running(one.broker, name, "sh", "-c", "echo $$; exec sleep 60")
    child = int(job.line())
    os.kill(child, signal.SIGSTOP)
    wait_for("the job to stop", lambda: procs.state(job.proc.pid) == "T")
    os.kill(job.proc.pid, signal.SIGCHLD)
    os.kill(job.proc.pid, signal.SIGCONT)
    wait_for("the job to go on", lambda: procs.state(child) == "S" and procs.state(job.proc.pid) == "S")
    os.kill(job.proc.pid, signal.SIGTERM)
    assert job.end()[0] == 128 + signal.SIGTERM


# --- run: loss ------------------------------------------------------------------------------------

STUBBORN = 'trap "" TERM; sleep 60 & echo $$ $!; wait; sleep 60'


def test_run_ends_the_command_when_the_lock_is_lost(one, running, name):
    job = running(one.broker, name, "sh", "-c", 'trap "echo told; exit 0" TERM; echo up; sleep 60 & wait')
    assert job.line() == "up"
    ok(one.broker, "unlock", "-f", name)
    status, out, err = job.end(10)
    assert (status, out) == (LOST, "told\n") and "forced" in err


@each_kind
def test_run_kills_all_that_ignores_term(one, running, name, kind):
    job = running(one.broker, "--grace", "300ms", *kind, name, "sh", "-c", STUBBORN)
    pids = [int(pid) for pid in job.line().split()]
    start = time.monotonic()
    ok(one.broker, "unlock", "-f", name)
    assert job.end(10)[0] == LOST
    assert time.monotonic() - start >= 0.3
    assert not any(procs.alive(pid) for pid in pids)


def test_run_kills_what_has_left_group_and_parent(one, running, name):
    job = running(one.broker, "--on-lost", "kill", name, "sh", "-c",
                  "(setsid sh -c 'echo $$; sleep 60 & wait' &); sleep 60")
    pid = int(job.line())
    ok(one.broker, "unlock", "-f", name)
    assert job.end(10)[0] == LOST
    assert not procs.alive(pid)


def test_run_ignores_the_loss(one, running, name):
    job = running(one.broker, "--on-lost", "ignore", name, "sh", "-c", "echo up; read line; exit 4")
    assert job.line() == "up"
    ok(one.broker, "unlock", "-f", name)
    time.sleep(0.3)
    assert job.proc.poll() is None
    job.proc.stdin.write("\n")
    status, _, err = job.end()
    assert status == 4 and "lost" in err


def test_run_with_a_longest_time(one, running, name):
    start = time.monotonic()
    status, _, err = cli(one.broker, "run", "--max-hold", "500ms", name, "sleep", "60")
    assert status == LOST and "--max-hold" in err
    assert 0.5 <= time.monotonic() - start < 5
    assert not is_held(one.broker, name)


def test_run_notices_a_loss_at_the_end(one, name):
    """The command itself frees the lock, and ends before it is told: nothing was ever confirmed."""
    status, _, err = cli(one.broker, "run", "--on-lost", "term", name, "sh", "-c",
                         "trap '' TERM; %s unlock -f %s" % (shlex.quote(CLI), name))
    assert status == LOST and "lost" in err


# --- run: brokers and masters die -----------------------------------------------------------------

@pytest.fixture
def steady(make_broker, masters1):
    """A broker that comes back at the same address."""
    return make_broker(masters1, options={"lease": "4s"}, listen="127.0.0.1:%d" % free_port())


@each_kind
def test_run_survives_a_restart_of_the_broker(steady, running, clients, name, kind):
    job = running(steady, *kind, name, "sh", "-c", "echo up; read line; exit 6")
    assert job.line() == "up"
    steady.kill()
    steady.start()
    steady.expect_status = 0
    client = clients(steady)
    wait_for("the lock to be taken back",
             lambda: any(h.get("watched") for h in json.loads(ok(steady, "show", "--json", name))["holders"]), 4)
    assert json.loads(ok(steady, "show", "--json", name))["holders"][0]["count"] == 1
    until = time.monotonic() + 5
    while time.monotonic() < until:  # longer than the lease of before
        client.send("LOCK", name)
        reply = client.recv()
        assert reply is None or reply.code == "KIND"
        time.sleep(0.1)
    job.proc.stdin.write("\n")
    status, _, err = job.end()
    assert status == 6 and "taken back" in err
    assert not is_held(steady, name)


def test_run_ends_in_time_when_the_broker_stays_away(make_broker, masters1, running, clients, name):
    first = make_broker(masters1, options={"lease": "2s"})
    second = make_broker(masters1, options={"lease": "2s"})
    client = clients(second)
    job = running(first, "--on-lost", "kill", name, "sh", "-c", "echo $$; exec sleep 60")
    pid = int(job.line())
    first.kill()
    client.send("LOCK", name, "WAIT", 20000)
    assert client.recv()[0] > 0
    assert not procs.alive(pid), "somebody else has the lock and the command still runs"
    assert job.end()[0] == LOST


def test_run_keeps_its_lock_when_the_broker_was_silent(make_broker, masters1, running, name):
    """A new connection to the same broker: what it still reads from the old one must not free the lock."""
    broker = make_broker(masters1, options={"lease": "6s"})
    job = running(broker, name, "sh", "-c", "echo up; read line; exit 6")
    assert job.line() == "up"
    broker.stop()
    assert "no answer" in job.proc.stderr.readline()
    broker.cont()
    wait_for("the broker", lambda: is_held(broker, name))
    job.proc.stdin.write("\n")
    assert job.end()[0] == 6


@each_kind
def test_run_closes_a_silent_connection_only_when_it_has_its_lock_back(make_broker, make_proxy, masters1, running,
                                                                        name, kind):
    """The broker hears, but is not heard: closed in order, the old connection would give the lock away."""
    broker = make_broker(masters1, options={"lease": "6s"})
    proxy = make_proxy(broker.address)
    proxy.on("drop_reply", lambda r: r.name == "renew")
    again = proxy.on("hold_request", lambda r: r.name == "renew", nth=2)
    job = running(None, *kind, name, "sh", "-c", "echo up; read line; exit 6", env=cli_env(HOLDFAST_URL=proxy.url))
    assert job.line() == "up"
    again.wait()
    time.sleep(0.5)  # an end of the old connection would be there first
    assert is_held(broker, name)
    again.release()
    assert "no answer" in job.proc.stderr.readline()
    assert "taken back" in job.proc.stderr.readline()
    job.proc.stdin.write("\n")
    assert job.end()[0] == 6
    assert not is_held(broker, name)


def test_run_goes_on_with_another_broker(make_broker, masters3, running, clients, name):
    options = {"lease": "3s"}
    first, second = make_broker(masters3, options=options), make_broker(masters3, options=options)
    env = cli_env(HOLDFAST_URL="%s,%s" % (url_of(first), url_of(second)))
    for harm in (first.stop, first.kill):
        job = running(None, name, "sh", "-c", "echo up; read line", env=env)
        assert job.line() == "up"
        assert is_held(first, name)
        harm()
        wait_for("the lock at the other broker",
                 lambda: json.loads(ok(second, "show", "--json", name))["holders"][0].get("watched"), 4)
        if harm == first.stop:
            first.cont()
        job.proc.stdin.write("\n")
        status, _, err = job.end()
        assert status == 0, err
        assert not is_held(second, name)


@each_kind
def test_run_survives_a_restart_of_a_master(broker3, masters3, running, name, kind):
    jobs = [running(broker3, *kind, name, "sh", "-c", "echo up; read line; exit 6") for _ in kind or [1]]
    assert [job.line() for job in jobs] == ["up"] * len(jobs)
    for master in masters3:
        master.restart()
        wait_for("its return", lambda: all(m["state"] == "active" for m in
                                           json.loads(ok(broker3, "masters", "--json"))))
        time.sleep(LEASE_MS / 1000)
    assert json.loads(ok(broker3, "show", "--json", name))["holding"] == len(jobs)
    for job in jobs:
        assert job.proc.poll() is None
        job.proc.stdin.write("\n")
        assert job.end()[0] == 6


def test_run_readers_survive_a_restart_of_the_broker_together(steady, running, clients, name):
    """Each takes its own share back; nobody gets the lock alone meanwhile."""
    jobs = [running(steady, "--shared", name, "sh", "-c", "echo up; read line; exit 6") for _ in range(4)]
    assert [job.line() for job in jobs] == ["up"] * 4
    steady.kill()
    steady.start()
    steady.expect_status = 0
    client = clients(steady)

    def all_back():
        holders = json.loads(ok(steady, "show", "--json", name))["holders"]
        return len(holders) == 4 and all(h.get("watched") for h in holders)
    wait_for("all shares to be taken back", all_back, 4)
    assert client.cmd("LOCK", name) is None
    for job in jobs:
        job.proc.stdin.write("\n")
        status, _, err = job.end()
        assert status == 6 and "taken back" in err
    assert client.cmd("LOCK", name)[0] > 0


@pytest.mark.parametrize("wait", [[], ["--wait", "15s"]], ids=["for ever", "15s"])
def test_run_waits_for_a_broker(steady, running, name, wait):
    port = steady.port
    steady.terminate()
    steady.proc.wait()
    env = cli_env(HOLDFAST_URL="redis://127.0.0.1:%d" % port)
    job = running(None, *wait, name, "echo", "ran", env=env)
    assert "trying again" in job.proc.stderr.readline()
    steady.start()
    assert job.end()[:2] == (0, "ran\n")


def test_run_that_was_asleep_asks_before_it_goes_on(one, running, clients, name):
    """Stopped as a whole for longer than its validity: the broker has kept the lock, and it goes on."""
    job = running(one.broker, name, "sh", "-c", "echo up; read line; exit 6")
    assert job.line() == "up"
    job.proc.send_signal(signal.SIGSTOP)
    time.sleep(2 * LEASE_MS / 1000)
    assert clients(one.broker).cmd("LOCK", name) is None
    job.proc.send_signal(signal.SIGCONT)
    time.sleep(0.3)
    job.proc.stdin.write("\n")
    assert job.end()[0] == 6


# --- bench ----------------------------------------------------------------------------------------

@pytest.fixture
def patient(make_broker, masters1):
    """A broker that has no errors of its own on a machine that is busy with other things."""
    return make_broker(masters1, options={"lease": "20s", "request_timeout": "10s"})


def test_bench(patient, clients):
    told = json.loads(ok(patient, "bench", "-c", "8", "--hold", "2ms", "--think", "5ms",
                         "--duration", "1s", "--json"))
    grants, handover = told["grant_us"], told["handover_us"]
    assert told["errors"] == told["disconnects"] == 0 and grants["count"] > 30
    assert 2000 * 4 < grants["p50"] <= grants["p90"] <= grants["p99"] <= grants["p99.9"] <= grants["max"]
    assert 0 < handover["p50"] <= handover["max"] and handover["count"] >= grants["count"] // 2
    fair = told["grants_per_client"]
    assert fair["max"] - fair["min"] <= 3
    wait_for("nothing to be left", lambda: clients(patient).cmd("LOCKS", "MATCH", "bench:*") == ["0", []])


@pytest.mark.parametrize("lease", [[], ["--lease", "20s"]], ids=["watched", "lease"])
def test_bench_with_many_clients_leaves_nothing_behind(patient, clients, lease):
    told = json.loads(ok(patient, "bench", "--clients", "300", "--names", "20", "--hold", "500us",
                         "--duration", "700ms", "--prefix", "many:", "--json", *lease))
    assert told["errors"] == told["disconnects"] == 0 and told["grant_us"]["count"] > 100
    client = clients(patient)
    wait_for("nothing to be left", lambda: client.cmd("LOCKS", "MATCH", "many:*", "COUNT", 1000) == ["0", []], 3)


@pytest.mark.parametrize("kind", KINDS[1:], ids=["shared", "limit"])
def test_bench_with_kinds(patient, clients, kind):
    told = json.loads(ok(patient, "bench", "-c", "12", "--hold", "20ms", "--duration", "700ms", "--json", *kind))
    assert told["errors"] == 0 and told["handover_us"]["count"] == 0
    assert told["kind"] == kind[0][2:] and told["limit"] == (3 if kind[0] == "--limit" else None)
    assert told["grant_us"]["count"] > 12
    assert kind[0] != "--limit" or told["grant_us"]["p50"] > 20000
    wait_for("nothing to be left", lambda: clients(patient).cmd("LOCKS", "MATCH", "bench:*") == ["0", []])


def test_bench_counts_those_not_granted(patient, clients):
    client = clients(patient)
    client.cmd("LOCK", "bench:0")
    told = json.loads(ok(patient, "bench", "-c", "3", "--wait", "50ms", "--duration", "400ms", "--json"))
    assert told["grant_us"]["count"] == 0 and told["not_granted"] >= 9


def test_bench_without_a_wait_tries_once(patient, clients):
    client = clients(patient)
    client.cmd("LOCK", "bench:0")
    told = json.loads(ok(patient, "bench", "-c", "3", "--wait", "0", "--think", "10ms", "--duration", "400ms", "--json"))
    assert told["grant_us"]["count"] == 0 and told["not_granted"] > 3 and told["errors"] == 0
