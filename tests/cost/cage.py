#!/usr/bin/python3
"""Counts, by callgrind, the instructions of the scripts that cost most of what the cage lets through.

    tests/cost/cage.py            1 when one of them is over the budget
    tests/cost/cage.py --list     all figures

A client's script runs in one piece, so it is to take well below 10 ms whatever it does: what its instructions are charged
(src/dropin/cage_private.h) keeps within the budget what they take. The scripts stand in cage_bodies.c.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUDGET = 20_000_000
SKIP = 77


def bodies():
    """The program beside the daemon under test."""
    return os.path.join(os.path.dirname(os.environ.get("HOLDFASTD", "./holdfastd")), "tests", "cost", "cage_bodies")


def number(path):
    return int(path.rsplit(".", 1)[1])


def count(directory):
    """Name of each script, the instructions of its run, and what became of it."""
    out = os.path.join(directory, "run")
    said = subprocess.run(["valgrind", "--tool=callgrind", "-q", "--toggle-collect=cage_run", "--dump-after=cage_run",
                           "--callgrind-out-file=%s" % out, bodies()], check=True, stdout=subprocess.PIPE, text=True)
    lines = [line for line in said.stdout.splitlines() if not line.startswith(" ")]
    paths = sorted(glob.glob(out + ".*"), key=number)
    figures = []
    for path in paths:
        with open(path, encoding="ascii", errors="replace") as file:
            figures.append(int(re.search(r"^(?:totals|summary): (\d+)", file.read(), re.M).group(1)))
    assert len(figures) >= len(lines), "a run was not counted"
    return [(line.split(": ", 1)[0], figure, line.split(": ", 1)[1]) for line, figure in zip(lines, figures)]


def main():
    if not shutil.which("valgrind"):
        print("valgrind is missing")
        return SKIP
    with tempfile.TemporaryDirectory() as directory:
        counted = count(directory)
    over = [row for row in counted if row[1] > BUDGET]
    for name, figure, end in counted if "--list" in sys.argv[1:] else over:
        print("%-28s %6.1f million instructions: %s" % (name, figure / 1e6, end))
    dearest = max(counted, key=lambda row: row[1])
    print("cage: %d scripts, at most %.1f of %d million instructions (%s)"
          % (len(counted), dearest[1] / 1e6, BUDGET / 1e6, dearest[0]))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
