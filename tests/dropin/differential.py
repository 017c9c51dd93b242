#!/usr/bin/python3
"""Runs the same programs against a redis-server and against a subject, and compares every reply but for times to live.

usage: differential.py [--subject one|three|two_brokers|two_brokers_three|redis|wrong:MISTAKE] [--kinds plain,scripts...]
                       [--seed N] [--programs N] [--resp 2|3] [--keep-going] [--show]
One thread sends one step at a time to both sides, so that the seed says all; a program that differs is made shorter
and printed. Exit status: 0 the same, 1 a difference.
"""

import argparse
import collections
import sys
import time

import emulated
import programs
import sides
from typed import Gone, shown

# How far two times to live may be from one another: the sides are asked one after the other, on a busy machine.
SLACK_MS = 4000
TIME_FROM = 15000   # an integer below that is no time: no program has a shorter one
EXPIRY_LIMIT_S = 10
TOLD_LIMIT_S = 2
NULLS = ((b"*", None), (b"_", b""))
NO_VALUES = ((b"$", None), (b"_", b""))
SHRINK_LIMIT_S = 20

SUBJECTS = {
    "one": lambda: sides.Holdfast(1, 1),
    "three": lambda: sides.Holdfast(3, 1),
    "two_brokers": lambda: sides.Holdfast(1, 2),
    "two_brokers_three": lambda: sides.Holdfast(3, 2),
    "redis": sides.Redis,
}
SUBJECTS.update({"wrong:" + mistake.__name__: lambda mistake=mistake: sides.Wrong(mistake()) for mistake in sides.MISTAKES})


def alike(model, subject, has_time):
    """Whether two replies are the same, times within their slack."""
    if model == subject:
        return True
    if model[0] != subject[0] or not has_time:
        return False
    a, b = model[1], subject[1]
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(alike(x, y, True) for x, y in zip(a, b))
    if model[0] != b":":
        return False
    if min(a, b) >= TIME_FROM:
        return abs(a - b) <= (SLACK_MS if max(a, b) < 10 ** 9 or min(a, b) > 10 ** 12 else SLACK_MS // 1000)
    return 15 <= min(a, b) and max(a, b) <= 300 and abs(a - b) <= SLACK_MS // 1000   # seconds


class Pair:
    """The model and the subject, and the connections of the clients to both. The model begins empty, as the subject is."""

    def __init__(self, model, subject, resp=2):
        self.sides = (model, subject)
        self.resp = resp
        self.conns = {}
        conn = model.dial(0)
        conn.ask("FLUSHALL")
        conn.ask("SCRIPT", "FLUSH")
        conn.close()

    def conn(self, client, side):
        if (client, side) not in self.conns:
            conn = self.sides[side].dial(client)
            if self.resp == 3:
                conn.ask("HELLO", "3")
            self.conns[client, side] = conn
        return self.conns[client, side]

    def hang_up(self):
        for conn in self.conns.values():
            conn.close()
        self.conns = {}

    @property
    def n_brokers(self):
        return len(getattr(self.sides[1], "brokers", ()))

    def both(self, step, asked=(0, 1)):
        """The two replies to one step, or that of one side; a closed connection is a reply, too."""
        argv = [_at(word) if isinstance(word, tuple) else word for word in step.argv]
        replies = []
        for side in asked:
            conn = self.conn(step.client, side)
            ask = emulated.ask if emulated.needed(argv) and not isinstance(self.sides[side], sides.Holdfast) else None
            try:
                replies.append(ask(conn, argv) if ask else conn.ask(*argv))
            except Gone as err:
                replies.append((b"-", b"(connection) " + str(err).encode()))
                conn.close()
                del self.conns[step.client, side]
        return replies

    def are_free(self, client, keys):
        """Whether nothing stands under these names, as the model has it."""
        conn = self.sides[0].dial(client)
        replies = [conn.ask("EXISTS", key) for key in keys]
        conn.close()
        return all(reply == (b":", 0) for reply in replies)

    def wait_gone(self, step):
        for side in (0, 1):
            until = time.monotonic() + EXPIRY_LIMIT_S
            while self.conn(step.client, side).ask("EXISTS", step.until_gone) != (b":", 0):
                if time.monotonic() > until:
                    return "has not expired on %s" % ("the model", "the subject")[side]
                time.sleep(0.01)
        return None


def _at(word):
    unit, ahead = word
    return int(time.time() * 1000) + ahead if unit == "ms" else int(time.time()) + ahead


class Difference(Exception):
    def __init__(self, program, steps, trace):
        super().__init__("they differ")
        self.program, self.steps, self.trace = program, steps, trace

    @property
    def last(self):
        return self.trace[-1]

    def hangs_on_a_millisecond(self):
        """The new time was compared with the old one, and both sides may have set that a moment apart."""
        return any(word in ("GT", "LT") or "'GT'" in word or "'LT'" in word for word in (str(w).upper() for w in self.last[0].argv))

    def text(self):
        lines = ["%s, seed %d, %d steps:" % (self.program.kind, self.program.seed, len(self.steps))]
        for step, model, subject, same in self.trace:
            lines.append("  %s" % str(step).replace("\n", "\n      "))
            if same:
                lines.append("      -> %s" % model)
            else:
                lines += ["      model:   %s" % model, "      subject: %s" % subject]
        return "\n".join(lines)


class FreeWatches:
    """What clients watched while it was free. Redis counts changes, holdfast compares what stands there: a lock that was
    taken and freed again in between is as if nothing had happened. That one difference is meant."""

    def __init__(self, pair):
        self.pair, self.watched, self.in_multi = pair, {}, set()

    def note(self, step):
        word = str(step.argv[0]).upper()
        if word == "MULTI":
            self.in_multi.add(step.client)
        elif word == "WATCH" and step.client not in self.in_multi:   # there it is an error
            keys = self.watched.get(step.client, [])
            keys = keys + step.argv[1:] if self.pair.are_free(0, step.argv[1:]) else [None]
            self.watched[step.client] = keys
        elif word in ("UNWATCH", "DISCARD"):
            self.watched.pop(step.client, None)
        if word in ("EXEC", "DISCARD"):
            self.in_multi.discard(step.client)

    def excuse(self, step):
        """Before EXEC: whether it may be done here though it is not on the model."""
        if str(step.argv[0]).upper() != "EXEC":
            return False
        keys = self.watched.pop(step.client, [None])
        return None not in keys and self.pair.are_free(0, keys)


def was_taken(step, reply):
    """Whether a reply says that the step, one that takes only what is free, has taken the lock."""
    words = [str(word).upper() for word in step.argv]
    if words[0] == "SETNX":
        return reply == (b":", 1)
    if words[0] != "SET" or "NX" not in words[3:]:
        return False
    return reply in (NO_VALUES if "GET" in words[3:] else ((b"+", b"OK"),))


def ask_until_told(pair, step, model, subject):
    """A broker that has taken a lock refuses it from memory until it has heard, from the masters, that another broker
    has ended that; a moment after who asked for the end was answered. The manual says so: the step is done again, as
    its client would."""
    until = time.monotonic() + TOLD_LIMIT_S
    while pair.n_brokers > 1 and was_taken(step, model) and not alike(model, subject, False) and time.monotonic() < until:
        time.sleep(0.001)
        subject = pair.both(step, (1,))[0]
    return subject


def run(pair, program, steps):
    """Runs the steps; returns the Difference or None. The state of the connections is the same before each program."""
    trace = []
    pair.hang_up()
    free_watches = FreeWatches(pair)
    for step in steps:
        if step.until_gone:
            fault = pair.wait_gone(step)
            trace.append((step, "gone", fault or "gone", fault is None))
        else:
            free_watches.note(step)
            excused = free_watches.excuse(step)
            model, subject = pair.both(step)
            if excused and model in NULLS and subject[0] == b"*":
                return None   # from here on they stand differently
            subject = ask_until_told(pair, step, model, subject)
            same = alike(model, subject, step.has_time or _queues_time(step))
            trace.append((step, shown(model), shown(subject), same))
        if not trace[-1][3]:
            return Difference(program, steps, trace)
    return None


def _queues_time(step):
    return str(step.argv[0]).upper() == "EXEC"


def fresh(steps, old, new):
    """The same steps under names that nobody has used."""
    def word(text):
        return text.replace(old, new) if isinstance(text, str) else text
    return [programs.Step(step.client, *[word(w) for w in step.argv], has_time=step.has_time,
                          until_gone=word(step.until_gone) if step.until_gone else None) for step in steps]


def shrink(pair, found):
    """The same difference with fewer steps."""
    until = time.monotonic() + SHRINK_LIMIT_S
    program, steps = found.program, found.steps[:len(found.trace)]
    prefix, tries, at, size = program.prefix, 0, 0, max(1, len(steps) // 2)
    while size and time.monotonic() < until:
        tries += 1
        other = "%s:%d:" % (program.prefix, tries)
        fewer = fresh(steps[:at] + steps[at + size:], prefix, other)
        worse = run(pair, program, fewer) if fewer else None
        if worse and worse.last[1:3] == found.last[1:3]:
            found, steps, prefix = worse, fewer[:len(worse.trace)], other
        else:
            at += size
        if at >= len(steps):
            at, size = 0, size // 2 if size > 1 else 0
    return found


def differences(pair, kinds, seed, count, keep_going=False, on_program=None, bodies=None):
    """Runs so many programs of each kind; returns the differences, made short. bodies: for the kind "recorded"."""
    found = []
    for number in range(count):
        for kind in kinds:
            program = programs.Program(kind, seed + number, number, bodies)
            difference = run(pair, program, program.steps)
            if difference and difference.hangs_on_a_millisecond():
                steps, program.prefix = fresh(program.steps, program.prefix, "again:" + program.prefix), "again:" + program.prefix
                difference = run(pair, program, steps)
            if on_program:
                on_program(program, difference)
            if difference:
                found.append(shrink(pair, difference))
                if not keep_going:
                    return found
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--subject", default="one", choices=sorted(SUBJECTS))
    parser.add_argument("--kinds", default=",".join(programs.KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=50, help="of each kind")
    parser.add_argument("--resp", type=int, default=2, choices=(2, 3))
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the programs")
    options = parser.parse_args()
    counts, kinds = collections.Counter(), options.kinds.split(",")

    def on_program(program, difference):
        counts[program.kind, difference is None] += 1
        counts["steps"] += len(program.steps)
        if options.show:
            print("\n".join(str(step) for step in program.steps))
    model, subject = sides.Redis(), SUBJECTS[options.subject]()
    try:
        found = differences(Pair(model, subject, options.resp), kinds, options.seed, options.programs, options.keep_going,
                            on_program)
        for difference in found:
            print(difference.text() + "\n")
        for kind in kinds:
            print("%-14s %5d alike %5d differ" % (kind, counts[kind, True], counts[kind, False]))
        print("%d steps" % counts["steps"])
    finally:
        subject.close()
        model.close()
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
