"""Makes a trace that fails small: replays less and less of it, for as long as it still fails in the same way.

What meets what is up to the machine, so a candidate has several tries; each success is written at once, and the
search may be broken off at any time.
"""

import os

import traffic
from world import MASTERS

TRIES = 2          # of each candidate
FIRST_TRIES = 5    # until the whole trace has failed again


def attempt(trace, wanted, finish, tries=TRIES):
    for _ in range(tries):
        failure = traffic.replay(trace, finish)
        if failure and (wanted is None or failure.is_like(wanted)):
            return failure
    return None


def without(parts, start, length):
    return parts[:start] + parts[start + length:]


def fewer(parts, works):
    """The list with as many of its parts left out as can be, by halves, quarters and so on; works(list) tells
    whether what is left still fails."""
    length = len(parts)
    while length >= 1:
        start = 0
        while start < len(parts):
            candidate = without(parts, start, length)
            if candidate and works(candidate):
                parts = candidate
            else:
                start += length
        length //= 2
    return parts


class Shrinker:
    def __init__(self, trace, failure, path):
        self.trace, self.failure, self.path = trace, failure, path
        self.finish = failure.kind in ("left", "unanswered")

    def works(self, trace):
        failure = attempt(trace, self.failure, self.finish)
        if not failure:
            return False
        self.trace = trace
        traffic.save(trace, self.path)
        requests = sum(len(step.get("requests", ())) for step in trace)
        print("shrink: %d steps, %d requests: %s" % (len(trace), requests, failure.text[:160]), flush=True)
        return True

    def connections(self):
        """Whole connections at a time."""
        numbers = sorted({step["c"] for step in self.trace if "c" in step})
        fewer(numbers, lambda some: self.works([s for s in self.trace if "c" not in s or s["c"] in some]))

    def steps(self):
        fewer(list(self.trace), self.works)

    def requests(self):
        """Those of a pipeline, one by one."""
        for i in range(len(self.trace) - 1, -1, -1):
            step = self.trace[i]
            if step["do"] == "send" and len(step["requests"]) > 1:
                fewer(step["requests"], lambda some, at=i, old=step: self.works(
                    self.trace[:at] + [dict(old, requests=some)] + self.trace[at + 1:]))

    def pauses(self):
        """Shorter ones, so that the next replays are quick."""
        for most_s in (0.5, 0.1, 0.02):
            at_s, before_s, shorter = 0.0, 0.0, []
            for step in self.trace:
                at_s += min(step["t"] - before_s, most_s)
                before_s = step["t"]
                shorter.append(dict(step, t=round(at_s, 4)))
            self.works(shorter)


def shrink(path):
    trace = traffic.load(path)
    failure = attempt(trace, None, True, FIRST_TRIES)
    if not failure:
        print("shrink: it has not failed again in %d tries" % FIRST_TRIES)
        return 1
    small = path + ".small"
    print("shrink: it fails again: %s" % failure.text[:300], flush=True)
    shrinker = Shrinker(failure.trace, failure, small)  # it may have failed sooner
    for work in (shrinker.connections, shrinker.pauses, shrinker.steps, shrinker.requests, shrinker.steps):
        work()
    print("shrink: the smallest is in %s" % os.path.abspath(small))
    for step in shrinker.trace:
        print("%8.4f %s" % (step["t"], describe(step)))
    return 0


def describe(step):
    if step["do"] == "send":
        said = " | ".join(" ".join(str(word) for word in request) for request in step["requests"])
        return "%d says%s: %s" % (step["c"], " as lines" if step.get("inline") else "", said)
    if step["do"] == "open":
        return "%d connects to broker %d as %s" % (step["c"], step["b"], step["user"])
    if step["do"] == "end":
        return "%d ends: %s" % (step["c"], step["how"])
    return "master %s: %s" % (MASTERS[step["m"]], step["what"])
