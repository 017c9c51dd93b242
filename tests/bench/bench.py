#!/usr/bin/python3
"""Measures holdfast side by side with Redis asked directly, and through twemproxy.

    make bench                       every row, five rounds: some twenty minutes
    make bench BENCH=--quick         three short rounds, without the rows of a million leases
    make bench BENCH='--only pairs'  rows whose name has this in it

Each row is measured in rounds in which all peers take turns, so that what else the machine does meets
all of them; the table shows medians. Writes bench.md and plots (SVG) below --out. The exit status says
nothing about the goals: how fast is for people to judge.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time

import plot
from peers import (COMPARE_AND_DELETE, COMPARE_AND_EXTEND, LEASE_MS, TOKEN, Bench, Closed, Direct, Holdfast, NoReply,
                   RespClient, RespError, Twemproxy, cpu_us, descriptors, machine, procs, rss_bytes, set_nx)

CONNS_IDLE = 50000
LEASES, LEASE_CONNS = 1000000, 1000
median = statistics.median


class Row:
    """One line of the table. values: {peer: [measure of each round]}."""

    def __init__(self, what, unit, goals=(), digits=0):
        self.what, self.unit, self.goals, self.digits = what, unit, goals, digits
        self.values = {}
        self.busy = {}     # {peer: [how much of a core the load generator took]}
        self.text = None   # in place of figures

    def add(self, peer, value):
        self.values.setdefault(peer, []).append(value)

    def of(self, peer):
        return median(self.values[peer]) if peer in self.values else None

    def ratio(self, peer):
        return self.of("holdfast") / self.of(peer) if self.of(peer) else None

    def judged(self):
        """(text, met) of each goal that can be judged: (peer or None, "min" or "max", bound)."""
        for peer, kind, bound in self.goals:
            value = self.ratio(peer) if peer else self.of("holdfast")
            if value is not None:
                of_what = " of %s" % peer if peer else " %s" % self.unit
                yield ("%s %g%s" % ("≥" if kind == "min" else "≤", bound, of_what),
                       value >= bound if kind == "min" else value <= bound)

    def show(self, peer):
        return "%.*f" % (self.digits, self.of(peer)) if peer in self.values else ""

    def show_busy(self):
        return ", ".join("%.0f %%" % (100 * median(shares)) for shares in self.busy.values())


def load_script(peer, text):
    """Loads it by whatever serves at the port of a peer; its SHA-1."""
    with RespClient(("127.0.0.1", peer.port)) as client:
        return client.cmd("SCRIPT", "LOAD", text)


def drop_in_figures(*brokers):
    """Of all of them: calls of drop-in, questions put to the masters for them, calls refused without asking."""
    infos = [broker.info() for broker in brokers]
    return [sum(int(info[field]) for info in infos)
            for field in ("drop_in_calls", "drop_in_exchanges", "drop_in_from_memory")]


def children_s():
    """Processor time of the children that have ended: of the servers none has."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_for_answer(address, answers, ends):
    """answers: gets the time at which the server there was first reached."""
    while not answers and not ends.is_set():
        try:
            with RespClient(address, deadline_s=1) as client:
                client.cmd("PING")
                answers.append(time.monotonic())
        except (OSError, Closed, NoReply, RespError):
            time.sleep(0.001)


def take_locks(peer, grants, ends):
    """Takes new locks until `ends` is set; grants: gets the times at which it had them."""
    client, number = None, 0
    while not ends.is_set():
        number += 1
        words = peer.lock("outage:%d:%d" % (id(grants), number))
        try:
            client = client or RespClient(("127.0.0.1", peer.port), deadline_s=60)
            client.cmd(*words + (["WAIT", "60000"] if words[0] == "LOCK" else []))
            grants.append(time.monotonic())
        except RespError as err:   # direct: the new process has no scripts yet
            if err.code == "NOSCRIPT":
                peer.load_scripts()
        except (OSError, Closed, NoReply):
            client = None
            time.sleep(0.001)


# ---- the rows ----------------------------------------------------------------------------------

class Rows:
    def __init__(self, bench, args, proxied):
        self.bench, self.proxied = bench, proxied
        self.rounds, self.seconds, self.stay_s = args.rounds, args.seconds, args.stay
        self.count = {}

    def peers(self):
        classes = [Direct] + ([lambda: Twemproxy(self.bench.dir)] if self.proxied else [])
        return [make() for make in classes] + [Holdfast(self.bench.dir)]

    def rate(self, peer, key, command, conns, pipeline=1):
        """redis-benchmark for about self.seconds: it counts requests, so the first run tells how many."""
        count = self.count.get((peer.name, key), 4 * conns * pipeline + 2000)
        rate = self.bench.redis_benchmark(peer.port, command, conns, pipeline, count)
        if (peer.name, key) not in self.count:
            self.count[peer.name, key] = max(1000, int(rate * self.seconds))
            rate = self.bench.redis_benchmark(peer.port, command, conns, pipeline, self.count[peer.name, key])
        return rate

    def side_by_side(self, row, measure):
        peers = self.peers()
        try:
            for _ in range(self.rounds):
                for peer in peers:
                    cpu, start = children_s(), time.monotonic()
                    row.add(peer.name, measure(peer))
                    share = (children_s() - cpu) / (time.monotonic() - start)
                    row.busy.setdefault(peer.name, []).append(share)
                    time.sleep(LEASE_MS / 1000 + 0.1)   # what it has locked is free again
        finally:
            for peer in peers:
                peer.close()
        return [row]

    def throughput(self, conns, goals):
        """By our own generator: redis-benchmark takes three times as much for a request, which is a whole core
        here. Then it is redis-benchmark that is measured, whoever answers."""
        row = Row("LOCK with LEASE, %d connections" % conns, "/s", goals)
        return self.side_by_side(row, lambda peer: self.bench.load(
            peer.port, [peer.lock("bench:{name}")], conns=conns, seconds=self.seconds)["rate"])

    def by_redis_benchmark(self, conns, pipeline, goals):
        what = "LOCK with LEASE, %d connections, by redis-benchmark" % conns
        what += ", pipeline of %d" % pipeline if pipeline > 1 else ""
        row = Row(what, "/s", goals)
        return self.side_by_side(row, lambda peer: self.rate(peer, what, peer.lock(), conns, pipeline))

    def lock_200(self):
        return self.throughput(200, [("direct", "min", 1.0), ("twemproxy", "min", 1.3)]) + \
            self.by_redis_benchmark(200, 1, [])

    def lock_1000(self):
        return self.throughput(1000, [("direct", "min", 1.2)]) + self.by_redis_benchmark(1000, 1, [])

    def lock_pipeline(self):
        return self.by_redis_benchmark(50, 16, [("direct", "min", 1.2)])

    def pairs(self):
        row = Row("LOCK + UNLOCK, 200 connections", "pairs/s", [("direct", "min", 1.0)])
        return self.side_by_side(row, lambda peer: self.bench.load(
            peer.port, [peer.lock("bench:{name}"), peer.unlock("bench:{name}")], conns=200,
            seconds=self.seconds)["rate"])

    def set_nx(self, conns, goal):
        row = Row("SET NX PX, %d connections" % conns, "/s", [("direct", "min", goal)])
        return self.side_by_side(row, lambda peer: self.bench.load(
            peer.port, [set_nx("bench:{name}")], conns=conns, seconds=self.seconds)["rate"])

    def drop_in_200(self):
        return self.set_nx(200, 0.9)

    def drop_in_1000(self):
        return self.set_nx(1000, 0.9)

    def drop_in_pipeline(self):
        what = "SET NX PX, 50 connections, by redis-benchmark, pipeline of 16"
        row = Row(what, "/s", [("direct", "min", 0.6)])
        return self.side_by_side(row, lambda peer: self.rate(peer, what, set_nx(), 50, 16))

    def drop_in_script(self):
        """Of so many locks that are held, all are freed by the script that everybody frees them by."""
        row = Row("EVALSHA of a compare-and-delete, 200 connections", "/s", [("direct", "min", 1.0)])
        count = int(20000 * self.seconds)

        def measure(peer):
            sha1 = load_script(peer, COMPARE_AND_DELETE)
            for command in set_nx("bench:{name}", 60000), ["EVALSHA", sha1, "1", "bench:{name}", TOKEN]:
                run = self.bench.load(peer.port, [command], conns=200, seconds=60, rounds=count, counted=True)
                assert run["nils"] == 0, "a lock was not free"
            return run["rate"]
        return self.side_by_side(row, measure)

    def drop_in_trips(self):
        """Clients of two brokers want the same names, two each: they take, look, extend, and free."""
        row = Row("calls of drop-in answered in one round trip at most, clients of two brokers", "%",
                  [(None, "min", 95)], 1)
        one = Holdfast(self.bench.dir, name="one")
        two = Holdfast(self.bench.dir, name="two", shared=one.urls)
        try:
            for _ in range(self.rounds):
                before = drop_in_figures(one, two)
                self.mix(one, two)
                after = drop_in_figures(one, two)
                calls, asked, unasked = (after[i] - before[i] for i in range(3))
                row.add("holdfast", 100 * (1 - (asked - (calls - unasked)) / calls))
        finally:
            two.close()
            one.close()
        return [row]

    def mix(self, one, two):
        """At 20 connections of each broker, of which those with the same number want the same name."""
        name, loads = "mix:{conn}", []
        for broker in one, two:
            owner = TOKEN + broker.proc.name
            delete, extend = (load_script(broker, text) for text in (COMPARE_AND_DELETE, COMPARE_AND_EXTEND))
            commands = [["SET", name, owner, "NX", "PX", "30000"], ["GET", name],
                        ["EVALSHA", extend, "1", name, owner, "30000"], ["EVALSHA", delete, "1", name, owner]]
            loads.append(procs.spawn(self.bench.load_argv(broker.port, commands, conns=20, seconds=self.seconds,
                                                          rate=1000), stdout=subprocess.PIPE, universal_newlines=True))
        for load in loads:
            result = json.loads(load.communicate(timeout=60)[0])
            if result["errors"]:
                raise AssertionError(result["first_error"])

    def latency_one(self):
        row = Row("latency of one LOCK, one connection, median", "us", [("direct", "max", 1.35)])
        return self.side_by_side(row, lambda peer: self.bench.load(
            peer.port, [peer.lock("bench:{name}")], seconds=self.seconds)["p50"])

    def latency_tail(self):
        """At half of what the direct way gives."""
        row = Row("latency of one LOCK, 200 connections at half of direct's rate, p99.9", "us",
                  [("direct", "max", 2.0)])
        rates = []

        def measure(peer):
            if not rates:
                rates.append(self.bench.load(peer.port, [peer.lock("bench:{name}")], conns=200,
                                             seconds=self.seconds)["rate"] / 2)
                time.sleep(LEASE_MS / 1000 + 0.1)
            return self.bench.load(peer.port, [peer.lock("bench:{name}")], conns=200, seconds=self.seconds,
                                   rate=rates[0])["p999"]
        return self.side_by_side(row, measure)

    def ping(self):
        row = Row("PING, 200 connections", "/s", [("direct", "min", 0.9)])
        return self.side_by_side(row, lambda peer: self.rate(peer, "ping", ["PING"], 200))

    def refusal(self):
        """A name that another connection holds, against redis-server's PING."""
        row = Row("LOCK refused from memory (direct: PING)", "/s", [("direct", "min", 0.9)])
        direct, broker = Direct(), Holdfast(self.bench.dir)
        try:
            with broker.proc.connect() as holder:
                holder.cmd("LOCK", "bench:taken")
                for _ in range(self.rounds):
                    row.add("direct", self.rate(direct, "ping", ["PING"], 200))
                    row.add("holdfast", self.rate(broker, "refusal", ["LOCK", "bench:taken"], 200))
        finally:
            direct.close()
            broker.close()
        return [row]

    def masters(self):
        """Processor time of holdfastd for a LOCK, by the number of masters."""
        brokers = {n: Holdfast(self.bench.dir, masters=n, name="of-%d" % n) for n in (1, 3, 5)}
        rows = {3: Row("CPU time of holdfastd per LOCK with 3 masters (direct: with one)", "us",
                       [("direct", "max", 1.6)], 1),
                5: Row("the same with 5 masters", "us", [("direct", "max", 2.2)], 1)}
        try:
            for _ in range(self.rounds):
                for n, broker in brokers.items():
                    cost = self.cpu_per_lock(broker, 200)
                    for row in (rows.values() if n == 1 else [rows[n]]):
                        row.add("direct" if n == 1 else "holdfast", cost)
                    time.sleep(LEASE_MS / 1000 + 0.1)
        finally:
            for broker in brokers.values():
                broker.close()
        return list(rows.values())

    def locks(self, broker, conns, rate, seconds):
        """At a fixed rate, as how many requests share a turn of the loop depends on it: the CPU time that
        they took, and their number."""
        before = cpu_us(broker.pid)
        result = self.bench.load(broker.port, [broker.lock("bench:{name}")], conns=conns, seconds=seconds, rate=rate)
        return cpu_us(broker.pid) - before, result["rounds"]

    def cpu_per_lock(self, broker, conns, rate=4000):
        cpu, rounds = self.locks(broker, conns, rate, self.seconds)
        return cpu / rounds

    def cpu_per_lock_connected(self, broker, conns, rate):
        """Of two runs of different length the difference: without what the connections cost at the start."""
        cpu, rounds = self.locks(broker, conns, rate, self.seconds)
        longer_cpu, longer_rounds = self.locks(broker, conns, rate, 3 * self.seconds)
        return (longer_cpu - cpu) / (longer_rounds - rounds)

    def stay(self, broker, conns, rounds, keep_s):
        """Connections that lock `rounds` names, watched, and stay."""
        argv = self.bench.load_argv(broker.path, [["LOCK", "kept:{name}"]] if rounds else [], conns=conns,
                                    seconds=600, rounds=rounds, keep_s=keep_s, counted=True)
        proc = procs.spawn(argv, stdout=subprocess.PIPE, universal_newlines=True)
        result = json.loads(proc.stdout.readline())
        if result["errors"]:
            raise AssertionError(result["first_error"])
        return proc

    def flat(self):
        """What a LOCK costs holdfastd while much is held, and while many are connected."""
        rows = [Row("CPU time per LOCK with 1,000,000 locks held (direct: with 1,000)", "us",
                    [("direct", "max", 1.2)], 1),
                Row("CPU time per LOCK with 10,000 connections (direct: with 1, at the same rate)", "us",
                    [("direct", "max", 1.2)], 1)]
        for count, peer in ((1000, "direct"), (LEASES, "holdfast")):
            broker = Holdfast(self.bench.dir, unix=True)
            try:
                keeper = self.stay(broker, 1000, count, 600)
                for _ in range(self.rounds):
                    rows[0].add(peer, self.cpu_per_lock(broker, 50) - self.cpu_idle(broker) / 4000)
                keeper.kill()
                keeper.wait()
            finally:
                broker.close()
        broker = Holdfast(self.bench.dir, unix=True)
        try:
            for conns, peer in ((1, "direct"), (10000, "holdfast")) * self.rounds:
                rows[1].add(peer, self.cpu_per_lock_connected(broker, conns, 2000))
                time.sleep(LEASE_MS / 1000)
        finally:
            broker.close()
        return rows

    def cpu_idle(self, broker):
        """Processor time in a second in which nobody asks: renewals, mostly."""
        before, start = cpu_us(broker.pid), time.monotonic()
        time.sleep(3)
        return (cpu_us(broker.pid) - before) / (time.monotonic() - start)

    def idle_connections(self):
        conns = min(CONNS_IDLE, descriptors(CONNS_IDLE + 1000) - 1000)
        row = Row("memory of an idle connection, %d of them" % conns, "bytes", [(None, "max", 3072)])
        broker = Holdfast(self.bench.dir, unix=True)
        try:
            before = rss_bytes(broker.pid)
            keeper = self.stay(broker, conns, 0, 600)
            procs.wait_for("connections", lambda: int(broker.info()["connected_clients"]) > conns, 60)
            row.add("holdfast", (rss_bytes(broker.pid) - before) / conns)
            keeper.kill()
            keeper.wait()
        finally:
            broker.close()
        return [row]

    def million(self):
        """A million watched locks on a thousand connections, for five minutes."""
        memory = Row("memory of a watched lock, 1,000,000 held", "bytes", [(None, "max", 300)])
        cpu = Row("CPU of holdfastd renewing 1,000,000 locks, lease 30 s", "%", [(None, "max", 25)], 1)
        late = Row("the latest of their renewals, after it was due", "ms", [(None, "max", 1500)])
        lost = Row("locks lost of them in %d s" % self.stay_s, "of them", [(None, "max", 0)])
        broker = Holdfast(self.bench.dir, unix=True)
        try:
            base = self.stay(broker, LEASE_CONNS, 0, 600)
            procs.wait_for("connections", lambda: int(broker.info()["connected_clients"]) > LEASE_CONNS, 60)
            before = rss_bytes(broker.pid)
            base.kill()
            base.wait()
            keeper = self.stay(broker, LEASE_CONNS, LEASES, 3600)
            memory.add("holdfast", (rss_bytes(broker.pid) - before) / LEASES)
            cpu_before, start = cpu_us(broker.pid), time.monotonic()
            time.sleep(self.stay_s)
            cpu.add("holdfast", (cpu_us(broker.pid) - cpu_before) / 1e4 / (time.monotonic() - start))
            info = broker.info()
            lost.add("holdfast", LEASES - int(info["locks_held"]) +
                     sum(int(v) for k, v in info.items() if k.startswith("lost_")))
            late.add("holdfast", int(dict(f.split("=") for f in info["renewal_lateness_us"].split(","))["max"]) / 1000)
            keeper.kill()
            keeper.wait()
        finally:
            broker.close()
        return [memory, cpu, late, lost]

    def hand_over(self):
        """holdfast bench: 8 clients, 2 ms of work, 5 ms pause, one name; by one broker and by two."""
        one = Holdfast(self.bench.dir, name="one")
        two = Holdfast(self.bench.dir, name="two", shared=one.urls)
        rows = []
        try:
            for brokers, words, bound, spread in (([one], "one broker", 250, 1.05), ([one, two], "two brokers", 500, 1.2)):
                idle = Row("UNLOCK to the next grant, %s, median" % words, "us", [(None, "max", bound)])
                fair = Row("most grants of a client over the least, %s" % words, "", [(None, "max", spread)], 2)
                wait = Row("longest wait over the mean, %s" % words, "", [(None, "max", 2)] if len(brokers) == 1 else [], 2)
                for i in range(self.rounds):
                    run = self.contend(brokers, "%s-%d:" % (words.split()[0], i))
                    idle.add("holdfast", run["handover_us"]["p50"])
                    fair.add("holdfast", run["grants_per_client"]["max"] / max(1, run["grants_per_client"]["min"]))
                    wait.add("holdfast", run["grant_us"]["max"] / run["grant_us"]["mean"])
                rows += [idle, fair, wait]
        finally:
            two.close()
            one.close()
        return rows

    def contend(self, brokers, prefix):
        program = os.environ.get("HOLDFAST", "build/holdfast")
        argv = [program, "bench", "--json", "--clients", "8", "--names", "1", "--hold", "2ms", "--think", "5ms",
                "--duration", "%dms" % int(max(3, self.seconds) * 1000), "--prefix", prefix]
        for broker in brokers:
            argv += ["-u", "redis://127.0.0.1:%d" % broker.port]
        run = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=True,
                             universal_newlines=True)
        return json.loads(run.stdout)


    def patience(self):
        """8 workers that poll by SET NX PX every 100 ms, as redis-py's Lock does, 2 ms of work, 5 ms of pause, one name."""
        direct, broker = Direct(), Holdfast(self.bench.dir, name="patience")
        row = Row("polling SET NX PX, release to the next grant, median", "us", [(None, "max", 500)])
        try:
            with broker.proc.connect() as admin:
                admin.cmd("CONFIG", "SET", "drop_in.patience", "5s")
            for i in range(self.rounds):
                for peer in (direct, broker):
                    row.add(peer.name, self.poll(peer, "polled-%d" % i))
        finally:
            broker.close()
            direct.close()
        return [row]

    def poll(self, peer, lock):
        end, released, gaps, taken = time.monotonic() + max(3, self.seconds), [0.0], [], threading.Lock()

        def work(number):
            value = "worker %d" % number
            with RespClient(("127.0.0.1", peer.port)) as client:
                while time.monotonic() < end:
                    if client.cmd("SET", lock, value, "NX", "PX", 30000) != "OK":
                        time.sleep(0.1)
                        continue
                    with taken:
                        gaps.append(time.monotonic() - released[0])
                    time.sleep(0.002)
                    released[0] = time.monotonic()
                    client.cmd("EVAL", COMPARE_AND_DELETE, 1, lock, value)
                    time.sleep(0.005)
        workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return 1e6 * median(gaps[1:])


    def outage(self):
        """The master is killed and comes back empty, while 10,000 watched locks are held and one client takes one
        lock after the other, or waits for it. Direct loses what is held."""
        row = Row("longest gap between grants in an outage, over the master's own down time", "ms",
                  [(None, "max", 100)], 1)
        direct = Direct()
        broker = Holdfast(self.bench.dir, name="outage", unix=True, lease="10s", max_lease="10s", quarantine="auto",
                          brokers="broker")
        keeper = self.stay(broker, 100, 10000, 600)
        try:
            for _ in range(self.rounds):
                for peer, redis in (direct, direct.redis), (broker, broker.redis[0]):
                    row.add(peer.name, 1000 * self.gap_of_outage(peer, redis))
            info = broker.info()
            lost = {k: v for k, v in info.items() if k.startswith("lost_") and v != "0"}
            assert int(info["locks_held"]) >= 10000 and not lost, (info["locks_held"], lost)
        finally:
            keeper.kill()
            keeper.wait()
            broker.close()
            direct.close()
        return [row]

    def gap_of_outage(self, peer, redis):
        """In seconds, less the time from the kill to the first answer of the new process."""
        grants, answers, ends = [], [], threading.Event()
        threads = [threading.Thread(target=take_locks, args=(peer, grants, ends)),
                   threading.Thread(target=wait_for_answer, args=(redis.address, answers, ends))]
        threads[0].start()
        procs.wait_for("grants", lambda: len(grants) > 100, 20)
        killed = time.monotonic()
        redis.kill()
        time.sleep(0.5)
        threads[1].start()
        redis.start()   # by this thread: with the one that has started it the process would end
        procs.wait_for("the answer of the new process", lambda: answers, 20)
        before = len(grants)
        procs.wait_for("grants", lambda: len(grants) > before + 100, 60)
        ends.set()
        for thread in threads:
            thread.join()
        return max(b - a for a, b in zip(grants, grants[1:])) - (answers[0] - killed)


ROWS = ["lock_200", "lock_1000", "lock_pipeline", "pairs", "drop_in_200", "drop_in_1000", "drop_in_pipeline",
        "drop_in_script", "drop_in_trips", "latency_one", "latency_tail", "masters", "refusal",
        "ping", "hand_over", "patience", "outage", "flat", "idle_connections", "million"]
LONG = ["flat", "million"]


# ---- what comes out ----------------------------------------------------------------------------

def table(rows):
    """The last column: how much of a core the load generator took with each peer. At 100 % it is what is measured."""
    out = ["| what | unit | direct | twemproxy | holdfast | ratio | goal | met | generator |",
           "| --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |"]
    for row in rows:
        ratio = row.ratio("direct")
        judged = list(row.judged())
        out.append("| %s | %s | %s | %s | %s | %s | %s | %s | %s |" % (
            row.what, row.unit, row.show("direct"), row.show("twemproxy"), row.show("holdfast"),
            "%.2f" % ratio if ratio is not None else "",
            "; ".join(goal for goal, _ in judged), "; ".join("yes" if met else "no" for _, met in judged),
            row.show_busy()))
    return "\n".join(out) + "\n"


def write_plots(directory, rows):
    rates = [row for row in rows if row.unit in ("/s", "pairs/s") and "direct" in row.values]
    if rates:
        plot.bars(os.path.join(directory, "throughput.svg"), "Throughput", "a second, medians", [
            (row.what, [(peer, row.of(peer), goal_of(row) if peer == "holdfast" else None)
                        for peer in ("direct", "twemproxy", "holdfast") if peer in row.values]) for row in rates])
    times = [row for row in rows if row.unit == "us"]
    if times:
        plot.bars(os.path.join(directory, "times.svg"), "Times", "microseconds, medians", [
            (row.what.split(" (")[0], [(peer, row.of(peer), goal_of(row) if peer == "holdfast" else None)
                                       for peer in ("direct", "twemproxy", "holdfast") if peer in row.values])
            for row in times])


def goal_of(row):
    for peer, _, bound in row.goals:
        if peer is None or peer == "direct":
            return bound * (row.of("direct") if peer else 1)
    return None


def main():
    parser = argparse.ArgumentParser(description="Side by side with Redis asked directly and through twemproxy.")
    parser.add_argument("--load", default="tests/bench/load", help="the load generator")
    parser.add_argument("--out", default=".", help="directory for bench.md and plots")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
    parser.add_argument("--stay", type=int, default=300, help="seconds for which a million locks are held")
    parser.add_argument("--quick", action="store_true", help="three rounds of a second, without the long rows")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="rows whose name has TEXT in it")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds = 3, 1.0
    proxied = Twemproxy.program() is not None
    bench = Bench(os.path.abspath(args.load))
    rows = Rows(bench, args, proxied)
    done = []
    try:
        for name in ROWS:
            if any(part in name for part in args.only) or (not args.only and not (args.quick and name in LONG)):
                for row in getattr(rows, name)():
                    done.append(row)
                    print("%-72s %s" % (row.what, "  ".join(
                        "%s %s" % (peer, row.show(peer)) for peer in row.values)), flush=True)
    finally:
        bench.close()
    head = "%s. Load: redis-benchmark and tests/bench/load on the same cores. Medians of %d rounds of %g s.\n" % (
        machine(), args.rounds, args.seconds)
    if not proxied:
        head += "\nWithout twemproxy: nutcracker is not installed.\n"
    with open(os.path.join(args.out, "bench.md"), "w", encoding="utf-8") as out:
        out.write(head + "\n" + table(done))
    write_plots(args.out, done)
    print("\n" + head + "\n" + table(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
