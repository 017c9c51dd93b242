#!/usr/bin/python3
"""Counts the instructions that holdfastd, and then redis-server, executes for a lock that is taken and freed, by callgrind.

    tests/cost/cost.py              against the figures beside it: 1 when one is over by 5 %
    tests/cost/cost.py --update     writes what it has counted as the figures of this compiler and this Redis
    tests/cost/cost.py --profile    shows where they go

Instructions do not depend on what else the machine does, as times do. They are counted between two moments of a
daemon's life; what it does by the clock meanwhile is counted by itself, and taken off. These pairs are counted: a
LOCK of a free lock with its UNLOCK; the same by commands of Redis, SET NX PX with DEL, or with the script that compares and deletes;
a hand-over, where a LOCK WAIT is served by the UNLOCK of another connection; and a LOCK with its UNLOCK once more, by a
daemon that mirrors. Each is counted one by one, which is
dominated by the turn of the loop (and in Redis by the script call), and 32 at a time: 32 free locks are asked for in
one write, 32 hand-overs are from 32 connections to 32 others, as nothing is begun behind a LOCK WAIT on its
connection. Of commands of Redis there is a second figure, without the runs of the make-believe that find out
what each of them does (run_job): that and what it costs Redis are together to be no more than GOAL times what a LOCK
with its UNLOCK costs both; the last lines say how it is. Figures depend on the compiler and its flags, or on the version
of Redis: those for others than are listed are shown and not judged.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))

# pylint: disable=wrong-import-position
from holdfastproc import HoldfastProc, daemon_path  # noqa: E402
from redisproc import RedisProc, find_server  # noqa: E402
from respclient import encode  # noqa: E402

FIGURES = os.path.join(HERE, "figures.json")
TOLERANCE = 0.05
GOAL = 1.1
LESS_RUNS = "%s, without its runs"
SKIP = 77
WARM_UP = 10
IDLE_S = 2

VALUE = "6f5902ac237024bdd0c176cb93063dc4"
COMPARE_AND_DELETE = """if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end"""
SHA1 = hashlib.sha1(COMPARE_AND_DELETE.encode()).hexdigest()


def ask(client, requests):
    """Sends requests in one write."""
    client.send_raw(b"".join(encode(*words) for words in requests))


def take(client, size, values):
    """Receives so many replies: locks that were granted, or UNLOCKs that found one."""
    for _ in range(size):
        reply = client.recv()
        assert isinstance(reply, list) or reply in values, reply


def free_locks(clients, number, size):
    """One round: `size` locks that are free, then their releases, each way in one write."""
    names = ["cost:%d:%d" % (number, i) for i in range(size)]
    ask(clients[0], [("LOCK", name, "LEASE", 30000) for name in names])
    take(clients[0], size, ())
    ask(clients[0], [("UNLOCK", name) for name in names])
    take(clients[0], size, (1,))


def set_and_del(clients, number, size):
    """One round: `size` locks that are taken by SET NX PX, and freed by DEL."""
    names = ["cost:%d:%d" % (number, i) for i in range(size)]
    ask(clients[0], [("SET", name, VALUE, "NX", "PX", 30000) for name in names])
    take(clients[0], size, ("OK",))
    ask(clients[0], [("DEL", name) for name in names])
    take(clients[0], size, (1,))


def set_and_compare(clients, number, size):
    """One round: `size` locks that are taken by SET NX PX, and freed by the script that everybody frees them by."""
    names = ["cost:%d:%d" % (number, i) for i in range(size)]
    if number == 0:
        assert clients[0].cmd("SCRIPT", "LOAD", COMPARE_AND_DELETE) == SHA1
    ask(clients[0], [("SET", name, VALUE, "NX", "PX", 30000) for name in names])
    take(clients[0], size, ("OK",))
    ask(clients[0], [("EVALSHA", SHA1, 1, name, VALUE) for name in names])
    take(clients[0], size, (1,))


def each(clients, *requests):
    """Sends each connection its one of each of these requests, in one write; the daemon, which stands still meanwhile,
    finds them all at once. For a single one it goes on: that it is stopped may cost it a turn, or not."""
    if len(clients) > 1:
        clients[0].daemon.stop()
    for client, *words in zip(clients, *requests):
        ask(client, words)
    if len(clients) > 1:
        clients[0].daemon.cont()


def take_each(clients, values):
    for client in clients:
        take(client, 1, values)


def hand_overs(clients, number, size):
    """One round: `size` connections wait for a lock each that another one has, which these then release. What is answered
    in the turn in which a LOCK WAIT is read tells that it waits."""
    names = ["cost:%d" % i for i in range(size)]
    one, other = clients[:size], clients[size:]
    holders, waiters = (one, other) if number % 2 else (other, one)
    locks = [("LOCK", name, "LEASE", 30000, "WAIT", 30000) for name in names]
    if number == 0:
        each(holders, locks)
        take_each(holders, ())
    each(waiters, [("PING",)] * size, locks)
    take_each(waiters, ("PONG",))
    each(holders, [("UNLOCK", name) for name in names])
    take_each(holders, (1,))
    take_each(waiters, ())


@contextlib.contextmanager
def connections(proc, size):
    """For each of so many pairs, one connection that holds and one that waits."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(proc.connect()) for _ in range(2 * size)]
        for client in clients:
            client.daemon = proc
        yield clients


MIRROR = ("-o", "drop_in.mirror=yes")

# The name of a way: what a round does, pairs a round, rounds that count; options of the daemon.
WAYS = {
    "one by one": (free_locks, 1, 300),
    "32 at a time": (free_locks, 32, 100),
    "SET and DEL, one by one": (set_and_del, 1, 300),
    "SET and DEL, 32 at a time": (set_and_del, 32, 100),
    "SET and EVALSHA, one by one": (set_and_compare, 1, 300),
    "SET and EVALSHA, 32 at a time": (set_and_compare, 32, 100),
    "hand-over, one by one": (hand_overs, 1, 300),
    "hand-over, 32 at a time": (hand_overs, 32, 100),
    "mirror, one by one": (free_locks, 1, 300, MIRROR),
    "mirror, 32 at a time": (free_locks, 32, 100, MIRROR),
}


def make_daemon(directory, redis, args, wrapper=()):
    return HoldfastProc(directory, {"a": redis.url}, {"lease": "30s", "request_timeout": "5s"}, args=args, wrapper=wrapper)


def count(directory, redis, way, size, rounds, args=()):
    """Instructions of one pair, and those of them in runs of commands of Redis; and the file of callgrind. Under it each
    request is slow: what the slow log takes is left out. So is what the daemon does by the clock: as much as it does while
    nobody asks for anything."""
    out = os.path.join(directory, "callgrind.%s.%d" % (way.__name__, size))
    wrapper = ["valgrind", "--tool=callgrind", "-q", "--callgrind-out-file=%s" % out]
    proc = make_daemon(directory, redis, args, wrapper)
    proc.start()
    with connections(proc, size) as clients:
        seconds = rounds_between(proc, clients, way, size, rounds)
        time.sleep(IDLE_S)
        control(proc, "--dump")
    proc.close()
    redis.cli("FLUSHALL")
    within = inclusive(out + ".1", "run_job", "slowlog_add")
    of_pairs = counted(out + ".1") - within["slowlog_add"] - counted(out + ".2") * seconds / IDLE_S
    return round(of_pairs / (rounds * size)), round(within["run_job"] / (rounds * size)), out + ".1"


def counted(path):
    """What a file of callgrind says."""
    with open(path, encoding="ascii", errors="replace") as text:
        return int(re.search(r"^(?:summary|totals): (\d+)", text.read(), re.M).group(1))


def inclusive(path, *functions):
    """Instructions of these functions and of what they call, by a file of callgrind."""
    said = subprocess.run(["callgrind_annotate", "--auto=no", "--inclusive=yes", "--threshold=100", path], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True).stdout
    within = dict.fromkeys(functions, 0)
    for count_of, name in re.findall(r"^ *([\d,]+) +\([^)]*\) +\S*:(\w+)(?: |$)", said, re.M):
        if name in within:
            within[name] = max(within[name], int(count_of.replace(",", "")))
    return within


def control(proc, what):
    subprocess.run(["callgrind_control", what, str(proc.proc.pid)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def rounds_between(proc, clients, way, size, rounds):
    """Has so many rounds counted of the process, which then begins to count anew; returns how long they took."""
    for i in range(WARM_UP):
        way(clients, i, size)
    control(proc, "--zero")
    start = time.monotonic()
    for i in range(WARM_UP, WARM_UP + rounds):
        way(clients, i, size)
    seconds = time.monotonic() - start
    control(proc, "--dump")
    return seconds


def count_redis(directory, way, size, rounds, args=()):
    """Instructions of redis-server for one pair. What it does ten times a second is left out: how much of it falls to a
    pair only says how busy the machine is."""
    out = os.path.join(directory, "redis.%s.%d" % (way.__name__, size))
    wrapper = ["valgrind", "--tool=callgrind", "-q", "--callgrind-out-file=%s" % out]
    with RedisProc(wrapper=wrapper) as redis:
        proc = make_daemon(directory, redis, args)
        proc.start()
        with connections(proc, size) as clients:
            rounds_between(redis, clients, way, size, rounds)
        proc.close()
    by_the_clock = inclusive(out + ".1", "serverCron")["serverCron"]
    return round((counted(out + ".1") - by_the_clock) / (rounds * size)), 0, out + ".1"


def redis_version():
    text = subprocess.run([find_server(), "--version"], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout
    return "%s redis-server %s" % (os.uname().machine, re.search(r"v=(\S+)", text).group(1))


def compiler():
    """By what the daemon was compiled: machine, compiler, optimization."""
    note = subprocess.run(["readelf", "-p", ".comment", daemon_path()], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True).stdout
    versions = re.findall(r"(GCC|clang)[^\n]*?(\d+)\.\d+\.\d+", note)
    level = re.findall(r"-O\S*", os.environ.get("COST_FLAGS", "-O2"))
    return "%s %s %s" % (os.uname().machine, "-".join(versions[0]) if versions else "?", level[-1] if level else "-O0")


def judge(args, who, known, way, counts):
    """Shows what is counted of one way, and keeps it; the count without runs, and 1 if one of them is too high."""
    stored = known.get(way)
    cost, in_runs, out = counts()
    if not stored or cost > stored * (1 + TOLERANCE):
        cost, in_runs, out = min((cost, in_runs, out), counts())
    if args.profile:
        subprocess.run(["callgrind_annotate", "--threshold=95", out], check=True)
    status = judge_figure(args, who, known, way, cost)
    if in_runs:
        status |= judge_figure(args, who, known, LESS_RUNS % way, cost - in_runs)
    return cost - in_runs, status


def show_goals(costs):
    """Says how pairs of commands of Redis, without their runs, compare with a LOCK and its UNLOCK: in holdfastd, in
    Redis, in both."""
    for way in WAYS:
        if not way.startswith("SET and "):
            continue
        native = way.rsplit(", ", 1)[-1]
        ratios = [cost[way] / cost[native] for cost in costs]
        both = sum(cost[way] for cost in costs) / sum(cost[native] for cost in costs)
        print("%-28s %-48s %.2f times a LOCK with its UNLOCK, the goal is %.1f (holdfastd %.2f, Redis %.2f)" %
              ("holdfastd and Redis", LESS_RUNS % way, both, GOAL, *ratios))


def judge_figure(args, who, known, way, cost):
    """Shows one figure, and keeps it; 1: it is too high."""
    stored = known.get(way)
    print("%-28s %-48s %7d instructions a pair, stored %s" % (who, way, cost, stored))
    too_high = stored and cost > stored * (1 + TOLERANCE)
    if too_high:
        print("that is %+.1f %%: more than %d %% over the stored figure" %
              ((cost / stored - 1) * 100, TOLERANCE * 100))
    if args.update or stored:
        known[way] = cost if args.update else stored
    return 1 if too_high else 0


def main():
    parser = argparse.ArgumentParser(description="Instructions for a LOCK and an UNLOCK.")
    parser.add_argument("--update", action="store_true", help="write the figures")
    parser.add_argument("--profile", action="store_true", help="show where they go")
    args = parser.parse_args()
    if not find_server() or not shutil.which("valgrind"):
        print("needs redis-server and valgrind")
        return SKIP
    with open(FIGURES, encoding="utf-8") as text:
        figures = json.load(text)
    directory, status, costs = tempfile.mkdtemp(prefix="hfc-"), 0, []
    try:
        with RedisProc() as redis:
            for who, counts in ((compiler(), lambda *what: count(directory, redis, *what)),
                                (redis_version(), lambda *what: count_redis(directory, *what))):
                known = figures.setdefault(who, {})
                costs.append({})
                for way, what in WAYS.items():
                    costs[-1][way], too_high = judge(args, who, known, way, lambda: counts(*what))
                    status |= too_high
        show_goals(costs)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if args.update:
        with open(FIGURES, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=2, sort_keys=True)
            out.write("\n")
        status = 0
    return status


if __name__ == "__main__":
    sys.exit(main())
