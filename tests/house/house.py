#!/usr/bin/env python3
"""How the tree looks from afar: how many lines and floors it has, how far a request travels through it, how many files
something new touches. Each measure has a goal; the table says which are met.

usage: house.py [--no-trace] [--names] [TREE...]

A TREE is a directory or a revision of git, one column each; the last column is the tree that this file is in. --names
lists what is behind the figures: names of functions in several files, includes that point up, files of something new.
For the way of a request it builds each tree with -finstrument-functions, starts the daemon with three redis-servers and
sends a `LOCK x WAIT 5000` for a free lock: counted is what is entered until the reply is there, in the order of the
calls, without the tools of base/. --no-trace leaves that out.
"""

import argparse
import collections
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, os.pardir, "lib"))

WORDS = 1 << 20
ROUNDS = 60


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def sources(tree, endings=(".c", ".h")):
    found = []
    for folder, _, names in os.walk(os.path.join(tree, "src")):
        found += [os.path.join(folder, name) for name in names if name.endswith(endings)]
    return sorted(os.path.relpath(path, tree) for path in found if not path.endswith("script_lua.h"))


# ---- folders and arrows ----

class Map:
    """The table of src/README.md: modules by rank, as tests/check_layers.sh reads it."""

    def __init__(self, tree):
        self.rank, self.rooms, room = {}, [], ""
        for line in read(os.path.join(tree, "src/README.md")).splitlines():
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) < 4 or cells[1] in ("room", "module") or set(cells[1] + cells[2]) <= set("-"):
                continue
            has_rooms = len(cells) == 5
            room = (cells[1] or room) if has_rooms else ""
            if room and room not in self.rooms:
                self.rooms.append(room)
            for name in cells[2 if has_rooms else 1].split(","):
                self.rank[os.path.join(room, name.strip())] = len(self.rank)

    def module(self, path):
        name = os.path.splitext(path)[0]
        while name not in self.rank and "_" in os.path.basename(name):
            name = name[:name.rindex("_")]
        room = os.path.dirname(path)
        return name if name in self.rank else os.path.join(room, room) if room else name


def includes(tree):
    for path in sources(tree):
        for number, line in enumerate(read(os.path.join(tree, path)).splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            for folder in ("", os.path.dirname(path[len("src/"):])) if found else ():
                other = os.path.join(folder, found[1])
                if os.path.exists(os.path.join(tree, "src", other)):
                    yield path[len("src/"):], number, other
                    break


def arrows(tree):
    """Arrows between folders, those of them that point up, arrows between modules, floors of modules."""
    layers = Map(tree)
    folders, up, below = set(), [], collections.defaultdict(set)
    for path, number, other in includes(tree):
        here, there = os.path.dirname(path), os.path.dirname(other)
        if here != there:
            folders.add((here, there))
            if here in layers.rooms and there in layers.rooms and layers.rooms.index(there) < layers.rooms.index(here):
                up.append("src/%s:%d includes %s" % (path, number, other))
        a, b = layers.module(path), layers.module(other)
        if a != b:
            below[a].add(b)
    height = {}

    def floor(module):
        if module not in height:
            height[module] = 1  # also for whom a circle comes back to
            height[module] = 1 + max([floor(other) for other in below[module]] or [0])
        return height[module]

    floors = max(floor(module) for module in list(below))
    return len(folders), up, sum(len(v) for v in below.values()), floors


# ---- names ----

FUNCTION = re.compile(r"^(?!typedef|struct \w+ \{|enum|#)[a-z][\w \t*(),\n]*?\b(\w+)\((?:[^;{}#]|\n)*?\)\n\{", re.M)


def shared_names(tree):
    """Functions by names that are defined in several files: {name: files}."""
    where = collections.defaultdict(set)
    for path in sources(tree):
        for found in FUNCTION.finditer(read(os.path.join(tree, path))):
            where[found[1]].add(path)
    return {name: sorted(paths) for name, paths in where.items() if len(paths) > 1 and name != "main"}


# ---- something new ----

# For each kind something that is there, by words that stand wherever it was added (code only: manual, sample and tests
# come on top). Of several the first that a tree has: those behind it are for trees of before.
HOLDS = r"\b(VERB_HOLDS|cmd_lock_holds|inspect_holds)\b"
EXAMPLES = (
    ("counter", 2, (r"\bturns_passed\b",)),
    ("gauge", 2, (r"\blongest_wait_ms\b", r"\bclients_unauthenticated\b")),
    ("option", 3, (r"\bhandover_max_count\b",)),
    ("admin command", 3, (r"\bcmd_lock_waiting\b", r"\b(quarantine_trust|rejoin_trust|trust)\b")),
    ("lock command", 6, (HOLDS,)),
    ("lock command with a script", 9, (HOLDS + r"|\b(SCRIPT_PEEK|script_lua_peek)\b|SCRIPT\(PEEK,|lua/peek\.lua",)),
)


def touched(tree, words):
    paths = sources(tree, (".c", ".h", ".lua")) + ["Makefile.am"]
    return [path for path in paths if re.search(words, path) or re.search(words, read(os.path.join(tree, path)))]


def example(tree, examples):
    for words in examples:
        files = touched(tree, words)
        if files:
            return files
    return []


# ---- the way of a request ----

def run(args, **more):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit("%s failed:\n%s" % (" ".join(args), done.stdout[-4000:]))
    return done.stdout


def build(tree, scratch):
    """The daemon of this tree with a call at each end of each function, and what writes these calls down."""
    tracer = os.path.join(scratch, "trace.so")
    run(["cc", "-O2", "-fPIC", "-shared", "-o", tracer, os.path.join(HERE, "trace.c")])
    if not os.path.exists(os.path.join(tree, "configure")):
        run(["autoreconf", "-i"], cwd=tree)
    where = os.path.join(scratch, "build")
    os.makedirs(where, exist_ok=True)
    flags = "-O0 -g -finstrument-functions -finstrument-functions-exclude-file-list=/usr/"
    run([os.path.join(os.path.abspath(tree), "configure"), "-q", "CFLAGS=" + flags], cwd=where)
    run(["make", "-j2", "holdfastd"], cwd=where)
    return os.path.join(where, "holdfastd"), tracer


class Tracer:
    def __init__(self, path):
        with open(path, "wb") as file:
            file.truncate(8 * WORDS)
        self.file = open(path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 8 * WORDS)

    def word(self, i):
        return struct.unpack_from("Q", self.map, 8 * i)[0]

    def set(self, i, value):
        struct.pack_into("Q", self.map, 8 * i, value)

    def start(self):
        self.set(1, 0)
        self.set(0, 1)

    def stop(self):
        self.set(0, 0)
        base = self.word(2)
        return [(word >> 1) - base for word in struct.unpack_from("%dQ" % self.word(1), self.map, 24) if not word & 1]


def place(daemon, addresses):
    """Where each address is: {address: (function, file)}."""
    text = run(["addr2line", "-f", "-e", daemon] + ["%#x" % address for address in addresses]).splitlines()
    return {address: (text[2 * i], re.sub(r"^.*/src/", "src/", text[2 * i + 1].split(":")[0]))
            for i, address in enumerate(addresses)}


LAYERS = Map(TOP)
TOOLS = [name for name in LAYERS.rank if name.startswith("base/")]


def told(way):
    """Without what nobody opens to read on: base/ (also where that lay flat in src/), and what is inline in a header."""
    return [place for place in way
            if not place[1].endswith(".h") and LAYERS.module("base/" + os.path.basename(place[1])) not in TOOLS]


def changes(way):
    return sum(a[1] != b[1] for a, b in zip(way, way[1:]))


def trace(tree, scratch):
    """The functions that a free LOCK enters up to its reply, in order: [(function, file)]."""
    from holdfastproc import HoldfastProc
    from redisproc import RedisProc
    daemon, tracer = build(tree, scratch)
    words = os.path.join(scratch, "trace")
    traced = Tracer(words)
    masters = [RedisProc(name).start() for name in "abc"]
    os.environ["HOLDFASTD"] = daemon
    broker = HoldfastProc(scratch, {m.name: m.url for m in masters}, options={"lease": "30s"},
                          env={"LD_PRELOAD": tracer, "HOUSE_TRACE": words})
    ways = []
    try:
        broker.start()
        with broker.connect() as client:
            for i in range(ROUNDS):
                client.cmd("LOCK", "before", "WAIT", "5000")
                client.cmd("UNLOCK", "before")
                time.sleep(0.05)  # the third master has answered, too; what comes in between is left out below
                traced.start()
                client.cmd("LOCK", "x%d" % i, "WAIT", "5000")
                ways.append(traced.stop())
    finally:
        broker.close()
        for master in masters:
            master.close()
    places = place(daemon, sorted(set(sum(ways, []))))
    ways = [[places[address] for address in way if places[address][1].startswith("src/")] for way in ways]
    return min(ways, key=lambda way: (changes(told(way)), len(way)))  # in the others something else fell due, too


# ---- the table ----

def checkout(tree, scratch):
    if os.path.isdir(tree):
        return os.path.abspath(tree)
    where = os.path.join(scratch, "tree")
    os.makedirs(where)
    archive = subprocess.run(["git", "-C", TOP, "archive", tree], stdout=subprocess.PIPE, check=False)
    if archive.returncode != 0:
        sys.exit("%s: neither a directory nor a revision" % tree)
    subprocess.run(["tar", "x", "-C", where], input=archive.stdout, check=True)
    return where


def measure(tree, args, scratch):
    """[(what, figure, goal)]; a goal of None: there is none."""
    folders, up, modules, floors = arrows(tree)
    names = shared_names(tree)
    code = sources(tree, (".c", ".h", ".lua", ".awk"))
    rows = [
        ("lines in src", sum(read(os.path.join(tree, path)).count("\n") for path in code), None),
        ("files in src", len(code), None),
        ("folders", len({os.path.dirname(path) for path in code}), None),
        ("arrows between folders", folders, 45),
        ("  of these upwards", len(up), 0),
        ("arrows between modules", modules, None),
        ("floors of modules", floors, None),
        ("names of functions in several files", len(names), 10),
    ]
    news = [(kind, goal, example(tree, words)) for kind, goal, words in EXAMPLES]
    rows += [("files for one more " + kind, len(files) or "-", goal) for kind, goal, files in news]
    if not args.no_trace:
        way = trace(tree, scratch)
        entered = [path for _, path in told(way)]
        rows += [
            ("LOCK: functions", len(set(told(way))), None),
            ("LOCK: files", len(set(entered)), 20),
            ("LOCK: changes of file", changes(told(way)), 100),
            ("LOCK, tools too: functions", len(set(way)), None),
            ("LOCK, tools too: files", len({path for _, path in way}), None),
            ("LOCK, tools too: changes of file", changes(way), None),
        ]
    if args.names:
        for line in up:
            print(line)
        for name, paths in sorted(names.items()):
            print("%s: %s" % (name, " ".join(paths)))
        for kind, _, files in news:
            print("one more %s: %s" % (kind, " ".join(files)))
        if not args.no_trace:
            print("LOCK: " + " ".join("%s(%d)" % entry for entry in collections.Counter(entered).most_common()))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-trace", action="store_true")
    parser.add_argument("--names", action="store_true")
    parser.add_argument("trees", nargs="*")
    args = parser.parse_args()
    args.trees.append(TOP)
    if not args.no_trace and not (shutil.which("redis-server") and shutil.which("addr2line")):
        sys.exit("redis-server and addr2line are needed; --no-trace does without them")
    columns = []
    for tree in args.trees:
        scratch = tempfile.mkdtemp(prefix="house-")
        try:
            columns.append(measure(checkout(tree, scratch), args, scratch))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    names = [os.path.basename(os.path.abspath(tree))[:12] if os.path.isdir(tree) else tree[:12] for tree in args.trees]
    print("%-38s%6s" % ("", "goal") + "".join("%14s" % name for name in names))
    for row in zip(*columns):
        what, _, goal = row[0]
        figures = ["%s%s" % (cell[1], "" if goal is None or cell[1] == "-" or cell[1] <= goal else " !") for cell in row]
        print("%-38s%6s" % (what, "" if goal is None else goal) + "".join("%14s" % figure for figure in figures))


main()
