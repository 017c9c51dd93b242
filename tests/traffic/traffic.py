#!/usr/bin/python3
"""Random valid traffic of all commands against real brokers, whose masters are stopped, killed and restarted.

    tests/traffic/traffic.py --daemon build/holdfastd --seconds 60 [--seed N]
    tests/traffic/traffic.py --daemon build/holdfastd --replay FILE
    tests/traffic/traffic.py --daemon build/holdfastd --shrink FILE

Two brokers, one with users and one without, over three masters. Some dozens of connections say what words.py can
make, in RESP2, in RESP3 and as typed lines, in pipelines of 1 to 10, and end in order, by a reset or half. The
daemon must not end, no sanitizer may say anything, each reply must be possible (oracle.py), and when all is healed
every request must have its answer and nothing may be held.

What was sent is written to a trace, a line for each step with its time. --replay does the same again; --shrink
replays less and less of it for as long as it fails in the same way, and leaves the smallest one in FILE.small.
The seed decides what is said and when; which meets which is up to the machine.

Exit status: 0 all is well, 1 something is wrong, 77 no redis-server.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

# pylint: disable=wrong-import-position
import words as w  # noqa: E402
from holdfastproc import SANITIZER_RE  # noqa: E402
from oracle import Violation  # noqa: E402
from plan import Plan  # noqa: E402
from redisproc import find_server  # noqa: E402
from world import World  # noqa: E402

now = time.monotonic


# ---- runs --------------------------------------------------------------------------------------

class Failure:
    def __init__(self, violation, trace, logs):
        self.kind, self.about, self.text = violation.kind, violation.about, str(violation)
        self.trace, self.logs = trace, logs

    def is_like(self, other):
        """Crashes count as the same wherever they are: memory that was freed shows in many places."""
        return (self.kind, self.about) == (other.kind, other.about)


def in_world(drive, finish=True, judge=None):
    """The failure, or None."""
    directory = tempfile.mkdtemp(prefix="hft-")
    world = World(directory)
    try:
        world.start()
        drive(world)
        if finish:
            world.finish()
            world.close_and_judge()
        if judge:
            judge(world)
        return None
    except Violation as violation:
        logs = {b.name: b.log_text() for b in world.brokers}
        return Failure(violation, world.trace, logs)
    finally:
        world.close()
        shutil.rmtree(directory, ignore_errors=True)


def random_run(seed, seconds):
    plan = Plan(seed)

    def drive(world):
        with world.brokers[1].connect() as client:
            missing = w.missing(client.cmd("COMMAND", "DOCS"))
        if missing:
            raise Violation("incomplete", "; ".join(missing))
        end = now() + seconds
        while now() < end:
            for step in plan.steps(world, now() - world.begun):
                world.perform(step)
            world.run(now() + (plan.rng.expovariate(1 / plan.gap_s) if plan.gap_s else 0))

    def judge(world):
        c = world.counts
        print("traffic: seed %d: %d requests on %d connections, %d grants, %d faults" %
              (seed, c["requests"], c["open"], world.oracle.grants, c["fault"]), flush=True)
        if os.environ.get("TRAFFIC_ANSWERS"):
            print(world.oracle.answers.most_common(40))

    return in_world(drive, judge=judge)


def replay(trace, finish=True):
    def drive(world):
        for step in trace:
            world.run(world.begun + step["t"])
            world.perform(step)
        world.run(now() + 0.5)
    return in_world(drive, finish)


def save(trace, path):
    with open(path, "w", encoding="utf-8") as out:
        for step in trace:
            out.write(json.dumps(step) + "\n")


def load(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def report(failure, path):
    print("traffic: FAILED: %s" % failure.text)
    for name, log in failure.logs.items():
        found = re.search(SANITIZER_RE, log)
        print("--- log of %s\n%s" % (name, log[found.start():][:5000] if found else log[-3000:]))
    if path:
        save(failure.trace, path)
        print("traffic: what was sent is in %s; make it small: tests/traffic/traffic.py --shrink %s" % (path, path))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--daemon", help="the daemon under test (default: $HOLDFASTD, or build/holdfastd)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="default: by chance")
    parser.add_argument("--runs", type=int, default=2, help="so many seeds, one after the other, share the time")
    parser.add_argument("--results", default=".", help="where traffic.trace is left after a failure")
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--shrink", metavar="FILE")
    options = parser.parse_args()
    os.makedirs(options.results, exist_ok=True)
    if find_server() is None:
        print("traffic: redis-server is not installed")
        return 77
    if options.daemon:
        os.environ["HOLDFASTD"] = os.path.abspath(options.daemon)
    if options.shrink:
        import shrink  # pylint: disable=import-outside-toplevel
        return shrink.shrink(options.shrink)
    if options.replay:
        failure = replay(load(options.replay))
        if failure:
            report(failure, None)
        return 1 if failure else 0
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10 ** 6)
    print("traffic: seeds from %d on" % seed, flush=True)
    for i in range(options.runs):
        failure = random_run(seed + i, options.seconds / options.runs)
        if failure:
            report(failure, os.path.join(options.results, "traffic.trace"))
            print("traffic: again: tests/traffic/traffic.py --seed %d --runs 1 --seconds %g" %
                  (seed + i, options.seconds / options.runs))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
