"""The Node.js package: the table of scenarios, what is particular to it, and its types."""

import os
import pathlib
import shutil
import subprocess

import pytest

from fetched import fetch
from table import CLIENTS, scenario_test

HERE = pathlib.Path(__file__).resolve().parent / "node"


def installed(directory):
    """Where the package is installed beside what the package.json in there names."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip("%s is not installed" % tool)
    where = fetch("npm-client", [directory / "package.json", directory / "package-lock.json"],
                  ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"])
    package = where / "node_modules" / "holdfast"
    package.mkdir(exist_ok=True)
    for file in (CLIENTS / "node").iterdir():
        if file.is_file():
            shutil.copy(file, package)
    return where


def agent(directory):
    return ["node", installed(directory) / "node_modules" / "holdfast" / "agent.js"], {}


def run(where, *argv):
    done = subprocess.run([str(word) for word in argv], cwd=where, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def particulars(directory, one):
    where = installed(directory)
    shutil.copy(HERE / "own.js", where)
    assert run(where, "node", "own.js", "redis://127.0.0.1:%d" % one.broker.port) == "ok\n"


def test_particulars(one):
    particulars(HERE, one)


test_scenario = scenario_test({"node": lambda: agent(HERE)})

if os.environ.get("HOLDFAST_LIBRARIES") == "all":
    NEWEST = HERE / "newest"
    test_scenario_newest = scenario_test({"node-newest": lambda: agent(NEWEST)}, short=True)

    def test_particulars_newest(one):
        particulars(NEWEST, one)

    def test_types(one):
        where = installed(NEWEST)
        shutil.copy(NEWEST / "types.ts", where)
        run(where, "node_modules/.bin/tsc", "--strict", "--target", "es2022", "--skipLibCheck", "--lib", "es2023,esnext.disposable", "--module", "nodenext",
            "--types", "node", "types.ts")
        assert run(where, "node", "types.js", "redis://127.0.0.1:%d" % one.broker.port).split() == [
            "true", "true", "false", "true", "2", "true"]
