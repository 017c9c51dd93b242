"""libholdfast: its header, its symbols, the example of its manual page, and what is particular to it."""

import json
import os
import queue
import random
import re
import shutil
import subprocess
import threading
import time

import pytest

from procs import spawn, wait_for
from respclient import as_map
from test_tls import Authority, make_tls_broker  # noqa: F401  pylint: disable=unused-import

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILT = os.path.join(os.path.dirname(os.path.abspath(os.environ["HOLDFAST"])), "clients", "c")
HEADER = os.path.join(ROOT, "clients", "c", "holdfast.h")
MANY = 10000


def address(broker):
    return "127.0.0.1:%d" % broker.port


class Agent:
    """A process with the library, told what to do line by line."""

    def __init__(self, *brokers, timeout=1000, authority=None):
        self.proc = spawn([os.path.join(BUILT, "agent")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, AGENT_FREES="1", **({"AGENT_CA": authority} if authority else {})))
        self.events = queue.Queue()    # or both could wait for the other one to read
        threading.Thread(target=self._read, daemon=True).start()
        self.tell("connect", brokers=[b if isinstance(b, str) else address(b) for b in brokers], timeout=timeout)
        assert self.hear() == ("connected", None)

    def tell(self, what, **more):
        self.proc.stdin.write(json.dumps({"do": what, **{key.replace("_", " "): value for key, value in more.items()}}) + "\n")
        self.proc.stdin.flush()

    def lock(self, hold, *names, **more):
        self.tell("lock", hold=hold, names=names, **more)

    def _read(self):
        for line in self.proc.stdout:
            self.events.put(json.loads(line))

    def hear(self, *more):
        event = self.events.get(timeout=30)
        return (event["event"], event.get("hold"), *(event[key] for key in more))

    def end(self):
        """By the end of its input; what it has not freed makes it fail where the address sanitizer looks on."""
        self.proc.stdin.close()
        assert self.proc.wait(20) == 0


@pytest.fixture
def agents():
    made = []

    def make(*brokers, **more):
        made.append(Agent(*brokers, **more))
        return made[-1]
    yield make
    for agent in made:
        if agent.proc.poll() is None:
            agent.end()


@pytest.fixture
def agent(one, agents):
    return agents(one.broker)


@pytest.fixture
def broker_patient(make_broker, masters1):
    """Whose locks live long enough for a machine that has much to do."""
    return make_broker(masters1, options={"lease": "20s", "max_lease": "60s", "quarantine": "off"})


def free_again(broker, name):
    with broker.connect() as client:
        wait_for("%s is free" % name, lambda: as_map(client.cmd("LOCKINFO", name))["holding"] == 0)


@pytest.mark.no_daemon
@pytest.mark.parametrize("compiler,language", [("cc", "c99"), ("cc", "c11"), ("c++", "c++11"), ("c++", "c++20")])
def test_the_header_compiles_by_itself(compiler, language, tmp_path):
    if not shutil.which(compiler):
        compiler = "clang++"
    source = tmp_path / ("x.c" if language.startswith("c1") or language == "c99" else "x.cc")
    source.write_text('#include "%s"\n'
                      "struct holdfast_options o = HOLDFAST_OPTIONS;\nstruct holdfast_request r = HOLDFAST_REQUEST;\n" % HEADER)
    subprocess.run([compiler, "-std=" + language, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", str(source)], check=True)


@pytest.mark.no_daemon
def test_the_library_exports_what_the_header_declares():
    library = os.path.join(BUILT, ".libs", "libholdfast.so.0")
    said = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[2].partition("@")[0] for line in said.splitlines() if line.split()[1] == "T"}
    with open(HEADER, encoding="utf-8") as text:
        declared = set(re.findall(r"\b(holdfast_[a-z_]+)\((?:const )?(?:struct|enum)", text.read()))
    assert declared == exported
    with open(os.path.join(ROOT, "man", "libholdfast.3"), encoding="utf-8") as text:
        assert set(re.findall(r"^\.Fn (holdfast_\w+) \"", text.read(), re.M)) == exported


def test_the_example_of_the_manual(one):
    done = subprocess.run([os.path.join(BUILT, "example"), address(one.broker)], check=True, capture_output=True, text=True,
                          timeout=30)
    assert re.fullmatch(r"invoice:42 is ours under token \d+\ninvoice:42: released \n", done.stdout)
    assert done.stderr == ""


def test_ten_thousand_waits(broker_patient, agents):
    """On one connection, and other locks go on there meanwhile; the first in line are served, all others cancelled."""
    agent, holder = agents(broker_patient, timeout=5000), agents(broker_patient)
    holder.lock("h", "many")
    assert holder.hear() == ("granted", "h")
    for i in range(MANY):
        agent.lock("w%d" % i, "many")
    wait_for("all to wait", lambda: int(broker_patient.info()["waiters"]) == MANY, deadline_s=40)
    agent.lock("other", "other")
    assert agent.hear() == ("granted", "other")
    holder.tell("unlock", hold="h")
    assert holder.hear() == ("released", "h")
    assert agent.hear() == ("granted", "w0")
    for i in range(3):
        agent.tell("unlock", hold="w%d" % i)
        assert {agent.hear(), agent.hear()} == {("released", "w%d" % i), ("granted", "w%d" % (i + 1))}
    for i in range(4, MANY):
        agent.tell("cancel", hold="w%d" % i)
    agent.tell("unlock", hold="w3")
    ends = [agent.hear() for _ in range(MANY - 3)]
    assert sorted(ends) == sorted([("released", "w3")] + [("cancelled", "w%d" % i) for i in range(4, MANY)])
    assert int(broker_patient.info()["waiters"]) == 0


@pytest.mark.parametrize("event", [1, 6, 7, 8], ids=["granted", "released", "timeout", "cancelled"])
def test_freed_in_its_callback(one, agent, agents, event):
    other = agents(one.broker)
    if event > 6:
        other.lock("h", "freed")
        assert other.hear() == ("granted", "h")
    agent.lock("f", "freed", wait=100 if event == 7 else -1, free_in=event)
    if event == 8:
        wait_for("it to wait", lambda: int(one.broker.info()["waiters"]) == 1)
        agent.tell("cancel", hold="f")
    if event == 6:
        assert agent.hear() == ("granted", "f")
        agent.tell("unlock", hold="f")
    assert agent.hear() == ({1: "granted", 6: "released", 7: "timeout", 8: "cancelled"}[event], "f")
    if event > 6:
        other.tell("unlock", hold="h")
        assert other.hear() == ("released", "h")
    free_again(one.broker, "freed")    # by the grant as well: whoever frees it gives it back
    agent.lock("next", "freed")
    assert agent.hear() == ("granted", "next")


def test_closed_with_all_it_has(one, agent):
    """What is held is free at once, a lease included that had been given back; what waits is gone."""
    agent.lock("h", "closed")
    assert agent.hear() == ("granted", "h")
    agent.lock("w", "closed")
    wait_for("it to wait", lambda: int(one.broker.info()["waiters"]) == 1)
    agent.tell("close")
    assert agent.hear() == ("closed", None)
    free_again(one.broker, "closed")
    assert int(one.broker.info()["waiters"]) == 0


def test_a_lease_is_made_longer(agent):
    agent.lock("h", "longer", lease=1000)
    assert agent.hear() == ("granted", "h")
    agent.tell("renew", hold="h", lease=30000)
    assert agent.hear() == ("safe", "h")
    agent.tell("state", hold="h")
    assert 25000 < agent.hear("remaining")[2] <= 30000


def test_cut_in_every_state(broker_patient, agents):
    """The broker is killed with holds, waits and requests on their way; what is asked of its successor counts once."""
    broker = broker_patient
    agent, other = agents(broker), agents(broker)
    agent.lock("h", "state-held")
    agent.lock("s1", "state-shared", shared=True)
    agent.lock("m", "state-many-1", "state-many-2")
    assert {agent.hear() for _ in range(3)} == {("granted", "h"), ("granted", "s1"), ("granted", "m")}
    other.lock("w", "state-held")
    wait_for("it to wait", lambda: int(broker.info()["waiters"]) == 1)
    agent.lock("w", "state-held")
    broker.listen = "127.0.0.1:%d" % broker.port
    broker.kill()
    broker.expect_status = 0    # of the one that is started in its place
    agent.tell("cancel", hold="w")
    agent.tell("unlock", hold="m")
    broker.start()
    assert {agent.hear() for _ in range(2)} == {("cancelled", "w"), ("released", "m")}
    free_again(broker, "state-many-1")
    free_again(broker, "state-many-2")
    agent.tell("unlock", hold="h")
    assert agent.hear() == ("released", "h")
    assert other.hear() == ("granted", "w")
    agent.tell("unlock", hold="s1")
    assert agent.hear() == ("released", "s1")
    free_again(broker, "state-shared")


def taken_back_and_released(agent, broker, name):
    """The broker is killed and comes back in its place while the agent holds the lock."""
    agent.lock("h", name)
    (token,), = agent.hear("tokens")[2:]
    assert token > 0
    broker.kill()
    broker.expect_status = 0
    broker.start()

    def state():
        agent.tell("state", hold="h")
        return agent.hear("held", "tokens")[2:]
    wait_for("it to be taken back", lambda: state()[1] != [token], deadline_s=30, every_s=0.1)
    held, tokens = state()
    assert held and tokens[0] > token
    agent.tell("unlock", hold="h")
    assert agent.hear() == ("released", "h")
    free_again(broker, name)


def test_over_a_unix_socket(make_broker, masters1, agents, tmp_path):
    path = tmp_path / "s"
    broker = make_broker(masters1, listen="127.0.0.1:0 unix:%s" % path,
                         options={"lease": "20s", "max_lease": "60s", "quarantine": "off"})
    taken_back_and_released(agents("unix:%s" % path), broker, "unix")


def test_over_tls(make_tls_broker, masters1, agents, tmp_path):  # noqa: F811
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    cert, key = authority.issue("server")
    broker = make_tls_broker(masters1, {"certificate": cert, "key": key},
                             options={"lease": "20s", "max_lease": "60s", "quarantine": "off"})
    port = broker.tls_port
    broker.listen = "127.0.0.1:0 tls://127.0.0.1:%d" % port
    doubter = agents("127.0.0.1:%d" % port, authority=stranger.cert)
    doubter.lock("d", "tls", wait=500)
    assert doubter.hear() == ("error", "d")
    taken_back_and_released(agents("127.0.0.1:%d" % port, authority=authority.cert), broker, "tls")


@pytest.mark.parametrize("part", range(4))
def test_without_memory(broker_patient, part):
    """Each allocation fails once, in the library and below it: no lock is without an end, and nothing stays."""
    done = subprocess.run([os.path.join(BUILT, "starved"), address(broker_patient), str(part), "4"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout.partition("failed=")[2]) > 100
    for name in ["starved-first", "starved-second"] + ["starved-%d" % i for i in range(1, 6)]:
        free_again(broker_patient, name)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_used_as_badly_as_can_be(make_broker, masters1, seed):
    """Random calls in every state, under brokers that are stopped and killed: nothing is held twice, nothing stays."""
    brokers = [make_broker(masters1, options={"quarantine": "off"}) for _ in range(2)]
    for broker in brokers:
        broker.listen = address(broker)    # when it comes back
    chance = random.Random(seed)
    attack = spawn([os.path.join(BUILT, "attack"), ",".join(address(b) for b in brokers), "12", str(seed)],
                   stdout=subprocess.PIPE, text=True)
    while attack.poll() is None:
        broker = chance.choice(brokers)
        if chance.random() < 0.5:
            broker.stop()
            time.sleep(chance.uniform(0.1, 1.5))    # shorter and longer than a broker may be silent
            broker.cont()
        else:
            broker.kill()
            broker.expect_status = 0
            broker.start()
        time.sleep(chance.uniform(0.1, 1))
    said = attack.stdout.read()
    assert attack.returncode == 0, said
    counts = dict(pair.split("=") for pair in said.split())
    assert int(counts["granted"]) > 50, said
    for name in ["attack-%d" % i for i in range(6)] + ["attack-both"]:
        free_again(brokers[0], name)
